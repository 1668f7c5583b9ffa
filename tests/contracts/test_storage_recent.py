"""How our own storages keep in memory what every request asks for (Storage.recent), beyond what all must do."""

import asyncio

import msgspec
import pytest

from cambist.adapters.storage.sql import recent
from cambist.adapters.storage.table.writes import Pending, Remove
from cambist.core.domain.accounts.accounts import Account
from cambist.frontends.conformance.storage.recent import *  # noqa: F403 - its tests
from cambist.frontends.conformance.storage.recent import LONG, account, name_of, rename
from cambist.ports.storage import Storage
from tests.contracts.storage_kit import StorageLocation, put


async def test_file_shows_all_that_others_wrote(file_location: StorageLocation) -> None:
    ours, theirs = await file_location.open(), await file_location.open()
    await put(theirs, account())
    for turn in range(5):
        await rename(theirs, f"Merchant {turn}")
        assert await name_of(ours) == f"Merchant {turn}"
        # Our own commits say nothing of others, nor hide them.
        await put(ours, msgspec.structs.replace(account(), id=f"acc_1{turn}"))
        assert await name_of(ours) == f"Merchant {turn}"


async def test_a_commit_that_overtakes_the_reading_is_not_hidden_by_it() -> None:
    kept, read = recent.Recent(), asyncio.Event()
    table = msgspec.defstruct("Of", [("kind", type)])(Account)

    async def slow(_: object, __: str) -> Account:
        await read.wait()
        return account("before")

    first = asyncio.create_task(kept.read(table, "acc_1", slow))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    kept.forget(Pending(writes=[Remove(table, "acc_1", 0)]))  # type: ignore[arg-type]
    read.set()
    assert (await first).name == "before"  # type: ignore[union-attr]
    assert kept.known(Account, "acc_1", LONG) is None


async def test_kept_records_are_bounded(monkeypatch: pytest.MonkeyPatch, storage: Storage) -> None:
    monkeypatch.setattr(recent, "_MOST", 4)
    await put(storage, account())
    for number in range(20):
        assert await storage.recent(Account, f"acc_none_{number}", within=LONG) is None
        assert await name_of(storage) == "Merchant"
    found = getattr(getattr(storage, "_recent", None), "_found", {})
    assert len(found) <= 4


async def test_unused_records_are_forgotten_and_the_rest_kept() -> None:
    kept = recent.Recent()
    table = msgspec.defstruct("Of", [("kind", type)])(Account)

    async def found(_: object, __: str) -> Account:
        return account()

    for record_id in ("acc_1", "acc_2"):
        await kept.read(table, record_id, found)  # type: ignore[arg-type]
    kept.age()
    assert kept.known(Account, "acc_1", LONG)
    kept.age()
    assert kept.known(Account, "acc_1", LONG)
    assert kept.known(Account, "acc_2", LONG) is None
