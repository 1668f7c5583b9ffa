"""Daily limit of the bytes that an account writes. Each process counts in memory, adds its count to a row every few
seconds, and reads other processes' counts from it (docs/limits.md "Data").

A request costs an addition, and never a write. Several processes may exceed the limit by the bytes of one flush
interval, and a killed process loses its count since the last flush.
"""

from ....ports.bundle import Ports
from ....ports.storage import Below, Unit
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.written_bytes import (
    KEPT,
    DailyBytes,
    WrittenBytes,
    day_of_bytes,
    size_of,
    until_midnight,
    written_id,
)
from ...domain.errors import Refusal
from ..common.units import retrying

_ROWS = 100
"""Rows written or deleted per unit of work."""
WAITING = 10_000
"""Maximum number of accounts with waiting counts while the storage is unavailable. Bytes of further accounts are not
counted."""

Place = tuple[str, str, Mode]
"""Day, account and mode."""


class ByteCounter:
    """Bytes that accounts have written today, as far as this process knows. For one event loop."""

    def __init__(self, limits: DailyBytes | None = None) -> None:
        self._limits = limits or DailyBytes()
        self._known: dict[Place, int] = {}
        """Sums over all processes, for accounts that this process counted."""
        self._waiting: dict[Place, int] = {}
        """Bytes counted here and not written yet."""
        self._pruned: str | None = None

    def take(self, ports: Ports, caller: Caller, body: bytes) -> None:
        """Count a request that writes. Raises: Refusal RATE_LIMIT_EXCEEDED when the day's bytes are used up."""
        now = ports.clock.real()
        place = (day_of_bytes(now), caller.account_id, caller.mode)
        waiting = self._waiting.get(place, 0)
        size, most = size_of(body), self._limits.most(caller.mode)
        if self._known.get(place, 0) + waiting + size > most:
            raise Refusal(
                "RATE_LIMIT_EXCEEDED",
                f"The account has written its {most // 1024**2} MB of this UTC day in {caller.mode} mode; "
                "write again tomorrow, or ask for more",
                retry_after=until_midnight(now),
            )
        if waiting or len(self._waiting) < WAITING:
            self._waiting[place] = waiting + size

    async def flush(self, ports: Ports) -> None:
        """Add waiting counts to the rows, and read the sums. Raises: Unavailable; unwritten counts are kept. A commit
        that failed without an answer may be counted twice."""
        today = day_of_bytes(ports.clock.real())
        self._known = {place: known for place, known in self._known.items() if place[0] == today}
        waiting = list(self._waiting.items())
        for start in range(0, len(waiting), _ROWS):
            part = waiting[start : start + _ROWS]
            async with ports.storage.unit() as unit:
                unit[WrittenBytes].accrue(*(_row(place, size) for place, size in part))
                await unit.commit()
            for place, size in part:
                left = self._waiting[place] - size
                if left:
                    self._waiting[place] = left
                else:
                    del self._waiting[place]
                found = await ports.storage.get(WrittenBytes, written_id(*place))
                self._known[place] = 0 if found is None else found.bytes
        if self._pruned != today:
            await _prune(ports)
            self._pruned = today


def _row(place: Place, size: int) -> WrittenBytes:
    return WrittenBytes(id=written_id(*place), account_id=place[1], mode=place[2], bytes=size)


async def _prune(ports: Ports) -> None:
    """Delete the rows of long past days."""
    old = Below(day_of_bytes(ports.clock.real() - KEPT))

    async def work(unit: Unit) -> bool:
        found = await unit[WrittenBytes].find(id=old, order="id", limit=_ROWS, readable=True)
        for each in found:
            unit[WrittenBytes].remove(each)
        return len(found) == _ROWS

    while await retrying(ports.storage, work):
        pass
