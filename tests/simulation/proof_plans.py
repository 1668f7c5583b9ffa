"""Payments by an exchange terminal whose merchants prove that they gave USDT, as plain data drawn from a seed
(plan.py)."""

import random
from enum import StrEnum
from hashlib import sha256

import msgspec

NETWORKS = ("TRC20", "ERC20", "BEP20")


class Fate(StrEnum):
    """Fate of a transaction on its chain."""

    FINAL = "final"
    REVERTED = "reverted"
    """In a block, and the contract refused it."""
    NEVER = "never"
    """In no block, ever."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction by which a merchant gives a client USDT."""

    network: str
    after: float
    """Seconds after the merchant learned that it was paid, until a block has it."""
    moves: tuple[int, ...]
    """Its transfers of USDT, each in thousandths of the payment's value."""
    fate: Fate = Fate.FINAL


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A hash that the merchant submits."""

    after: float
    """Seconds after the merchant learned that it was paid."""
    handover: int
    """Number of the handover whose transaction the submission names, usually its own."""
    sent: int
    """Index of the transaction. A missing index is a hash unknown to every chain; a negative one is an invalid hash."""
    doubled: bool = False
    """The merchant's client sends it twice at once."""


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """One payment by an exchange terminal."""

    number: int
    at: float
    merchant: int
    kopecks: int
    pays_after: float
    once_settled: bool
    """The merchant waits for the settlement, and so knows what the payment is worth."""
    sent: tuple[Sent, ...] = ()
    submissions: tuple[Submission, ...] = ()
    returned_after: float | None = None
    """So many seconds after it was paid, all of it is sent back."""


def hash_of(seed: int, handover: int, sent: int) -> str:
    """Return the hash of a transaction, which is known before it is sent; an invalid hash for a negative index."""
    if sent < 0:
        return f"no-hash-{handover}-{sent}"
    return sha256(f"handover/{seed}/{handover}/{sent}".encode()).hexdigest()


def drawn_handovers(merchants: int, evening: tuple[float, float], chance: random.Random) -> tuple[Handover, ...]:
    """Draw the handovers of a seed, all paid in time for the next morning's settlement."""
    count = chance.choice((0, 0, 1, 2, 3))
    return tuple(_drawn(number, count, merchants, evening, chance) for number in range(count))


def _drawn(number: int, count: int, merchants: int, evening: tuple[float, float], chance: random.Random) -> Handover:
    sent = tuple(_sent(chance) for _ in range(chance.choice((0, 1, 1, 1, 2))))
    return Handover(
        number=number,
        at=round(chance.uniform(*evening), 3),
        merchant=chance.randrange(merchants),
        kopecks=chance.choice((10_000_00, 80_000_00, chance.randint(10_000_00, 80_000_00))),
        pays_after=round(chance.uniform(0, 300), 3),
        once_settled=chance.random() < 0.5,
        sent=sent,
        submissions=_submissions(number, count, len(sent), chance),
        returned_after=round(chance.uniform(0, 20_000), 3) if chance.random() < 0.15 else None,
    )


def _sent(chance: random.Random) -> Sent:
    whole = chance.choice((1000, 1000, 1000, 992, 1008, 900, 1100))
    moves = chance.choice(((whole,), (whole,), (whole,), (whole, 300), (300, whole), ()))
    return Sent(
        network=chance.choice(NETWORKS),
        after=round(chance.choice((chance.uniform(0, 60), chance.uniform(0, 60), chance.uniform(60, 7000))), 3),
        moves=moves,
        fate=chance.choice((Fate.FINAL, Fate.FINAL, Fate.FINAL, Fate.FINAL, Fate.REVERTED, Fate.NEVER)),
    )


def _submissions(number: int, count: int, sent: int, chance: random.Random) -> tuple[Submission, ...]:
    """One or some; in a third of cases one of them names another's transaction, and some come at the same moment."""
    found = []
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        of = chance.randrange(count) if chance.random() < 0.33 else number
        found.append(
            Submission(
                after=round(chance.choice((0.0, chance.uniform(0, 90), chance.uniform(90, 9000))), 3),
                handover=of,
                sent=chance.choice((0, 0, 0, 0, max(sent - 1, 0), -1)),
                doubled=chance.random() < 0.3,
            )
        )
    return tuple(found)
