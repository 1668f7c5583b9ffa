"""Which quote of the market is believed, how long it serves, and the merchant's rate (docs/settlement.md "The rate").

Rates are RUB for 1 USDT. Nothing here depends on the decimal context of whoever embeds us.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction

import msgspec

from ..money import arithmetic

HELD = timedelta(seconds=30)
"""No source is asked while the last answer is younger."""
AGE_MAX = timedelta(minutes=5)
"""An older rate is neither believed nor shown."""
SKEW = timedelta(seconds=30)
"""How far a source's clock, or that of another process, may be ahead of ours."""
GUARDED = timedelta(hours=1)
"""How long a believed rate says what the next one may be."""
RIPE = timedelta(minutes=10)
"""How long a level must have been seen until one source alone is believed to have jumped there."""

_JUMP = Fraction(10, 100)
_SAME = Fraction(1, 100)
"""How far two sources may differ and still say the same."""
_LEVEL = Fraction(3, 100)
"""How far a market moves between two looks at a level, and it is still that level."""

_LEAST, _MOST = Decimal("0.01"), Decimal(1_000_000)
"""Bounds of a price: what is shown with two decimals is not zero, and no arithmetic overflows."""
_DIGITS = 40
"""More of them is no price, and would make all later arithmetic slow."""

_PRECISION = 28
_CENT = Decimal("0.01")


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """What a source says: a rate, and when the source made it."""

    rate: Decimal
    at: datetime
    source: str


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A level that nobody believes yet."""

    rate: str
    """As last seen: it may wander on with the market."""
    since: datetime


class KnownRate(msgspec.Struct, frozen=True, kw_only=True):
    """The last believed rate of a mode (the id), or of a test account with a time of its own: one for all processes,
    and over a restart."""

    id: str
    rate: str
    """As text, so that no digit is lost."""
    at: datetime
    """When the source made it; the age of the rate counts from here."""
    fetched_at: datetime
    source: str
    candidate: Candidate | None = None
    version: int = 0

    @property
    def value(self) -> Decimal:
        """The rate with all its digits."""
        return Decimal(self.rate)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from the quotes heard: the one to believe, or none, and the candidate as it then stands."""

    quote: Quote | None = None
    candidate: Candidate | None = None


def is_held(known: KnownRate | None, now: datetime) -> bool:
    """It was fetched just now: no source is asked."""
    return known is not None and _is_within(known.fetched_at, now, HELD)


def may_serve(known: KnownRate, now: datetime) -> bool:
    """No source could be believed, and the last rate is young enough to be shown; never to settle by."""
    return _is_within(known.at, now, AGE_MAX)


def is_sound(quote: Quote, now: datetime) -> bool:
    """It is a price at all, and of now."""
    return (
        quote.rate.is_finite()
        and _LEAST <= quote.rate < _MOST
        and len(quote.rate.as_tuple().digits) <= _DIGITS
        and -SKEW <= now - quote.at <= AGE_MAX
    )


def judge(known: KnownRate | None, heard: Sequence[Quote], now: datetime, *, more: bool) -> Judgement:
    """What to believe of the quotes heard so far, in the order of their sources; `more`: further ones can be asked.

    The first sound quote near the last believed rate wins. What is beyond (a jump) is believed when a second source
    says the same; or, when nobody is left to ask, once its level has been seen for long enough. So a spike passes by
    and a true move heals by itself. Without a last rate, or with an old one, there is nothing to jump from: then all
    sources are asked until two lie within the guard of each other, and one alone is believed where there is no other.
    """
    sound = [quote for quote in heard if is_sound(quote, now)]
    guarded = known is not None and _is_within(known.at, now, GUARDED)
    if known is not None and guarded:
        near = [quote for quote in sound if _within(quote.rate, known.value, _JUMP)]
        # Something near clears the candidate: a source that is off for long is not the market while another is not.
        if near:
            return Judgement(quote=near[0])
    elif not more and len({quote.source for quote in sound}) == 1:
        return Judgement(quote=sound[0])
    agreed = _agreed(sound, _SAME if guarded else _JUMP)
    if agreed is not None:
        return Judgement(quote=agreed)
    candidate = None if known is None else known.candidate
    if more or not sound:
        return Judgement(candidate=candidate)
    seen = None if candidate is None else _seen_again(candidate, sound)
    if candidate is None or seen is None:
        return Judgement(candidate=Candidate(rate=str(sound[0].rate), since=now))
    if now - candidate.since >= RIPE:
        return Judgement(quote=seen)
    return Judgement(candidate=Candidate(rate=str(seen.rate), since=candidate.since))


def believed(place: str, quote: Quote, now: datetime) -> KnownRate:
    """The record of a quote that is believed, heard at `now`. A source whose clock is ahead is taken to mean now."""
    return KnownRate(id=place, rate=str(quote.rate), at=min(quote.at, now), fetched_at=now, source=quote.source)


def merchant_rate(market: Decimal, markup: str) -> Decimal:
    """Market rate / (1 - markup), with 28 significant digits (docs/settlement.md "How much"). `markup` is a shop's
    fraction, as text.

    Raises ValueError for a rate that is not above zero, or a markup that is not from 0 to below 1.
    """
    try:
        part = Decimal(markup)
    except InvalidOperation:
        raise ValueError("a markup is a decimal fraction") from None
    if not (market.is_finite() and market > 0 and part.is_finite() and 0 <= part < 1):
        raise ValueError("a rate is above zero, a markup from 0 to below 1")
    exact = Fraction(market) / (1 - Fraction(part))
    return arithmetic(_PRECISION).divide(Decimal(exact.numerator), Decimal(exact.denominator))


def shown(rate: Decimal) -> str:
    """As the interface shows a rate: exactly two decimals, half a kopeck up."""
    return format(rate.quantize(_CENT, rounding=ROUND_HALF_UP, context=arithmetic(_PRECISION)), "f")


def _is_within(moment: datetime, now: datetime, limit: timedelta) -> bool:
    """Younger than `limit`. What lies in the future was written by a wrong clock, and would stay young for ever."""
    return -SKEW <= now - moment < limit


def _within(rate: Decimal, base: Decimal, part: Fraction) -> bool:
    exact = Fraction(base)
    return abs(Fraction(rate) - exact) <= part * exact


def _agreed(sound: Sequence[Quote], part: Fraction) -> Quote | None:
    """The first quote that another source says too, within `part`."""
    for place, quote in enumerate(sound):
        for other in sound[place + 1 :]:
            if other.source != quote.source and _within(other.rate, quote.rate, part):
                return quote
    return None


def _seen_again(candidate: Candidate, sound: Sequence[Quote]) -> Quote | None:
    level = Decimal(candidate.rate)
    return next((quote for quote in sound if _within(quote.rate, level, _LEVEL)), None)
