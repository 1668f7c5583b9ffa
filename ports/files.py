"""A place for files that a merchant's front end uploads: granted by the core, filled from outside, read by whoever
needs the content. Nobody reads a file from outside."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from .faults import Fault


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was uploaded whole."""

    key: str
    size: int


class FileStore(Protocol):
    """Files by keys, which the core makes up at random."""

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        """Return an address to which one file of this type may be PUT, once, until it expires.

        `max_bytes` bounds the file. `size` is its exact size, where the uploader says it: a store that cannot bound a
        file but can require a size signs it. A store that can do neither leaves the bound to `stat`. The address is the
        permission: it is signed here, without a call.
        """
        ...

    async def stat(self, key: str) -> StoredFile | None:
        """What lies under the key; None while nothing was uploaded whole. Raises: Unavailable."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The content, in parts. Raises: Unavailable; Refused when there is none."""
        ...

    async def remove(self, key: str) -> None:
        """Take the file away, if it is there. Raises: Unavailable."""
        ...


@runtime_checkable
class ElsewhereFiles(FileStore, Protocol):
    """A store whose addresses lead to a server of its own, where others have theirs at our front end
    (`UploadReceiver`). Its bucket must let browsers PUT from the origin of the hosted page."""

    @property
    def upload_origin(self) -> str:
        """Scheme and host of the addresses that `grant` gives (`https://bucket.example`): the hosted page may send
        files there, and nowhere else."""
        ...


@runtime_checkable
class HeadedUploads(FileStore, Protocol):
    """A store whose addresses may be taken with a further header only. Stores that need none are not asked."""

    @property
    def upload_headers(self) -> Mapping[str, str]:
        """What a PUT has to send beside `Content-Type`: `{"If-None-Match": "*"}`; empty: nothing."""
        ...


@runtime_checkable
class EncryptedFiles(FileStore, Protocol):
    """A store that encrypts what it keeps with the keys of our vault, so that a rotation of these has to reach it."""

    async def key_of(self, key: str) -> int | None:
        """Return the id of the vault's key that encrypts the file; None where there is none. Raises: Unavailable;
        VaultError."""
        ...

    async def encrypt_anew(self, key: str) -> None:
        """Encrypt the file with the vault's current key. A file that is removed meanwhile may be there again
        afterwards. Raises: Unavailable; Refused; VaultError."""
        ...


class UploadFault(Fault):
    """An upload that is not taken; `reason` says which of the store's conditions it breaks."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


FORBIDDEN = "forbidden"
"""The address was not granted, was altered, or has expired."""
EXISTS = "exists"
"""The file is there already."""
WRONG_TYPE = "wrong_type"
"""Another Content-Type than granted, or content of another kind."""
TOO_LARGE = "too_large"
BUSY = "busy"
"""Too many uploads at once, or one of this file is under way."""


@runtime_checkable
class UploadReceiver(Protocol):
    """A store that takes its uploads through our own front end, where others have a server of their own."""

    def admit(self, key: str, query: Mapping[str, str], content_type: str | None, length: int | None) -> None:
        """Refuse an upload before a byte of it is read. `query` is that of the granted address, `length` what the
        request declares. Raises: UploadFault."""
        ...

    async def receive(self, key: str, query: Mapping[str, str], parts: AsyncIterator[bytes]) -> StoredFile:
        """Take the content of an upload that `admit` let through. All of it is stored, or nothing.

        Raises: UploadFault; Unavailable when it cannot be stored.
        """
        ...
