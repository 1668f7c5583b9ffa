"""Where the price of USDT comes from, in its own words: a quote, its moment, its source.

Only reading. Faults of every call: Unavailable (a failed read, whatever failed: the network, the status, the shape),
NotConfigured (the source wants credentials that it was not given, or does not take). Whether a quote is believed is
the core's matter.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Protocol, runtime_checkable

import msgspec


class RateQuote(msgspec.Struct, frozen=True, kw_only=True):
    """What one source says."""

    rate: Decimal
    """RUB for 1 USDT, all digits that the source gave."""
    at: datetime
    """When the source made it, UTC; where it does not say, when it was asked."""
    source: str


class RateSource(Protocol):
    """A place that knows the price of USDT in RUB."""

    @property
    def name(self) -> str:
        """Stored with every rate that is believed; stable for ever."""
        ...

    async def quote(self) -> RateQuote:
        """The price now. A read. Raises: Unavailable, NotConfigured."""
        ...


class RatePretence(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated source says from now on."""

    rate: Decimal
    """Also one that no market has: what a source may send by mistake."""
    age: float = 0.0
    """Seconds that every quote is old already; below zero: made in the future."""
    silent: bool = False
    """Every call is Unavailable."""


@runtime_checkable
class RateSimulator(RateSource, Protocol):
    """A source without a market that can be told what to say."""

    async def pretend(self, pretence: RatePretence) -> None:
        """Say so from now on, in every process."""
        ...


class RateSources(msgspec.Struct, frozen=True, kw_only=True):
    """The sources at hand: by mode (`live`, `test`), the first asked first. Names are unique within a mode."""

    sources: Mapping[str, tuple[RateSource, ...]]

    def of_mode(self, mode: str) -> tuple[RateSource, ...]:
        """The sources of a mode, the first asked first; none: the mode has no rate."""
        return self.sources.get(mode, ())
