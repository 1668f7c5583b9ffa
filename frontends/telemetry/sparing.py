"""Log lines that strangers can cause are told once a minute for each cause, with a count, so that nobody fills a disk
by sending nonsense (docs/operations.md "Logs")."""

import asyncio
import copy
import logging
from contextlib import nullcontext
from typing import TextIO

MINUTE = 60.0
"""Seconds from a line to the next one of the same cause."""

CAUSES = 64
"""Causes that are told apart in a minute; what is told of further ones goes by the text without its arguments."""

SPARED = frozenset({"asyncio", "cambist.health", "cambist.http", "cambist.kyc", "cambist.window", "uvicorn.error"})
"""Loggers with lines that a request can cause which nobody has authorized."""

_Cause = tuple[str, str]


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes the first line of a cause, counts those that follow within a minute, and then says how many they were.

    Errors are written each: they are faults of ours, whose lines are wanted with their request ids.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._since: dict[_Cause, float] = {}
        self._more: dict[_Cause, tuple[int, logging.LogRecord]] = {}
        """How many were not written, and the last of them."""
        self._waker: asyncio.AbstractEventLoop | None = None
        """The event loop that will say what was counted."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, or count it."""
        self._tell(record.created)
        if record.levelno > logging.WARNING or record.name not in SPARED:
            super().emit(record)
            return
        cause = self._cause(record)
        if cause not in self._since:
            self._since[cause] = record.created
            super().emit(record)
            return
        self._more[cause] = (self._more.get(cause, (0, record))[0] + 1, record)
        self._wake_later()

    def close(self) -> None:
        """Say what is not said yet."""
        self._tell(None)
        super().close()

    def _cause(self, record: logging.LogRecord) -> _Cause:
        text = str(record.msg)
        if record.args and len(self._since) < CAUSES:
            try:
                text = record.getMessage()
            except Exception:  # noqa: BLE001 - the formatter says that they do not fit
                return record.name, text
        return record.name, text

    def _tell(self, now: float | None) -> None:
        """Say how many lines were left out in the minutes that are over at this Unix second; None: in all."""
        over = [cause for cause, since in self._since.items() if now is None or abs(now - since) >= MINUTE]
        for cause in over:  # the clock may have been set: backwards, too, a minute ends
            del self._since[cause]
            count, last = self._more.pop(cause, (0, None))
            if last is not None:
                told = copy.copy(last)
                told.msg, told.args = f"{cause[1]} ({count} more within a minute)", ()
                super().emit(told)

    def _wake_later(self) -> None:
        """Say soon after its minute what was counted, also where no line follows."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a thread: the next line says it
            return
        if self._waker is not loop:
            self._waker = loop
            loop.call_later(MINUTE, self._wake)

    def _wake(self) -> None:
        with self.lock or nullcontext():
            self._waker = None
            self._tell(None)
