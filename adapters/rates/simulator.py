"""A simulated rate source: one rate that stays until it is changed.

The rate is in the storage, so it survives a restart and is the same in every process.
"""

from datetime import timedelta
from decimal import Decimal

import msgspec

from ...ports.clock import Clock
from ...ports.faults import Unavailable
from ...ports.operation_log import OperationLog
from ...ports.rates import RateQuote, RateSimulation
from ...ports.storage import Storage
from ..script import RateScript, begin_read

RATE = Decimal("92.50")
"""Initial rate."""

_KEY = "rate"


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """Stored rate, the body of a note. It is text, because not every decimal can be compared."""

    rate: str
    age: float = 0.0
    silent: bool = False


class SimulatedRates:
    """Implement the ports RateSource and RateSimulator."""

    def __init__(self, name: str, storage: Storage, clock: Clock, *, script: RateScript | None = None) -> None:
        self._notes = OperationLog(name, _Page, storage, clock)
        self._clock = clock
        self.script = script or RateScript()
        """Results of the next calls."""

    @property
    def name(self) -> str:
        """Name from the constructor. It is part of the note's id."""
        return self._notes.provider

    async def quote(self) -> RateQuote:
        """Return the current rate. Raises: Unavailable while the source is silent; errors that the script sets."""
        self.script.asked += 1
        await begin_read(self._clock, self.script.quote)
        said = await self._notes.read(_KEY) or _Page(rate=str(RATE))
        if said.silent:
            raise Unavailable(f"{self.name} is silent")
        return RateQuote(rate=Decimal(said.rate), at=self._clock.now() - timedelta(seconds=said.age), source=self.name)

    async def simulate(self, simulation: RateSimulation) -> None:
        """Change the rate from now on."""
        await self._notes.put(_KEY, _Page(rate=str(simulation.rate), age=simulation.age, silent=simulation.silent))
