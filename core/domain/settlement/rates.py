"""The trust in market quotes, and the merchant's rate (docs/settlement.md "The rate").

Rates are RUB for 1 USDT. Nothing here depends on the decimal context of a program that embeds us.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction

import msgspec

from ..money import arithmetic

HELD = timedelta(seconds=30)
"""No source is called while the last answer is younger than this."""
AGE_MAX = timedelta(minutes=5)
"""An older rate is neither trusted nor shown."""
SKEW = timedelta(seconds=30)
"""How far the clock of a source or of another process may be ahead of ours."""
GUARDED = timedelta(hours=1)
"""How long a trusted rate limits the next one."""
RIPE = timedelta(minutes=10)
"""How long a level must have been seen before a single source is trusted about a jump to it."""

_JUMP = Fraction(10, 100)
_SAME = Fraction(1, 100)
"""Largest difference between two sources that still agree."""
_LEVEL = Fraction(3, 100)
"""Largest movement of the market between two observations of the same level."""

_LEAST, _MOST = Decimal("0.01"), Decimal(1_000_000)
"""Limits of a price: shown with two decimals it is not zero, and no arithmetic overflows."""
_DIGITS = 40
"""Largest number of digits. A longer number is not a price, and would make all later arithmetic slow."""

_PRECISION = 28
_CENT = Decimal("0.01")


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """A quote of a source, and when the source made it."""

    rate: Decimal
    at: datetime
    source: str


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A price level that is not trusted yet."""

    rate: str
    """As last seen: it may drift with the market."""
    since: datetime


class KnownRate(msgspec.Struct, frozen=True, kw_only=True):
    """The last trusted rate of a mode (the id), or of a test account with its own clock: shared by all processes, and
    kept over a restart."""

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
    """Result of `judge`: the quote to trust, if any, and the new candidate."""

    quote: Quote | None = None
    candidate: Candidate | None = None


def is_held(known: KnownRate | None, now: datetime) -> bool:
    """Return whether the rate was fetched so recently that no source is called."""
    return known is not None and _is_within(known.fetched_at, now, HELD)


def may_serve(known: KnownRate, now: datetime) -> bool:
    """Return whether the last rate is young enough to be shown while no source can be trusted; never use it for
    settlement."""
    return _is_within(known.at, now, AGE_MAX)


def is_sound(quote: Quote, now: datetime) -> bool:
    """Return whether the quote is a valid, current price."""
    return (
        quote.rate.is_finite()
        and _LEAST <= quote.rate < _MOST
        and len(quote.rate.as_tuple().digits) <= _DIGITS
        and -SKEW <= now - quote.at <= AGE_MAX
    )


def judge(known: KnownRate | None, heard: Sequence[Quote], now: datetime, *, more: bool) -> Judgement:
    """Decide which of the quotes so far to trust, in the order of their sources; `more`: further sources are available.

    The first valid quote near the last trusted rate wins. A quote farther away (a jump) is trusted if a second source
    agrees, or, when no source is left, if its level has been seen for long enough. So a spike is ignored and a real
    movement is accepted after a while. Without a last rate, or with an old one, there is no reference for a jump: then
    all sources are called until two agree within the jump limit; a single source is trusted only if there is no other.
    """
    sound = [quote for quote in heard if is_sound(quote, now)]
    guarded = known is not None and _is_within(known.at, now, GUARDED)
    if known is not None and guarded:
        near = [quote for quote in sound if _within(quote.rate, known.value, _JUMP)]
        # A quote near the last rate clears the candidate: one source that stays off is not the market while another is
        # near.
        if near:
            return Judgement(quote=near[0])
    # Without a reference, a single source is trusted only if all others failed.
    elif not more and len({quote.source for quote in sound}) == 1:
        return Judgement(quote=sound[0])
    # Two sources that agree are trusted at any level.
    agreed = _agreed(sound, _SAME if guarded else _JUMP)
    if agreed is not None:
        return Judgement(quote=agreed)
    # No agreement: remember the level as a candidate, and trust it once it has lasted for RIPE.
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
    """Return the record of a trusted quote, fetched at `now`. If the source's clock is ahead, `now` is its time."""
    return KnownRate(id=place, rate=str(quote.rate), at=min(quote.at, now), fetched_at=now, source=quote.source)


def merchant_rate(market: Decimal, markup: str) -> Decimal:
    """Return market rate / (1 - markup), with 28 significant digits (docs/settlement.md "How much"). `markup` is a
    shop's fraction, as text.

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
    """Format a rate for the API: exactly two decimals, half a kopeck rounded up."""
    return format(rate.quantize(_CENT, rounding=ROUND_HALF_UP, context=arithmetic(_PRECISION)), "f")


def _is_within(moment: datetime, now: datetime, limit: timedelta) -> bool:
    """Return whether the moment is younger than `limit`. A moment in the future comes from a wrong clock, and would
    stay young forever."""
    return -SKEW <= now - moment < limit


def _within(rate: Decimal, base: Decimal, part: Fraction) -> bool:
    exact = Fraction(base)
    return abs(Fraction(rate) - exact) <= part * exact


def _agreed(sound: Sequence[Quote], part: Fraction) -> Quote | None:
    """Return the first quote with which another source agrees within `part`."""
    for place, quote in enumerate(sound):
        for other in sound[place + 1 :]:
            if other.source != quote.source and _within(other.rate, quote.rate, part):
                return quote
    return None


def _seen_again(candidate: Candidate, sound: Sequence[Quote]) -> Quote | None:
    level = Decimal(candidate.rate)
    return next((quote for quote in sound if _within(quote.rate, level, _LEVEL)), None)
