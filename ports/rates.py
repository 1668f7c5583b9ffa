"""The port for the price of USDT: a quote, its moment, its source.

All calls only read. Faults of every call: Unavailable (a failed read for any reason: the network, the status, the shape
of the answer), NotConfigured (the source needs credentials that are missing or wrong). The core decides whether to
trust a quote.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Protocol, runtime_checkable

import msgspec


class RateQuote(msgspec.Struct, frozen=True, kw_only=True):
    """A quote of one source."""

    rate: Decimal
    """RUB for 1 USDT, with all digits that the source gave."""
    at: datetime
    """When the source made the quote, UTC; if the source does not say, the time of the request."""
    source: str


class RateSource(Protocol):
    """A source of the price of USDT in RUB."""

    @property
    def name(self) -> str:
        """Name stored with every rate that the core accepts; it must never change."""
        ...

    async def quote(self) -> RateQuote:
        """Return the present price. A read. Raises: Unavailable, NotConfigured."""
        ...


class RateSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a simulated source from now on."""

    rate: Decimal
    """It may also be an impossible price, to simulate a source's mistake."""
    age: float = 0.0
    """Age of every quote in seconds; below zero: the quote is from the future."""
    silent: bool = False
    """Every call raises Unavailable."""


@runtime_checkable
class RateSimulator(RateSource, Protocol):
    """A simulated source whose answers tests control."""

    async def simulate(self, simulation: RateSimulation) -> None:
        """Answer with these values from now on, in every process."""
        ...


class RateSources(msgspec.Struct, frozen=True, kw_only=True):
    """The configured sources by mode (`live`, `test`), in order of preference. Names are unique within a mode."""

    sources: Mapping[str, tuple[RateSource, ...]]

    def of_mode(self, mode: str) -> tuple[RateSource, ...]:
        """Return the sources of a mode in order of preference; empty: the mode has no rate."""
        return self.sources.get(mode, ())
