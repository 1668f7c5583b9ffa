"""Ends the open event streams of an embedded service when its process is told to stop.

Web servers wait for open answers before they end an application's lifespan, so an open payer window would keep the
process alive. No message of ASGI or WSGI announces the stop. Its signal does: this module adds itself before the
server's handler, when the first stream opens or the WSGI application is made, and the server's handler then runs as
usual.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_STOPS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Our handlers of SIGTERM and SIGINT."""

    def __init__(self) -> None:
        self._mine: dict[int, tuple[Callable[..., Any], Any]] = {}
        """By signal: our handler, and the one that it calls."""

    def watch(self, end: Callable[[], object]) -> None:
        """Let a signal call `end` from now on, between any two instructions of the main thread. Nothing changes if our
        handlers are in place.

        Only the main thread may set handlers; in another thread the host calls `Service.end_streams`.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _STOPS:
            present = signal.getsignal(number)
            known = self._mine.get(number)
            # Without a handler in Python the signal ends the process, or is ignored: nothing waits for the streams.
            if not callable(present) or (known is not None and present is known[0]):
                continue
            handler = _handler(end, present)
            self._mine[number] = handler, present
            signal.signal(number, handler)

    def unwatch(self) -> None:
        """Put the former handlers back, where ours are still in place."""
        for number, (handler, former) in self._mine.items():
            if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handler:
                signal.signal(number, former)
        self._mine.clear()


def _handler(end: Callable[[], object], former: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        end()
        former(number, frame)

    return handle
