"""Reports of unreadable rows: each once in the log, and in a row of another table if no note is there
(docs/operations.md "Rows that cannot be read").
"""

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
"""Seconds after which a row that was read again gets its note again if it is gone."""

_TOLD = 1000
"""Rows that a process reports at most. By then the problem is known."""


class Notes:
    """Reports of one storage's process. `begin` runs a coroutine in the background."""

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
        """Table and id of each reported row."""
        self._met_again: dict[str, Callable[[], Awaitable[None]]] = {}
        """Functions that write the notes of rows read again since their report, by the note's id."""
        self._timer: asyncio.TimerHandle | None = None

    def is_new(self, mapped: TableMap[Any], fault: Unreadable) -> bool:
        """Log a row and return True, unless it was reported before."""
        told = mapped.name, fault.record_id
        if told in self._told or len(self._told) >= _TOLD:
            return False
        self._told.add(told)
        _log.error("%s", fault)
        return True

    def forget(self, source: str, row_id: str) -> None:
        """Let the next read report this row again."""
        self._told.discard((source, row_id))

    def met(self, mapped: TableMap[Any], row: Row, fault: Unreadable) -> None:
        """Report an unreadable row that a read met and that stays in its table."""
        if mapped.kind is UnreadableRow:
            return
        if self.is_new(mapped, fault):
            self._begin(self._note(mapped, row, fault))
        elif (mapped.name, fault.record_id) in self._told:
            self._met_again[note_id(mapped, row)] = partial(self._note, mapped, row, fault)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(AGAIN, lambda: self._begin(self.again()))

    async def again(self) -> None:
        """Write the missing notes of rows that were read again after their report.

        A note is missing when a program that could read the row resolved it, and this process then failed on the
        row once more. It raises nothing: a failed write is tried again.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        met, self._met_again = self._met_again, {}
        if not met:
            return
        try:
            async with self._unit() as unit:
                noted = await unit[UnreadableRow].find(id=OneOf(tuple(met)), limit=len(met), readable=True)
        except Exception as fault:  # noqa: BLE001 - a storage that closes must go on closing, whatever fails here
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
            return  # the note exists already
        except Exception as other:  # noqa: BLE001 - the reader has got its error, and the next read writes the note
            _log.warning("it could not be noted: %s", other)
            self.forget(mapped.name, fault.record_id)
