"""Server-sent events of a page, and their end when the server stops."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from .concurrency import ConcurrencyLimit

HEARTBEAT = 15.0
"""Seconds of silence after which a stream sends a heartbeat, so that no proxy closes it."""
STREAM_LIFETIME = 1800.0
"""Seconds after which a stream ends; the page opens a new one."""
RETRY_MILLIS = 3000
"""Milliseconds that a page waits before it reopens a broken stream."""
PER_PAGE = 8
"""Largest number of streams of one page (a payment, a subscription, test events of an account) in a process."""
PER_ADDRESS = 30
"""Largest number of streams of one client address in a process."""
CLOSED = {"status": None, "face": "closed"}
"""Event for an object that the page can no longer show."""


class Seat(msgspec.Struct, frozen=True):
    """Page and address of a stream. The number of streams is limited for each."""

    page: str
    address: str


class WindowStreams:
    """The open event streams of one process, for counting and ending them.

    A web server that is stopping waits for its answers to finish before it ends the application's lifespan; an event
    stream would hold it until its deadline. So call `end()` before stopping the server.
    """

    def __init__(self, limit: int = 1000, *, opens: Callable[[], None] = lambda: None) -> None:
        """`opens` is called before each stream opens."""
        self._opens = opens
        self.limit = limit
        """Largest number of open streams, because each costs a read per second. Above it pages poll instead."""
        self.open = 0
        self._pages = ConcurrencyLimit(PER_PAGE)
        self._addresses = ConcurrencyLimit(PER_ADDRESS)
        self._ended = asyncio.Event()

    def is_free(self, seat: Seat) -> bool:
        """Whether another stream may be opened for this page and address; otherwise the page polls."""
        return (
            not self._ended.is_set()
            and self.open < self.limit
            and self._pages.has_room(seat.page)
            and self._addresses.has_room(seat.address)
        )

    @contextmanager
    def taken(self, seat: Seat) -> Iterator[None]:
        """Count a stream while it is open."""
        self._opens()
        self.open += 1
        try:
            with self._pages.taken(seat.page), self._addresses.taken(seat.address):
                yield
        finally:
            self.open -= 1

    def end(self) -> None:
        """Close all streams now, and open no new ones. Call it in the server's event loop."""
        self._ended.set()

    async def pause(self, clock: Clock, seconds: float) -> bool:
        """Wait for `seconds`. Return False if the streams were ended meanwhile."""
        waits = [asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(self._ended.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not self._ended.is_set()


class Sight(msgspec.Struct, frozen=True):
    """State of a page at one moment. The page gets a new event when `key` changes."""

    wire: Mapping[str, Any]
    key: tuple[Any, ...]
    is_final: bool
    pause: float
    """Seconds until the next read."""


async def follow(
    clock: Clock, streams: WindowStreams, seat: Seat, seen: Sight, read: Callable[[], Awaitable[Sight | None]]
) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events of the state that `read` returns. It reads at intervals, and sends nothing while the
    storage is unavailable."""
    opened = spoken = clock.monotonic()
    with streams.taken(seat):
        yield f"retry: {RETRY_MILLIS}\n\n".encode() + _frame(seen.wire)
        while not seen.is_final and clock.monotonic() - opened < STREAM_LIFETIME:
            if not await streams.pause(clock, seen.pause):
                return
            try:
                present = await read()
            except Unavailable:
                present = seen
            if present is None:
                yield _frame(CLOSED)
                return
            if present.key != seen.key:
                seen, spoken = present, clock.monotonic()
                yield _frame(seen.wire)
            elif clock.monotonic() - spoken >= HEARTBEAT:
                spoken = clock.monotonic()
                yield b": alive\n\n"


def _frame(data: Mapping[str, Any]) -> bytes:
    return b"event: state\ndata: " + msgspec.json.encode(data) + b"\n\n"
