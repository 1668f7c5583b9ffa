"""Limits on the bytes that a connection may send outside of bodies before authentication: head, address and trailers
(docs/limits.md "Sizes"). The parser stores everything it is fed, so bytes are counted before they reach it."""

import asyncio
from collections import deque
from math import inf
from typing import Any, NamedTuple, cast

from ....ports.clock import Ids
from ...process.uvicorn_insides import OF_PROTOCOL, FlowControl, HttpToolsProtocol
from .answers import JSON
from .errors import envelope, help_header
from .parse_budget import TURN, ParseBudget

HEAD = 32 * 1024
"""Largest number of bytes in a row that neither end a head nor belong to a body: a head with its address, or a body's
framing and trailers."""

HEADERS = 100
"""Largest number of headers of a request, including its trailers."""

DRAIN = 256 * 1024
"""Bytes of a body that are read and dropped after its request was answered early. Above it the connection closes."""

SMALL_CHUNK, SMALL_CHUNKS = 64, 100
"""A chunked body may have `SMALL_CHUNKS` chunks below `SMALL_CHUNK` bytes in a row, and one more for each further
`SMALL_CHUNK` bytes: every chunk costs the parser some calls, however small it is."""

STEP = 1024
"""Bytes after which a piece for the parser ends at the next end of a head. When many requests are pipelined, only a few
dozen then exist before the first is answered."""

SERVERS_OWN = (*OF_PROTOCOL, "asgi_version", "url")
"""Attributes of uvicorn's protocol. Declared in `__slots__` they use a quarter of the memory of a connection's dict,
because a dict with more than thirty keys does not share them with others."""

_END = b"\r\n\r\n"


class _Short(NamedTuple):
    """An answer to bytes that never became a request."""

    status: bytes
    code: str
    message: str

    def written(self, base_url: str, request_id: str) -> bytes:
        """Return the whole answer. `base_url` is the public address of the service."""
        body = envelope(self.code, self.message)
        return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b: %b\r\n%bConnection: close\r\n\r\n%b" % (
            self.status, JSON, len(body), *help_header(base_url, self.code), named(request_id), body,
        )  # fmt: skip


def named(request_id: str) -> bytes:
    """Return the headers of a refusal sent before the application runs: X-Request-Id, and headers against caching."""
    return b"X-Request-Id: %b\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" % request_id.encode()


_TOO_LARGE = _Short(
    b"431 Request Header Fields Too Large",
    "HEADERS_TOO_LARGE",
    "The head of the request is over 32 KB, or has more than 100 headers",
)
_NO_HTTP = _Short(b"400 Bad Request", "VALIDATION_ERROR", "This is no request of HTTP/1.1")
_SMALL_CHUNKS = _Short(b"400 Bad Request", "VALIDATION_ERROR", "The body comes in too many chunks below 64 bytes")


class _Enough(Exception):
    """Raised to stop the parser: the connection is closed, so the remaining bytes need no parsing."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP protocol that closes a connection which exceeds the bounds outside of bodies. It answers 431 unless another
    answer is being sent.

    The protocol feeds the parser only while parsed data is consumed: not while a request waits behind another, nor
    while a body waits for its reader. Meanwhile it holds the remaining bytes, at most one read of the socket, and does
    not read the socket.
    """

    __slots__ = (
        *SERVERS_OWN, "_base_url", "_budget", "_chunk_credit", "_drained", "_held", "_ids", "_too_many", "_unproven",
        "body_received", "idle_since",
    )  # fmt: skip

    def __init__(self, budget: ParseBudget, ids: Ids, base_url: str, **given: Any) -> None:
        """Create the protocol. `ids` makes ids for refused requests without X-Request-Id. `base_url` is the public
        address of the service, for links in refusals. `given` are uvicorn's own arguments."""
        super().__init__(**given)
        self._ids = ids
        self._base_url = base_url
        self._budget = budget
        """Shared by all connections of the process."""
        self._drained = 0
        """Body bytes received after their request was answered."""
        self._chunk_credit = 0
        """Remaining allowance for small chunks, in bytes; at most `SMALL_CHUNKS` times `SMALL_CHUNK`."""
        self.pipeline = cast("deque[Any]", _Pipeline())
        self._unproven = 0
        """Bytes fed to the parser since the last complete head or the last piece of a body."""
        self._too_many = False
        self._held = b""
        self.body_received = 0
        """Body bytes of the latest request."""
        self.idle_since: float | None = None
        """Time of the first check that found the connection idle (`half_requests.py`). Infinite before that check; None
        while the connection is not idle: no request came yet, or one is not answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Connect as uvicorn does, with a flow control that resumes reading only when no bytes are held."""
        super().connection_made(transport)
        self.flow = _Flow(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Disconnect as uvicorn does, and drop the held bytes."""
        super().connection_lost(exc)
        self._held = b""
        cast("_Flow", self.flow).end()

    def data_received(self, data: bytes) -> None:
        """Feed the parser at most one head's worth of bytes at a time."""
        if self._held:
            self._held += data
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        self.idle_since = None
        start, size = 0, len(data)
        while start < size and not self.transport.is_closing():
            if self.pipeline or self.flow.read_paused or start >= TURN or self._budget.is_spent:
                self._hold(data[start:])
                break
            room = HEAD - self._unproven
            if room == 0 or self._too_many:
                self._refuse(_TOO_LARGE)
                return
            found = data.find(_END, start + STEP)
            end = min(size if found < 0 else found + len(_END), start + room)
            if self.is_answered_early:
                self._drained += end - start
                if self._drained > DRAIN:
                    self.transport.close()
                    return
            self._unproven += end - start
            super().data_received(data if end - start == size else data[start:end])
            start = end
        self._budget.spend(self.loop, start)
        if self._too_many:
            self._refuse(_TOO_LARGE)

    @property
    def is_answered_early(self) -> bool:
        """Whether the last request was answered before its body ended."""
        cycle: Any = self.cycle
        return cycle is not None and cycle.response_complete and cycle.more_body

    def _hold(self, data: bytes) -> None:
        """Hold these bytes until the earlier ones are consumed, or else until a later iteration of the event loop."""
        self._held = data
        self.transport.pause_reading()
        if not self.pipeline and not self.flow.read_paused:
            self.wait_to_read()

    def read_on(self) -> None:
        """Parse the held bytes, then read the socket again."""
        held, self._held = self._held, b""
        if not held or self.transport.is_closing():
            return
        self._parse(held)
        if not self._held and not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def wait_to_read(self) -> None:
        """Parse the held bytes in a later iteration of the event loop."""
        self._budget.later(self.loop, self)

    @property
    def holds(self) -> bool:
        """Whether bytes were received and not parsed."""
        return bool(self._held)

    def on_response_complete(self) -> None:
        """Begin the next request or become idle. Then parse the bytes that waited behind the answer.

        It replaces uvicorn's method, which sets a timer each time: one or two microseconds a request, and a kilobyte
        for each idle connection.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif not self.is_answered_early:
            self.idle_since = inf
        if self._held and not self.pipeline:
            self.wait_to_read()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, unless there are `HEADERS` already."""
        if len(self.headers) >= HEADERS:
            self._too_many = True
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request as uvicorn does, unless it has too many headers."""
        self._unproven = self.body_received = self._drained = 0
        self._chunk_credit = SMALL_CHUNKS * SMALL_CHUNK
        if not self._too_many:
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Refuse a body of very many small chunks, and stop parsing it."""
        self._chunk_credit -= SMALL_CHUNK
        if self._chunk_credit < 0:
            self._refuse(_SMALL_CHUNKS)
            raise _Enough

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of a body as uvicorn does. Drop it when its request was not begun."""
        self.count_body(len(body))
        if not self._too_many:
            super().on_body(body)

    def count_body(self, size: int) -> None:
        """Count a piece of a body."""
        self._unproven = 0
        self.body_received += size
        self._chunk_credit = min(self._chunk_credit + size, SMALL_CHUNKS * SMALL_CHUNK)

    def on_message_complete(self) -> None:
        """End the body as uvicorn does, unless the request was not begun. If the request was already answered, the
        connection becomes idle."""
        self._unproven = 0
        if self._too_many:
            return
        if self.is_answered_early:
            cycle: Any = self.cycle
            cycle.more_body = False
            self.idle_since = inf
        else:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the server names it
        """Answer 400 in the documented form in place of uvicorn's."""
        self._refuse(_NO_HTTP)

    def _refuse(self, answer: _Short) -> None:
        """Close the connection. Send `answer` first, unless the request is answered already or another answer is due
        before it."""
        if self.transport.is_closing():
            return
        answering: Any = self.cycle  # None before the first request
        if answering is not None and answering.response_complete:
            answering = None
        if not self.is_answered_early and (answering is None or not (self.pipeline or answering.response_started)):
            self.transport.write(answer.written(self._base_url, self._ids.uuid()))
        if answering is not None:
            answering.disconnected = True
            answering.message_event.set()
        self.transport.close()


class _Pipeline(list[Any]):
    """Requests that wait behind another, the newest first. A list with the deque methods that uvicorn calls: the empty
    deque of each connection would allocate space for 64 entries."""

    __slots__ = ()

    def appendleft(self, request: Any) -> None:
        """Add a request behind all others."""
        self.insert(0, request)


class _Flow(FlowControl):
    """The flow control of one connection. Held bytes are parsed before the socket is read again. An event for writers
    exists only while one waits."""

    __slots__ = ("_connection", "_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, connection: BoundedProtocol) -> None:
        # Do not call uvicorn's constructor, which makes an event for every connection.
        self._transport = connection.transport
        self._connection: BoundedProtocol | None = connection
        self._writable: asyncio.Event | None = None
        self.read_paused = False
        self.write_paused = False

    def end(self) -> None:
        """Drop the reference to the ended connection. The reference cycle would otherwise keep it alive until the
        garbage collector runs."""
        self._connection = None

    def resume_reading(self) -> None:
        """Parse held bytes in a later iteration if there are any; otherwise resume reading as uvicorn does."""
        connection = self._connection
        if self.read_paused and connection is not None and connection.holds:
            self.read_paused = False
            connection.wait_to_read()
        else:
            super().resume_reading()

    async def drain(self) -> None:
        """Wait until the transport accepts more data, as uvicorn does."""
        if self.write_paused:
            self._writable = self._writable or asyncio.Event()
            await self._writable.wait()

    def pause_writing(self) -> None:
        """Pause writing, as uvicorn does."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Resume writing, as uvicorn does."""
        self.write_paused = False
        waited, self._writable = self._writable, None
        if waited is not None:
            waited.set()
