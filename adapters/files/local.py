"""Files on the local disk, uploaded through our own front end by signed addresses.

An upload is encrypted while it arrives (encrypted.py), written under a temporary name, and linked to its key when it is
complete. So a file under a key is always complete; only a rotation of the vault's keys replaces it. Several processes
need a shared folder.
"""

import asyncio
import hmac
import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlencode

from ...ports.clock import Clock
from ...ports.faults import Refused, Unavailable
from ...ports.files import BUSY, EXISTS, FORBIDDEN, TOO_LARGE, WRONG_TYPE, StoredFile, UploadFault
from ...ports.vault import Vault, VaultError
from ..durable import sync
from .encrypted import PART, PartWriter, plain_size, read_parts, vault_key

MAGIC: Mapping[str, bytes] = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "application/pdf": b"%PDF-",
}
"""First bytes of a file of each allowed type."""

AT_ONCE = 32
"""Concurrent uploads in one process. Together with each upload's buffer this limits the memory."""
SILENCE = 30.0
"""Seconds without data after which an upload is aborted."""
LONGEST = 120.0
"""Maximum seconds of an upload, even beyond the expiry of its address."""
GRACE = 10.0
"""Seconds before the minimum rate applies."""
LEAST_RATE = 4096
"""Minimum average bytes a second after that, so that a slow client cannot occupy a slot."""
_LEFT_BEHIND = timedelta(hours=1)
_KEY = re.compile(r"[0-9a-f]{64}\Z")
_NUMBER = re.compile(r"[0-9]{1,12}\Z")


class LocalFiles:
    """Implement the ports FileStore, UploadReceiver and EncryptedFiles."""

    def __init__(
        self,
        folder: Path,
        base_url: str,
        vault: Vault,
        clock: Clock,
        *,
        silence: float = SILENCE,
        at_once: int = AT_ONCE,
    ) -> None:
        """`folder` is created at the first upload. `base_url` is the public address of our front end."""
        self._folder = folder
        self._base_url = base_url
        self._vault = vault
        self._clock = clock
        self._silence = silence
        self._free = at_once
        self._under_way: set[str] = set()

    def grant(
        self,
        key: str,
        content_type: str,
        max_bytes: int,
        expires_at: datetime,
        *,
        size: int | None = None,  # noqa: ARG002 - `max_bytes` is enforced
    ) -> str:
        """Return an upload address of our front end. Raises: ValueError for an invalid key or type."""
        if not _KEY.match(key) or content_type not in MAGIC:
            raise ValueError("a key has 64 hex digits, a type is one whose beginning is known")
        expires = str(int(expires_at.timestamp()))
        limit = str(max_bytes)
        terms = {"ct": content_type, "max": limit, "exp": expires}
        return f"{self._base_url}/uploads/{key}?{urlencode({**terms, 'sig': self._sign(key, **terms)})}"

    async def stat(self, key: str) -> StoredFile | None:
        """Return the file under the key, or None. Raises: Unavailable."""
        try:
            file = await self._open(key)
        except Refused:
            return None
        with file:
            try:
                return StoredFile(key=key, size=await asyncio.to_thread(plain_size, file))
            except VaultError:
                return None  # the file cannot be read either
            except OSError as error:
                raise _unavailable(error) from None

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the content, decrypted part by part. Raises: Unavailable; Refused, also for an altered file."""
        with await self._open(key) as file:
            parts = read_parts(file, self._vault, key)
            try:
                while part := await asyncio.to_thread(next, parts, None):
                    yield part
            except VaultError as error:
                raise Refused(f"a file was altered, or its key is gone: {error}", reason="altered") from None
            except OSError as error:
                raise _unavailable(error) from None

    async def key_of(self, key: str) -> int | None:
        """Return the id of the vault key that encrypts the file; None if the file does not exist. Raises: Unavailable;
        VaultError."""
        try:
            file = await self._open(key)
        except Refused:
            return None
        with file:
            try:
                return await asyncio.to_thread(vault_key, file, self._vault)
            except OSError as error:
                raise _unavailable(error) from None

    async def encrypt_anew(self, key: str) -> None:
        """Encrypt the file again with the vault's current key and replace it. Raises: Unavailable; Refused;
        VaultError."""
        with await self._open(key) as file:
            draft = self._draft(key)

            def work() -> None:
                with self._create(draft) as fresh:
                    writer, part = PartWriter(fresh, self._vault, key), b""
                    for following in read_parts(file, self._vault, key):
                        if part:
                            writer.write(part)
                        part = following
                    _finish(writer, fresh, part)
                draft.replace(self._folder / key)
                sync(self._folder)

            try:
                await asyncio.to_thread(work)
            except OSError as error:
                raise _unavailable(error) from None
            finally:
                with suppress(OSError):
                    draft.unlink()

    async def remove(self, key: str) -> None:
        """Delete the file. Raises: Unavailable."""
        path = self._path(key)
        if path is None:
            return
        try:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        except OSError as error:
            raise _unavailable(error) from None

    async def clean(self) -> None:
        """Delete temporary files that uploads left after a crash."""
        if self._has_files():  # a new installation opens without a thread
            await asyncio.to_thread(self._remove_left_behind)

    def _has_files(self) -> bool:
        return self._folder.is_dir()

    def _remove_left_behind(self) -> None:
        edge = (self._clock.now() - _LEFT_BEHIND).timestamp()
        for part in self._folder.glob("*.part"):
            with suppress(OSError):
                if part.stat().st_mtime < edge:
                    part.unlink()

    def admit(self, key: str, query: Mapping[str, str], content_type: str | None, length: int | None) -> None:
        """Refuse an upload before its body is read. Raises: UploadFault."""
        limit = self._judge(key, query)
        media = (content_type or "").partition(";")[0].strip().lower()
        if media != query.get("ct"):
            raise UploadFault(WRONG_TYPE, f"Content-Type must be {query.get('ct')}, as granted")
        if length is not None and length > limit:
            raise UploadFault(TOO_LARGE, f"The file is over {limit} bytes")
        path = self._path(key)
        try:
            exists = path is not None and path.exists()
        except OSError:
            exists = False  # the folder is unavailable, which the upload will report
        if exists:
            raise _exists()

    async def receive(self, key: str, query: Mapping[str, str], parts: AsyncIterator[bytes]) -> StoredFile:
        """Write the parts to disk as they arrive. Raises: UploadFault, Unavailable."""
        limit, magic = self._judge(key, query), MAGIC[query["ct"]]
        if self._free <= 0:
            raise UploadFault(BUSY, "Too many uploads at once; try again")
        if key in self._under_way:
            raise UploadFault(BUSY, "The file is being uploaded already")
        self._free -= 1
        self._under_way.add(key)
        draft = self._draft(key)
        try:
            with await asyncio.to_thread(self._create, draft) as file:
                size = await self._write(file, key, parts, limit, magic)
            await asyncio.to_thread(self._keep, draft, key)
        except OSError as error:
            raise _unavailable(error) from None
        finally:
            self._free += 1
            self._under_way.discard(key)
            with suppress(OSError):
                draft.unlink()
        return StoredFile(key=key, size=size)

    async def _write(self, file: BinaryIO, key: str, parts: AsyncIterator[bytes], limit: int, magic: bytes) -> int:
        """Encrypt the upload into the file, and return its size. Raises: UploadFault, OSError."""
        writer = await asyncio.to_thread(PartWriter, file, self._vault, key)
        size, looked_at = 0, False
        waiting = bytearray()
        began = self._clock.monotonic()
        while True:
            passed = self._clock.monotonic() - began
            left, broken = min(
                (LONGEST - passed, f"The upload took longer than {LONGEST:.0f} seconds"),
                (GRACE + size / LEAST_RATE - passed, f"The upload is slower than {LEAST_RATE} bytes a second"),
                (self._silence, "The upload stood still"),
            )
            if left <= 0:
                raise UploadFault(WRONG_TYPE, broken)
            try:
                part = await asyncio.wait_for(anext(parts, None), left)
            except TimeoutError:
                raise UploadFault(WRONG_TYPE, broken) from None
            if part is None:
                break
            size += len(part)
            if size > limit:
                raise UploadFault(TOO_LARGE, f"The file is over {limit} bytes")
            waiting += part
            if not looked_at and size >= len(magic):
                _look_at(waiting, magic)
                looked_at = True
            while len(waiting) > PART:  # keep a non-empty rest: it may be the last part
                await asyncio.to_thread(writer.write, bytes(waiting[:PART]))
                del waiting[:PART]
        if not looked_at:
            _look_at(waiting, magic)
        await asyncio.to_thread(_finish, writer, file, bytes(waiting))
        return size

    def _judge(self, key: str, query: Mapping[str, str]) -> int:
        """Verify the address, and return its size limit in bytes. Raises: UploadFault if the address is forged or
        expired."""
        terms = {name: query.get(name, "") for name in ("ct", "max", "exp")}
        given = query.get("sig", "")
        # Verify the signature before using any other term. Compare bytes, because compare_digest rejects non-ASCII
        # text.
        signed = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._sign(key, **terms).encode())
        if not signed or not _KEY.match(key) or terms["ct"] not in MAGIC:
            raise UploadFault(FORBIDDEN, "The address was not granted, or was altered")
        if not _NUMBER.match(terms["max"]) or not _NUMBER.match(terms["exp"]):
            raise UploadFault(FORBIDDEN, "The address was not granted, or was altered")
        if self._clock.now().timestamp() >= int(terms["exp"]):
            raise UploadFault(FORBIDDEN, "The address has expired")
        return int(terms["max"])

    def _sign(self, key: str, ct: str, max: str, exp: str) -> str:  # noqa: A002  (the name in the address)
        return self._vault.fingerprint("\n".join(("upload", "PUT", key, ct, max, exp))).hex()

    def _path(self, key: str) -> Path | None:
        return self._folder / key if _KEY.match(key) else None

    async def _open(self, key: str) -> BinaryIO:
        """Raises: Refused if the file does not exist; Unavailable."""
        path = self._path(key)
        if path is None:
            raise Refused("there is no such file", reason="not_found")
        try:
            return await asyncio.to_thread(path.open, "rb")
        except FileNotFoundError:
            raise Refused("there is no such file", reason="not_found") from None
        except OSError as error:
            raise _unavailable(error) from None

    def _draft(self, key: str) -> Path:
        return self._folder / f"{key}.{secrets.token_hex(8)}.part"

    def _create(self, draft: Path) -> BinaryIO:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def _keep(self, draft: Path, key: str) -> None:
        """Link the draft to its key. Raises: UploadFault if another upload was first; OSError."""
        try:
            (self._folder / key).hardlink_to(draft)
        except FileExistsError:
            raise _exists() from None
        sync(self._folder)


def _look_at(beginning: bytearray, magic: bytes) -> None:
    if not beginning.startswith(magic):
        raise UploadFault(WRONG_TYPE, "The content is not of the granted type")


def _finish(writer: PartWriter, file: BinaryIO, rest: bytes) -> None:
    writer.write(rest, last=True)
    file.flush()
    os.fsync(file.fileno())


def _exists() -> UploadFault:
    return UploadFault(EXISTS, "The file was uploaded already")


def _unavailable(error: OSError) -> Unavailable:
    return Unavailable(f"the file store does not work: {error.strerror}")
