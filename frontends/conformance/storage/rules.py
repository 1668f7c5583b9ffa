"""Contract of unique rules (ports/storage.py): Conflict names the broken rule, and nothing is written."""

import msgspec

from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.accounts.shops import Shop
from ....core.domain.payments.payments import Payment
from ....ports.faults import Conflict
from ....ports.storage import Storage
from ..expectations import must_raise
from .kit import Tally, key, must_conflict, must_read, payment, put, read, shop


async def test_a_taken_id_is_a_conflict_that_names_the_primary_key(storage: Storage) -> None:
    must = "a taken id must be a Conflict that names the primary key, and nothing is written"
    await put(storage, payment("pay_1"), key("acc_1:test:k"))
    for taken, rule in ((payment("pay_1"), "payments_id"), (key("acc_1:test:k", "pay_2"), "idempotency_keys_id")):
        with must_raise(must, Conflict) as refused:
            await put(storage, taken)
        assert refused.value.rule == rule, must
    assert (await must_read(storage, IdempotencyKey, "acc_1:test:k")).resource_id == "pay_1", must


async def test_an_id_added_twice_in_one_unit_is_a_conflict(storage: Storage) -> None:
    must = "an id that a unit adds twice must be a Conflict, and nothing is written"
    with must_conflict(must, "payments_id"):
        await put(storage, payment("pay_1"), payment("pay_1"))
    assert await read(storage, Payment, "pay_1") is None, must


async def test_a_broken_unique_rule_is_a_conflict_that_names_it(storage: Storage) -> None:
    """Names of shops are unique within the account, ignoring case (docs/concepts.md "Shops")."""
    must = "a broken unique rule must be a Conflict that names it, and nothing is written"
    await put(storage, shop("s1", "Касса"), shop("s2", "Other"), shop("s3", "Касса", "acc_2"))
    with must_raise(must, Conflict) as added:
        await put(storage, shop("s4", "КАССА"))
    assert added.value.rule == "shops_name", must
    async with storage.unit() as unit:
        unit[Shop].save(msgspec.structs.replace(shop("s2", "касса")))
        with must_raise(must, Conflict) as saved:
            await unit.commit()
    assert saved.value.rule == "shops_name", must
    assert (await must_read(storage, Shop, "s2")).name == "Other", must


async def test_a_record_does_not_clash_with_itself(storage: Storage) -> None:
    must = "a record must not clash with itself"
    await put(storage, shop("s1", "Касса"))
    async with storage.unit() as unit:
        saved = unit[Shop].save(shop("s1", "КАССА"))
        await unit.commit()
    assert await read(storage, Shop, "s1") == saved, must


async def test_conflict_names_the_first_declared_of_several_broken_rules(storage: Storage) -> None:
    """Use cases decide by the rule's name, so it must not depend on the database: the id first, then the catalogue's
    order."""
    must = "a Conflict must name the first declared of several broken rules, the id before all"
    await put(storage, Tally(id="t1", owner="a", label="x"))
    with must_conflict(must, "kit_tallies_id"):
        await put(storage, Tally(id="t1", owner="a", label="x"))
    with must_conflict(must, "kit_tallies_open_owner"):
        await put(storage, Tally(id="t2", owner="a", label="x"))


async def test_a_partial_rule_binds_only_what_it_is_for(storage: Storage) -> None:
    must = "a partial unique rule must bind the records of its condition, and no others"
    await put(storage, Tally(id="t1", owner="a", open=False), Tally(id="t2", owner="a", open=False))
    await put(storage, Tally(id="t3", owner="a"), Tally(id="t4", owner="b"))
    with must_conflict(must, "kit_tallies_open_owner"):
        await put(storage, Tally(id="t5", owner="a"))
    async with storage.unit() as unit:
        unit[Tally].save(Tally(id="t1", owner="a", open=True))
        with must_conflict(must, "kit_tallies_open_owner"):
            await unit.commit()
    async with storage.unit() as unit:
        unit[Tally].save(Tally(id="t3", owner="a", open=False))
        unit[Tally].save(Tally(id="t1", owner="a", open=True))
        await unit.commit()


async def test_nulls_do_not_clash(storage: Storage) -> None:
    must = "a unique rule must bind equal values, and no nulls"
    await put(storage, *(Tally(id=f"t{n}", owner="a", open=False, label=None) for n in range(3)))
    await put(storage, Tally(id="t8", owner="a", open=False, label="x"))
    with must_conflict(must, "kit_tallies_label"):
        await put(storage, Tally(id="t9", owner="a", open=False, label="x"))


async def test_a_conflict_does_not_quote_values(storage: Storage) -> None:
    """Errors must not contain secrets. Postgres' own message repeats the duplicate key."""
    must = "a Conflict must name its rule and quote no value"
    await put(storage, payment("pay_1", description="тайна"))
    with must_raise(must, Conflict) as refused:
        await put(storage, payment("pay_1", description="тайна"))
    assert refused.value.__cause__ is None, must
    assert str(refused.value) == "unique rule payments_id would be broken", must
