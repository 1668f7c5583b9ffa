"""Rows of one table in memory: the writes that change them, and the reads that find them."""

from collections.abc import Callable
from typing import Any

from ....ports.faults import Conflict, Stale
from ....ports.storage import R
from ..table.codec import Row, integer
from ..table.criteria import Condition, Query, Relation
from ..table.table_map import TableMap
from ..table.writes import Accrue, Add, Increase, Remove, Save, Write, added

_TESTS: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.EQUAL: lambda value, asked: value is not None and value == asked,
    Relation.AT_MOST: lambda value, asked: value is not None and value <= asked,
    Relation.AT_LEAST: lambda value, asked: value is not None and value >= asked,
    Relation.BELOW: lambda value, asked: value is not None and value < asked,
    Relation.ONE_OF: lambda value, asked: value is not None and value in asked,
    Relation.NULL: lambda value, _: value is None,
    Relation.ONE_OF_OR_NULL: lambda value, asked: value is None or value in asked,
}

Rows = dict[str, Row]


class TableRows:
    """Rows of one table. While they are `shared` with a snapshot, a change copies them first."""

    def __init__(self, mapped: TableMap[Any]) -> None:
        self.mapped = mapped
        self.rows: Rows = {}
        self.taken: list[dict[tuple[Any, ...], str]] = [{} for _ in mapped.rules]
        """Taken keys of every unique rule, with the id of the record that has each."""
        self.shared = False

    def put(self, record_id: str, row: Row | None) -> None:
        """Set or delete a row. Raises Conflict, and then nothing has changed."""
        old = self.rows.get(record_id)
        keys = [(rule.key(old) if old else None, rule.key(row) if row else None) for rule in self.mapped.rules]
        for rule, taken, (_, key) in zip(self.mapped.rules, self.taken, keys, strict=True):
            if key is not None and taken.get(key, record_id) != record_id:
                raise Conflict(rule.name)
        for taken, (before, key) in zip(self.taken, keys, strict=True):
            if before is not None:
                del taken[before]
            if key is not None:
                taken[key] = record_id
        if self.shared:
            self.rows, self.shared = dict(self.rows), False
        if row is None:
            del self.rows[record_id]
        else:
            self.rows[record_id] = row

    def at(self, record_id: str, version: int | None) -> Row:
        """Return the row if it has this version (None: any). Raises Stale."""
        row = self.rows.get(record_id)
        if row is None or (version is not None and row[self.mapped.codec.index["version"]] != version):
            raise Stale(f"{self.mapped.name} {record_id} changed since it was read, or is gone")
        return row

    def apply(self, write: Write) -> None:
        """Apply one write. Raises Conflict or Stale, and then nothing has changed."""
        match write:
            case Add(_, record_id, row):
                if record_id in self.rows:
                    raise Conflict(self.mapped.id_rule)
                self.put(record_id, row)
            case Save(_, record_id, version, row, _):
                stored = self.at(record_id, version)
                for index in self.mapped.fixed:
                    if stored[index] != row[index]:
                        raise TypeError(f"{self.mapped.name}.{self.mapped.codec.names[index]} is declared fixed")
                self.put(record_id, [stored[n] if n in self.mapped.sums else value for n, value in enumerate(row)])
            case Remove(_, record_id, version, sums):
                row = self.at(record_id, version)
                if sums != tuple(row[index] for index in self.mapped.sums_in_order):
                    raise Stale(f"{self.mapped.name} {record_id} changed since it was read")
                self.put(record_id, None)
            case Increase(_, record_id, field, by):
                index = self.mapped.codec.index[field]
                changed = list(self.at(record_id, None))
                changed[index] = integer(changed[index] + by)
                self.put(record_id, changed)
            case Accrue(_, record_id, row):
                present = self.rows.get(record_id)
                self.put(record_id, row if present is None else added(write, present))


class Reader:
    """Reader of the rows that `rows_of` returns: the current ones, or those of a snapshot."""

    def __init__(self, rows_of: Callable[[str], Rows]) -> None:
        self._rows_of = rows_of

    async def get(self, mapped: TableMap[R], record_id: str) -> R | None:
        row = self._rows_of(mapped.name).get(record_id)
        return None if row is None else mapped.codec.decode(row)

    async def find(self, mapped: TableMap[R], asked: Query) -> list[R]:
        index, number = mapped.codec.index[asked.order], mapped.codec.index["id"]
        rows = matching(self._rows_of(mapped.name), mapped, asked.conditions)
        # A null is the largest value (criteria.py).
        rows.sort(
            key=lambda row: (row[index] is None, 0 if row[index] is None else row[index], row[number]),
            reverse=asked.descending,
        )
        return [mapped.codec.decode(row) for row in rows[asked.offset : asked.offset + asked.limit]]

    async def total(self, mapped: TableMap[R], asked: tuple[Condition, ...]) -> int:
        return len(matching(self._rows_of(mapped.name), mapped, asked))

    async def sums(self, mapped: TableMap[R], field: str, by: str, asked: tuple[Condition, ...]) -> dict[Any, int]:
        index, group, value_of = mapped.codec.index[field], mapped.codec.index[by], mapped.codec.column(by).value_of
        found: dict[Any, int] = {}
        for row in matching(self._rows_of(mapped.name), mapped, asked):
            found[row[group]] = found.get(row[group], 0) + row[index]
        return {value_of(plain): amount for plain, amount in found.items()}


def matching(rows: Rows, mapped: TableMap[Any], asked: tuple[Condition, ...]) -> list[Row]:
    """Return the rows that meet all conditions.

    Equality, the most frequent condition, makes no function call per row.
    """
    found = list(rows.values())
    for each in asked:
        index, value, test = mapped.codec.index[each.field], each.value, _TESTS[each.relation]
        if each.relation is Relation.EQUAL:  # compares with a value; null has its own relation
            found = [row for row in found if row[index] == value]
        else:
            found = [row for row in found if test(row[index], value)]
    return found
