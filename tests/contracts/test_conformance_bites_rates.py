"""Bugs of authors of rate sources: each fails the shipped suite, which names its rule."""

import json
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.frontends.conformance import rates
from cambist.frontends.conformance.harnesses import RatesHarness
from cambist.ports.faults import Fault, NotConfigured, Refused, Unavailable
from cambist.ports.rates import RateQuote
from tests.contracts.biting import Planted, check_bite, named
from tests.tables import table

KEY = "desk-secret-key"


class Market:
    """A desk that states its rate as JSON text, with the moment of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.text: str | None = None
        self.age = timedelta(0)
        self.refuses = False


class DeskRates:
    """A source without a bug."""

    name = "desk"

    def __init__(self, market: Market) -> None:
        self.market = market

    async def quote(self) -> RateQuote:
        if self.market.refuses:
            raise NotConfigured("the desk refuses the key")
        if self.market.text is None:
            raise Unavailable("the desk is silent")
        rate = self.read(self.market.text)
        return RateQuote(rate=rate, at=self.moment(), source=self.name)

    def read(self, text: str) -> Decimal:
        said: object = json.loads(text, parse_float=Decimal, parse_int=Decimal)
        if not isinstance(said, Decimal) or not said.is_finite() or said <= 0:
            raise Unavailable("the desk states no price")
        return said

    def moment(self) -> datetime:
        return self.market.clock.now() - self.market.age


class DeskHarness(RatesHarness):
    secrets = (KEY,)

    def __init__(self, source: type[DeskRates]) -> None:
        self.market = Market()
        self.clock = self.market.clock
        self.source = source(self.market)

    async def say(self, rate: str) -> None:
        self.market.text = rate

    async def say_garbage(self, text: str) -> None:
        self.market.text = text

    async def say_old(self, rate: str, age: timedelta) -> None:
        self.market.text, self.market.age = rate, age

    async def be_silent(self) -> None:
        self.market.text = None

    async def refuse_key(self) -> None:
        self.market.refuses = True


class QuotesUsdtForARouble(DeskRates):
    def read(self, text: str) -> Decimal:
        return 1 / super().read(text)


class QuotesKopecks(DeskRates):
    def read(self, text: str) -> Decimal:
        return super().read(text) * 100


class ReadsFloats(DeskRates):
    def read(self, text: str) -> Decimal:
        return Decimal(float(super().read(text)))


class QuotesAFloat(DeskRates):
    async def quote(self) -> RateQuote:
        quote = await super().quote()
        return msgspec.structs.replace(quote, rate=float(quote.rate))


class RoundsToKopecks(DeskRates):
    def read(self, text: str) -> Decimal:
        return round(super().read(text), 2)


class CachesQuotes(DeskRates):
    async def quote(self) -> RateQuote:
        self.kept: RateQuote = getattr(self, "kept", None) or await super().quote()
        return self.kept


class RepeatsTheLastQuote(DeskRates):
    async def quote(self) -> RateQuote:
        try:
            self.last = await super().quote()
        except Unavailable:
            if not hasattr(self, "last"):
                raise
        return self.last


class StaysAwayAfterOneFailure(DeskRates):
    async def quote(self) -> RateQuote:
        if getattr(self, "broken", False):
            raise Unavailable("the breaker is open")
        try:
            return await super().quote()
        except Unavailable:
            self.broken = True
            raise


class SaysItIsNow(DeskRates):
    def moment(self) -> datetime:
        return self.market.clock.now()


class ReadsMillisecondsAsSeconds(DeskRates):
    def moment(self) -> datetime:
        now = super().moment()
        return datetime.fromtimestamp(now.timestamp() / 1000, now.tzinfo)


class SaysNaiveMoments(DeskRates):
    def moment(self) -> datetime:
        return super().moment().replace(tzinfo=None)


class NamesThePair(DeskRates):
    async def quote(self) -> RateQuote:
        return msgspec.structs.replace(await super().quote(), source="USDT/RUB")


class CallsSilenceRefused(DeskRates):
    async def quote(self) -> RateQuote:
        try:
            return await super().quote()
        except Unavailable as silent:
            raise Refused("timeout") from silent


class CallsSilenceZero(DeskRates):
    async def quote(self) -> RateQuote:
        try:
            return await super().quote()
        except Unavailable:
            return RateQuote(rate=Decimal(0), at=self.moment(), source=self.name)


class TakesAnyNumber(DeskRates):
    def read(self, text: str) -> Decimal:
        said: Any = json.loads(text, parse_float=Decimal, parse_int=Decimal)
        try:
            return Decimal(said)
        except (TypeError, ValueError, ArithmeticError):
            raise Unavailable("no number") from None


class StumblesOverOtherShapes(DeskRates):
    def read(self, text: str) -> Decimal:
        return Decimal(json.loads(text, parse_float=Decimal, parse_int=Decimal))


class CallsRefusedKeysUnavailable(DeskRates):
    async def quote(self) -> RateQuote:
        try:
            return await super().quote()
        except NotConfigured as refused:
            raise Unavailable("401") from refused


class ShowsItsKey(DeskRates):
    async def quote(self) -> RateQuote:
        try:
            return await super().quote()
        except Fault as fault:
            raise type(fault)(f"GET /rate?key={KEY}: {fault}") from fault


class AnswersOneCallAtATime(DeskRates):
    async def quote(self) -> RateQuote:
        if getattr(self, "is_asked", False):
            return RateQuote(rate=Decimal(1), at=self.moment(), source=self.name)
        self.is_asked = True
        return await super().quote()


class HasNoName(DeskRates):
    name = ""


_GARBAGE = "without a price above zero is Unavailable"
_SILENT = "a market that is silent is Unavailable"

BUGS = (
    Planted(QuotesUsdtForARouble, rates.TestRates, "test_a_quote_says", "must be RUB for 1 USDT"),
    Planted(QuotesKopecks, rates.TestRates, "test_a_quote_says", "must be RUB for 1 USDT"),
    Planted(ReadsFloats, rates.TestRates, "test_no_digit", "was it a float", (rates.LONG,)),
    Planted(QuotesAFloat, rates.TestRates, "test_no_digit", "never a float", ("92",)),
    Planted(RoundsToKopecks, rates.TestRates, "test_no_digit", "was it a float", (rates.LONG,)),
    Planted(CachesQuotes, rates.TestRates, "test_each_quote", "of an earlier moment"),
    Planted(RepeatsTheLastQuote, rates.TestRates, "test_silence", _SILENT),
    Planted(StaysAwayAfterOneFailure, rates.TestRates, "test_silence", "that is back must give a quote"),
    Planted(SaysItIsNow, rates.TestRates, "test_moment", "must be the market's"),
    Planted(ReadsMillisecondsAsSeconds, rates.TestRates, "test_a_quote_says", "of when the market said so"),
    Planted(SaysNaiveMoments, rates.TestRates, "test_a_quote_says", "has a time zone"),
    Planted(NamesThePair, rates.TestRates, "test_a_quote_says", "must name its source"),
    Planted(CallsSilenceRefused, rates.TestRates, "test_silence", _SILENT),
    Planted(CallsSilenceZero, rates.TestRates, "test_silence", _SILENT),
    Planted(TakesAnyNumber, rates.TestRates, "test_answer_without", _GARBAGE, ("0",)),
    Planted(TakesAnyNumber, rates.TestRates, "test_answer_without", _GARBAGE, ("-92.5",)),
    Planted(TakesAnyNumber, rates.TestRates, "test_answer_without", _GARBAGE, ('"NaN"',)),
    Planted(StumblesOverOtherShapes, rates.TestRates, "test_answer_without", _GARBAGE, ("null",)),
    Planted(CallsRefusedKeysUnavailable, rates.TestRates, "test_credentials", "refuses are NotConfigured"),
    Planted(ShowsItsKey, rates.TestWhatItSays, "test_no_credential", "a credential"),
    Planted(AnswersOneCallAtATime, rates.TestRates, "test_many_may", "each of many calls at once"),
    Planted(HasNoName, rates.TestWhatItSays, "test_its_name", "1 to 64 characters"),
)


async def opened(_: AsyncExitStack, adapter: type[Any] | None) -> DeskHarness:
    return DeskHarness(adapter or DeskRates)


@table("bug", BUGS, ids=named)
async def test_rate_source_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, opened)
