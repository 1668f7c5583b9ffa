"""Plans of end clients to be verified, as plain data drawn from a seed (plan.py)."""

import random
from collections.abc import Callable, Sequence

import msgspec

from tests.simulation.verifier import Verdict

V = Verdict
_STORIES = ((V.GREEN,), (V.GREEN,), (V.RED, V.GREEN), (V.RED, V.RED), (V.RETRY, V.GREEN), (V.REVOKED,))


class Applicant(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of one person's verification."""

    number: int
    at: float
    merchant: int
    by_page: bool
    """Whether the client uses our hosted page, by the merchant's link; otherwise the merchant's front end calls the
    API."""
    verdicts: tuple[Verdict, ...]
    """The verifier's results, one for each check."""
    fills_after: float
    """Seconds until he fills in the verifier's form, where there is one; below zero: never."""
    doubled: bool = False
    """It is registered twice at once."""

    @property
    def phone(self) -> str:
        """The person's own phone."""
        return f"+7998{self.number:07d}"


def drawn_applicant(
    number: int, merchants: Sequence[int], moment: Callable[[random.Random], float], chance: random.Random
) -> Applicant:
    """Draw an applicant of a merchant that requires verification."""
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
