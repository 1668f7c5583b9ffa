"""What every source of rates must do (ports/rates.py). Your conftest.py gives a fixture `bench`, a RatesBench."""

import asyncio
from decimal import Decimal

import pytest

from ...ports.faults import Unavailable
from .benches import RatesBench

LONG = "92.123456789012345678901234567890123456"
"""More digits than a float or the usual decimal context has."""


class TestRates:
    """A quote is what the market says, or none."""

    async def test_a_quote_says_rate_moment_and_source(self, bench: RatesBench) -> None:
        await bench.say("92.5")
        quote = await bench.source.quote()
        assert quote.rate == Decimal("92.5")
        assert quote.source == bench.source.name
        assert quote.at.utcoffset() is not None, "a quote's moment has a time zone"
        assert bench.is_now(quote.at)

    @pytest.mark.parametrize("rate", [LONG, "92", "0.01", "1e2"])
    async def test_no_digit_is_lost(self, bench: RatesBench, rate: str) -> None:
        await bench.say(rate)
        assert bench.is_same((await bench.source.quote()).rate, rate)

    async def test_silence_is_unavailable_and_ends(self, bench: RatesBench) -> None:
        await bench.be_silent()
        with pytest.raises(Unavailable):
            await bench.source.quote()
        await bench.say("93")
        assert (await bench.source.quote()).rate == 93

    async def test_many_may_ask_at_once(self, bench: RatesBench) -> None:
        await bench.say("92.5")
        quotes = await asyncio.gather(*(bench.source.quote() for _ in range(10)))
        assert {quote.rate for quote in quotes} == {Decimal("92.5")}
