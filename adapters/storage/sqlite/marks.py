"""The marks of a SQLite database: a small file beside it, and the number that the file system gave the database."""

import asyncio
import os
from pathlib import Path

import msgspec

from ....ports.faults import Unavailable
from ....ports.marks import Marks
from ...durable import sync


def marks_path(database: Path) -> Path:
    """The file in which a database's marks are kept."""
    return database.with_name(f"{database.name}.mark")


class FileMarks:
    """Fills the port Beside."""

    keeps = True

    def __init__(self, database: Path) -> None:
        """Nothing is opened yet."""
        self._database = database.absolute()
        self._path = marks_path(self._database)

    async def place(self) -> str | None:
        """The inode: a file that was copied has another one, one that was renamed or whose folder was moved has not.
        The device's number is left out: it may change from one start of the machine to the next."""
        try:
            return f"inode {self._database.stat().st_ino}"
        except OSError as error:
            raise Unavailable(f"{self._database} cannot be looked at: {error.strerror}") from error

    async def read(self) -> Marks | None:
        """What is there and cannot be read is no mark. Raises: Unavailable."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Marks)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}") from error

    async def write(self, marks: Marks) -> None:
        """Raises: Unavailable."""
        try:
            await asyncio.to_thread(self._write, msgspec.json.encode(marks) + b"\n")
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error

    def _write(self, content: bytes) -> None:
        """Whole or not at all, whenever it is broken off."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(self._path)
        sync(self._path.parent)
