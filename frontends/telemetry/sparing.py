"""Limits log lines that unauthenticated requests can trigger to one per minute and cause, with a count, so that nobody
can fill the disk by sending garbage (docs/operations.md "Logs")."""

import asyncio
import copy
import logging
from contextlib import nullcontext
from typing import TextIO

MINUTE = 60.0
"""Seconds between two lines of the same cause."""

CAUSES = 64
"""Maximum number of causes distinguished in a minute. Further ones are grouped by their text without arguments."""

SPARED = frozenset({"asyncio", "cambist.health", "cambist.http", "cambist.kyc", "cambist.window", "uvicorn.error"})
"""Loggers with lines that an unauthenticated request can trigger."""

_Cause = tuple[str, str]


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes the first line of a cause, counts the following ones of a minute, and then logs their number.

    Errors are always written: they are our own faults, and each request id matters.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._since: dict[_Cause, float] = {}
        self._more: dict[_Cause, tuple[int, logging.LogRecord]] = {}
        """Number of suppressed lines, and the last of them."""
        self._waker: asyncio.AbstractEventLoop | None = None
        """Event loop that will log the counts."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write or count the record."""
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
        """Log the remaining counts."""
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
        """Log the number of suppressed lines of each minute that ended by this Unix time, or of all minutes for
        None."""
        over = [cause for cause, since in self._since.items() if now is None or abs(now - since) >= MINUTE]
        for cause in over:  # the clock may have been set back, which also ends a minute
            del self._since[cause]
            count, last = self._more.pop(cause, (0, None))
            if last is not None:
                told = copy.copy(last)
                told.msg, told.args = f"{cause[1]} ({count} more within a minute)", ()
                super().emit(told)

    def _wake_later(self) -> None:
        """Schedule the log of the counts, in case no further line follows."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # called in a thread: the next line logs the counts
            return
        if self._waker is not loop:
            self._waker = loop
            loop.call_later(MINUTE, self._wake)

    def _wake(self) -> None:
        with self.lock or nullcontext():
            self._waker = None
            self._tell(None)
