"""Time of each key's last use, to the minute. Each process collects uses in memory and writes them every few seconds
(docs/concepts.md "Keys with fewer rights").

A request costs an addition to a set and never a write. A key in use is one row a minute. A killed process loses the
uses that it had not written yet.
"""

from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Stale
from ....ports.storage import OneOf
from ...domain.accounts.accounts import KeyUse

WAITING = 10_000
"""Maximum number of waiting keys while the storage is unavailable. Uses of further keys are dropped."""
_ROWS = 100
"""Rows per unit of work."""


class KeyUses:
    """Keys used in this process since the last write. For one event loop."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._written: tuple[datetime | None, set[str]] = (None, set())
        """The current minute, and the keys whose use in it is already written."""

    def note(self, key_id: str) -> None:
        """Note a use of a key, without waiting."""
        if len(self._used) < WAITING:
            self._used.add(key_id)

    async def flush(self, ports: Ports) -> None:
        """Write the uses of this minute that are not written yet. Raises: Unavailable; unwritten uses are kept."""
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
        return  # another process has just written some of them; the next minute brings the others
