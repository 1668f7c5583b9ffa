"""Tells of rows that cannot be read: each once in the log, and in a row beside its table whenever that is gone
(docs/operations.md "Rows that cannot be read")."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Any

from ....ports.faults import Conflict, Unreadable
from ....ports.storage import OneOf, Unit
from ....ports.unreadable import UnreadableRow
from ..table.codec import Row
from ..table.table_map import TableMap
from .asides import note_id, note_of

_log = logging.getLogger("cambist.storage")

AGAIN = 10.0
"""Seconds after which a row that was met again is noted again."""

_TOLD = 1000
"""Rows that a process tells of: where more cannot be read, that is told."""


class Notes:
    """Of one storage: what its process has told of. `begin` has something done beside what goes on."""

    def __init__(
        self,
        unit: Callable[[], AbstractAsyncContextManager[Unit]],
        now: Callable[[], Awaitable[datetime]],
        begin: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._unit = unit
        self._now = now
        self._begin = begin
        self._told: set[tuple[str, str]] = set()
        """By table and id."""
        self._met_again: dict[str, Callable[[], Awaitable[None]]] = {}
        """How those are noted that were met since, by the ids of their notes."""
        self._timer: asyncio.TimerHandle | None = None

    def is_new(self, mapped: TableMap[Any], fault: Unreadable) -> bool:
        """Whether it was not told of, and is now, in the log."""
        told = mapped.name, fault.record_id
        if told in self._told or len(self._told) >= _TOLD:
            return False
        self._told.add(told)
        _log.error("%s", fault)
        return True

    def forget(self, source: str, row_id: str) -> None:
        """Whoever meets it next tells of it anew."""
        self._told.discard((source, row_id))

    def met(self, mapped: TableMap[Any], row: Row, fault: Unreadable) -> None:
        """Somebody read a row that stays where it is."""
        if mapped.kind is UnreadableRow:
            return
        if self.is_new(mapped, fault):
            self._begin(self._note(mapped, row, fault))
        elif (mapped.name, fault.record_id) in self._told:
            self._met_again[note_id(mapped, row)] = partial(self._note, mapped, row, fault)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(AGAIN, lambda: self._begin(self.again()))

    async def again(self) -> None:
        """Note what was met since it was told of and is noted no more: a program that could read it took it up, and
        whoever met it here passed it by once more. It raises nothing: what fails is tried again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        met, self._met_again = self._met_again, {}
        if not met:
            return
        try:
            async with self._unit() as unit:
                noted = await unit[UnreadableRow].find(id=OneOf(tuple(met)), limit=len(met), readable=True)
        except Exception as fault:  # noqa: BLE001 - whatever it is, a storage that closes goes on closing
            _log.warning("what was met again could not be noted: %s", fault)
            self._met_again = met | self._met_again
            return
        for each in met.keys() - {note.id for note in noted}:
            await met[each]()

    async def _note(self, mapped: TableMap[Any], row: Row, fault: Unreadable) -> None:
        try:
            async with self._unit() as unit:
                unit[UnreadableRow].add(note_of(mapped, row, fault, await self._now(), held=False))
                await unit.commit()
        except Conflict:
            return  # it is known already
        except Exception as other:  # noqa: BLE001 - who asked for the row has heard; whoever meets it next notes it
            _log.warning("it could not be noted: %s", other)
            self.forget(mapped.name, fault.record_id)
