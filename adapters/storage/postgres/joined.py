"""A unit's statements as one: one round trip to Postgres instead of one for each, and two for the transaction.

Each becomes a part of one `WITH`, and what is selected from it counts, in the order in which the unit wrote, the rows
that each part changed; a count of nothing divides by zero, which takes back all of it. That is nearly never, and says
no more than that something was refused: what, the unit finds out by its statements one after the other.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import asyncpg
import msgspec

from ..sql.statements import Statement
from ..table.writes import Accrue, Write

TAKEN_BACK = (asyncpg.UniqueViolationError, asyncpg.DivisionByZeroError)
"""What a joined statement raises when one of its parts is refused."""

_MOST = 8
"""Statements that are joined at most: of longer units hardly two are alike, and each form is planned anew."""
_FORMS = 256

_PARAMETER = re.compile(r"\$(\d+)")


def joined(statements: Sequence[tuple[Write, Statement]], *, durable: bool = True) -> Statement | None:
    """The one statement; None where there is nothing to join, or where parts could meet in one row: all parts of a
    statement see the table as it was before any of them."""
    fewest = 2 if durable else 1
    if not fewest <= len(statements) <= _MOST or not targets_of([write for write, _ in statements]).apart:
        return None
    text = _text(tuple((text, len(parameters)) for _, (text, parameters) in statements))
    return text if durable else unawaited(text), [value for _, (_, parameters) in statements for value in parameters]


class Targets(msgspec.Struct, frozen=True):
    """Where a unit takes effect."""

    rows: set[tuple[str, str]]
    """What it names: table and id."""
    tables: set[str]
    """Of these rows."""
    sums: set[str]
    """Tables in which it accrues; what a unit accrues in one row is summed up beforehand."""
    apart: bool
    """No two of its writes can meet in one row."""


def targets_of(writes: Sequence[Write]) -> Targets:
    """Where these writes take effect."""
    rows, tables, sums, named = set[tuple[str, str]](), set[str](), set[str](), 0
    for write in writes:
        name = write.mapped.name
        if isinstance(write, Accrue):
            sums.add(name)
        else:
            named += 1
            rows.add((name, write.id))
            tables.add(name)
    return Targets(rows, tables, sums, named == len(rows) and tables.isdisjoint(sums))


def all_or_nothing(changes: Sequence[str], conditions: Sequence[str]) -> str:
    """One statement of these parts of a `WITH`, which makes all changes where every condition holds, else none."""
    return f"WITH {', '.join(changes)} SELECT 1 / CASE WHEN {' AND '.join(conditions)} THEN 1 ELSE 0 END"


def unawaited(text: str) -> str:
    """The same statement, whose commit does not wait for the disk: Postgres looks at this setting when it commits."""
    return f"{text}, set_config('synchronous_commit', 'off', true)"


@lru_cache(maxsize=_FORMS)
def _text(parts: tuple[tuple[str, int], ...]) -> str:
    """Of the parts' texts, each with the number of its parameters."""
    changes, counts, before = list[str](), list[str](), 0
    for number, (text, parameters) in enumerate(parts):
        changes.append(f"w{number} AS ({_moved(text, before)} RETURNING 1)")
        counts.append(f"(SELECT count(*) FROM w{number}) > 0")  # noqa: S608 - nothing from outside
        before += parameters
    return all_or_nothing(changes, counts)


def _moved(text: str, by: int) -> str:
    """The text with its parameters counted from `by` on."""
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", text)
