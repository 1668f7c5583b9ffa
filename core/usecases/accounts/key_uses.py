"""When each key was last used, to the minute: noted by each process in memory, written every few seconds
(docs/concepts.md "Keys with fewer rights").

A request costs an addition to a set and never a write; a key in use is one row a minute. What a process that is killed
had not yet written is lost.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Stale
from ....ports.storage import OneOf
from ...domain.accounts.accounts import KeyUse

WAITING = 10_000
"""Keys that wait at most while the storage is away; the uses of further ones are not kept."""
_ROWS = 100
"""Written in one unit."""


class KeyUses:
    """Which keys were used in this process since that was last written. For one event loop."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._written: tuple[datetime | None, set[str]] = (None, set())
        """The present minute, and whose use in it is written already."""

    def note(self, key_id: str) -> None:
        """A key was used. Raises nothing, waits for nothing."""
        if len(self._used) < WAITING:
            self._used.add(key_id)

    async def flush(self, ports: Ports) -> None:
        """Write whose use of this minute is not written yet. Raises: Unavailable; what was not written waits on."""
        now = ports.clock.now().replace(second=0, microsecond=0)
        minute, written = self._written
        if minute != now:
            written = set()
            self._written = now, written
        self._used -= written
        waiting = list(self._used)
        for start in range(0, len(waiting), _ROWS):
            part = waiting[start : start + _ROWS]
            await _write(ports, part, now)
            written.update(part)
            self._used.difference_update(part)


async def _write(ports: Ports, keys: list[str], now: datetime) -> None:
    try:
        async with ports.storage.unit() as unit:
            found = await unit[KeyUse].find(id=OneOf(tuple(keys)), limit=len(keys), readable=True)
            present = {use.id: use for use in found}
            for key in keys:
                use = present.get(key)
                if use is None:
                    unit[KeyUse].add(KeyUse(id=key, used_at=now))
                elif use.used_at < now:
                    unit[KeyUse].save(msgspec.structs.replace(use, used_at=now))
            await unit.commit()
    except (Stale, Conflict):
        return  # another process wrote some of them just now; the next minute brings the others
