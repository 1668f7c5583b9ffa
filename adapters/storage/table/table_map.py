"""The catalogue's tables in the form that storages use: codec, unique rules, and the columns of each write."""

import functools
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Generic

from ....ports.jobs import Job
from ....ports.storage import R
from .catalogue import Table, Unique
from .codec import Codec, Row


class Rule:
    """Unique rule of the catalogue, applied to rows."""

    def __init__(self, codec: Codec[Any], declared: Unique) -> None:
        self.name = declared.name
        self.fields = declared.fields
        self._key = tuple(codec.index[field] for field in declared.fields)
        self.where = {field: codec.column(field).encode(value) for field, value in declared.where}
        self._where = tuple((codec.index[field], value) for field, value in self.where.items())

    def key(self, row: Row) -> tuple[Any, ...] | None:
        """Return the values that must be unique; None if the rule does not apply to this row."""
        key = tuple(row[index] for index in self._key)
        if None in key or any(row[index] != value for index, value in self._where):
            return None
        return key


class TableMap(Generic[R]):
    """Table of the catalogue, with its codec."""

    def __init__(self, kind: type[R], table: Table) -> None:
        self.kind = kind
        self.table = table
        self.name = table.name
        self.id_rule = f"{table.name}_id"
        self.codec = Codec(kind)
        self.rules = tuple(Rule(self.codec, declared) for declared in table.uniques)
        for field in table.sums:
            if not self.codec.column(field).summable:
                raise TypeError(f"{kind.__name__}.{field} is no integer that can be increased")
        self.sums = frozenset(self.codec.index[field] for field in table.sums)
        self.sums_in_order = tuple(sorted(self.sums))
        self.fixed = frozenset(self.codec.index[field] for field in table.fixed)
        self.of_jobs = issubclass(kind, Job)
        self._settings: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._takers: dict[tuple[str, ...], Callable[[Row], tuple[Any, ...]]] = {}

    def setting(self, changed: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns that a save writes, in order: the changed fields, or all changeable fields if none is
        named. The version is always included.
        """
        known = self._settings.get(changed)
        if known is None:
            staying = {self.codec.index["id"], *self.sums, *self.fixed}
            changing = [name for index, name in enumerate(self.codec.names) if index not in staying]
            known = tuple(name for name in changing if not changed or name in changed or name == "version")
            self._settings[changed] = known
        return known

    def taken(self, changed: tuple[str, ...], row: Row) -> tuple[Any, ...]:
        """Return the values of a row that such a save writes."""
        taker = self._takers.get(changed)
        if taker is None:
            indexes = [self.codec.index[name] for name in self.setting(changed)]
            # With a single index, itemgetter would not return a tuple.
            taker = itemgetter(*indexes) if len(indexes) > 1 else lambda row: (row[indexes[0]],)
            self._takers[changed] = taker
        return taker(row)


TableMaps = dict[type[Any], TableMap[Any]]


def keep(catalogue: Iterable[Table]) -> TableMaps:
    """Return the tables of a catalogue by record type."""
    return {table.kind: _table_map(table) for table in catalogue}


@functools.cache
def _table_map(table: Table) -> TableMap[Any]:
    """Return one object for all storages of the process.

    It never changes, and reading the type hints of all records is slow.
    """
    return TableMap(table.kind, table)


def table_map_of(table_maps: TableMaps, kind: type[R]) -> TableMap[R]:
    """Return the table of a record type. Raises TypeError for a type that the catalogue does not declare."""
    try:
        return table_maps[kind]
    except KeyError:
        raise TypeError(f"the catalogue declares no {kind.__name__}") from None
