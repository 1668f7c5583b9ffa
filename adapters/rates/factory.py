"""Makes the rate sources of their settings. Their library is imported only then."""

from ...ports.rates import RateSource
from ...ports.settings import AdapterFactory, AdapterSettings
from ...ports.tools import Tools
from .settings import CoinGeckoSettings


def _coingecko(_: Tools, own: CoinGeckoSettings) -> RateSource:
    from .coingecko import CoinGeckoRates

    return CoinGeckoRates(key=own.key)


def _rapira(tools: Tools, _: AdapterSettings) -> RateSource:
    from .rapira import RapiraRates

    return RapiraRates(tools.clock)


COINGECKO = AdapterFactory(settings=CoinGeckoSettings, make=_coingecko, extra="http")
RAPIRA = AdapterFactory(settings=AdapterSettings, make=_rapira, extra="http")
