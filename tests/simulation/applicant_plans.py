"""End clients that shall be verified, as plain data drawn from a seed (plan.py)."""

import random
from collections.abc import Callable, Sequence

import msgspec

from tests.simulation.verifier import Verdict

V = Verdict
_STORIES = ((V.GREEN,), (V.GREEN,), (V.RED, V.GREEN), (V.RED, V.RED), (V.RETRY, V.GREEN), (V.REVOKED,))


class Applicant(msgspec.Struct, frozen=True, kw_only=True):
    """One person."""

    number: int
    at: float
    merchant: int
    by_page: bool
    """On our hosted page, by the merchant's link; else the merchant's front end does it by the API."""
    verdicts: tuple[Verdict, ...]
    """What the verifier finds, one look after the other."""
    fills_after: float
    """Seconds until he fills in the verifier's form, where there is one; below zero: never."""
    doubled: bool = False
    """It is registered twice at once."""

    @property
    def phone(self) -> str:
        """His own."""
        return f"+7998{self.number:07d}"


def drawn_applicant(
    number: int, merchants: Sequence[int], moment: Callable[[random.Random], float], chance: random.Random
) -> Applicant:
    """One of a seed, of a merchant that asks for verification."""
    return Applicant(
        number=number,
        at=moment(chance),
        merchant=chance.choice(merchants),
        by_page=chance.random() < 0.5,
        verdicts=chance.choice(
            ((V.GREEN,), (V.GREEN,), (V.RED, V.GREEN), (V.RED, V.RED), (V.RETRY, V.GREEN), (V.REVOKED,))
        ),
        fills_after=round(chance.uniform(1, 900), 3) if chance.random() < 0.9 else -1.0,
        doubled=chance.random() < 0.4,
    )
