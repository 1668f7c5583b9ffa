"""State tables: each maps a status and a trigger to the next status. The documentation draws its diagrams from them."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

S = TypeVar("S", bound=StrEnum)
T = TypeVar("T", bound=StrEnum)


class Move(msgspec.Struct, Generic[S, T], frozen=True):
    """One allowed move: `trigger` names the cause, in words for people."""

    before: S
    after: S
    trigger: T


class IllegalMove(Exception):
    """The table has no such move."""


class Moves(Generic[S, T]):
    """A state table, keyed by status and trigger: a trigger that does not belong to a status is an error."""

    def __init__(self, moves: Iterable[Move[S, T]]) -> None:
        self.rows = tuple(moves)
        self._after = {(row.before, row.trigger): row.after for row in self.rows}
        if len(self._after) != len(self.rows):
            raise ValueError("a state table says once where a trigger leads from a status")

    def allows(self, before: S, trigger: T) -> bool:
        """Return whether the trigger moves this status."""
        return (before, trigger) in self._after

    def move(self, before: S, trigger: T) -> S:
        """Return the status after the trigger. Raises: IllegalMove."""
        after = self._after.get((before, trigger))
        if after is None:
            raise IllegalMove(f"{before} is not moved by: {trigger}")
        return after

    def has_led(self, trigger: T, state: S) -> bool:
        """Return whether the trigger leads to this status: a repeated report then changes nothing."""
        return any(row.trigger is trigger and row.after is state for row in self.rows)

    def is_final(self, state: S) -> bool:
        """Return whether no move leads out of the status."""
        return all(row.before is not state for row in self.rows)
