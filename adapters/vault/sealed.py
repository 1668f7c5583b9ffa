"""AES-256-GCM with keys from settings or from a key file.

A sealed value is: one byte key id, 12 bytes nonce, ciphertext with its 16-byte tag. The place is the associated data.
Random nonces of 96 bits are good for 2^32 values per key, far above what one installation seals between two rotations.
"""

import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ...ports.vault import VaultError

_KEY_SIZE = 32
_NONCE_SIZE = 12
_TAG_SIZE = 16
_OTHERS = 0o077
"""Permission bits of everybody but the owner."""


def _bytes(text: str) -> bytes:
    # Headers are fingerprinted before anything vouches for them: no text may fail here.
    return text.encode("utf-8", "surrogatepass")


class SealedVault:
    """Seals with the current key, unseals with any key it has. Old keys stay until everything is sealed anew."""

    __slots__ = ("_ciphers", "_current", "_pepper")

    def __init__(self, keys: Mapping[int, bytes], current: int, pepper: bytes) -> None:
        """Raises VaultError when a key is not 32 bytes or its id not 0 to 255, when `current` names none of them,
        or when the pepper is shorter than 32 bytes."""
        if any(not 0 <= number <= 255 for number in keys):
            raise VaultError("a vault key id is a number from 0 to 255")
        if any(len(key) != _KEY_SIZE for key in keys.values()):
            raise VaultError(f"a vault key has {_KEY_SIZE} bytes")
        if current not in keys:
            raise VaultError("the current vault key is not among the keys")
        if len(pepper) < _KEY_SIZE:
            raise VaultError(f"the pepper has at least {_KEY_SIZE} bytes")
        self._ciphers = {number: AESGCM(key) for number, key in keys.items()}
        self._current = current
        self._pepper = pepper

    def __repr__(self) -> str:
        return "<SealedVault>"

    def seal(self, plain: bytes, place: str) -> bytes:
        """Key id, nonce, ciphertext and tag, in one."""
        nonce = os.urandom(_NONCE_SIZE)
        return bytes((self._current,)) + nonce + self._ciphers[self._current].encrypt(nonce, plain, _bytes(place))

    def unseal(self, sealed: bytes, place: str) -> bytes:
        """The plain bytes. Raises VaultError, without a word of the content."""
        if len(sealed) < 1 + _NONCE_SIZE + _TAG_SIZE:
            raise VaultError("a sealed value is too short")
        cipher = self._ciphers.get(sealed[0])
        if cipher is None:
            raise VaultError(f"a value is sealed with key {sealed[0]}, which this vault does not have")
        try:
            return cipher.decrypt(sealed[1 : 1 + _NONCE_SIZE], sealed[1 + _NONCE_SIZE :], _bytes(place))
        except InvalidTag:
            raise VaultError("a sealed value was altered or belongs elsewhere") from None

    def fingerprint(self, secret: str) -> bytes:
        """HMAC-SHA256 under the pepper: 32 bytes. No slow hash, because the secrets have 256 random bits."""
        return hmac.digest(self._pepper, _bytes(secret), "sha256")


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as JSON: keys by id and the pepper, all in hex. To rotate, add a key and name it current."""

    current: int
    keys: dict[int, str]
    pepper: str

    def __repr__(self) -> str:
        return "<key file>"


def load_or_create(path: Path) -> SealedVault:
    """The vault whose keys are in the file at `path`; a file with fresh keys is written when there is none.

    For installations without a secret store of their own: the file lies beside the database, so a copy of both opens
    everything. Mode 0600. Of two processes that start at once, one writes the file and both read it.

    Raises VaultError when the file is unreadable, damaged, or open to other users.
    """
    try:
        if not path.exists():
            _create(path)
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except OSError as error:
        raise VaultError(f"the key file {path} cannot be read or written: {error.strerror}") from error
    if os.name == "posix" and mode & _OTHERS:
        raise VaultError(f"the key file {path} is open to other users; set its mode to 0600")
    try:
        content = msgspec.json.decode(text, type=_KeyFile)
        keys = {number: bytes.fromhex(key) for number, key in content.keys.items()}
        pepper = bytes.fromhex(content.pepper)
    except (ValueError, RecursionError):
        # The cause would quote the file.
        raise VaultError(f"the key file {path} is damaged") from None
    return SealedVault(keys, content.current, pepper)


def _create(path: Path) -> None:
    """Write the whole file under another name, then link it: whoever links first wins, and nobody reads a half."""
    content = _KeyFile(current=1, keys={1: secrets.token_hex(_KEY_SIZE)}, pepper=secrets.token_hex(_KEY_SIZE))
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):  # another process was first: its keys count
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new name durable, before anything is sealed with what it names."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
