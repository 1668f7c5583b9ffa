"""Accounts that shall move to another cell and come back, as plain data drawn from a seed (plan.py)."""

import random
from collections.abc import Callable, Iterable, Iterator

import msgspec


class Journey(msgspec.Struct, frozen=True, kw_only=True):
    """One move there and back."""

    at: float
    merchant: int
    stays: float
    """Seconds in the other cell."""
    killed_at: tuple[int, int]
    """Commits after which the first try of each move dies; a large number: it does not."""


def drawn_journeys(
    merchants: Iterable[int], moment: Callable[[random.Random], float], chance: random.Random
) -> Iterator[Journey]:
    """Draw the journeys of a seed, one for some of these merchants."""
    for merchant in merchants:
        if chance.random() < 0.5:
            yield Journey(
                at=moment(chance),
                merchant=merchant,
                stays=round(chance.uniform(0, 120), 3),
                killed_at=(
                    chance.choice((10**6, chance.randint(0, 90))),
                    chance.choice((10**6, chance.randint(0, 90))),
                ),
            )


def _death(chance: random.Random) -> int:
    return chance.choice((10**6, chance.randint(0, 90)))
