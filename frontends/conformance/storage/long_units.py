"""Contract of units with very many writes, such as background work commits. A storage may execute them in another way
than short ones, with the same result."""

import msgspec
import pytest

from ....core.domain.accounts.limit_hits import LimitHits
from ....core.domain.payments.payments import Payment, PaymentStatus
from ....ports.faults import Conflict, Stale
from ....ports.jobs import Job
from ....ports.storage import Storage
from .kit import START, Tally, job, must_read, payment, put, read

MANY = 100


def numbered(number: int) -> str:
    return f"pay_{number:03}"


async def payments(storage: Storage, count: int = MANY) -> list[Payment]:
    """Store this many payments and return them."""
    made = [payment(numbered(number), description=f'"{number}", {{NULL}}\\') for number in range(count)]
    await put(storage, *made)
    return made


async def test_every_kind_of_write_takes_effect(storage: Storage) -> None:
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
    assert [await read(storage, Payment, each.id) for each in stored] == saved
    assert [await read(storage, Payment, each.id) for each in added] == added
    async with storage.unit() as unit:
        assert await unit[Job].total() == 0
    assert (await must_read(storage, Tally, "old")).count == 5
    assert (await must_read(storage, LimitHits, "h1")).count == 4


async def test_repeated_writes_keep_the_order_of_the_unit(storage: Storage) -> None:
    """A settlement opens a statement, writes hundreds of lines, and adds totals to the statement."""
    async with storage.unit() as unit:
        tally = unit[Tally].add(Tally(id="t1", owner="a"))
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].increase("t1", "count", MANY)
        tally = unit[Tally].save(msgspec.structs.replace(tally, label="closed"))
        unit[Tally].increase("t1", "count", 1)
        unit[Tally].remove(unit[Tally].add(Tally(id="t2", owner="b")))
        await unit.commit()
    assert await read(storage, Tally, "t1") == msgspec.structs.replace(tally, count=MANY + 1)
    assert await read(storage, Tally, "t2") is None
    assert await read(storage, Payment, numbered(MANY - 1)) is not None


async def test_a_key_that_one_row_gives_up_is_free_for_another(storage: Storage) -> None:
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
    ]


async def test_a_key_that_is_given_up_later_in_the_unit_is_taken(storage: Storage) -> None:
    """The order of the unit's writes decides whether a rule is broken."""
    held, other = Tally(id="t1", owner="a"), Tally(id="t2", owner="b")
    await put(storage, held, other)
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].change(other, owner="a")
        unit[Tally].change(held, open=False)
        with pytest.raises(Conflict, match="kit_tallies_open_owner"):
            await unit.commit()
    assert await read(storage, Payment, numbered(0)) is None


async def test_a_key_that_was_held_for_a_while_is_free_again(storage: Storage) -> None:
    held = Tally(id="t1", owner="a")
    await put(storage, held)
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        held = unit[Tally].change(held, owner="b")
        unit[Tally].change(held, owner="c")
        unit[Tally].add(Tally(id="t2", owner="b"))
        await unit.commit()
    assert (await must_read(storage, Tally, "t1")).owner == "c"
    assert (await must_read(storage, Tally, "t2")).owner == "b"


@pytest.mark.parametrize("where", [0, MANY // 2, MANY - 1])
async def test_one_stale_record_among_them_takes_back_all(storage: Storage, where: int) -> None:
    stored = await payments(storage)
    async with storage.unit() as unit:
        unit[Payment].save(stored[where])
        await unit.commit()
    async with storage.unit() as unit:
        for each in stored:
            unit[Payment].change(each, status=PaymentStatus.PAID)
        unit[Tally].add(Tally(id="t1", owner="a"))
        with pytest.raises(Stale):
            await unit.commit()
    assert {(await must_read(storage, Payment, each.id)).status for each in stored} == {PaymentStatus.PENDING}
    assert await read(storage, Tally, "t1") is None


@pytest.mark.parametrize("where", [0, MANY // 2, MANY - 1])
async def test_one_broken_rule_among_them_takes_back_all_and_is_named(storage: Storage, where: int) -> None:
    await put(storage, Tally(id="t1", owner="a"), payment("pay_1"))
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Tally].add(Tally(id=f"new_{number}", owner="a" if number == where else f"o{number}"))
        unit[Payment].change(payment("pay_1"), status=PaymentStatus.PAID)
        with pytest.raises(Conflict, match="kit_tallies_open_owner"):
            await unit.commit()
    async with storage.unit() as unit:
        assert await unit[Tally].total() == 1
    assert (await must_read(storage, Payment, "pay_1")).status is PaymentStatus.PENDING


async def test_a_sum_that_leaves_64_bits_takes_back_all(storage: Storage) -> None:
    await put(storage, Tally(id="t1", owner="a", count=2**63 - 1))
    async with storage.unit() as unit:
        for number in range(MANY):
            unit[Payment].add(payment(numbered(number)))
        unit[Tally].increase("t1", "count", 1)
        with pytest.raises(ValueError):  # noqa: PT011 - each storage has words of its own
            await unit.commit()
    assert await read(storage, Payment, numbered(0)) is None
