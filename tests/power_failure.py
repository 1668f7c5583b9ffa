"""A power failure of the machine, as a SQLite file shows it: the log ends after some commit, and later commits are
lost."""

from pathlib import Path

_HEADER = 32
_FRAME = 24


def commits_in(log: bytes) -> list[int]:
    """How long a write-ahead log is after each of its commits (SQLite's file format, 4)."""
    page, salts = int.from_bytes(log[8:12]), log[16:24]
    lengths, start = [], _HEADER
    while log[start + 8 : start + 16] == salts:
        is_commit = log[start + 4 : start + 8] != bytes(4)
        start += _FRAME + page
        if is_commit:
            lengths.append(start)
    return lengths


class Image:
    """A copy of a database on disk at one moment, which can be restored any number of times."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self._shared = database.with_name(f"{database.name}-shm")
        self._content, self._logged = database.read_bytes(), self._log.read_bytes()

    @property
    def commits(self) -> list[int]:
        """Where the log may end."""
        return commits_in(self._logged)

    def put_back(self, length: int) -> None:
        """Restore the database with its log cut to that length. No connection may be open."""
        self._database.write_bytes(self._content)
        self._log.touch(0o600)
        self._log.write_bytes(self._logged[:length])
        self._shared.unlink(missing_ok=True)
