"""The plan of what units write together (adapters/storage/sql/plan.py): pure, so it is carried out on dictionaries."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from cambist.adapters.storage.sql.nulls import Nulls
from cambist.adapters.storage.sql.plan import Part, Plan, What
from cambist.adapters.storage.table.table_map import TableMap
from cambist.adapters.storage.table.writes import Accrue, Add, Increase, Save, Write
from tests.contracts.storage_kit import Tally, key, payment
from tests.contracts.test_storage_postgres_together import KEEPING, accrue, add, hits
from tests.tables import table

Stored = dict[tuple[str, str], dict[str, Any]]
CHANGED = ((), ("label",), ("open", "label"))


def fields_of(mapped: TableMap[Any], row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(mapped.codec.names, row, strict=True))


def carry_out_one(stored: Stored, write: Write) -> None:
    """Carry out one write, as a database does."""
    mapped, place = write.mapped, (write.mapped.name, write.id)
    assert isinstance(write, Add | Save | Accrue)
    given_row = fields_of(mapped, write.row)
    if isinstance(write, Add):
        assert place not in stored
        stored[place] = given_row
    elif isinstance(write, Save):
        assert stored[place]["version"] == write.version
        stored[place].update({name: given_row[name] for name in mapped.setting(write.changed)})
    elif place not in stored:
        stored[place] = given_row
    else:
        for name in mapped.table.sums:
            stored[place][name] += given_row[name]


def carry_out(stored: Stored, part: Part) -> None:
    """Carry out a part as a database does: fields omitted from a new row are null."""
    mapped = part.mapped
    index = mapped.codec.names.index("id")
    for row in part.by_row():
        if part.what is What.SAVE:
            *values, record_id, version = row
            present = stored[mapped.name, str(record_id)]
            assert present["version"] == version
            present.update(zip(part.fields, values, strict=True))
            continue
        record = dict.fromkeys(mapped.codec.names) | dict(zip(part.fields, row, strict=True))
        place = mapped.name, str(record["id"])
        if part.what is What.ADD or place not in stored:
            assert place not in stored
            stored[place] = record
        else:
            assert row[index] == record["id"]
            for name in mapped.table.sums:
                stored[place][name] += record[name]


def units(chance: random.Random) -> tuple[list[Add], list[list[Write]]]:
    """Return stored rows, and units that may be committed in sequence: new rows, rows that change several times in the
    same way, and sums."""
    tallies = KEEPING[Tally]
    stored = [Tally(id=f"t{number}", owner="o") for number in range(3)]
    versions = dict.fromkeys((tally.id for tally in stored), 0)
    ways = {tally.id: chance.choice(CHANGED) for tally in stored}
    found: list[list[Write]] = []
    for number in range(chance.randint(0, 8)):
        unit: list[Write] = []
        for step in range(chance.randint(1, 4)):
            match chance.choice(("payment", "key", "save", "accrue")):
                case "payment":
                    unit.append(add(payment(f"pay_{number}_{step}", description=chance.choice((None, "d")))))
                case "key":
                    unit.append(add(key(f"k{number}_{step}")))
                case "save":
                    tally = chance.choice(stored)
                    version = versions[tally.id]
                    versions[tally.id] += 1
                    saved = Tally(id=tally.id, owner="o", label=f"{number}.{step}", open=False, version=version + 1)
                    row = tallies.codec.encode(saved)
                    unit.append(Save(tallies, tally.id, version, row, ways[tally.id]))
                case _:
                    unit.append(accrue(hits(chance.choice(("h1", "h2", "h3")), chance.randint(1, 9))))
        found.append(unit)
    return [add(tally) for tally in stored], found


@table("seed", range(100))
def test_a_plan_carried_out_is_the_units_one_by_one(seed: int) -> None:
    before, wanted = units(random.Random(seed))
    one_by_one, together = Stored(), Stored()
    for first in before:
        carry_out_one(one_by_one, first)
        carry_out_one(together, first)
    plan = Plan(Nulls())
    for unit in wanted:
        plan.put(unit)
        for write in unit:
            carry_out_one(one_by_one, write)
    for part in (*plan.rows(), *plan.sums()):
        carry_out(together, part)
    assert together == one_by_one
    assert (plan.rows(), plan.sums()) == ([], [])


@table("seed", range(100))
def test_nothing_is_lost_or_done_twice_and_sums_come_in_the_order_of_ids(seed: int) -> None:
    wanted = [write for unit in units(random.Random(seed))[1] for write in unit]
    plan = Plan(Nulls())
    plan.put(wanted)
    rows, sums = plan.rows(), plan.sums()
    for what, kind in ((What.ADD, Add), (What.SAVE, Save)):
        assert sum(part.count for part in rows if part.what is what) == sum(isinstance(w, kind) for w in wanted)
    assert len({(part.what, part.mapped.name, part.fields) for part in rows}) == len(rows)
    moved = sorted({(w.mapped.name, w.id) for w in wanted if isinstance(w, Accrue)})
    assert [(part.mapped.name, row[0]) for part in sums for row in part.by_row()] == moved


def test_sums_that_only_together_are_beyond_64_bits_are_refused() -> None:
    plan = Plan(Nulls())
    plan.put([accrue(hits("h1", 2**62)), accrue(hits("h1", 2**62))])
    with pytest.raises(ValueError, match="64"):
        plan.sums()


def test_cleared_plan_is_empty() -> None:
    plan = Plan(Nulls())
    plan.put([add(payment("pay_1")), accrue(hits("h1", 1))])
    plan.clear()
    assert (plan.rows(), plan.sums()) == ([], [])


def test_unknown_write_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Increase"):
        Plan(Nulls()).put([Increase(KEEPING[Tally], "t1", "count", 1)])
