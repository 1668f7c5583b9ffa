"""Contract of a rate source (ports/rates.py). Your conftest.py provides a fixture `rates_harness`, a RatesHarness."""

import asyncio
from decimal import Decimal

import pytest

from ...ports.faults import Fault, NotConfigured, Unavailable
from .harnesses import RatesHarness, check_hidden, check_name
from .problem import Reading, ReadRules

LONG = "92.123456789012345678901234567890123456"
"""A rate with more digits than a float or the default decimal context can hold."""


class TestRates:
    """A quote is the market's current rate; without one the source raises."""

    async def test_a_quote_says_rate_moment_and_source(self, rates_harness: RatesHarness) -> None:
        await rates_harness.say("92.5")
        quote = await rates_harness.source.quote()
        assert quote.rate == Decimal("92.5"), "RUB for 1 USDT"
        assert quote.source == rates_harness.source.name
        assert quote.at.utcoffset() is not None, "a quote's moment has a time zone"
        assert rates_harness.is_now(quote.at), "a quote is of when the market said so: an old one would not be believed"

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
        with pytest.raises(Unavailable):
            await rates_harness.source.quote()
        await rates_harness.say("93")
        assert (await rates_harness.source.quote()).rate == 93

    @pytest.mark.parametrize("text", ['"x"', "null", "[]", "{}", "true", "0", "-92.5", '"NaN"'])
    async def test_answer_without_a_price_is_unavailable(self, rates_harness: RatesHarness, text: str) -> None:
        await rates_harness.say_garbage(text)
        with pytest.raises(Unavailable):
            await rates_harness.source.quote()

    async def test_credentials_that_are_not_taken_are_not_configured(self, rates_harness: RatesHarness) -> None:
        """NotConfigured asks the operator to set the credentials, where Unavailable would only wait."""
        await rates_harness.refuse_key()
        with pytest.raises(NotConfigured):
            await rates_harness.source.quote()

    async def test_many_may_ask_at_once(self, rates_harness: RatesHarness) -> None:
        await rates_harness.say("92.5")
        quotes = await asyncio.gather(*(rates_harness.source.quote() for _ in range(10)))
        assert {quote.rate for quote in quotes} == {Decimal("92.5")}


class TestWhatItSays:
    """The source has a valid name, and neither its repr nor its faults leak credentials."""

    async def test_its_name_can_be_stored(self, rates_harness: RatesHarness) -> None:
        check_name(rates_harness.source)

    async def test_no_credential_shows(self, rates_harness: RatesHarness) -> None:
        """Neither the repr nor a fault contains a credential."""
        await rates_harness.be_silent()
        with pytest.raises(Fault) as raised:
            await rates_harness.source.quote()
        check_hidden(rates_harness.secrets, rates_harness.source, raised.value)


class TestRatesAtFaults(ReadRules):
    """Rates while the market fails."""

    @pytest.fixture
    async def read(self, rates_harness: RatesHarness) -> Reading:
        await rates_harness.say("92.5")
        return Reading(harness=rates_harness, adapter=rates_harness.source, reads=(rates_harness.source.quote,))
