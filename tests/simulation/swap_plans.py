"""Exchanges that clients shall make, as plain data drawn from a seed (plan.py)."""

import random
from collections.abc import Callable

import msgspec


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """Money that a client sends for an exchange."""

    after: float
    """Seconds after the exchange was made, or after its end, where it is counted from there."""
    percent: int
    """Percentage of the requested amount."""
    from_end: bool = False
    taken_back_after: float | None = None
    """RUB: so many seconds later the payer's bank takes it back."""


class Swap(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange."""

    number: int
    at: float
    merchant: int
    takes_usdt: bool
    """USDT to RUB, created by the merchant; otherwise an operator creates it, and the client pays RUB."""
    amount: int
    """Whole USDT, or RUB."""
    sendings: tuple[Sending, ...] = ()
    cancels_after: float | None = None
    doubled: bool = False
    """The merchant's client sends the creation twice at once."""
    opens: bool = True
    """For RUB: whether the creator requests the invoice from the bank. Otherwise the watch does it, as after a
    crash."""

    @property
    def phone(self) -> str:
        """Return the client's phone, one for each exchange."""
        return f"+7999{self.number:07d}"


def drawn_swap(number: int, merchants: int, moment: Callable[[random.Random], float], chance: random.Random) -> Swap:
    """Draw an exchange of a seed."""
    takes_usdt = chance.random() < 0.6
    sendings = _sendings(chance)
    if not takes_usdt:
        sendings = tuple(_perhaps_taken_back(each, chance) for each in sendings)
    amounts = (20, 100, chance.randint(20, 4000)) if takes_usdt else (1000, 5000, chance.randint(1000, 300_000))
    return Swap(
        number=number,
        at=moment(chance),
        merchant=chance.randrange(merchants),
        takes_usdt=takes_usdt,
        amount=chance.choice(amounts),
        sendings=sendings,
        cancels_after=round(chance.uniform(0, 120), 3) if chance.random() < 0.15 else None,
        doubled=chance.random() < 0.3,
        opens=chance.random() < 0.5,
    )


def _sendings(chance: random.Random) -> tuple[Sending, ...]:
    soon, later = round(chance.uniform(1, 250), 3), round(chance.uniform(250, 780), 3)
    part = chance.randint(5, 95)
    match chance.choice(("whole", "whole", "whole", "parts", "parts", "under", "excess", "rest late", "edge", "none")):
        case "whole":
            return (Sending(after=soon, percent=100),)
        case "parts":
            return (Sending(after=soon, percent=part), Sending(after=later, percent=100 - part))
        case "under":
            return (Sending(after=soon, percent=part),)
        case "excess":
            # Some while their first money is on its way to them.
            again = 3 * later if part % 2 else round(soon + later / 10, 3)
            return (Sending(after=soon, percent=100 + part), Sending(after=again, percent=10))
        case "rest late":
            late = chance.uniform(1, 15_000)
            late = round(late / 100 if late < 5_000 else late, 3)  # some before anybody saw that it is over
            return (Sending(after=soon, percent=part), Sending(after=late, percent=100 - part, from_end=True))
        case "edge":
            return (Sending(after=round(chance.uniform(-8, 3), 3), percent=100, from_end=True),)
        case _:
            return ()


def _perhaps_taken_back(sending: Sending, chance: random.Random) -> Sending:
    if chance.random() >= 0.3:
        return sending
    after = chance.choice((chance.uniform(1, 290), chance.uniform(290, 310), chance.uniform(310, 4000)))
    return msgspec.structs.replace(sending, taken_back_after=round(after, 3))
