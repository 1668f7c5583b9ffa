"""Ends the open event streams of an embedded service when its process is told to stop.

Web servers wait for open answers before they end an application's lifespan, so an open payer window would keep the
process alive. No message of ASGI or WSGI announces the stop. Its signal does: this module adds itself before the
server's handler, when the first stream opens or the WSGI application is made, and the server's handler then runs as
usual.

A server that forks after it loaded the application (`gunicorn --preload`) sets its handlers in the child. Our code runs
in threads there, and only the main thread may set handlers. So the parent's main thread handles SIGURG (ignored
otherwise), and the child's first request sends it to its own main thread.
"""

import os
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
        self._process = os.getpid()
        """The process whose handlers were looked at."""
        self._reaches_main_thread = False
        """Whether our handler of SIGURG is in place."""

    def watch(self, end: Callable[[], object]) -> None:
        """Let a signal call `end` from now on, between any two instructions of the main thread. Nothing changes if our
        handlers are in place.

        Only the main thread may set handlers; in another thread the host calls `Service.end_streams`.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        self._process = os.getpid()
        for number in _STOPS:
            present = signal.getsignal(number)
            known = self._mine.get(number)
            # Without a handler in Python the signal ends the process, or is ignored: nothing waits for the streams.
            if not callable(present) or (known is not None and present is known[0]):
                continue
            handler = _handler(end, present)
            self._mine[number] = handler, present
            signal.signal(number, handler)

    def prepare_children(self, end: Callable[[], object]) -> None:
        """Let `watch_in_child` work in processes that are forked later. Call it in the main thread."""
        if (
            hasattr(signal, "SIGURG")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGURG) is signal.SIG_DFL
        ):
            signal.signal(signal.SIGURG, lambda *_: self.watch(end))
            self._reaches_main_thread = True

    def watch_in_child(self) -> None:
        """In a forked process, let its main thread watch the signals. Any thread may call this, at every request."""
        if self._reaches_main_thread and self._process != os.getpid():
            self._process = os.getpid()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)

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
