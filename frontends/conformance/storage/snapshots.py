"""Contract of consistent reads over several statements, and of scans (ports/storage.py)."""

import msgspec

from ....core.domain.accounts.shops import Shop
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....ports.storage import Storage
from ..expectations import must_answer, must_raise
from .kit import job, payment, put, read, shop


async def test_a_snapshot_sees_the_storage_as_of_its_first_read(storage: Storage) -> None:
    must = "a snapshot must show the storage as it was at its first read"
    await put(storage, payment("pay_1"), shop("s1", "A"))
    async with storage.snapshot() as early, storage.snapshot() as late:
        assert await early[Payment].total() == 1, must
        async with storage.unit() as unit:
            unit[Payment].save(payment("pay_1", status=PaymentStatus.PAID))
            unit[Payment].add(payment("pay_2"))
            unit[Shop].remove(shop("s1", "A"))
            await unit.commit()
        assert await early[Payment].get("pay_1") == payment("pay_1"), must
        assert await early[Payment].get("pay_2") is None, must
        assert [found.id for found in await early[Payment].find(order="-id")] == ["pay_1"], must
        assert await early[Payment].page(1, 10, status=PaymentStatus.PAID) == [], must
        assert await early[Payment].total() == 1, must
        assert await early[Shop].get("s1") == shop("s1", "A"), must
        assert await late[Payment].total() == 2, must
        assert await late[Shop].total() == 0, must
        await put(storage, payment("pay_3"))
        assert await late[Payment].total() == 2, must
        assert await early[Payment].total() == 1, must
    assert await read(storage, Payment, "pay_3") is not None, must


async def test_a_snapshot_refuses_writes(storage: Storage) -> None:
    must = "a snapshot must refuse writes with a RuntimeError"
    async with storage.snapshot() as snapshot:
        repository = snapshot[Payment]
        for write in (
            lambda: repository.add(payment("pay_1")),
            lambda: repository.save(payment("pay_1")),
            lambda: repository.remove(payment("pay_1")),
        ):
            with must_raise(must, RuntimeError):
                write()


async def test_snapshots_do_not_hold_up_writes(storage: Storage) -> None:
    """Three snapshots are fewer than the spare connections of any database; more than that could block writes."""
    must = "a snapshot must not hold up writes, nor see them"
    await put(storage, payment("pay_1"))
    async with storage.snapshot() as one, storage.snapshot() as two, storage.snapshot() as three:
        for snapshot in (one, two, three):
            assert await snapshot[Payment].total() == 1, must
        for n in range(20):
            await put(storage, job(f"j{n}"))
        assert await one[Payment].total() == 1, must


async def test_scan_gives_every_record_once_in_the_order_of_ids(storage: Storage) -> None:
    must = "a scan must give each record once, in the order of ids, in batches of at most `batch`"
    await put(storage, *(payment(f"pay_{n:02}", sequence=n % 2) for n in range(7)))
    for batch in (1, 2, 3, 7, 100):
        batches = [list(found) async for found in storage.scan(Payment, batch=batch)]
        assert [found.id for each in batches for found in each] == [f"pay_{n:02}" for n in range(7)], must
        assert all(0 < len(each) <= batch for each in batches), must
        odd = [found.id async for each in storage.scan(Payment, batch=batch, sequence=1) for found in each]
        assert odd == ["pay_01", "pay_03", "pay_05"], must
    with must_raise(must, ValueError):
        await anext(aiter(storage.scan(Payment, batch=0)))


async def test_scan_of_nothing_gives_nothing(storage: Storage) -> None:
    must = "a scan of nothing must give no batch"
    assert [batch async for batch in storage.scan(Payment)] == [], must


async def test_records_may_be_written_while_they_are_scanned(storage: Storage) -> None:
    """ports/storage.py: "Not one consistent view". A record removed before its batch is not seen, and a changed one is
    seen changed."""
    must = "a scan must give each record at most once, as it is when its batch is read"
    await put(storage, *(payment(f"pay_{n}") for n in range(6)))
    seen: list[Payment] = []
    async for batch in storage.scan(Payment, batch=2):
        seen.extend(batch)
        async with storage.unit() as unit:
            for found in batch:
                unit[Payment].save(msgspec.structs.replace(found, sequence=1))
            if len(seen) == 2:
                unit[Payment].remove(payment("pay_4"))
                unit[Payment].save(payment("pay_5", sequence=7))
            with must_answer(must):
                await unit.commit()
    assert [(found.id, found.sequence) for found in seen] == [
        ("pay_0", 0),
        ("pay_1", 0),
        ("pay_2", 0),
        ("pay_3", 0),
        ("pay_5", 7),
    ], must
