"""Keys and webhook secrets that shall be exchanged, as plain data drawn from a seed (plan.py)."""

import random
from collections.abc import Callable

import msgspec


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange of a merchant's key, or of its webhook secret."""

    number: int
    at: float
    merchant: int
    of_secret: bool
    overlap: float
    """Seconds for which the key before works on."""
    switches_after: float
    """Seconds after which the merchant's client, or its receiver, uses the new one."""


def drawn_rotation(
    number: int, merchants: int, moment: Callable[[random.Random], float], chance: random.Random
) -> Rotation:
    """Draw a rotation of a seed. The number decides its kind and merchant, at most one of each kind for a merchant."""
    return Rotation(
        number=number,
        at=moment(chance),
        merchant=number // 2 % merchants,
        of_secret=number % 2 == 0,
        overlap=round(chance.choice((0.0, chance.uniform(1, 60), chance.uniform(60, 3600))), 3),
        switches_after=round(chance.uniform(0, 3600), 3),
    )
