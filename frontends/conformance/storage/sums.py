"""Contract of `increase` (ports/storage.py): sums that every request changes commute, and so never go stale."""

import msgspec

from ....core.domain.money import Rub
from ....ports.faults import Stale
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import Tally, must_read, put, read


async def test_increase_adds_and_leaves_the_version(storage: Storage) -> None:
    must = "an increase must add to the sum, and leave the version"
    await put(storage, Tally(id="t1", owner="a", count=1, pending=Rub(100)))
    async with storage.unit() as unit:
        unit[Tally].increase("t1", "count", 4)
        unit[Tally].increase("t1", "pending", -250)
        await unit.commit()
    assert await read(storage, Tally, "t1") == Tally(id="t1", owner="a", count=5, pending=Rub(-150)), must


async def test_increase_of_what_is_not_there_is_stale(storage: Storage) -> None:
    must = "an increase of a record that is not there must be Stale"
    async with storage.unit() as unit:
        unit[Tally].increase("t1", "count", 1)
        with must_raise(must, Stale):
            await unit.commit()


async def test_save_leaves_sums_as_they_stand(storage: Storage) -> None:
    """The record carries the sums at the time it was read. Saving it must not undo later increases."""
    must = "a save must leave the sums as they are stored"
    await put(storage, Tally(id="t1", owner="a", count=1))
    async with storage.unit() as unit:
        record = await unit[Tally].get("t1")
        assert record is not None, must
        async with storage.unit() as other:
            other[Tally].increase("t1", "count", 10)
            await other.commit()
        unit[Tally].save(msgspec.structs.replace(record, owner="b"))
        await unit.commit()
    assert await read(storage, Tally, "t1") == Tally(id="t1", owner="b", count=11, version=1), must


async def test_a_sum_stays_within_64_bits(storage: Storage) -> None:
    must = "a sum beyond 64 bits must be a ValueError, and the sum must stay"
    await put(storage, Tally(id="t1", owner="a", count=2**63 - 1))
    async with storage.unit() as unit:
        unit[Tally].increase("t1", "count", 1)
        with must_raise(must, ValueError):
            await unit.commit()
    assert (await must_read(storage, Tally, "t1")).count == 2**63 - 1, must


async def test_only_declared_sums_are_increased(storage: Storage) -> None:
    must = "an increase of a field that is no declared sum must be a TypeError"
    async with storage.unit() as unit:
        for field in ("version", "owner", "garbage"):
            with must_raise(must, TypeError):
                unit[Tally].increase("t1", field, 1)
