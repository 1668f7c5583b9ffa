"""Plans for test mode, as plain data drawn from a seed (plan.py): the merchants' requests, and the moves of their test
clocks."""

import random
from collections.abc import Callable

import msgspec

_HOUR = 3600
_DAY = 24 * _HOUR
_RUSH = 12
"""Payments that are made just when a clock leaps over days, so that it passes over calls."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A payment in test mode."""

    after: float
    """Seconds after the rehearsal began."""
    kopecks: int
    outcome: str | None = None
    """Outcome that the merchant makes the bank report; None if nobody pays."""
    returned: bool = False
    """All of it is sent back."""


class Leap(msgspec.Struct, frozen=True, kw_only=True):
    """An advance of the merchant's test clock."""

    after: float
    """Seconds after the rehearsal began, or after the leap before."""
    seconds: int
    rival: int | None = None
    """Another advance, of so many seconds, is requested at the same moment."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A merchant's plan for test mode. Without leaps it runs by real time."""

    number: int
    at: float
    merchant: int
    trials: tuple[Trial, ...] = ()
    leaps: tuple[Leap, ...] = ()
    subscribes: bool = False
    """There is a subscription of a day's interval, too, which is charged after each leap."""

    @property
    def rushes(self) -> bool:
        """Many payments are made just when the clock leaps (`rushed`)."""
        return len(self.trials) >= _RUSH


def drawn_rehearsals(
    merchants: int, moment: Callable[[random.Random], float], chance: random.Random
) -> tuple[Rehearsal, ...]:
    """Draw the rehearsals of a seed, at most one for each merchant, because a merchant has one clock."""
    count = chance.choice((0, 0, 1, 1, 2))
    chosen = chance.sample(range(merchants), min(count, merchants))
    return tuple(_drawn(number, merchant, moment, chance) for number, merchant in enumerate(chosen))


def rushed(rehearsal: Rehearsal, after: float, chance: random.Random) -> Rehearsal:
    """The same, with a first leap over days, and many payments that begin `after` so many seconds, all at once."""
    first, *others = rehearsal.leaps
    first = msgspec.structs.replace(first, seconds=chance.randint(_DAY, 20 * _DAY))
    rush = tuple(
        Trial(
            after=round(after + chance.uniform(0.0, 0.02), 3),
            kopecks=30_00,
            outcome=chance.choice(("paid", "paid", None)),
        )
        for _ in range(_RUSH)
    )
    # A subscription would be made first, and the leap come later.
    trials = (*rehearsal.trials, *rush)
    return msgspec.structs.replace(rehearsal, leaps=(first, *others), trials=trials, subscribes=False)


def _drawn(number: int, merchant: int, moment: Callable[[random.Random], float], chance: random.Random) -> Rehearsal:
    return Rehearsal(
        number=number,
        at=moment(chance),
        merchant=merchant,
        trials=tuple(_trial(chance) for _ in range(chance.choice((1, 2, 3, 4)))),
        leaps=tuple(_leap(chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))),
        subscribes=chance.random() < 0.5,
    )


def _trial(chance: random.Random) -> Trial:
    outcome = chance.choice(("paid", "paid", "paid", "failed", None, None))
    return Trial(
        after=round(chance.choice((chance.uniform(0, 30), chance.uniform(0, 400))), 3),
        kopecks=chance.choice((30_00, chance.randint(30_00, 50_000_00))),
        outcome=outcome,
        returned=outcome == "paid" and chance.random() < 0.3,
    )


def _leap(chance: random.Random) -> Leap:
    lengths = (600, 900, chance.randint(_HOUR, 14 * _HOUR), _DAY, chance.randint(_DAY, 20 * _DAY))
    return Leap(
        after=round(chance.choice((chance.uniform(5, 40), chance.uniform(5, 400))), 3),
        seconds=chance.choice(lengths),
        rival=chance.choice(lengths) if chance.random() < 0.25 else None,
    )
