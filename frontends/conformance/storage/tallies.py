"""Contract of sums whose record is created on first use (ports/storage.py): `accrue`, reads by `sums`, and reads that
start in the middle of an order (`offset`)."""

import asyncio

import msgspec

from ....core.domain.accounts.accounts import Mode
from ....core.domain.money import Rub
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....core.domain.payments.tallies import Tally, Turnover
from ....ports.faults import Stale
from ....ports.storage import Between, Storage
from ..expectations import must_raise
from . import kit
from .kit import Sample, StorageLocation, payment, put, read


def tally(name: str, count: int, *, status: PaymentStatus = PaymentStatus.PENDING, period: str = "ever") -> Tally:
    """A tally whose id is `name`."""
    return Tally(
        id=name,
        account_id="acc_1",
        mode=Mode.TEST,
        period=period,
        moscow_day=period,
        shop_id="shop_1",
        status=status,
        payment_method="sbp",
        count=count,
    )


def turnover(name: str, payments: int, amount: Rub) -> Turnover:
    return Turnover(
        id=name,
        account_id="a",
        mode=Mode.TEST,
        day="2026-01-01",
        moscow_day="2026-01-01",
        shop_id="s",
        payments=payments,
        amount=amount,
    )


async def accrue(storage: Storage, *records: Tally | Turnover) -> None:
    async with storage.unit() as unit:
        for record in records:
            unit[type(record)].accrue(record)
        await unit.commit()


async def test_accrue_writes_what_is_not_there_and_adds_to_what_is(storage: Storage) -> None:
    """ "Add each record's sums to those of the stored record of its id; where there is none, write it as it is." """
    must = "`accrue` must insert a record that is not there, and add to the sums of one that is"
    await accrue(storage, tally("t", 5))
    assert await read(storage, Tally, "t") == tally("t", 5), must
    await accrue(storage, tally("t", -7))
    assert await read(storage, Tally, "t") == tally("t", -2), must


async def test_accrue_leaves_all_but_the_sums(storage: Storage) -> None:
    must = "`accrue` must change the sums of a stored record only"
    await accrue(storage, tally("t", 1))
    await accrue(storage, tally("t", 1, status=PaymentStatus.PAID, period="2026-01-01"))
    assert await read(storage, Tally, "t") == tally("t", 2), must


async def test_accrue_moves_every_sum_of_a_record(storage: Storage) -> None:
    must = "`accrue` must add to each sum of the record"
    await accrue(storage, turnover("t", 1, Rub(100)), turnover("t", 1, Rub(1)), turnover("u", 3, Rub(-5)))
    await accrue(storage, turnover("t", 1, Rub(10)))
    assert await read(storage, Turnover, "t") == turnover("t", 3, Rub(111)), must
    assert await read(storage, Turnover, "u") == turnover("u", 3, Rub(-5)), must


async def test_one_unit_may_accrue_many_rows_of_several_tables(storage: Storage) -> None:
    """Uses more rows than fit into one statement."""
    must = "each of many accruals in a unit must count"
    names = [f"t{n:03}" for n in range(150)]
    for _ in range(2):
        await accrue(storage, *(tally(name, 1) for name in names), turnover("t000", 1, Rub(1)), tally("t000", 1))
    async with storage.unit() as unit:
        found = {each.id: each.count for each in await unit[Tally].find()}
    assert found == {name: 4 if name == "t000" else 2 for name in names}, must
    assert await read(storage, Turnover, "t000") == turnover("t000", 2, Rub(2)), must


async def test_accruals_are_written_with_the_unit_or_not_at_all(storage: Storage) -> None:
    must = "accruals must be written with their unit or not at all"
    await put(storage, payment("pay_1"))
    await accrue(storage, tally("old", 1))
    async with storage.unit() as unit:
        unit[Tally].accrue(tally("old", 1), tally("new", 1))
        unit[Payment].save(payment("pay_1", version=7))
        with must_raise(must, Stale):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Tally].accrue(tally("old", 1))
    assert await read(storage, Tally, "old") == tally("old", 1), must
    assert await read(storage, Tally, "new") is None, must


async def test_accruals_do_not_touch_the_version(storage: Storage) -> None:
    must = "an accrual must leave the version"
    await accrue(storage, tally("t", 1))
    async with storage.unit() as unit:
        known = await unit[Tally].get("t")
        assert known is not None, must
        await accrue(storage, tally("t", 4))
        unit[Tally].save(msgspec.structs.replace(known, shop_id="other"))
        await unit.commit()
    assert await read(storage, Tally, "t") == msgspec.structs.replace(tally("t", 5), shop_id="other", version=1), must


async def test_a_sum_beyond_64_bits_is_refused_whole(storage: Storage) -> None:
    must = "a sum beyond 64 bits must be a ValueError, and take back the unit"
    await accrue(storage, tally("t", 2**63 - 1), tally("u", 1))
    async with storage.unit() as unit:
        unit[Tally].accrue(tally("u", 1), tally("t", 1))
        with must_raise(must, ValueError):
            await unit.commit()
    assert await read(storage, Tally, "t") == tally("t", 2**63 - 1), must
    assert await read(storage, Tally, "u") == tally("u", 1), must


async def test_accrue_is_for_tables_of_sums_without_unique_rules(storage: Storage) -> None:
    """No unique rule may refuse an accrual."""
    must = "`accrue` on a table without sums, or with unique rules, must be a TypeError"
    async with storage.unit() as unit:
        with must_raise(must, TypeError):
            unit[Payment].accrue(payment("pay_1"))
        with must_raise(must, TypeError):
            unit[kit.Tally].accrue(kit.Tally(id="t", owner="o", count=1))


async def test_a_unit_that_is_over_and_a_snapshot_accrue_nothing(storage: Storage) -> None:
    must = "`accrue` in a snapshot or after the commit must be a RuntimeError"
    async with storage.snapshot() as snapshot:
        with must_raise(must, RuntimeError):
            snapshot[Tally].accrue(tally("t", 1))
    async with storage.unit() as unit:
        unit[Tally].accrue(tally("t", 1))
        await unit.commit()
        with must_raise(must, RuntimeError):
            unit[Tally].accrue(tally("t", 1))


async def test_100_units_that_accrue_the_same_rows_crosswise_lose_nothing(place: StorageLocation) -> None:
    """The rows do not exist yet, and every unit names them in another order. No unit fails and no amount is lost."""
    must = "each accrual must count, in whatever order units name the rows"
    storage = await place.open()
    names = ["t1", "t2", "t3", "t4"]

    async def one(n: int) -> None:
        rotated = names[n % 4 :] + names[: n % 4]
        async with storage.unit() as unit:
            unit[Payment].add(payment(f"pay_{n}"))
            for name in rotated:
                unit[Tally].accrue(tally(name, n))
            await unit.commit()

    await asyncio.gather(*(one(n) for n in range(100)))
    async with storage.unit() as unit:
        assert {each.id: each.count for each in await unit[Tally].find()} == dict.fromkeys(names, 4950), must
        assert await unit[Payment].total() == 100, must


async def test_sums_are_by_the_values_of_a_field(storage: Storage) -> None:
    must = "`sums` must add up the records that meet the criteria, for each value of the field `by`"
    paid, pending = PaymentStatus.PAID, PaymentStatus.PENDING
    await accrue(
        storage,
        tally("a1", 5, status=paid, period="2026-01-01"),
        tally("a2", 7, status=pending, period="2026-01-01"),
        tally("a3", -2, status=paid, period="2026-01-02"),
        tally("b1", 100, status=paid, period="2026-01-02"),
        turnover("t", 2, Rub(250)),
    )
    async with storage.unit() as unit:
        repository = unit[Tally]
        assert await repository.sums("count", by="status") == {paid: 103, pending: 7}, must
        assert await repository.sums("count", by="period", id=Between("a", "b")) == {
            "2026-01-01": 12,
            "2026-01-02": -2,
        }, must
        assert await repository.sums("count", by="period", status=pending) == {"2026-01-01": 7}, must
        assert await repository.sums("count", by="status", period="2026-01-09") == {}, must
        assert all(isinstance(status, PaymentStatus) for status in await repository.sums("count", by="status")), must
        assert await unit[Turnover].sums("amount", by="day") == {"2026-01-01": 250}, must
        await accrue(storage, tally("a1", 5))
    async with storage.snapshot() as snapshot:
        assert await snapshot[Tally].sums("count", by="status", id="a1") == {paid: 10}, must
        await accrue(storage, tally("a1", 5))
        assert await snapshot[Tally].sums("count", by="status", id="a1") == {paid: 10}, must


async def test_sums_group_nulls_and_take_any_integer(storage: Storage) -> None:
    must = "`sums` must have a group for null, and refuse a field that is no integer with a TypeError"
    await put(
        storage,
        Sample(id="a", number=2, text_or_null="x"),
        Sample(id="b", number=3, rub=Rub(7)),
        Sample(id="c", number=4),
    )
    async with storage.unit() as unit:
        assert await unit[Sample].sums("number", by="text_or_null") == {"x": 2, None: 7}, must
        assert await unit[Sample].sums("rub", by="flag") == {False: 7}, must
        for field in ("text", "number_or_null", "garbage"):
            with must_raise(must, TypeError):
                await unit[Sample].sums(field, by="id")
        with must_raise(must, TypeError):
            await unit[Sample].sums("number", by="garbage")


async def test_find_begins_after_the_offset(storage: Storage) -> None:
    must = "`find` must begin after the first `offset` records, and refuse a negative offset"
    await put(storage, *(payment(f"pay_{n}", sequence=n // 2) for n in range(6)))
    async with storage.unit() as unit:
        repository = unit[Payment]
        for order, expected in (("sequence", "012345"), ("-sequence", "543210")):
            for offset in range(8):
                found = await repository.find(order=order, offset=offset, limit=3)
                assert "".join(each.id[-1] for each in found) == expected[offset : offset + 3], (
                    f"{must}: {(order, offset)}"
                )
        with must_raise(must, ValueError):
            await repository.find(offset=-1)
