"""Ends the open event streams of an embedded service when its process is told to stop.

Web servers wait for open answers before they end an application's lifespan, so an open payer window would keep the
process alive. No ASGI message announces the stop. Its signal does: this module adds itself before the server's handler,
when the first stream opens, and the server's handler then runs as usual.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOPS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Calls `end` in the event loop when SIGTERM or SIGINT arrives."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._mine: dict[int, tuple[Callable[..., Any], Any]] = {}
        """By signal: our handler, and the one that it calls."""

    def watch(self) -> None:
        """Add our handlers, unless they are in place. Call it in the event loop.

        Only the main thread may set handlers; in another thread the host calls `Service.end_streams`.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in _STOPS:
            present = signal.getsignal(number)
            known = self._mine.get(number)
            # Without a handler in Python the signal ends the process, or is ignored: nothing waits for the streams.
            if not callable(present) or (known is not None and present is known[0]):
                continue
            handler = self._handler(loop, present)
            self._mine[number] = handler, present
            signal.signal(number, handler)

    def unwatch(self) -> None:
        """Put the former handlers back, where ours are still in place."""
        for number, (handler, former) in self._mine.items():
            if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handler:
                signal.signal(number, former)
        self._mine.clear()

    def _handler(self, loop: asyncio.AbstractEventLoop, former: Any) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._end)
            former(number, frame)

        return handle
