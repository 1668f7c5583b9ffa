"""Sources of rates whose market fails (docs/adapters.md "When the provider fails")."""

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.rates.coingecko import CoinGeckoRates
from cambist.adapters.rates.rapira import RapiraRates
from cambist.frontends.conformance import rates as of_rates
from cambist.frontends.conformance.harnesses import RatesHarness
from cambist.testing import FakeProvider, ProviderAnswer
from tests.contracts.test_rates import coingecko, rapira


class MarketHarness(RatesHarness):
    """A source at a market that speaks HTTP."""

    secrets = ("CG-key",)

    def __init__(self, market: FakeProvider, kind: str) -> None:
        self.provider, self.clock = market, VirtualClock()
        self.rate = Decimal(0)
        self.made: RapiraRates | CoinGeckoRates
        if kind == "rapira":
            self.source = self.made = RapiraRates(self.clock, base=market.url, limit=3.0)
            market.on("GET", "/open/market/rates", self._rapira)
        else:
            self.source = self.made = CoinGeckoRates(key="CG-key", base=market.url, limit=3.0)
            market.on("GET", "/api/v3/simple/price", self._coingecko)

    async def say(self, rate: str) -> None:
        self.rate = Decimal(rate)

    def _rapira(self, _: object) -> ProviderAnswer:
        body = rapira(f'"askPrice": {self.rate}, "bidPrice": {self.rate}')
        return ProviderAnswer(body=body, headers={"Content-Type": "application/json"})

    def _coingecko(self, _: object) -> ProviderAnswer:
        body = coingecko(str(self.rate), str(int(self.clock.now().timestamp())))
        return ProviderAnswer(body=body, headers={"Content-Type": "application/json"})


@pytest.fixture(params=["rapira", "coingecko"])
async def rates_harness(request: pytest.FixtureRequest) -> AsyncIterator[RatesHarness]:
    async with FakeProvider() as market:
        harness = MarketHarness(market, request.param)
        yield harness
        await harness.made.close()


class TestRatesAtFaults(of_rates.TestRatesAtFaults): ...
