"""The adapters of real providers that are shipped, one row each: what makes it, and the extra that brings its library.
A row imports nothing before a setting names it. Its options stand in provider_options.py."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..ports.chain import ChainWatcher
from ..ports.deposits import DepositWatcher
from ..ports.rates import RateSource
from ..ports.tools import FileTools, Tools

if TYPE_CHECKING:
    from .provider_options import ProviderSettings


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """One shipped adapter."""

    make: "Callable[[ProviderSettings, Any], Any]"
    """Called with what was set for it, and `Tools` (of a file store `FileTools`). Raises: NotConfigured, whose message
    operators see."""
    extra: str = "http"
    """Of this distribution: what to install where its library is missing."""


def _coingecko(own: "ProviderSettings", _: FileTools) -> RateSource:
    from ..adapters.rates.coingecko import CoinGeckoRates

    return CoinGeckoRates(key=own.get("key"))


def _rapira(_: "ProviderSettings", tools: FileTools) -> RateSource:
    from ..adapters.rates.rapira import RapiraRates

    return RapiraRates(tools.clock)


def _nodes_chain(own: "ProviderSettings", tools: FileTools) -> ChainWatcher:
    from .nodes import chain_of

    return chain_of(own, tools)


def _nodes_deposits(own: "ProviderSettings", tools: Tools) -> DepositWatcher:
    from .nodes import deposits_of

    return deposits_of(own, tools)


SHIPPED: Mapping[str, Mapping[str, Shipped]] = {
    "bank": {},
    "rates": {"rapira": Shipped(make=_rapira), "coingecko": Shipped(make=_coingecko)},
    "kyc": {},
    "chain": {"nodes": Shipped(make=_nodes_chain, extra="chains")},
    "deposits": {"tron": Shipped(make=_nodes_deposits, extra="chains")},
    "payouts": {},
    "notifier": {},
    "files": {},
    "storage": {},
}
"""By kind (plugins.py: `KINDS`) and name."""
