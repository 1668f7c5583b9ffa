"""The value of an exchange for the client, the merchant and the service, to the last unit (docs/exchanges.md "Rules").
Integers only: a rate is a fraction here, so that no digit is lost.

The client gets 1 - markup_percent/100 of the value at the base rate, in both directions; the rest belongs to the
merchant, in USDT. `rate` is RUB per 1 USDT for the client. For USDT to RUB it is base * (1 - markup/100), so the client
gets fewer RUB for a USDT. For RUB to USDT it is base / (1 - markup/100), like the merchant rate
(docs/settlement.md "How much"), so the client pays more RUB for a USDT. With the first formula the client would gain
there, and nothing would be left for the merchant.
"""

from decimal import Decimal, InvalidOperation
from typing import Self

import msgspec

from ..errors import Refusal
from ..money import Rub, Usdt, arithmetic
from .exchanges import NETWORK_STEP, Direction, Exchange

LOWEST = Rub(1000_00)
HIGHEST = Rub(1_000_000_00)
"""Limits of an exchange, both inclusive (docs/limits.md "Sizes")."""

_KOPECK = 1_000_000
"""Units of 0.00000001 USDT for one kopeck at a rate of one."""
_EXACT = 64
"""More digits than a base rate and a markup have together."""
_SHOWN = 28


class ExchangeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A base rate and a markup as integers."""

    rate: tuple[int, int]
    """Numerator and denominator of RUB per 1 USDT."""
    share: tuple[int, int]
    """The client's share, 1 - markup_percent/100, as numerator and denominator."""

    @classmethod
    def of(cls, base_rate: str, markup_percent: str) -> Self:
        """Return the terms from decimal texts. Raises ValueError for a rate that is not above zero, or a markup that is
        not from 0 to below 100."""
        rate, percent = _checked(base_rate, markup_percent)
        part, whole = percent.as_integer_ratio()
        return cls(rate=rate.as_integer_ratio(), share=(100 * whole - part, 100 * whole))

    def roubles(self, amount: Usdt) -> Rub:
        """Return the client's RUB for `amount`, rounded down to kopecks."""
        (rate, whole), (share, of) = self.rate, self.share
        return Rub(amount.units * rate * share // (whole * of * _KOPECK))

    def usdt(self, amount: Rub) -> Usdt:
        """Return the client's USDT for `amount`, rounded down to a multiple that the network can move."""
        (rate, whole), (share, of) = self.rate, self.share
        steps = amount.kopecks * _KOPECK * whole * share // (rate * of * NETWORK_STEP.units)
        return Usdt(steps * NETWORK_STEP.units)

    def value(self, amount: Rub) -> tuple[Usdt, Usdt]:
        """Return the value of `amount` at the base rate, rounded down and rounded up."""
        rate, whole = self.rate
        units = amount.kopecks * _KOPECK * whole
        return Usdt(units // rate), Usdt(-(-units // rate))


class ExchangeQuote(msgspec.Struct, frozen=True, kw_only=True):
    """An offer to a client; it is valid until the exchange expires."""

    direction: Direction
    amount_usdt: Usdt
    amount_rub: Rub
    rate: str
    base_rate: str
    markup_percent: str


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution of the USDT side of an exchange. The parts add up to it (`total`), and none is below zero."""

    stock: Usdt
    """USDT to RUB: the stock's part in return for its RUB, at the base rate."""
    client: Usdt
    """RUB to USDT: the amount sent. USDT to RUB: the amount returned, because it was not paid out."""
    merchant: Usdt
    """The rest, credited to the merchant."""
    rounding: Usdt
    """Rounding difference: at most one unit."""

    @property
    def total(self) -> Usdt:
        return self.stock + self.client + self.merchant + self.rounding


def quote_usdt(amount: Usdt, base_rate: str, markup_percent: str) -> ExchangeQuote:
    """Quote USDT to RUB. Raises ValueError as `ExchangeTerms.of`."""
    return ExchangeQuote(
        direction=Direction.USDT_TO_RUB,
        amount_usdt=amount,
        amount_rub=ExchangeTerms.of(base_rate, markup_percent).roubles(amount),
        rate=client_rate(Direction.USDT_TO_RUB, base_rate, markup_percent),
        base_rate=base_rate,
        markup_percent=markup_percent,
    )


def quote_rub(amount: Rub, base_rate: str, markup_percent: str) -> ExchangeQuote:
    """Quote RUB to USDT. Raises ValueError as `ExchangeTerms.of`."""
    return ExchangeQuote(
        direction=Direction.RUB_TO_USDT,
        amount_usdt=ExchangeTerms.of(base_rate, markup_percent).usdt(amount),
        amount_rub=amount,
        rate=client_rate(Direction.RUB_TO_USDT, base_rate, markup_percent),
        base_rate=base_rate,
        markup_percent=markup_percent,
    )


def client_rate(direction: Direction, base_rate: str, markup_percent: str) -> str:
    """Return `rate` as shown: with all its digits for USDT to RUB; with 28 digits for RUB to USDT, where it may be
    infinite; always with at least two decimals. Raises ValueError as `ExchangeTerms.of`."""
    rate, percent = _checked(base_rate, markup_percent)
    exact = arithmetic(_EXACT)
    share = exact.subtract(Decimal(1), exact.scaleb(percent, Decimal(-2)))
    if direction is Direction.USDT_TO_RUB:
        shown = exact.multiply(rate, share)
    else:
        shown = arithmetic(_SHOWN).divide(rate, share)
    whole, _, part = format(shown, "f").partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"


def check_bounds(amount: Rub) -> None:
    """Raises: Refusal AMOUNT_TOO_LOW, AMOUNT_TOO_HIGH."""
    if amount < LOWEST:
        raise Refusal("AMOUNT_TOO_LOW", f"The minimum of an exchange is {LOWEST} RUB; this one would be {amount}")
    if amount > HIGHEST:
        raise Refusal("AMOUNT_TOO_HIGH", f"The maximum of an exchange is {HIGHEST} RUB; this one would be {amount}")


def shares(exchange: Exchange, paid: Rub | None = None) -> Shares:
    """Return the distribution of an exchange's USDT: for USDT to RUB, of the USDT that the client sent; for RUB to
    USDT, of the RUB's value at the base rate.

    `paid`, for USDT to RUB: the part of `amount_rub` that the client has when the rest was finally refused; None: all.
    The USDT are divided in the same proportion, in the client's favour. Raises ValueError for more than `amount_rub`.
    """
    terms = ExchangeTerms.of(exchange.base_rate, exchange.markup_percent)
    if not exchange.takes_usdt:
        worth, _ = terms.value(exchange.amount_rub)
        return Shares(
            stock=Usdt(0), client=exchange.amount_usdt, merchant=worth - exchange.amount_usdt, rounding=Usdt(0)
        )
    given = exchange.amount_rub if paid is None else paid
    if not Rub(0) <= given <= exchange.amount_rub:
        raise ValueError(f"{exchange.id}: more was paid out than was quoted")
    used = exchange.amount_usdt
    if given < exchange.amount_rub:
        used = Usdt(used.units * given.kopecks // exchange.amount_rub.kopecks)
    # `used` is not below `down`, because the client's rate is not above the base rate; it may be one unit below `up`.
    down, up = terms.value(given)
    merchant = max(Usdt(0), used - up)
    return Shares(stock=down, client=exchange.amount_usdt - used, merchant=merchant, rounding=used - merchant - down)


def depositable(amount: Usdt) -> Usdt:
    """Return the smallest amount that the network can move and that covers `amount`."""
    return Usdt(-(-amount.units // NETWORK_STEP.units) * NETWORK_STEP.units)


def _checked(base_rate: str, markup_percent: str) -> tuple[Decimal, Decimal]:
    try:
        rate, percent = Decimal(base_rate), Decimal(markup_percent)
    except InvalidOperation:
        raise ValueError("a rate and a markup are decimal numbers") from None
    if not (rate.is_finite() and rate > 0 and percent.is_finite() and 0 <= percent < 100):
        raise ValueError("a rate is above zero, a markup from 0 to below 100")
    return rate, percent
