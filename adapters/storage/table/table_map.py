"""The catalogue's tables as storages work with them: codec, unique rules, and which columns a write moves."""

import functools
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Generic

from ....ports.jobs import Job
from ....ports.storage import R
from .catalogue import Table, Unique
from .codec import Codec, Row


class Rule:
    """A unique rule of the catalogue over rows."""

    def __init__(self, codec: Codec[Any], declared: Unique) -> None:
        self.name = declared.name
        self.fields = declared.fields
        self._key = tuple(codec.index[field] for field in declared.fields)
        self.where = {field: codec.column(field).encode(value) for field, value in declared.where}
        self._where = tuple((codec.index[field], value) for field, value in self.where.items())

    def key(self, row: Row) -> tuple[Any, ...] | None:
        """What must be unique; None when the rule does not bind this row."""
        key = tuple(row[index] for index in self._key)
        if None in key or any(row[index] != value for index, value in self._where):
            return None
        return key


class TableMap(Generic[R]):
    """A table of the catalogue, with its codec."""

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
        """The columns that a save writes, in their order: of these fields, or, where none is named, of all that may
        change; the version always."""
        known = self._settings.get(changed)
        if known is None:
            staying = {self.codec.index["id"], *self.sums, *self.fixed}
            changing = [name for index, name in enumerate(self.codec.names) if index not in staying]
            known = tuple(name for name in changing if not changed or name in changed or name == "version")
            self._settings[changed] = known
        return known

    def taken(self, changed: tuple[str, ...], row: Row) -> tuple[Any, ...]:
        """The values of a row that such a save writes."""
        taker = self._takers.get(changed)
        if taker is None:
            indexes = [self.codec.index[name] for name in self.setting(changed)]
            # Of one place itemgetter would make no tuple.
            taker = itemgetter(*indexes) if len(indexes) > 1 else lambda row: (row[indexes[0]],)
            self._takers[changed] = taker
        return taker(row)


TableMaps = dict[type[Any], TableMap[Any]]


def keep(catalogue: Iterable[Table]) -> TableMaps:
    """Everything a catalogue declares, by record type."""
    return {table.kind: _table_map(table) for table in catalogue}


@functools.cache
def _table_map(table: Table) -> TableMap[Any]:
    """One for all storages of the process: it never changes, and to read the hints of all records takes a while."""
    return TableMap(table.kind, table)


def table_map_of(table_maps: TableMaps, kind: type[R]) -> TableMap[R]:
    """The table of a record type. Raises TypeError for a type that the catalogue does not declare."""
    try:
        return table_maps[kind]
    except KeyError:
        raise TypeError(f"the catalogue declares no {kind.__name__}") from None
