"""Contract of units with very many writes, such as background work commits. A storage may execute them in another way
than short ones, with the same result."""

import msgspec
import pytest

from ....core.domain.accounts.limit_hits import LimitHits
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import START, Tally, job, must_conflict, must_read, payment, put, read

MANY = 100


def numbered(number: int) -> str:
    return f"pay_{number:03}"


async def payments(storage: Storage, count: int = MANY) -> list[Payment]:
    """Store this many payments and return them."""
    made = [payment(numbered(number), description=f'"{number}", {{NULL}}\\') for number in range(count)]
    await put(storage, *made)
    return made


async def test_every_kind_of_write_takes_effect(storage: Storage) -> None:
    must = "each of many writes in a unit must take effect"
    stored = await payments(storage)
    await put(storage, Tally(id="old", owner="a", count=1), *(job(f"job_{number:03}") for number in range(MANY)))
    hits = LimitHits(id="h1", minute=START, counter="money:ip", count=2)
    async with storage.unit() as unit:
        saved = [unit[Payment].save(msgspec.structs.replace(each, status=PaymentStatus.PAID)) for each in stored[:50]]
        saved += [unit[Payment].change(each, settlement_id="set_1", payer_name=b"\x00\\") for each in stored[50:]]
        for number in range(MANY):
            unit[Job].remove(job(f"job_{number:03}"))
        added = [unit[Payment].add(payment(f"new_{number:03}", metadata={"n": number})) for number in range(MANY)]
        unit[Tally].increase("old", "count", 4)
        unit[LimitHits].accrue(hits, hits)
        await unit.commit()
    assert [await read(storage, Payment, each.id) for each in stored] == saved, must
    assert [await read(storage, Payment, each.id) for each in added] == added, must
    async with storage.unit() as unit:
        assert await unit[Job].total() == 0, must
    assert (await must_read(storage, Tally, "old")).count == 5, must
    assert (await must_read(storage, LimitHits, "h1")).count == 4, must


async def test_repeated_writes_keep_the_order_of_the_unit(storage: Storage) -> None:
    """A settlement opens a statement, writes hundreds of lines, and adds totals to the statement."""
    must = "writes must apply in the order in which the unit made them"
    async with storage.unit() as unit:
        tally = unit[Tally].add(Tally(id="t1", owner="a"))
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].increase("t1", "count", MANY)
        tally = unit[Tally].save(msgspec.structs.replace(tally, label="closed"))
        unit[Tally].increase("t1", "count", 1)
        unit[Tally].remove(unit[Tally].add(Tally(id="t2", owner="b")))
        await unit.commit()
    assert await read(storage, Tally, "t1") == msgspec.structs.replace(tally, count=MANY + 1), must
    assert await read(storage, Tally, "t2") is None, must
    assert await read(storage, Payment, numbered(MANY - 1)) is not None, must


async def test_a_key_that_one_row_gives_up_is_free_for_another(storage: Storage) -> None:
    must = "a key that a unit gave up before must be free for its later writes"
    await put(storage, Tally(id="t1", owner="a"), Tally(id="t2", owner="b"))
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].remove(Tally(id="t1", owner="a"))
        unit[Tally].save(Tally(id="t2", owner="b", open=False))
        unit[Tally].add(Tally(id="t3", owner="a"))
        unit[Tally].add(Tally(id="t4", owner="b"))
        await unit.commit()
    assert [await read(storage, Tally, f"t{number}") is not None for number in (1, 2, 3, 4)] == [
        False,
        True,
        True,
        True,
    ], must


async def test_a_key_that_is_given_up_later_in_the_unit_is_taken(storage: Storage) -> None:
    """The order of the unit's writes decides whether a rule is broken."""
    must = "a key that a unit gives up later must still be taken"
    held, other = Tally(id="t1", owner="a"), Tally(id="t2", owner="b")
    await put(storage, held, other)
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].change(other, owner="a")
        unit[Tally].change(held, open=False)
        with must_conflict(must, "kit_tallies_open_owner"):
            await unit.commit()
    assert await read(storage, Payment, numbered(0)) is None, must


async def test_a_key_that_was_held_for_a_while_is_free_again(storage: Storage) -> None:
    must = "a key that a record held within the unit only must be free again"
    held = Tally(id="t1", owner="a")
    await put(storage, held)
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        held = unit[Tally].change(held, owner="b")
        unit[Tally].change(held, owner="c")
        unit[Tally].add(Tally(id="t2", owner="b"))
        await unit.commit()
    assert (await must_read(storage, Tally, "t1")).owner == "c", must
    assert (await must_read(storage, Tally, "t2")).owner == "b", must


@pytest.mark.parametrize("where", [0, MANY // 2, MANY - 1])
async def test_one_stale_record_among_them_takes_back_all(storage: Storage, where: int) -> None:
    must = "one stale record must be Stale, and take back all writes of the unit"
    stored = await payments(storage)
    async with storage.unit() as unit:
        unit[Payment].save(stored[where])
        await unit.commit()
    async with storage.unit() as unit:
        for each in stored:
            unit[Payment].change(each, status=PaymentStatus.PAID)
        unit[Tally].add(Tally(id="t1", owner="a"))
        with must_raise(must, Stale):
            await unit.commit()
    assert {(await must_read(storage, Payment, each.id)).status for each in stored} == {PaymentStatus.PENDING}, must
    assert await read(storage, Tally, "t1") is None, must


@pytest.mark.parametrize("where", [0, MANY // 2, MANY - 1])
async def test_one_broken_rule_among_them_takes_back_all_and_is_named(storage: Storage, where: int) -> None:
    must = "one broken unique rule must be named, and take back all writes of the unit"
    await put(storage, Tally(id="t1", owner="a"), payment("pay_1"))
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Tally].add(Tally(id=f"new_{number}", owner="a" if number == where else f"o{number}"))
        unit[Payment].change(payment("pay_1"), status=PaymentStatus.PAID)
        with must_conflict(must, "kit_tallies_open_owner"):
            await unit.commit()
    async with storage.unit() as unit:
        assert await unit[Tally].total() == 1, must
    assert (await must_read(storage, Payment, "pay_1")).status is PaymentStatus.PENDING, must


async def test_a_sum_that_leaves_64_bits_takes_back_all(storage: Storage) -> None:
    must = "a sum beyond 64 bits must be a ValueError, and take back all writes of the unit"
    await put(storage, Tally(id="t1", owner="a", count=2**63 - 1))
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].increase("t1", "count", 1)
        with must_raise(must, ValueError):
            await unit.commit()
    assert await read(storage, Payment, numbered(0)) is None, must
