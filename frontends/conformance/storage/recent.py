"""Contract of `recent` (ports/storage.py: a record is never older than allowed), of fields that the catalogue declares
fixed, and of jobs on a test clock."""

from datetime import timedelta

import msgspec

from ....core.domain.accounts.accounts import Account
from ....core.domain.payments.payments import Payment
from ....ports.faults import Unavailable
from ....ports.jobs import Job
from ....ports.storage import AtMost, Storage
from ..expectations import must_raise
from .kit import START, StorageLocation, job, must_read, payment, put

LONG = 3600.0


def account(name: str = "Merchant") -> Account:
    return Account(id="acc_1", name=name, default_shop_id="shop", created_at=START)


async def rename(storage: Storage, name: str) -> None:
    must = "the account must be there"
    async with storage.unit() as unit:
        known = await unit[Account].get("acc_1")
        assert known is not None, must
        unit[Account].save(msgspec.structs.replace(known, name=name))
        await unit.commit()


async def name_of(storage: Storage, within: float = LONG) -> str | None:
    known = await storage.recent(Account, "acc_1", within=within)
    return None if known is None else known.name


async def test_writes_of_this_process_show_at_once(storage: Storage) -> None:
    must = "`recent` must show writes of this process at once"
    assert await name_of(storage) is None, must
    await put(storage, account())
    assert await name_of(storage) == "Merchant", must
    await rename(storage, "Another")
    assert await name_of(storage) == "Another", must
    async with storage.unit() as unit:
        known = await unit[Account].get("acc_1")
        assert known is not None, must
        unit[Account].remove(known)
        await unit.commit()
    assert await name_of(storage) is None, must


async def test_an_id_that_no_record_could_have_is_none(storage: Storage) -> None:
    """Ids come from URLs. Postgres itself would raise an error for these."""
    must = "`recent` of an id that no record could have must be None"
    for impossible in ("acc_\x00", "acc_\ud800", ""):
        assert await storage.recent(Account, impossible) is None, must
        assert await storage.recent(Account, impossible, within=LONG) is None, must


async def test_writes_of_another_process_show_at_once_to_a_fresh_read(
    shared_location: StorageLocation,
) -> None:
    must = "`recent` within 0 seconds must show writes of other processes at once"
    ours, theirs = await shared_location.open(), await shared_location.open()
    await put(theirs, account())
    for round_ in range(5):
        await rename(theirs, f"Merchant {round_}")
        assert await name_of(ours, within=0.0) == f"Merchant {round_}", must


async def test_closed_storage_answers_nothing_from_memory(storage: Storage) -> None:
    must = "a closed storage must be Unavailable, also for a record that it remembers"
    await put(storage, account())
    assert await name_of(storage) == "Merchant", must
    await storage.close()
    with must_raise(must, Unavailable):
        await name_of(storage)
    with must_raise(must, Unavailable):
        await storage.get(Account, "acc_1")


async def test_a_field_that_is_declared_fixed_never_changes(storage: Storage) -> None:
    """A storage may omit a fixed field when it saves a record, or refuse the save with TypeError."""
    must = "a field that is declared fixed must never change"
    await put(storage, payment("pay_1", external_id="order 1"))
    changed = msgspec.structs.replace(payment("pay_1"), external_id="order 2", description="changed")
    refused = False
    async with storage.unit() as unit:
        try:
            unit[Payment].save(changed)
            await unit.commit()
        except TypeError:
            refused = True
    kept = await must_read(storage, Payment, "pay_1")
    assert (kept.external_id, kept.description) == ("order 1", None if refused else "changed"), must


async def test_jobs_of_a_world_are_claimed_by_due_and_found_by_moment(storage: Storage) -> None:
    """ports/jobs.py: `due` is the job's moment translated to the storage's clock, and claims use only `due`."""
    must = "jobs must be claimed by `due`, and found by `moment`"
    ahead = START + timedelta(days=100)
    moments = {"c": ahead + timedelta(hours=3), "a": ahead + timedelta(hours=1), "b": ahead + timedelta(hours=2)}
    await put(storage, *(job(name, world="acc_1", moment=moment) for name, moment in moments.items()))
    await put(storage, job("later", 1, world="acc_1", moment=ahead), job("other", world="acc_2", moment=ahead))
    async with storage.unit() as unit:
        until = AtMost(ahead + timedelta(hours=2))
        found = await unit[Job].find(world="acc_1", moment=until, order="moment", quick=True)
    assert [each.id for each in found] == ["later", "a", "b"], must
    assert {taken.id for taken in await storage.claim(10, 60)} == {"a", "b", "c", "other"}, must
