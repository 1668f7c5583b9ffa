"""Records that every request asks for and nobody changes for days: kept in memory between two requests.

By samples (py-spy), authentication with its two reads was a tenth of what a new payment cost: SQLite's reading
connection forgets its pages at every commit, and Postgres is a round trip away.
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
"""Records of a generation, of which there are two: those of some 300 merchants, at 1 to 2 KB each."""


UNUSED = 2.0
"""Seconds after which a generation is the one before: what nobody asks for is forgotten, so that a rush leaves nothing
of all who came."""


class Recent:
    """What was read by id, and when. For one event loop."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[float, Any]] = {}
        self._before: dict[_Key, tuple[float, Any]] = {}
        """The generation before: what is asked for again moves on, the rest is forgotten with it."""
        self._kinds: set[type[Any]] = set()
        self._changes = 0
        self._ageing: asyncio.TimerHandle | None = None

    def known(self, kind: type[R], record_id: str, within: float) -> tuple[float, R | None] | None:
        """When the record was read, and what it was, if that is at most `within` seconds ago."""
        key = kind, record_id
        found = self._found.get(key) or self._moved_on(key)
        return None if found is None or monotonic() - found[0] > within else found

    async def read(
        self, mapped: TableMap[R], record_id: str, read: Callable[[TableMap[R], str], Awaitable[R | None]]
    ) -> R | None:
        """The record as it is read now, which is kept; none of an id that no record could have."""
        if not is_possible(record_id):
            return None
        self._kinds.add(mapped.kind)
        now, changes = monotonic(), self._changes
        record = await read(mapped, record_id)
        if changes == self._changes:  # else one of our own commits may have overtaken the reading
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
        """Begin another generation."""
        self._ageing = None
        self._before, self._found = self._found, {}
        if self._before:
            self._age_later()

    def forget(self, pending: Pending) -> None:
        """Our own unit wrote this, or may have: whoever asks from now on reads it."""
        for write in (*pending.writes, *pending.accruals.values()):
            if write.mapped.kind in self._kinds:
                self._changes += 1
                for generation in (self._found, self._before):
                    generation.pop((write.mapped.kind, write.id), None)

    def forget_all(self) -> None:
        """Somebody else wrote something."""
        self._changes += 1
        self._found.clear()
        self._before.clear()
