"""Simulated browser uploads for files.py, and a store of ready files for verifiers that read documents (ports/files.py:
FileStore)."""

import asyncio
import http.client
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

from ...ports.faults import Refused
from ...ports.files import FileStore, HeadedUploads, StoredFile, UploadFault, UploadReceiver

IMAGES: Mapping[str, bytes] = {"selfie": b"\xff\xd8\xff a face", "document": b"\x89PNG\r\n\x1a\n a page"}
"""The files that a KycHarness names by default."""


class Uploads:
    """Fills cambist.ports.FileStore: `msgspec.structs.replace(service.tools(), files=Uploads())`."""

    def __init__(self, files: Mapping[str, bytes] = IMAGES) -> None:
        self._files = dict(files)

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        """Not supported: this store accepts no uploads."""
        raise NotImplementedError

    async def stat(self, key: str) -> StoredFile | None:
        content = self._files.get(key)
        return None if content is None else StoredFile(key=key, size=len(content))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the content in two parts. Raises: Refused."""
        if key not in self._files:
            raise Refused("there is no such file", reason="not_found")
        content = self._files[key]
        middle = len(content) // 2
        for part in (content[:middle], content[middle:]):
            yield part

    async def remove(self, key: str) -> None:
        self._files.pop(key, None)


class _GoneError(Exception):
    """The browser disconnected."""


async def put(
    files: FileStore,
    address: str,
    content_type: str,
    content: bytes,
    *,
    breaks_off: bool = False,
) -> bool:
    """PUT the content to a granted URL as a browser does, either to the store's own server or to our front end. Return
    whether it was accepted; an upload that breaks off is not."""
    sent = content[: len(content) // 2] if breaks_off else content
    if not isinstance(files, UploadReceiver):
        headers = {"Content-Type": content_type, "Content-Length": str(len(content))}
        headers |= files.upload_headers if isinstance(files, HeadedUploads) else {}
        return await asyncio.to_thread(_put_elsewhere, address, headers, sent, len(content))

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 65_536):
            yield sent[start : start + 65_536]
        if breaks_off:
            raise _GoneError

    told = urlsplit(address)
    key, query = told.path.rpartition("/")[2], dict(parse_qsl(told.query, keep_blank_values=True))
    try:
        files.admit(key, query, content_type, len(content))
        await files.receive(key, query, parts())
    except (UploadFault, _GoneError):
        return False
    return True


def _put_elsewhere(address: str, headers: Mapping[str, str], sent: bytes, length: int) -> bool:
    told = urlsplit(address)
    connect = http.client.HTTPSConnection if told.scheme == "https" else http.client.HTTPConnection
    connection = connect(told.netloc, timeout=10)
    try:
        connection.putrequest("PUT", f"{told.path}?{told.query}")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(sent)
        if len(sent) < length:
            return False
        return 200 <= connection.getresponse().status < 300
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
