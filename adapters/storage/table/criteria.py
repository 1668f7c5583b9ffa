"""Criteria and order, checked and converted to plain values, for memory and SQL.

Databases differ in two points, which are fixed here for all: a null sorts as the largest value (last ascending,
first descending), and ties are sorted by id, in the same direction.
"""

from enum import Enum
from typing import Any

import msgspec

from ....ports.storage import AtLeast, AtMost, Below, Between, OneOf
from .codec import Codec, Column, Storing


class Relation(Enum):
    """Comparison of a condition. All but the last two are false for a null."""

    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="
    BELOW = "<"
    ONE_OF = "in"
    NULL = "null"
    ONE_OF_OR_NULL = "in or null"


class Condition(msgspec.Struct, frozen=True):
    """Test of one field. `value` is plain, or a tuple of plain values for the relations named after OneOf."""

    field: str
    relation: Relation
    value: Any = None


class Unread(Enum):
    """Treatment of unreadable rows."""

    RAISE = "raise"
    LEAVE_OUT = "leave out"
    NEXT = "next"
    """Leave the row out, and return the next one instead."""


class Query(msgspec.Struct, frozen=True):
    """Query to one repository."""

    conditions: tuple[Condition, ...]
    order: str
    descending: bool
    nulls: bool
    """Whether the sort field may be null. If not, an index provides the order."""
    limit: int
    offset: int = 0
    quick: bool = False
    unread: Unread = Unread.RAISE


def conditions(codec: Codec[Any], criteria: dict[str, Any]) -> tuple[Condition, ...]:
    """Return the tests, all of which must hold.

    Raises TypeError for an unknown field, ValueError for a value that no record could have.
    """
    found: list[Condition] = []
    for field, criterion in criteria.items():
        found.extend(_of_field(_comparable(codec, field), criterion))
    return tuple(found)


def query(
    codec: Codec[Any],
    criteria: dict[str, Any],
    order: str,
    limit: int,
    offset: int = 0,
    *,
    quick: bool = False,
    unread: Unread = Unread.RAISE,
) -> Query:
    """Return the query. Raises as `conditions` does, and ValueError for a negative limit."""
    if limit < 0 or offset < 0:
        raise ValueError("a limit is zero or more, a page is counted from 1")
    field = order.removeprefix("-")
    column = _comparable(codec, field)
    return Query(conditions(codec, criteria), field, order != field, column.nullable, limit, offset, quick, unread)


def _comparable(codec: Codec[Any], field: str) -> Column:
    column = codec.column(field)
    if column.storing is Storing.JSON:
        raise TypeError(f"{codec.kind.__name__}.{field} holds a structure, which is not compared")
    return column


def _of_field(column: Column, criterion: Any) -> list[Condition]:
    def test(relation: Relation, value: Any) -> Condition:
        return Condition(column.name, relation, column.encode(value))

    match criterion:
        case None:
            return [Condition(column.name, Relation.NULL)]
        case AtMost(value):
            return [test(Relation.AT_MOST, value)]
        case AtLeast(value):
            return [test(Relation.AT_LEAST, value)]
        case Below(value):
            return [test(Relation.BELOW, value)]
        case OneOf(values):
            plain = tuple(column.encode(value) for value in values if value is not None)
            return [Condition(column.name, Relation.ONE_OF_OR_NULL if None in values else Relation.ONE_OF, plain)]
        case Between(low, high):
            # A range that is open at both ends adds no test, so that an unset filter accepts every record, nulls
            # included.
            ends = ((Relation.AT_LEAST, low), (Relation.BELOW, high))
            return [test(relation, end) for relation, end in ends if end is not None]
        case _:
            return [test(Relation.EQUAL, criterion)]
