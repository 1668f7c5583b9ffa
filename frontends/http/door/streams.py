"""Server-sent events of a page: what it is told when, and how all of them end when the server stops."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from .concurrency import ConcurrencyLimit

HEARTBEAT = 15.0
"""Seconds of silence after which a stream says that it is alive, so that no proxy closes it."""
STREAM_LIFETIME = 1800.0
"""Seconds after which a stream ends; the page opens a new one."""
RETRY_MILLIS = 3000
"""How long a page waits before it opens a broken stream again."""
PER_PAGE = 8
"""Streams of one page (a payment, a subscription; test events of one account) in a process."""
PER_ADDRESS = 30
"""Streams of one client address in a process."""
CLOSED = {"status": None, "face": "closed"}
"""What a page is told of what it can no longer show."""


class Seat(msgspec.Struct, frozen=True):
    """Whose a stream is: of one page, and of one address, there are only so many."""

    page: str
    address: str


class WindowStreams:
    """The open event streams of one process, so that they can be counted and ended.

    A web server that is told to stop waits for its answers to finish, and only then ends the application's lifespan;
    an event stream would hold it until its deadline. So whoever stops the server calls `end()` first.
    """

    def __init__(self, limit: int = 1000) -> None:
        self.limit = limit
        """Above it pages poll instead: an open stream costs a read a second."""
        self.open = 0
        self._pages = ConcurrencyLimit(PER_PAGE)
        self._addresses = ConcurrencyLimit(PER_ADDRESS)
        self._ended = asyncio.Event()

    def is_free(self, seat: Seat) -> bool:
        """Whether one more stream may be opened for this page and this address; else the page polls."""
        return (
            not self._ended.is_set()
            and self.open < self.limit
            and self._pages.has_room(seat.page)
            and self._addresses.has_room(seat.address)
        )

    @contextmanager
    def taken(self, seat: Seat) -> Iterator[None]:
        """Count a stream while it is open."""
        self.open += 1
        try:
            with self._pages.taken(seat.page), self._addresses.taken(seat.address):
                yield
        finally:
            self.open -= 1

    def end(self) -> None:
        """Close all streams now, and open none any more. Call it in the server's event loop."""
        self._ended.set()

    async def pause(self, clock: Clock, seconds: float) -> bool:
        """Let `seconds` pass. False when the streams were ended meanwhile."""
        waits = [asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(self._ended.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not self._ended.is_set()


class Sight(msgspec.Struct, frozen=True):
    """What a page is told at one moment. Pages are told again when `key` changes."""

    wire: Mapping[str, Any]
    key: tuple[Any, ...]
    is_final: bool
    pause: float
    """Seconds until the next look."""


async def follow(
    clock: Clock, streams: WindowStreams, seat: Seat, seen: Sight, read: Callable[[], Awaitable[Sight | None]]
) -> AsyncGenerator[bytes, None]:
    """Server-sent events of whatever `read` looks at. It looks by the clock, and keeps still while the storage is
    away."""
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
