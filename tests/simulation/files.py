"""A store of documents with a server of its own, to which clients PUT."""

from collections.abc import AsyncIterator
from datetime import datetime

from cambist.ports.faults import Refused
from cambist.ports.files import StoredFile
from tests.simulation.links import Way


class OwnFiles:
    """The store's own books: the size of each file."""

    name = "files"

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def put(self, address: str, size: int) -> None:
        """A client uploads a document to a granted address."""
        self.sizes[address.rpartition("/")[2]] = size


class FilesLink:
    """Fills the port FileStore."""

    def __init__(self, files: OwnFiles, way: Way) -> None:
        self._files = files
        self._way = way

    def grant(
        self, key: str, content_type: str, max_bytes: int, expires_at: datetime, *, size: int | None = None
    ) -> str:
        return f"https://files.example/{key}"

    async def stat(self, key: str) -> StoredFile | None:
        size = await self._way.ask("files", "stat", lambda: self._files.sizes.get(key), writes=False)
        return None if size is None else StoredFile(key=key, size=size)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        size = await self._way.ask("files", "read", lambda: self._files.sizes.get(key), writes=False)
        if size is None:
            raise Refused("there is no such file", reason="not_found")
        yield bytes(size)

    async def remove(self, key: str) -> None:
        await self._way.ask("files", "remove", lambda: self._files.sizes.pop(key, None), writes=False)
