"""The adapters of real providers that are shipped, one row each: what makes it, and the extra that brings its library.
A row imports nothing before a setting names it. Its options stand in provider_options.py."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..ports.rates import RateSource
from ..ports.tools import FileTools

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


SHIPPED: Mapping[str, Mapping[str, Shipped]] = {
    "bank": {},
    "rates": {"rapira": Shipped(make=_rapira), "coingecko": Shipped(make=_coingecko)},
    "kyc": {},
    "chain": {},
    "deposits": {},
    "payouts": {},
    "notifier": {},
    "files": {},
    "storage": {},
}
"""By kind (plugins.py: `KINDS`) and name."""
