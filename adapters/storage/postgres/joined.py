"""Join of a unit's statements into one: one round trip to Postgres instead of one for each and two for the
transaction.

Each statement becomes a part of one `WITH`. The final SELECT counts the rows that each part changed, in the unit's
order. A count of zero divides by zero, which rolls everything back. That is rare, and says only that something was
refused. The unit finds out what by running its statements one after the other.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import asyncpg
import msgspec

from ..sql.statements import Statement
from ..table.writes import Accrue, Write

TAKEN_BACK = (asyncpg.UniqueViolationError, asyncpg.DivisionByZeroError)
"""Errors of a joined statement when one of its parts is refused."""

_MOST = 8
"""Statements that are joined at most. Longer units are hardly ever alike, and Postgres plans each new form again."""
_FORMS = 256

_PARAMETER = re.compile(r"\$(\d+)")


def joined(statements: Sequence[tuple[Write, Statement]], *, durable: bool = True) -> Statement | None:
    """Return the joined statement; None if there is nothing to join, or if two parts could touch the same row.

    All parts of a statement see the table as it was before any of them.
    """
    fewest = 2 if durable else 1
    if not fewest <= len(statements) <= _MOST or not targets_of([write for write, _ in statements]).apart:
        return None
    text = _text(tuple((text, len(parameters)) for _, (text, parameters) in statements))
    return text if durable else unawaited(text), [value for _, (_, parameters) in statements for value in parameters]


class Targets(msgspec.Struct, frozen=True):
    """Rows and tables that a unit changes."""

    rows: set[tuple[str, str]]
    """Table and id of each row that the unit names."""
    tables: set[str]
    """Tables of these rows."""
    sums: set[str]
    """Tables with sums that the unit changes. Its changes to one row of sums are added up beforehand."""
    apart: bool
    """Whether all its writes touch different rows."""


def targets_of(writes: Sequence[Write]) -> Targets:
    """Return the rows and tables that these writes change."""
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
    """Return one statement from these parts of a `WITH`. It makes all changes if every condition holds, else none."""
    return f"WITH {', '.join(changes)} SELECT 1 / CASE WHEN {' AND '.join(conditions)} THEN 1 ELSE 0 END"


def unawaited(text: str) -> str:
    """Return the same statement with a commit that does not wait for the disk.

    Postgres reads this setting when it commits.
    """
    return f"{text}, set_config('synchronous_commit', 'off', true)"


@lru_cache(maxsize=_FORMS)
def _text(parts: tuple[tuple[str, int], ...]) -> str:
    """Join the texts of the parts, each with the number of its parameters."""
    changes, counts, before = list[str](), list[str](), 0
    for number, (text, parameters) in enumerate(parts):
        changes.append(f"w{number} AS ({_moved(text, before)} RETURNING 1)")
        counts.append(f"(SELECT count(*) FROM w{number}) > 0")  # noqa: S608 - nothing from outside
        before += parameters
    return all_or_nothing(changes, counts)


def _moved(text: str, by: int) -> str:
    """Return the text with its parameter numbers raised by `by`."""
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", text)
