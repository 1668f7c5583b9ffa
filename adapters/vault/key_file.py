"""Vault keys in a file, for installations without their own secret store.

The file is beside the database, so a copy of both reveals everything. Its mode is 0600. It is never modified in place:
a complete draft replaces it in one step.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from ...ports.vault import VaultError
from ...ports.written_files import written_text
from ..durable import sync
from .aes import AesVault

_KEY_SIZE = 32
_OTHERS = 0o077
"""Permission bits of everybody but the owner."""
_IDS = range(1, 256)


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The JSON file: keys by id and the pepper, all in hex."""

    current: int
    keys: dict[int, str]
    pepper: str

    def __repr__(self) -> str:
        return "<key file>"


def load_or_create(path: Path) -> AesVault:
    """Load the vault whose keys are in the file at `path`; create the file with fresh keys if it does not exist.

    If two processes start at once, one writes the file and both read it. Raises VaultError when the file is unreadable,
    damaged, or accessible to other users.
    """
    try:
        if not path.exists():
            _create(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    content = _read(path)
    try:
        keys = {number: bytes.fromhex(key) for number, key in content.keys.items()}
        pepper = bytes.fromhex(content.pepper)
    except ValueError:
        raise VaultError(f"the key file {path} is damaged") from None
    return AesVault(keys, content.current, pepper)


def add_key(path: Path) -> int:
    """Add a fresh key to the file and return its id. The vault encrypts with it from the next start on; older keys
    still decrypt.

    Running processes do not know the new key and could not decrypt values encrypted with it, so none may run. Raises
    VaultError, also when all ids are taken.
    """
    content = _read(path)
    # Never reuse an id: an old backup may contain values of the former key.
    number = max(content.keys, default=0) + 1
    if number not in _IDS:
        raise VaultError(f"the key file {path} has no free key id left")
    keys = {**content.keys, number: secrets.token_hex(_KEY_SIZE)}
    _replace(path, _KeyFile(current=number, keys=keys, pepper=content.pepper))
    return number


def drop_key(path: Path, number: int) -> None:
    """Remove a key from the file. Raises VaultError if it is the current key or does not exist."""
    content = _read(path)
    if number == content.current:
        raise VaultError(f"key {number} is the one that seals")
    if number not in content.keys:
        raise VaultError(f"the key file {path} has no key {number}")
    keys = {each: key for each, key in content.keys.items() if each != number}
    _replace(path, _KeyFile(current=content.current, keys=keys, pepper=content.pepper))


def _read(path: Path) -> _KeyFile:
    """Raises VaultError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if os.name == "posix" and mode & _OTHERS:
        raise VaultError(f"the key file {path} is open to other users; set its mode to 0600")
    try:
        written = written_text(text)
    except ValueError as error:
        raise VaultError(f"the key file {path} cannot be read: {error}") from None
    try:
        return msgspec.json.decode(written, type=_KeyFile)
    except (ValueError, RecursionError):
        # The original error would quote the file.
        raise VaultError(f"the key file {path} is damaged") from None


def _unreadable(path: Path, error: OSError) -> VaultError:
    return VaultError(f"the key file {path} cannot be read or written: {error.strerror}")


def _create(path: Path) -> None:
    """Write the complete file under another name, then link it. The first process to link wins, and no process reads a
    partial file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = _KeyFile(current=1, keys={1: secrets.token_hex(_KEY_SIZE)}, pepper=secrets.token_hex(_KEY_SIZE))
    draft = _draft(path, content)
    try:
        with suppress(FileExistsError):  # another process was first, so its keys count
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    sync(path.parent)


def _replace(path: Path, content: _KeyFile) -> None:
    """Raises VaultError."""
    try:
        _draft(path, content).replace(path)
        sync(path.parent)
    except OSError as error:
        raise _unreadable(path, error) from error


def _draft(path: Path, content: _KeyFile) -> Path:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return draft
