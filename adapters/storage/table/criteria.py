"""Criteria and order, checked and put into plain values: what memory and SQL both work from.

Two points on which databases differ are settled here for all: a null is the largest value when ordering (last
ascending, first descending), and ties go by id, in the same direction.
"""

from enum import Enum
from typing import Any

import msgspec

from ....ports.storage import AtLeast, AtMost, Below, Between, OneOf
from .codec import Codec, Column, Storing


class Relation(Enum):
    """How a condition judges a value. All but the last two are false for a null."""

    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="
    BELOW = "<"
    ONE_OF = "in"
    NULL = "null"
    ONE_OF_OR_NULL = "in or null"


class Condition(msgspec.Struct, frozen=True):
    """One test of one field. `value` is plain; a tuple of plain values for the tests named after OneOf."""

    field: str
    relation: Relation
    value: Any = None


class Unread(Enum):
    """What becomes of a row that cannot be read."""

    RAISE = "raise"
    LEAVE_OUT = "leave out"
    NEXT = "next"
    """It is left out, and the next takes its place."""


class Query(msgspec.Struct, frozen=True):
    """A question to one shelf."""

    conditions: tuple[Condition, ...]
    order: str
    descending: bool
    nulls: bool
    """Whether the field of the order may be null at all; where it may not, an index gives the order."""
    limit: int
    offset: int = 0
    quick: bool = False
    unread: Unread = Unread.RAISE


def conditions(codec: Codec[Any], criteria: dict[str, Any]) -> tuple[Condition, ...]:
    """The tests that all must hold. Raises TypeError for an unknown field, ValueError for a value that no record
    could hold."""
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
    """The question. Raises as `conditions` does, and ValueError for a negative limit."""
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
            # Both ends open asks for nothing, so that a filter nobody set lets every record through, nulls too.
            ends = ((Relation.AT_LEAST, low), (Relation.BELOW, high))
            return [test(relation, end) for relation, end in ends if end is not None]
        case _:
            return [test(Relation.EQUAL, criterion)]
