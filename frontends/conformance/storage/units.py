"""Contract of units (ports/storage.py): they read committed data, and write everything at once or nothing."""

import msgspec
import pytest

from ....core.domain.accounts.accounts import Mode
from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.accounts.shops import Shop
from ....core.domain.money import Rub
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....ports.faults import Conflict, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_answer, must_raise
from .kit import START, StorageLocation, Tally, job, key, must_conflict, must_read, payment, put, read, shop


async def test_a_record_comes_back_as_it_was_added(storage: Storage) -> None:
    must = "a record must come back as it was added"
    made = payment("pay_1", metadata={"заказ": [1, None, {"a": "b"}]}, external_id="№ 7")
    await put(storage, made)
    assert await read(storage, Payment, "pay_1") == made, must


async def test_get_of_an_unknown_id_is_none(storage: Storage) -> None:
    must = "`get` of an unknown id must be None"
    assert await read(storage, Payment, "pay_1") is None, must


async def test_get_of_an_id_that_no_record_could_have_is_none(storage: Storage) -> None:
    """Ids come from URLs."""
    must = "`get` of an id that no record could have must be None"
    for impossible in ("pay_\x00", "pay_\ud800", ""):
        assert await read(storage, Payment, impossible) is None, must


async def test_reads_do_not_see_the_units_own_writes(storage: Storage) -> None:
    must = "a read must not see what no unit has committed, also in the unit itself"
    await put(storage, payment("pay_1"))
    async with storage.unit() as unit:
        before = await unit[Payment].get("pay_1")
        assert before is not None, must
        unit[Payment].save(msgspec.structs.replace(before, status=PaymentStatus.PAID))
        unit[Payment].add(payment("pay_2"))
        assert await unit[Payment].get("pay_1") == before, must
        assert await unit[Payment].get("pay_2") is None, must
        assert await unit[Payment].find() == [before], must
        assert await unit[Payment].total() == 1, must


async def test_a_unit_left_without_commit_writes_nothing(storage: Storage) -> None:
    must = "a unit that was left without a commit must write nothing"
    async with storage.unit() as unit:
        unit[Payment].add(payment("pay_1"))
    assert await read(storage, Payment, "pay_1") is None, must


async def test_a_unit_left_by_an_exception_writes_nothing(storage: Storage) -> None:
    must = "a unit that was left by an exception must write nothing"

    async def fail() -> None:
        async with storage.unit() as unit:
            unit[Payment].add(payment("pay_1"))
            raise ZeroDivisionError

    with must_raise(must, ZeroDivisionError):
        await fail()
    assert await read(storage, Payment, "pay_1") is None, must


async def test_a_unit_commits_once(storage: Storage) -> None:
    must = "a unit that is committed must refuse all more with a RuntimeError"
    async with storage.unit() as unit:
        unit[Payment].add(payment("pay_1"))
        await unit.commit()
        with must_raise(must, RuntimeError):
            await unit.commit()
        with must_raise(must, RuntimeError):
            unit[Payment].add(payment("pay_2"))


async def test_a_unit_that_was_left_takes_nothing_more(storage: Storage) -> None:
    must = "a unit that was left must refuse all more with a RuntimeError"
    async with storage.unit() as unit:
        pass
    with must_raise(must, RuntimeError):
        unit[Payment].add(payment("pay_1"))
    with must_raise(must, RuntimeError):
        await unit.commit()


async def test_a_unit_without_writes_commits(storage: Storage) -> None:
    async with storage.unit() as unit:
        await unit.commit()


async def test_add_keeps_version_0_and_save_returns_the_record_as_it_will_stand(storage: Storage) -> None:
    must = "`add` must keep the version, and `save` must return the record as it is stored: version one higher"
    made = payment("pay_1")
    async with storage.unit() as unit:
        assert unit[Payment].add(made) == made, must
        await unit.commit()
    async with storage.unit() as unit:
        saved = unit[Payment].save(msgspec.structs.replace(made, status=PaymentStatus.PAID))
        await unit.commit()
    assert saved.version == 1, must
    assert await read(storage, Payment, "pay_1") == saved, must


async def test_a_record_may_be_added_saved_and_saved_again_in_one_unit(storage: Storage) -> None:
    must = "a unit must be able to save again a record that it wrote"
    async with storage.unit() as unit:
        record = unit[Payment].add(payment("pay_1"))
        record = unit[Payment].save(msgspec.structs.replace(record, sequence=1))
        record = unit[Payment].save(msgspec.structs.replace(record, sequence=2))
        await unit.commit()
    assert await read(storage, Payment, "pay_1") == record, must
    assert (record.version, record.sequence) == (2, 2), must


@pytest.mark.parametrize("version", [0, 2, 7])
async def test_save_of_another_version_is_stale_and_changes_nothing(storage: Storage, version: int) -> None:
    must = "a save of another version than the stored one must be Stale, and change nothing"
    await put(storage, payment("pay_1"))
    async with storage.unit() as unit:
        stored = unit[Payment].save(payment("pay_1", sequence=5))
        await unit.commit()
    async with storage.unit() as unit:
        unit[Payment].save(msgspec.structs.replace(stored, sequence=9, version=version))
        with must_raise(must, Stale):
            await unit.commit()
    assert await read(storage, Payment, "pay_1") == stored, must


async def test_save_of_a_record_that_is_not_there_is_stale(storage: Storage) -> None:
    must = "a save of a record that is not there must be Stale"
    async with storage.unit() as unit:
        unit[Payment].save(payment("pay_1"))
        with must_raise(must, Stale):
            await unit.commit()


async def test_change_writes_the_fields_it_names(storage: Storage) -> None:
    must = "`change` must write the fields that it names, and leave the others"
    await put(storage, payment("pay_1", description="before"), job("watch:1"))
    async with storage.unit() as unit:
        before = await unit[Payment].get("pay_1")
        assert before is not None, must
        changed = unit[Payment].change(before, status=PaymentStatus.PAID, amount=Rub(99_00), description=None)
        moved = unit[Job].change(job("watch:1"), due=START, attempts=3)
        await unit.commit()
    wanted = msgspec.structs.replace(
        before, status=PaymentStatus.PAID, amount=Rub(99_00), description=None, version=before.version + 1
    )
    assert changed == wanted == await must_read(storage, Payment, "pay_1"), must
    assert moved == await must_read(storage, Job, "watch:1"), must
    assert (moved.due, moved.attempts, moved.version) == (START, 3, 1), must


async def test_change_of_a_changed_record_is_stale(storage: Storage) -> None:
    must = "`change` of another version than the stored one must be Stale, and change nothing"
    await put(storage, payment("pay_1"))
    async with storage.unit() as unit:
        unit[Payment].change(payment("pay_1", version=1), status=PaymentStatus.PAID)
        with must_raise(must, Stale):
            await unit.commit()
    assert (await must_read(storage, Payment, "pay_1")).status is PaymentStatus.PENDING, must


async def test_remove_takes_the_record_away(storage: Storage) -> None:
    must = "a removed record must be gone"
    await put(storage, job("watch:1"))
    async with storage.unit() as unit:
        unit[Job].remove(job("watch:1"))
        await unit.commit()
    assert await read(storage, Job, "watch:1") is None, must


async def test_remove_of_a_changed_or_missing_record_is_stale(storage: Storage) -> None:
    must = "removing a record that changed or is not there must be Stale"
    await put(storage, job("watch:1"))
    async with storage.unit() as unit:
        changed = unit[Job].save(job("watch:1", 60))
        await unit.commit()
    for gone in (job("watch:1"), job("watch:2")):
        async with storage.unit() as unit:
            unit[Job].remove(gone)
            with must_raise(must, Stale):
                await unit.commit()
    assert await read(storage, Job, "watch:1") == changed, must


@pytest.mark.parametrize("last", ["stale", "conflict", "remove", "increase"])
async def test_all_writes_of_a_unit_apply_or_none(storage: Storage, last: str) -> None:
    must = "all writes of a unit must apply, or none"
    await put(storage, payment("pay_1"), job("watch:1"), Tally(id="t1", owner="a", count=3))
    async with storage.unit() as unit:
        unit[Payment].save(payment("pay_1", sequence=1))
        unit[Payment].add(payment("pay_2"))
        unit[IdempotencyKey].add(key("k1"))
        unit[Job].remove(job("watch:1"))
        unit[Tally].increase("t1", "count", 5)
        if last == "stale":
            unit[Shop].save(shop("s1", "A"))
        elif last == "conflict":
            unit[Payment].add(payment("pay_2"))
        elif last == "remove":
            unit[Payment].remove(payment("pay_3"))
        else:
            unit[Tally].increase("t2", "count", 5)
        with must_raise(must, Stale, Conflict):
            await unit.commit()
    assert await read(storage, Payment, "pay_1") == payment("pay_1"), must
    assert await read(storage, Payment, "pay_2") is None, must
    assert await read(storage, IdempotencyKey, "k1") is None, must
    assert await read(storage, Job, "watch:1") == job("watch:1"), must
    assert (await must_read(storage, Tally, "t1")).count == 3, must
    # The rolled-back records cause no conflict.
    await put(storage, payment("pay_2"), key("k1"))


async def test_writes_apply_in_the_order_made(storage: Storage) -> None:
    """A name released earlier in a unit can be reused later in it, but not the other way round."""
    must = "writes must apply in the order in which the unit made them"
    await put(storage, shop("s1", "A"), job("watch:1"))
    async with storage.unit() as unit:
        freed = unit[Shop].save(shop("s1", "B"))
        unit[Shop].add(shop("s2", "A"))
        unit[Job].remove(job("watch:1"))
        unit[Job].add(job("watch:1", 30))
        with must_answer(must):
            await unit.commit()
    assert await read(storage, Job, "watch:1") == job("watch:1", 30), must
    async with storage.unit() as unit:
        unit[Shop].add(shop("s3", "B"))
        unit[Shop].save(msgspec.structs.replace(freed, name="C", name_folded="c"))
        with must_conflict(must, "shops_name"):
            await unit.commit()


async def test_a_type_that_the_catalogue_does_not_declare_has_no_repository(storage: Storage) -> None:
    must = "a type that the catalogue does not declare must be a TypeError"
    async with storage.unit() as unit:
        with must_raise(must, TypeError):
            unit[Mode]  # type: ignore[type-var]  # on purpose


async def test_a_closed_storage_refuses(place: StorageLocation) -> None:
    must = "a closed storage must be Unavailable"
    storage = await place.open()
    await storage.close()
    await storage.close()
    with must_raise(must, Unavailable):
        await put(storage, payment("pay_1"))
    with must_raise(must, Unavailable):
        await read(storage, Payment, "pay_1")
    for call in (storage.check, lambda: storage.claim(1, 60), storage.next_due):
        with must_raise(must, Unavailable):
            await call()


async def test_check_passes_while_the_storage_works(storage: Storage) -> None:
    await storage.check()
    await storage.check()
