"""A source of rates without a market: one rate that stands until somebody says another.

What it says lies in the storage, so that it survives a restart, and every process of the service hears the same.
"""

from datetime import timedelta
from decimal import Decimal

import msgspec

from ...ports.clock import Clock
from ...ports.faults import Unavailable
from ...ports.notebook import Notebook
from ...ports.rates import RatePretence, RateQuote
from ...ports.storage import Storage
from ..script import RateScript, begin_read

RATE = Decimal("92.50")
"""What it says until it is told otherwise."""

_KEY = "rate"


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """What it says: the body of a note. The rate is text, because not every decimal can be compared."""

    rate: str
    age: float = 0.0
    silent: bool = False


class SimulatedRates:
    """Fills the ports RateSource and RateSimulator."""

    def __init__(self, name: str, storage: Storage, clock: Clock, *, script: RateScript | None = None) -> None:
        self._notes = Notebook(name, _Page, storage, clock)
        self._clock = clock
        self.script = script or RateScript()
        """What the next calls shall do instead of answering."""

    @property
    def name(self) -> str:
        """As given; part of the note's id."""
        return self._notes.provider

    async def quote(self) -> RateQuote:
        """What was last said. Raises: Unavailable while it is silent; what the script says."""
        self.script.asked += 1
        await begin_read(self._clock, self.script.quote)
        said = await self._notes.read(_KEY) or _Page(rate=str(RATE))
        if said.silent:
            raise Unavailable(f"{self.name} is silent")
        return RateQuote(rate=Decimal(said.rate), at=self._clock.now() - timedelta(seconds=said.age), source=self.name)

    async def pretend(self, pretence: RatePretence) -> None:
        """Say so from now on."""
        await self._notes.put(_KEY, _Page(rate=str(pretence.rate), age=pretence.age, silent=pretence.silent))
