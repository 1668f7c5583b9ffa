"""Reading a whole database for damage (`cambist doctor --full`)."""

import asyncio
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from cambist.adapters.storage.postgres.damage import postgres_damage
from cambist.adapters.storage.sqlite.damage import sqlite_damage
from cambist.frontends.app.compose import migrate
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Unavailable
from tests.servers import database, own_postgres


def no_progress(_: str) -> None:
    """Ignore the progress."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some hundred pages, all in use: one table with an index, and one with an odd name."""
    found = tmp_path / "app.db"
    with closing(sqlite3.connect(found)) as connection:
        connection.execute("CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
        connection.execute('CREATE TABLE "of ""others" (id TEXT PRIMARY KEY)')
        connection.execute("CREATE INDEX notes_text ON notes (text)")
        chance = random.Random(1)
        rows = [(f"{number:06}", chance.randbytes(100).hex()) for number in range(2000)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
        connection.commit()
    return found


def pages_of(path: Path, tree: str) -> list[int]:
    """The numbers of a tree's leaves; the first page is 1."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.stat USING dbstat(main)")
        rows = connection.execute("SELECT pageno FROM temp.stat WHERE name = ? AND pagetype = 'leaf'", (tree,))
        return [number for (number,) in rows]


def make_noise(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(random.Random(page).randbytes(4096))


async def test_undamaged_file_passes_and_each_table_is_reported(path: Path) -> None:
    told: list[str] = []
    found, looked = await sqlite_damage(path, told.append)
    assert found == []
    assert looked.startswith("all ")
    assert told[:2] == ["table 1 of 2: notes", 'table 2 of 2: of "others']


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("tree", ["notes", "notes_text", "sqlite_autoindex_notes_1"])
async def test_noise_in_a_table_or_index_page_is_found_with_its_table(path: Path, tree: str, where: str) -> None:
    try:
        pages = pages_of(path, tree)
    except sqlite3.OperationalError as fault:
        pytest.skip(f"this SQLite cannot say where a table lies: {fault}")
    page = {"first": pages[0], "middle": pages[len(pages) // 2], "last": pages[-1]}[where]
    make_noise(path, page)
    found, _ = await sqlite_damage(path, no_progress)
    assert found
    assert all(each.startswith("notes: ") for each in found)


async def test_noise_is_found_wherever_in_the_file_it_is(path: Path) -> None:
    whole = path.read_bytes()
    for page in range(2, len(whole) // 4096, 16):
        make_noise(path, page)
        assert (await sqlite_damage(path, no_progress))[0], page
        path.write_bytes(whole)


async def test_a_value_that_its_index_does_not_have_is_found(path: Path) -> None:
    """Each page is valid by itself then; only both together show the fault."""
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        (text,) = connection.execute("SELECT text FROM notes WHERE id = '000007'").fetchone()
    assert content.count(text.encode()) == 2, "in the table and in the index"
    path.write_bytes(content.replace(text.encode(), text[:-1].encode() + b"z", 1))
    found, _ = await sqlite_damage(path, no_progress)
    assert any("notes_text" in each for each in found)


async def test_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    for name, content in (("absent", None), ("noise", b"x" * 10_000)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(Unavailable):
            await sqlite_damage(tmp_path / name, no_progress)


async def test_cancelled_check_reads_no_further_page(path: Path) -> None:
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told(_: str) -> None:
        loop.call_soon_threadsafe(began.set)

    task = asyncio.create_task(sqlite_damage(path, told))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def url(server: str) -> Iterator[str]:
    with database(server) as made:
        yield made


async def test_a_sound_postgres_is_read_table_by_table(url: str) -> None:
    await migrate(Settings(database_url=url))
    told: list[str] = []
    found, looked = await postgres_damage(url, told.append)
    assert found == []
    assert "tables can be read" in looked
    assert any(each.endswith(": payments") for each in told)


async def test_noise_in_a_table_of_postgres_is_found_and_the_table_named() -> None:
    with own_postgres() as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute("CREATE TABLE notes (id int PRIMARY KEY, text text)")
        await connection.execute("CREATE TABLE others AS SELECT 1 AS id")
        await connection.execute("INSERT INTO notes SELECT n, repeat('x', 500) FROM generate_series(1, 200) AS n")
        folder = await connection.fetchval("SELECT current_setting('data_directory')")
        where = Path(folder, await connection.fetchval("SELECT pg_relation_filepath('notes')"))
        await connection.close()
        server.stop(signal.SIGINT)
        with where.open("r+b") as file:
            file.seek(8192)
            file.write(random.Random(1).randbytes(8192))
        server.start()
        found, _ = await postgres_damage(server.url, no_progress)
    assert found[0].startswith("notes: invalid page in block 1")
    assert not any(each.startswith("others: ") for each in found)
