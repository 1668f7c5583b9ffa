"""Many writes as one statement for Postgres: the rows of one table go as arrays, whatever units they are from, so there
are few forms of such a statement, and Postgres plans each of them once.

With a round trip for each write, one after the other, a settlement takes four times as long.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from ..sql.nulls import Nulls
from ..table.codec import Storing
from ..table.table_map import TableMap
from ..table.writes import Accrue, Add, Save, Write, added
from .arrays import TYPES, array
from .joined import all_or_nothing

_FORMS = 256
"""Statements that are remembered: what is written together by chance makes forms without end."""

_Form = tuple[str, str, tuple[str, ...]]
"""What is done (`add`, `save`, `accrue`), to which table, and which fields a save sets or an add writes (none: all)."""


class Bulk:
    """Makes such statements. What it remembers serves all units."""

    def __init__(self) -> None:
        self._texts: dict[tuple[_Form, ...], str] = {}
        self._storing: dict[_Form, list[Storing]] = {}
        self._nulls = Nulls()

    def statement(self, writes: Iterable[Write]) -> tuple[str, list[Any]]:
        """The one statement of writes that never meet in one row, sums apart, which are added up; it makes all of them
        or none (joined.py: TAKEN_BACK). An array for each column, and the number of rows of each part.

        Raises: ValueError for sums that only together are beyond 64 bits; TypeError for any other kind of write.
        """
        parts: dict[_Form, tuple[TableMap[Any], list[Sequence[Any]]]] = {}
        sums: dict[tuple[str, str], Accrue] = {}
        for write in writes:
            mapped = write.mapped
            if isinstance(write, Add):
                parts.setdefault(("add", mapped.name, ()), (mapped, []))[1].append(write.row)
            elif isinstance(write, Save):
                setting = mapped.setting(write.changed)
                values = (*(write.row[mapped.codec.index[name]] for name in setting), write.id, write.version)
                parts.setdefault(("save", mapped.name, setting), (mapped, []))[1].append(values)
            elif isinstance(write, Accrue):
                known = sums.get((mapped.name, write.id))
                moved = write if known is None else Accrue(mapped, write.id, added(write, known.row))
                sums[mapped.name, write.id] = moved
            else:
                raise TypeError(f"{type(write).__name__} is not written in bulk")
        # Sums last and in the order of ids, as in every unit, so that no two lock them crosswise.
        for (name, _), accrual in sorted(sums.items()):
            parts.setdefault(("accrue", name, ()), (accrual.mapped, []))[1].append(accrual.row)
        return self._of_parts(parts)

    def _of_parts(self, parts: dict[_Form, tuple[TableMap[Any], list[Sequence[Any]]]]) -> tuple[str, list[Any]]:
        forms, arrays, counts = list[tuple[_Form, TableMap[Any]]](), list[Any](), list[int]()
        for form in sorted(parts, key=lambda form: (form[0] == "accrue", form)):
            (what, name, setting), (mapped, rows) = form, parts[form]
            columns = list(zip(*rows, strict=True))
            if what == "add":
                indexes = self._nulls.written(mapped, columns)
                setting = tuple(mapped.codec.names[index] for index in indexes)
                columns = [columns[index] for index in indexes]
            form = what, name, setting
            forms.append((form, mapped))
            storing = self._storing.get(form) or self._storing.setdefault(form, _stored_as(form, mapped))
            arrays += map(array, storing, columns)
            counts.append(len(rows))
        known_as = tuple(form for form, _ in forms)
        text = self._texts.get(known_as)
        if text is None:
            if len(self._texts) >= _FORMS:
                self._texts.clear()
            text = self._texts[known_as] = _text(forms)
        return text, [*arrays, *counts]


def parted(writes: Sequence[Write]) -> tuple[list[Add | Save], list[Write]]:
    """What of a unit can go together and first: new rows, and changed ones of tables without unique rules, which may be
    broken by one order and not by another; each named once. And the rest, in order, sums last as ever."""
    named: dict[tuple[str, str], int] = {}
    for write in writes:
        if not isinstance(write, Accrue):
            row = write.mapped.name, write.id
            named[row] = named.get(row, 0) + 1
    together, rest = list[Add | Save](), list[Write]()
    for write in writes:
        goes = isinstance(write, Add) or (isinstance(write, Save) and not write.mapped.rules)
        if goes and named[write.mapped.name, write.id] == 1:
            together.append(cast("Add | Save", write))
        else:
            rest.append(write)
    return together, rest


def _text(parts: Sequence[tuple[_Form, TableMap[Any]]]) -> str:
    # Nothing from outside is in a text: names are the catalogue's.
    changes, first = list[str](), 1
    for number, (form, mapped) in enumerate(parts):
        change, parameters = _change(form, mapped, first)
        changes.append(f"w{number} AS ({change} RETURNING 1)")
        first += parameters
    counts = [f"(SELECT count(*) FROM w{number}) = ${first + number}::bigint" for number in range(len(parts))]  # noqa: S608
    return all_or_nothing(changes, counts)


def _change(form: _Form, mapped: TableMap[Any], first: int) -> tuple[str, int]:
    """One part, whose parameters are counted from `first` on, and their number."""
    what, table, setting = form
    names = _names(form, mapped)
    types = [TYPES[storing] for storing in _stored_as(form, mapped)]
    arrays = ", ".join(f"${first + index}::{of}" for index, of in enumerate(types))
    columns = ", ".join(f'"{name}"' for name in names)
    given = f"unnest({arrays}) AS given ({columns})"
    if what == "save":
        values = ", ".join(f'"{name}" = given."{name}"' for name in setting)
        guard = f'{table}.id = given.id_ COLLATE "C" AND {table}.version = given.version_'
        return f"UPDATE {table} SET {values} FROM {given} WHERE {guard}", len(names)  # noqa: S608
    change = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {given}"  # noqa: S608
    if what == "accrue":
        totals = [mapped.codec.names[index] for index in mapped.sums_in_order]
        moved = ", ".join(f'"{name}" = {table}."{name}" + excluded."{name}"' for name in totals)
        change = f"{change} ON CONFLICT (id) DO UPDATE SET {moved}"
    return change, len(names)


def _names(form: _Form, mapped: TableMap[Any]) -> tuple[str, ...]:
    """What the columns of a part are called there."""
    what, _, setting = form
    return (*setting, "id_", "version_") if what == "save" else setting or mapped.codec.names


def _stored_as(form: _Form, mapped: TableMap[Any]) -> list[Storing]:
    return [mapped.codec.column(name.rstrip("_")).storing for name in _names(form, mapped)]
