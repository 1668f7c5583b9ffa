"""A copy of the SQLite file beside a working service is of one moment, comes to an end, and is checked."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from cambist.adapters.storage.sqlite import copy as room
from cambist.adapters.storage.sqlite import file as sqlite_file
from cambist.adapters.storage.sqlite.copy import copy
from cambist.ports.faults import Unavailable


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file as the storage opens it, of some dozen pages."""
    path = tmp_path / "source.db"
    with closing(sqlite_file.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
        connection.executemany("INSERT INTO t (body) VALUES (zeroblob(3000))", [()] * 40)
    return path


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM t").fetchone()
    return int(count)


async def test_copy_is_of_one_moment_and_ends_despite_concurrent_writes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite begins a copying anew at each commit of others, unless it reads from one transaction."""
    monkeypatch.setattr(room, "_PAGES", 4)
    steps: list[tuple[int, int]] = []
    target = tmp_path / "copy.db"
    with closing(sqlite3.connect(source, check_same_thread=False, isolation_level=None)) as service:

        def step(left: int, pages: int) -> None:
            steps.append((left, pages))
            assert len(steps) < 100, "it does not end"
            service.execute("INSERT INTO t (body) VALUES (zeroblob(3000))")

        await copy(source, target, step)
        assert len(steps) > 5
        assert [left for left, _ in steps] == sorted((left for left, _ in steps), reverse=True)
        assert len({pages for _, pages in steps}) == 1
        assert (rows(target), rows(source)) == (40, 40 + len(steps))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"source.db", "copy.db"}, "one file, without a log"


async def test_a_damaged_database_is_no_backup(source: Path, tmp_path: Path) -> None:
    with source.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096)
    with pytest.raises(Unavailable, match=r"there is no backup.*damaged|cannot be copied.*malformed"):
        await copy(source, tmp_path / "copy.db", lambda *_: None)


async def test_missing_file_or_one_that_is_no_database_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no database"):
        await copy(tmp_path / "none.db", tmp_path / "copy.db", lambda *_: None)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.db").write_text("no database " * 1000)
    with pytest.raises(Unavailable, match="cannot be copied"):
        await copy(tmp_path / "text.db", tmp_path / "copy.db", lambda *_: None)
