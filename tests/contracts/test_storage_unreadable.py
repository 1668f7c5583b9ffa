"""An unreadable row stops only the work of its own merchant (docs/operations.md "Rows that cannot be read")."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any, NoReturn

import msgspec
import pytest

from cambist.core.domain.accounts.shops import Shop
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage, Unit
from cambist.ports.unreadable import SettingAside, UnreadableRow
from tests.contracts.storage_kit import StorageLocation, job, put, read, shop
from tests.servers import _execute

LEASE = 8.0


async def spoil(place: StorageLocation, statement: str) -> None:
    """Write past the program."""
    if place.where.startswith("postgres"):
        await _execute(place.where, statement)
    else:
        with closing(sqlite3.connect(place.where, timeout=10)) as connection, connection:
            connection.execute(statement)


def is_sqlite(place: StorageLocation) -> bool:
    return not place.where.startswith("postgres")


async def notes(storage: Storage) -> list[UnreadableRow]:
    async with storage.unit() as unit:
        return await unit[UnreadableRow].find()


async def claimed(storage: Storage) -> list[str]:
    """Return the ids of the due jobs, claimed as a worker claims them: deliveries apart from the rest."""
    found = await storage.claim(10, LEASE, kind="watch") + await storage.claim(10, LEASE, but_kind="watch")
    return sorted(each.id for each in found)


BEYOND = 900_000_000_000_000_000
"""Microseconds past the year 9999."""


@pytest.mark.parametrize("field", ["created_at", "due", "leased_until", "moment"])
async def test_a_moment_that_is_none_keeps_no_other_job_from_being_claimed(
    shared_location: StorageLocation, field: str
) -> None:
    place = shared_location
    storage = await place.open()
    await put(storage, job("watch:1", -3), job("watch:2", -2), job("watch:3", -1))
    await spoil(place, f"UPDATE jobs SET {field} = {-BEYOND} WHERE id = 'watch:2'")
    assert await claimed(storage) == (
        ["watch:1", "watch:2", "watch:3"] if field == "leased_until" else ["watch:1", "watch:3"]
    )


async def test_unreadable_job_is_set_aside_and_never_claimed_again(
    shared_location: StorageLocation,
) -> None:
    place = shared_location
    storage = await place.open()
    await put(storage, job("watch:1", -3), job("watch:2", -2, argument="pay_of_somebody"), job("watch:3", -1))
    await spoil(place, f"UPDATE jobs SET created_at = {BEYOND} WHERE id = 'watch:2'")
    assert await claimed(storage) == ["watch:1", "watch:3"]
    assert await read(storage, Job, "watch:2") is None
    [note] = await notes(storage)
    assert (note.id, note.source, note.row_id) == ("jobs:watch:2", "jobs", "watch:2")
    assert note.why == "created_at (OverflowError)"
    assert note.found_at == place.clock.now()
    assert "pay_of_somebody" not in note.why + note.id + repr(note)
    assert note.held is not None
    assert msgspec.json.decode(note.held)[2] == "pay_of_somebody"
    await place.clock.advance(LEASE + 1)
    assert await claimed(storage) == ["watch:1", "watch:3"]


async def test_job_accrued_again_is_new_beside_the_one_set_aside(
    shared_location: StorageLocation,
) -> None:
    """So the receiver whose one job was spoilt is served by the next event."""
    place = shared_location
    storage = await place.open()
    await put(storage, job("watch:1", -3))
    await spoil(place, f"UPDATE jobs SET created_at = {BEYOND}")
    assert await claimed(storage) == []
    async with storage.unit() as unit:
        unit[Job].accrue(job("watch:1", -3, asked=1))
        await unit.commit()
    assert await claimed(storage) == ["watch:1"]


async def test_a_due_time_that_is_none_is_no_fault_of_whoever_asks_what_is_due(
    shared_location: StorageLocation,
) -> None:
    place = shared_location
    storage = await place.open()
    for number, due in enumerate((BEYOND, -BEYOND, *(["'zz'", "x'ff'", "1e300"] if is_sqlite(place) else []))):
        await put(storage, job(f"watch:{number}", -3))
        await spoil(place, f"UPDATE jobs SET due = {due}")
        assert await storage.next_due() is not None
        await storage.claim(10, LEASE)


SPOILT = (
    "created_at = 'zz'",
    "created_at = x'00ff'",
    "created_at = 1e300",
    "argument = x'00ff'",
    "argument = CAST(x'ff' AS TEXT)",
    "attempts = x'00'",
    "asked = 'many'",
    "version = 1e300",
    "world = CAST(x'ff' AS TEXT)",
    "moment = 'then'",
    "kind = x'ff'",
    "id = x'ff'",
    "id = CAST(x'77617463683aff' AS TEXT)",
)
"""SQLite takes anything anywhere."""


@pytest.mark.parametrize("spoilt", SPOILT)
async def test_spoilt_sqlite_job_stops_no_other(file_location: StorageLocation, spoilt: str) -> None:
    storage = await file_location.open()
    await put(storage, job("watch:1", -3), job("watch:2", -2), job("watch:3", -1))
    await spoil(file_location, f"UPDATE jobs SET {spoilt} WHERE id = 'watch:2'")
    assert [name for name in await claimed(storage) if name != "watch:2"] == ["watch:1", "watch:3"]
    await put(storage, job("watch:4"))
    await file_location.clock.advance(LEASE + 1)
    assert {"watch:1", "watch:3", "watch:4"} <= set(await claimed(storage))
    if "attempts" not in spoilt:  # counting makes a number of it
        assert len(await notes(storage)) == 1


async def test_a_row_that_is_met_after_a_newer_program_took_it_up_is_noted_again(
    shared_location: StorageLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no process would do the job that this program skipped."""
    monkeypatch.setattr("cambist.adapters.storage.sql.notes.AGAIN", 0.0)
    storage, newer = await shared_location.open(), await shared_location.open()
    await put(storage, shop("shop_1", "One"))
    unreadable, readable = (f"UPDATE shops SET created_at = created_at {sign} {BEYOND}" for sign in "+-")

    async def met() -> None:
        """The older program skips the row, and records it a moment later."""
        await spoil(shared_location, unreadable)
        async with storage.unit() as unit:
            assert await unit[Shop].find(readable=True) == []
        async with asyncio.timeout(60):
            while not await notes(newer):
                await asyncio.sleep(0)
        await spoil(shared_location, readable)

    async def nothing(_unit: Unit, _record: object) -> None:
        """There is nothing to resume."""

    assert isinstance(newer, SettingAside)
    for _ in range(3):
        await met()
        assert await newer.take_up(nothing) == 1


async def test_a_storage_closes_although_what_was_met_again_cannot_be_noted(shared_location: StorageLocation) -> None:
    storage: Any = await shared_location.open()

    def broken() -> NoReturn:
        raise RuntimeError("no unit is made")

    storage._notes._unit, storage._notes._met_again = broken, {"shops:shop_1": broken}
    await storage.close()
    with pytest.raises(Unavailable):
        await storage.check()
