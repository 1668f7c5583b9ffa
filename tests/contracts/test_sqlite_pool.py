"""Connections for the longer reads of a SQLite file (adapters/storage/sqlite/pool.py)."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cambist.adapters.storage.sqlite import pool as sqlite_pool
from cambist.adapters.storage.sqlite.pool import ReadingPool, ask_on
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import run_due
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Unavailable

LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000) SELECT max(x) FROM n"
"""Takes minutes, if nobody breaks it off."""


def begun_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Return the connections' threads that are not in `before`. A count of all threads would be wrong, because other
    tests' threads come and go."""
    new = (thread for thread in threading.enumerate() if thread not in before)
    return [thread for thread in new if "_connection_worker_thread" in thread.name]


@pytest.fixture
async def pool(tmp_path: Path, migrated_file: Path) -> AsyncIterator[ReadingPool]:
    shutil.copy(migrated_file, tmp_path / "a.db")
    made = ReadingPool(tmp_path / "a.db")
    yield made
    await made.close()


async def test_connections_are_made_when_they_are_needed_and_used_again(pool: ReadingPool) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        assert await pool.ask("SELECT ?", (7,)) == [(7,)]
    assert len(begun_since(before)) == 1
    await asyncio.gather(*(pool.ask("SELECT 1", ()) for _ in range(20)))
    assert len(begun_since(before)) <= 4


async def test_nothing_is_written_over_them(pool: ReadingPool) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        await pool.ask("DELETE FROM jobs", ())
    assert await pool.ask("SELECT 1", ()) == [(1,)]


async def test_caller_that_waits_too_long_for_a_connection_is_refused(
    pool: ReadingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_pool, "_PATIENCE", 0.01)
    held = [pool.connection() for _ in range(4)]
    for each in held:
        await each.__aenter__()
    with pytest.raises(Unavailable, match="too many"):
        await pool.ask("SELECT 1", ())
    for each in held:
        await each.__aexit__(None, None, None)
    assert await pool.ask("SELECT 1", ()) == [(1,)]


async def test_a_read_that_is_broken_off_ends_with_its_thread(pool: ReadingPool) -> None:
    before = set(threading.enumerate())
    reading = asyncio.ensure_future(pool.ask(LONG, ()))
    while not begun_since(before):
        await asyncio.sleep(0.001)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await pool.ask("SELECT 1", ()) == [(1,)]
    await pool.close()
    while begun_since(before):
        await asyncio.sleep(0.001)


async def test_closing_waits_for_who_reads(pool: ReadingPool) -> None:
    async with pool.connection() as connection:
        closing = asyncio.ensure_future(pool.close())
        await asyncio.sleep(0)
        assert await ask_on(connection, "SELECT 1", ()) == [(1,)]
        assert not closing.done()
    await closing


async def test_a_merchants_address_that_is_set_takes_none(tmp_path: Path) -> None:
    """One start may release the held webhooks of thousands of merchants: each read is quick, and runs on the event
    loop."""
    settings = Settings(data_dir=tmp_path)
    await migrate(settings)
    async with open_app(settings) as app:
        made = await create_account(app.ports, "Merchant")
        address = {"webhook_url": "https://shop.example/hook", "webhook_secret": "a-secret-of-this-merchant"}
        await set_settings(app.ports, made.account_id, address)
    before = set(threading.enumerate())
    async with open_app(settings) as app:
        assert await run_due(app.ports) == 1
        assert begun_since(before) == []
