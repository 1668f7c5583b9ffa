"""Fingerprint of a SQLite database: a small file beside it, and the number the file system gave the database."""

import asyncio
import os
from pathlib import Path

import msgspec

from ....ports.faults import Unavailable
from ....ports.fingerprints import Fingerprints
from ...durable import sync


def marks_path(database: Path) -> Path:
    """Return the file that holds the fingerprint of a database."""
    return database.with_name(f"{database.name}.mark")


class FileFingerprints:
    """Implementation of the port Beside."""

    keeps = True

    def __init__(self, database: Path) -> None:
        """Remember the paths. No file is opened yet."""
        self._database = database.absolute()
        self._path = marks_path(self._database)

    async def place(self) -> str | None:
        """Return the inode. Copying the file changes it; renaming the file or moving its folder does not.

        The device's number is left out, because it may change when the machine restarts.
        """
        try:
            return f"inode {self._database.stat().st_ino}"
        except OSError as error:
            raise Unavailable(f"{self._database} cannot be looked at: {error.strerror}") from error

    async def read(self) -> Fingerprints | None:
        """Return the stored fingerprint; None if there is none or it cannot be decoded. Raises: Unavailable."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Fingerprints)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}") from error

    async def write(self, marks: Fingerprints) -> None:
        """Store the fingerprint. Raises: Unavailable."""
        try:
            await asyncio.to_thread(self._write, msgspec.json.encode(marks) + b"\n")
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error

    def _write(self, content: bytes) -> None:
        """Write the file atomically, so that an interruption leaves the old or the new content."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(self._path)
        sync(self._path.parent)

    async def accept(self) -> None:
        """Do nothing: a file has no failover."""
