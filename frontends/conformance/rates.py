"""Contract of a rate source (ports/rates.py). Your conftest.py provides a fixture `rates_harness`, a RatesHarness."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from ...ports.faults import Fault, NotConfigured, Unavailable
from .expectations import must_answer, must_raise
from .harnesses import RatesHarness, check_hidden, check_name
from .problem import Reading, ReadRules

LONG = "92.123456789012345678901234567890123456"
"""A rate with more digits than a float or the default decimal context can hold."""


class TestRates:
    """A quote is the market's current rate; without one the source raises."""

    async def test_a_quote_says_rate_moment_and_source(self, rates_harness: RatesHarness) -> None:
        await rates_harness.say("92.5")
        with must_answer("a market that states a rate must give a quote"):
            quote = await rates_harness.source.quote()
        assert quote.rate == Decimal("92.5"), "a rate must be RUB for 1 USDT"
        assert quote.source == rates_harness.source.name, "a quote must name its source"
        assert quote.at.utcoffset() is not None, "a quote's moment has a time zone"
        assert rates_harness.is_now(quote.at), "a quote is of when the market said so: an old one would not be believed"

    async def test_moment_of_a_quote_is_the_market_s(self, rates_harness: RatesHarness) -> None:
        """The core refuses a quote that is too old."""
        age = timedelta(hours=2)
        await rates_harness.say_old("92.5", age)
        assert rates_harness.is_now((await rates_harness.source.quote()).at + age), (
            "a quote's moment must be the market's, and not the moment of the call"
        )

    @pytest.mark.parametrize("rate", [LONG, "92", "0.01", "1e2"])
    async def test_no_digit_is_lost(self, rates_harness: RatesHarness, rate: str) -> None:
        await rates_harness.say(rate)
        quoted = (await rates_harness.source.quote()).rate
        assert isinstance(quoted, Decimal), "a rate is a Decimal, never a float"
        assert rates_harness.is_same(quoted, rate), f"the market said {rate} and the quote {quoted}: was it a float?"

    async def test_each_quote_is_of_now(self, rates_harness: RatesHarness) -> None:
        """The source caches nothing. A settlement uses one rate for all its payments."""
        for rate in ("92.5", "93.25"):
            await rates_harness.say(rate)
            assert (await rates_harness.source.quote()).rate == Decimal(rate), "the quote is of an earlier moment"

    async def test_silence_is_unavailable_and_ends(self, rates_harness: RatesHarness) -> None:
        await rates_harness.say("92.5")
        await rates_harness.source.quote()
        await rates_harness.be_silent()
        with must_raise("a market that is silent is Unavailable: the last quote must not be repeated", Unavailable):
            await rates_harness.source.quote()
        await rates_harness.say("93")
        with must_answer("a market that is back must give a quote at once"):
            quote = await rates_harness.source.quote()
        assert quote.rate == 93, "the quote is of an earlier moment"

    @pytest.mark.parametrize("text", ['"x"', "null", "[]", "{}", "true", "0", "-92.5", '"NaN"'])
    async def test_answer_without_a_price_is_unavailable(self, rates_harness: RatesHarness, text: str) -> None:
        await rates_harness.say_garbage(text)
        with must_raise("an answer without a price above zero is Unavailable", Unavailable):
            await rates_harness.source.quote()

    async def test_credentials_that_are_not_taken_are_not_configured(self, rates_harness: RatesHarness) -> None:
        """NotConfigured asks the operator to set the credentials, where Unavailable would only wait."""
        await rates_harness.refuse_key()
        with must_raise("credentials that the market refuses are NotConfigured", NotConfigured):
            await rates_harness.source.quote()

    async def test_many_may_ask_at_once(self, rates_harness: RatesHarness) -> None:
        await rates_harness.say("92.5")
        quotes = await asyncio.gather(*(rates_harness.source.quote() for _ in range(10)))
        assert {quote.rate for quote in quotes} == {Decimal("92.5")}, "each of many calls at once must get the quote"


class TestWhatItSays:
    """The source has a valid name, and neither its repr nor its faults leak credentials."""

    async def test_its_name_can_be_stored(self, rates_harness: RatesHarness) -> None:
        check_name(rates_harness.source)

    async def test_no_credential_shows(self, rates_harness: RatesHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        await rates_harness.be_silent()
        with must_raise("a market that is silent must raise a fault", Fault) as raised:
            await rates_harness.source.quote()
        check_hidden(rates_harness.secrets, rates_harness.source, raised.value)


class TestRatesAtFaults(ReadRules):
    """Rates while the market fails."""

    @pytest.fixture
    async def read(self, rates_harness: RatesHarness) -> Reading:
        await rates_harness.say("92.5")
        return Reading(harness=rates_harness, adapter=rates_harness.source, reads=(rates_harness.source.quote,))
