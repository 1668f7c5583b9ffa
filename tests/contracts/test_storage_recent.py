"""What every request asks for may be kept in memory, but never shown older than the port says (Storage.recent)."""

import asyncio

import msgspec
import pytest

from cambist.adapters.storage import recent
from cambist.core.domain.accounts import Account
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import START, Place, put

LONG = 3600.0


def account(name: str = "Merchant") -> Account:
    return Account(id="acc_1", name=name, default_shop_id="shop", created_at=START)


async def rename(storage: Storage, name: str) -> None:
    async with storage.unit() as unit:
        known = await unit[Account].get("acc_1")
        assert known is not None
        unit[Account].save(msgspec.structs.replace(known, name=name))
        await unit.commit()


async def name_of(storage: Storage, within: float = LONG) -> str | None:
    known = await storage.recent(Account, "acc_1", within=within)
    return None if known is None else known.name


async def test_what_this_process_wrote_shows_at_once(storage: Storage) -> None:
    assert await name_of(storage) is None
    await put(storage, account())
    assert await name_of(storage) == "Merchant"
    await rename(storage, "Another")
    assert await name_of(storage) == "Another"
    async with storage.unit() as unit:
        known = await unit[Account].get("acc_1")
        assert known is not None
        unit[Account].remove(known)
        await unit.commit()
    assert await name_of(storage) is None


async def test_what_another_process_wrote_shows_at_once_where_nothing_old_is_wanted(place: Place) -> None:
    if place.name == "memory":
        pytest.skip("nobody else sees this memory")
    ours, theirs = await place.open(), await place.open()
    await put(theirs, account())
    for turn in range(5):
        await rename(theirs, f"Merchant {turn}")
        assert await name_of(ours, within=0.0) == f"Merchant {turn}"


async def test_a_file_tells_of_all_that_others_wrote(place: Place) -> None:
    if place.name != "sqlite":
        pytest.skip("of a SQLite file")
    ours, theirs = await place.open(), await place.open()
    await put(theirs, account())
    for turn in range(5):
        await rename(theirs, f"Merchant {turn}")
        assert await name_of(ours) == f"Merchant {turn}"
        # Our own commits say nothing of others, nor hide them.
        await put(ours, msgspec.structs.replace(account(), id=f"acc_1{turn}"))
        assert await name_of(ours) == f"Merchant {turn}"


async def test_a_commit_that_overtakes_the_reading_is_not_hidden_by_it() -> None:
    kept, read = recent.Recent(), asyncio.Event()
    table = msgspec.defstruct("Named", [("name", str)])("accounts")

    async def slow(_: object, __: str) -> Account:
        await read.wait()
        return account("before")

    async def quick(_: object, __: str) -> Account:
        return account("after")

    first = asyncio.create_task(kept.ask(table, "acc_1", LONG, slow))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    kept.forget([msgspec.defstruct("Wrote", [("kept", object), ("id", str)])(table, "acc_1")])  # type: ignore[list-item]
    read.set()
    assert (await first).name == "before"  # type: ignore[union-attr]
    assert (await kept.ask(table, "acc_1", LONG, quick)).name == "after"  # type: ignore[arg-type, union-attr]


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch, storage: Storage) -> None:
    monkeypatch.setattr(recent, "_MOST", 4)
    await put(storage, account())
    for number in range(20):
        assert await storage.recent(Account, f"acc_none_{number}", within=LONG) is None
        assert await name_of(storage) == "Merchant"
    found = getattr(getattr(storage, "_recent", None), "_found", {})
    assert len(found) <= 4
