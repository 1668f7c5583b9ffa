"""An encrypted file on the local disk: a header, then parts that the vault encrypts one by one, in bounded memory.

The header is `cambist1` and a random id of 16 bytes. A part consists of the lengths of its plain and encrypted bytes, 4
bytes each, and the encrypted bytes. Each part is bound to the file's key, that id, its number, and whether it is the
last part. So a part that was altered, moved, removed or taken from another file does not decrypt, and neither does a
truncated or renamed file.
"""

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

from ...ports.vault import Vault, VaultError

PART = 256 * 1024
"""Maximum plain bytes of a part."""

_HEAD = b"cambist1"
_ID_SIZE = 16
_LENGTHS = struct.Struct(">II")
_OVERHEAD = 256
"""More than any vault adds to a value."""


class PartWriter:
    """Write one file from its beginning."""

    def __init__(self, file: BinaryIO, vault: Vault, key: str) -> None:
        self._file = file
        self._vault = vault
        self._key = key
        self._id = os.urandom(_ID_SIZE)
        self._number = 0
        self._file.write(_HEAD + self._id)

    def write(self, plain: bytes, *, last: bool = False) -> None:
        """Encrypt and write the next part, of at most PART bytes. The file is complete once its last part is
        written."""
        sealed = self._vault.encrypt(plain, _place(self._key, self._id, self._number, last=last))
        self._file.write(_LENGTHS.pack(len(plain), len(sealed)) + sealed)
        self._number += 1


def encrypt_file(source: BinaryIO, target: BinaryIO, vault: Vault, key: str) -> None:
    """Write the rest of `source` to `target`, encrypted."""
    writer, part = PartWriter(target, vault, key), source.read(PART)
    while following := source.read(PART):
        writer.write(part)
        part = following
    writer.write(part, last=True)


def read_parts(file: BinaryIO, vault: Vault, key: str) -> Iterator[bytes]:
    """Decrypt a file part by part. Raises: VaultError at the first altered part."""
    file_id = _file_id(file)
    number, lengths = 0, _lengths(file)
    while lengths is not None:
        sizes = lengths
        sealed = file.read(sizes[1])
        lengths = _lengths(file)
        plain = vault.decrypt(sealed, _place(key, file_id, number, last=lengths is None))
        if (len(plain), len(sealed)) != sizes:
            raise VaultError("a part of an encrypted file has another size")
        number += 1
        if plain:
            yield plain
    if not number:
        raise VaultError("an encrypted file has no parts")


def plain_size(file: BinaryIO) -> int:
    """Add up the sizes stated in the parts; only reading verifies them. Raises: VaultError if the file is not
    encrypted."""
    _file_id(file)
    size = 0
    while (lengths := _lengths(file)) is not None:
        size += lengths[0]
        file.seek(lengths[1], os.SEEK_CUR)
    return size


def vault_key(file: BinaryIO, vault: Vault) -> int:
    """Return the id of the vault key that encrypts a file. Raises: VaultError."""
    _file_id(file)
    lengths = _lengths(file)
    return vault.key_of(b"" if lengths is None else file.read(lengths[1]))


def _place(key: str, file_id: bytes, number: int, *, last: bool) -> str:
    return f"uploads:{key}:{file_id.hex()}:{number}:{'last' if last else 'more'}"


def _file_id(file: BinaryIO) -> bytes:
    head = file.read(len(_HEAD) + _ID_SIZE)
    if len(head) != len(_HEAD) + _ID_SIZE or not head.startswith(_HEAD):
        raise VaultError("a file is not an encrypted one")
    return head[len(_HEAD) :]


def _lengths(file: BinaryIO) -> tuple[int, int] | None:
    """Read the lengths of the next part; None at the end of the file. Raises: VaultError."""
    read = file.read(_LENGTHS.size)
    if not read:
        return None
    if len(read) != _LENGTHS.size:
        raise VaultError("an encrypted file was cut off")
    plain, sealed = _LENGTHS.unpack(read)
    if plain > PART or sealed > PART + _OVERHEAD:
        raise VaultError("an encrypted file has a part that is too large")
    return plain, sealed
