"""Cache of records that every request reads and that rarely change.

By samples (py-spy), authentication with its two reads was a tenth of the cost of a new payment. SQLite's reading
connection drops its pages at every commit, and Postgres is a round trip away.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from time import monotonic
from typing import Any

from ....ports.storage import R
from ..table.codec import is_possible
from ..table.table_map import TableMap
from ..table.writes import Pending

_Key = tuple[type[Any], str]
_MOST = 600
"""Records in one of the two generations: enough for some 300 merchants, at 1 to 2 KB a record."""


UNUSED = 2.0
"""Seconds after which a new generation starts.

Unused records are dropped with the older one, so that a peak of traffic leaves nothing behind.
"""


class Recent:
    """Records read by id, with the time of each read. For one event loop."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[float, Any]] = {}
        self._before: dict[_Key, tuple[float, Any]] = {}
        """The older generation. A record that is read again moves to the new one; the rest is dropped."""
        self._kinds: set[type[Any]] = set()
        self._changes = 0
        self._ageing: asyncio.TimerHandle | None = None

    def known(self, kind: type[R], record_id: str, within: float) -> tuple[float, R | None] | None:
        """Return the time of the read and the record, if it was read at most `within` seconds ago."""
        key = kind, record_id
        found = self._found.get(key) or self._moved_on(key)
        return None if found is None or monotonic() - found[0] > within else found

    async def read(
        self, mapped: TableMap[R], record_id: str, read: Callable[[TableMap[R], str], Awaitable[R | None]]
    ) -> R | None:
        """Read the record now and cache it. Return None for an id that no record could have."""
        if not is_possible(record_id):
            return None
        self._kinds.add(mapped.kind)
        now, changes = monotonic(), self._changes
        record = await read(mapped, record_id)
        if changes == self._changes:  # otherwise one of our own commits may have overtaken this read
            self._keep((mapped.kind, record_id), (now, record))
        return record

    def _moved_on(self, key: _Key) -> tuple[float, Any] | None:
        found = self._before.pop(key, None)
        if found is not None:
            self._keep(key, found)
        return found

    def _keep(self, key: _Key, found: tuple[float, Any]) -> None:
        if len(self._found) >= _MOST:
            self._before, self._found = self._found, {}
        self._found[key] = found
        if self._ageing is None:
            self._age_later()

    def _age_later(self) -> None:
        self._ageing = asyncio.get_running_loop().call_later(UNUSED, self.age, context=Context())

    def age(self) -> None:
        """Start another generation."""
        self._ageing = None
        self._before, self._found = self._found, {}
        if self._before:
            self._age_later()

    def forget(self, pending: Pending) -> None:
        """Drop the records that our own unit wrote or may have written. The next read loads them again."""
        for write in (*pending.writes, *pending.accruals.values()):
            if write.mapped.kind in self._kinds:
                self._changes += 1
                for generation in (self._found, self._before):
                    generation.pop((write.mapped.kind, write.id), None)

    def forget_all(self) -> None:
        """Drop everything, because another process wrote something."""
        self._changes += 1
        self._found.clear()
        self._before.clear()
