"""State tables read the other way round: for tests that think in statuses, where the program thinks in triggers."""

from enum import StrEnum
from typing import TypeVar

from cambist.core.domain.machine import IllegalMove, Moves

S = TypeVar("S", bound=StrEnum)
T = TypeVar("T", bound=StrEnum)


def trigger_to(moves: Moves[S, T], before: S, after: S) -> T:
    """The first trigger that leads there. Raises: IllegalMove where none does."""
    for row in moves.rows:
        if (row.before, row.after) == (before, after):
            return row.trigger
    raise IllegalMove(f"{before} never becomes {after}")


def led(moves: Moves[S, T], before: S, trigger: T | None) -> S | None:
    """Where a decision's trigger leads; None where it leaves things as they are. Raises: IllegalMove."""
    return None if trigger is None else moves.move(before, trigger)


def pairs(moves: Moves[S, T]) -> list[tuple[S, S]]:
    """From where to where the table leads, each once, whatever triggers it."""
    return list(dict.fromkeys((row.before, row.after) for row in moves.rows))
