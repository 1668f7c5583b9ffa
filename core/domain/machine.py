"""States as data: every table of moves is read by this one function, and the docs draw their diagrams from it."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

S = TypeVar("S", bound=StrEnum)


class Move(msgspec.Struct, Generic[S], frozen=True):
    """One allowed move. `trigger` names what happened; it is a label for people, the pair is the rule."""

    before: S
    after: S
    trigger: str


class IllegalMove(Exception):
    """The table has no such move."""


class Moves(Generic[S]):
    """A state table."""

    def __init__(self, moves: Iterable[Move[S]]) -> None:
        self.rows = tuple(moves)
        self._pairs = frozenset((row.before, row.after) for row in self.rows)
        if len(self._pairs) != len(self.rows):
            raise ValueError("a state table names each move once")

    def allows(self, before: S, after: S) -> bool:
        return (before, after) in self._pairs

    def move(self, before: S, after: S) -> S:
        """The state after the move. Raises: IllegalMove."""
        if not self.allows(before, after):
            raise IllegalMove(f"{before} does not move to {after}")
        return after

    def is_final(self, state: S) -> bool:
        """No move leads out of it."""
        return all(row.before is not state for row in self.rows)
