"""The port for files that a merchant's front end uploads. The core grants an upload, the front end fills it, and the
service reads the content. Files cannot be read from outside."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from .faults import Fault


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A completely uploaded file."""

    key: str
    size: int


class FileStore(Protocol):
    """Files by keys, which the core generates at random."""

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        """Return a URL to which one file of this type can be PUT, once, before `expires_at`.

        `max_bytes` limits the file. `size` is its exact size, if the uploader states it: a store that cannot limit a
        file but can require a size signs it. A store that can do neither leaves the limit to `stat`. The URL is the
        permission: it is signed here, without a request.
        """
        ...

    async def stat(self, key: str) -> StoredFile | None:
        """Return the file with this key; None until an upload is complete. Raises: Unavailable."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the content in parts. Raises: Unavailable; Refused when there is no file."""
        ...

    async def remove(self, key: str) -> None:
        """Delete the file, if it exists. Raises: Unavailable."""
        ...


@runtime_checkable
class ElsewhereFiles(FileStore, Protocol):
    """A store whose upload URLs point to its own server; those of other stores point to our front end
    (`UploadReceiver`). Its bucket must let browsers PUT from the origin of the hosted page."""

    @property
    def upload_origin(self) -> str:
        """Scheme and host of the URLs that `grant` returns (`https://bucket.example`): the only host to which the
        hosted page may send files."""
        ...


@runtime_checkable
class HeadedUploads(FileStore, Protocol):
    """A store whose uploads need further headers. Other stores do not implement this."""

    @property
    def upload_headers(self) -> Mapping[str, str]:
        """Headers that a PUT must send besides `Content-Type`, such as `{"If-None-Match": "*"}`; empty: none."""
        ...


@runtime_checkable
class EncryptedFiles(FileStore, Protocol):
    """A store that encrypts its files with the keys of our vault, so a key rotation must include it."""

    async def key_of(self, key: str) -> int | None:
        """Return the id of the vault's key that encrypts the file; None when there is no file. Raises: Unavailable;
        VaultError."""
        ...

    async def encrypt_anew(self, key: str) -> None:
        """Encrypt the file again with the vault's current key. A file that is deleted meanwhile may exist again
        afterwards. Raises: Unavailable; Refused; VaultError."""
        ...


class UploadFault(Fault):
    """A refused upload; `reason` names the violated condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


FORBIDDEN = "forbidden"
"""The URL was not granted, was altered, or has expired."""
EXISTS = "exists"
"""The file already exists."""
WRONG_TYPE = "wrong_type"
"""A different Content-Type than granted, or content of another kind."""
TOO_LARGE = "too_large"
BUSY = "busy"
"""Too many uploads at once, or one of this file is in progress."""


@runtime_checkable
class UploadReceiver(Protocol):
    """A store that receives its uploads through our own front end; other stores have their own server."""

    def admit(self, key: str, query: Mapping[str, str], content_type: str | None, length: int | None) -> None:
        """Check an upload before a byte of it is read. `query` comes from the granted URL, `length` is the size that
        the request declares. Raises: UploadFault."""
        ...

    async def receive(self, key: str, query: Mapping[str, str], parts: AsyncIterator[bytes]) -> StoredFile:
        """Store the content of an upload that passed `admit`, completely or not at all.

        Raises: UploadFault; Unavailable when it cannot be stored.
        """
        ...
