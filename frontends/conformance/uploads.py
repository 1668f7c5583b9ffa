"""Files that seem to have been uploaded, for verifiers that read what they are given (ports/files.py: FileStore)."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime

from ...ports.faults import Refused
from ...ports.files import StoredFile

IMAGES: Mapping[str, bytes] = {"selfie": b"\xff\xd8\xff a face", "document": b"\x89PNG\r\n\x1a\n a page"}
"""What a KycBench names by itself."""


class Uploads:
    """Fills cambist.ports.FileStore: `msgspec.structs.replace(service.tools(), files=Uploads())`."""

    def __init__(self, files: Mapping[str, bytes] = IMAGES) -> None:
        self._files = dict(files)

    def grant(self, key: str, content_type: str, max_bytes: int, expires_at: datetime) -> str:
        """Nobody uploads here."""
        raise NotImplementedError

    async def stat(self, key: str) -> StoredFile | None:
        content = self._files.get(key)
        return None if content is None else StoredFile(key=key, size=len(content))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """The content, in two parts. Raises: Refused."""
        if key not in self._files:
            raise Refused("there is no such file", reason="not_found")
        content = self._files[key]
        middle = len(content) // 2
        for part in (content[:middle], content[middle:]):
            yield part

    async def remove(self, key: str) -> None:
        self._files.pop(key, None)
