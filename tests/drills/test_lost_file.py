"""The SQLite file is deleted or replaced under a service at work: it stops, and acknowledges nothing from then on."""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.drills.merchants import load
from tests.patience import HANGS, drill_of, promised
from tests.stories.processes import Service, installation

MERCHANTS = 20
BEFORE = 6.0
"""Seconds of load before."""
UNDER_WAY = 0.5
"""Seconds for which an answer may be under way to a client of a busy machine."""


def delete(database: Path) -> None:
    database.unlink()


def replace_by_an_empty_file(database: Path) -> None:
    fresh = database.with_name("fresh")
    fresh.touch(0o600)
    fresh.replace(database)


def replace_by_a_copy(database: Path) -> None:
    copy = database.with_name("copy")
    shutil.copy2(database, copy)
    copy.replace(database)


def delete_the_log(database: Path) -> None:
    database.with_name(f"{database.name}-wal").unlink()


async def ended(service: Service) -> float:
    """Wait for the end of the process, and return the seconds."""
    began = time.monotonic()
    async with asyncio.timeout(HANGS):
        while not service.ended:
            await asyncio.sleep(0.02)
    return time.monotonic() - began


def linked(database: Path) -> Path:
    """Link the file and its log under a second name, to inspect them at the end."""
    aside = database.parent.with_name("aside") / database.name
    aside.parent.mkdir()
    for ending in ("", "-wal"):
        os.link(f"{database}{ending}", f"{aside}{ending}")
    return aside


def payments_in(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM payments")}


@pytest.mark.drill
@drill_of("tests/contracts/test_storage_lost_file.py")
@pytest.mark.parametrize("harm", [delete, replace_by_an_empty_file, replace_by_a_copy, delete_the_log])
async def test_nothing_is_acknowledged_once_the_file_is_lost(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    with installation(tmp_path, trusted_proxies="127.0.0.0/8") as place:
        await place.migrate()
        accounts = await place.accounts(MERCHANTS)
        service, base = place.serve()
        database = place.settings.data_dir / "cambist.db"
        async with load(base, accounts) as clients, clients.running() as tale:
            await asyncio.sleep(BEFORE)
            aside = linked(database)
            harm(database)
            harmed = time.monotonic()
            end = await ended(service)
        assert service.wait() == 1, "whoever watches over the process shall see it fail"
        assert "was deleted or replaced while it was open" in service.err
        assert [at - harmed for at in tale.answered_at.values() if at > harmed + promised(UNDER_WAY)] == []
        assert payments_in(aside) >= set(tale.created.values()), "the file that was there had all of them"
    print(
        f"{harm.__name__}: {len(tale.created)} payments acknowledged before, all in the file that was there; none "
        f"after; {tale.statuses[503]} refused; the process ended within {end:.2f} s"
    )
