"""Many writes in one statement for Postgres.

The rows of one table go as arrays, whichever units they belong to. So there are few forms of such a statement, and
Postgres plans each of them once. With one round trip per write, a settlement takes four times as long.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from ..sql.nulls import Nulls
from ..sql.plan import Part, Plan, What
from ..table.codec import Storing
from ..table.writes import Accrue, Add, Save, Write
from .arrays import TYPES, array
from .joined import all_or_nothing

_FORMS = 256
"""Statements that are cached. The cache has a limit, because chance combinations of writes make endless forms."""

_Form = tuple[What, str, tuple[str, ...]]
"""Kind of write, table, and the written fields."""


class Bulk:
    """Builder of such statements. All units share its cache."""

    def __init__(self) -> None:
        self._texts: dict[tuple[_Form, ...], str] = {}
        self._storing: dict[_Form, list[Storing]] = {}
        self._nulls = Nulls()

    def statement(self, writes: Iterable[Write]) -> tuple[str, list[Any]]:
        """Return one statement for writes that touch different rows, except for sums, which are added up.

        The statement makes all of the writes or none (joined.py: TAKEN_BACK). Its parameters are an array for each
        column, and the number of rows of each part. Raises: ValueError for sums that only together are beyond 64
        bits; TypeError for any other kind of write.
        """
        plan = Plan(self._nulls)
        plan.put(writes)
        # Sort the parts: otherwise the same writes in another order would make another form.
        parts = [*sorted(plan.rows(), key=_form_as_text), *plan.sums()]
        arrays, counts = list[Any](), list[int]()
        for part in parts:
            form = _form(part)
            storing = self._storing.get(form) or self._storing.setdefault(form, _stored_as(part))
            arrays += map(array, storing, part.columns)
            counts.append(part.count)
        forms = tuple(_form(part) for part in parts)
        text = self._texts.get(forms)
        if text is None:
            if len(self._texts) >= _FORMS:
                self._texts.clear()
            text = self._texts[forms] = _text(parts)
        return text, [*arrays, *counts]


def _form(part: Part) -> _Form:
    return part.what, part.mapped.name, part.fields


def _form_as_text(part: Part) -> tuple[str, str, tuple[str, ...]]:
    return part.what.value, part.mapped.name, part.fields


def parted(writes: Sequence[Write]) -> tuple[list[Add | Save], list[Write]]:
    """Split a unit into the writes that can go together first, and the rest in order, with sums last.

    New rows can go together, and so can changed rows of tables without unique rules (the order of changes may
    decide whether a unique rule is broken). A row that the unit writes twice belongs to the rest.
    """
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


def _text(parts: Sequence[Part]) -> str:
    # The text contains no user input: all names come from the catalogue.
    changes, first = list[str](), 1
    for number, part in enumerate(parts):
        changes.append(f"w{number} AS ({_change(part, first)} RETURNING 1)")
        first += len(_names(part))
    counts = [f"(SELECT count(*) FROM w{number}) = ${first + number}::bigint" for number in range(len(parts))]  # noqa: S608
    return all_or_nothing(changes, counts)


def _change(part: Part, first: int) -> str:
    """Return the statement of one part, with parameters numbered from `first`."""
    mapped, table = part.mapped, part.mapped.name
    types = [TYPES[storing] for storing in _stored_as(part)]
    arrays = ", ".join(f"${first + index}::{of}" for index, of in enumerate(types))
    columns = ", ".join(f'"{name}"' for name in _names(part))
    given = f"unnest({arrays}) AS given ({columns})"
    if part.what is What.SAVE:
        values = ", ".join(f'"{name}" = given."{name}"' for name in part.fields)
        guard = f'{table}.id = given.id_ COLLATE "C" AND {table}.version = given.version_'
        return f"UPDATE {table} SET {values} FROM {given} WHERE {guard}"  # noqa: S608
    change = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {given}"  # noqa: S608
    if part.what is What.ADD:
        return change
    totals = [mapped.codec.names[index] for index in mapped.sums_in_order]
    moved = ", ".join(f'"{name}" = {table}."{name}" + excluded."{name}"' for name in totals)
    return f"{change} ON CONFLICT (id) DO UPDATE SET {moved}"


def _names(part: Part) -> tuple[str, ...]:
    """Return the column names of a part in the statement."""
    return (*part.fields, "id_", "version_") if part.what is What.SAVE else part.fields


def _stored_as(part: Part) -> list[Storing]:
    return [part.mapped.codec.column(name.rstrip("_")).storing for name in _names(part)]
