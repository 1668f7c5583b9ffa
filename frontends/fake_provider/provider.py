"""A provider's HTTP server on a local port that answers by handlers and fails on request."""

import asyncio
import re
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime
from functools import partial
from types import TracebackType
from typing import Self

import msgspec

from .faults import ProviderAnswer, ProviderFault, Wire, whole
from .requests import ProviderRequest, TooLarge, any_call, read_request

BODY_LIMIT = 1024 * 1024
CONNECTION_LIMIT = 100
KEPT_REQUESTS = 1000
_HEAD_LIMIT = 65_536


Handler = Callable[[ProviderRequest], ProviderAnswer | Awaitable[ProviderAnswer]]
Matching = Callable[[ProviderRequest], bool]


class HeldCall:
    """A call whose answer waits for the test, which simulates slowness without sleeping."""

    def __init__(self) -> None:
        self._arrived, self._released, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def arrived(self) -> None:
        """Wait until the request has arrived completely, and has been executed if it should be."""
        await self._arrived.wait()

    async def release(self) -> None:
        """Let the call continue, and wait until the provider has finished it, even if the client is gone."""
        self._released.set()
        await self._ended.wait()

    async def wait(self) -> None:
        """Wait for the release. Called by the server when the request has arrived."""
        self._arrived.set()
        await self._released.wait()

    def end(self) -> None:
        """Mark the call as finished. Called by the server."""
        self._ended.set()


class _Problem(msgspec.Struct):
    """Failure of the next matching call."""

    matching: Matching
    done: bool
    wire: Wire
    held: HeldCall | None = None
    stays: bool = False


class FakeProvider:
    """Answers requests with handlers, and spoils chosen answers.

      async with FakeProvider() as provider:
          provider.on("POST", "/invoices", make_invoice)
          provider.on("GET", "/invoices/{reference}", show_invoice)
          provider.next(ProviderFault.LOST_AFTER, matching=is_write)
          ... an adapter at provider.url ...
          [request] = provider.requests

    Each connection serves one request, so that a fault affects one call. Some clients (aiohttp) repeat an unanswered
    read by themselves: use `always` for faults of reads. At most 100 connections are open; a body over 1 MB
    (`body_limit`) is answered 413; the last 1000 requests are kept. A path without a handler is answered 404. An
    exception of a handler is answered 500 and raised again at the end of the block.
    """

    def __init__(self, *, body_limit: int = BODY_LIMIT) -> None:
        """`body_limit`: maximum bytes of a request's body; a larger one is answered 413."""
        self.requests: deque[ProviderRequest] = deque(maxlen=KEPT_REQUESTS)
        self._body_limit = body_limit
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = []
        self._problems: list[_Problem] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._kept: socket.socket | None = None
        """Reserves the port while the server is not listening."""
        self._port = 0
        self._raised: Exception | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}, {len(self.requests)} requests>"

    @property
    def url(self) -> str:
        """Base URL inside the block. The port stays the same while the server is away."""
        return f"http://127.0.0.1:{self._port}"

    def on(self, method: str, path: str, handler: Handler) -> None:
        """Answer matching requests with this handler; `{name}` matches one part of the path. Later handlers take
        precedence."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
        self._routes.insert(0, (method, re.compile(pattern), handler))

    def next(
        self,
        problem: ProviderFault | ProviderAnswer,
        *,
        matching: Matching = any_call,
        done: bool | None = None,
        retry_after: int | datetime | None = None,
        always: bool = False,
    ) -> None:
        """Let the next matching call meet this fault or get this answer. Further calls of `next` apply to the calls
        after it.

        `done` says whether the handler runs all the same (by default as the fault defines, and not for an answer).
        `retry_after` adds seconds or a date to the fault's answer (for BUSY and 5xx). `always`: spoil every matching
        call until `recover()`.
        """
        if isinstance(problem, ProviderFault) and problem in _DENIALS:
            problem = self.denial(_DENIALS[problem]) or problem
        wire: Wire = problem.wire if isinstance(problem, ProviderFault) else partial(_this, problem)
        likely = isinstance(problem, ProviderFault) and problem.done
        if retry_after is not None:
            wire = _with_header(wire, "Retry-After", _said(retry_after))
        self._problems.append(_Problem(matching, likely if done is None else done, wire, stays=always))

    def denial(self, status: int) -> ProviderAnswer | None:  # noqa: ARG002 - of those that override it
        """Return the provider's own answer to rejected credentials, for UNAUTHORIZED (401) and FORBIDDEN (403).
        Override it if the adapter distinguishes it from a proxy's answer by the body."""
        return None

    def hold_next(self, *, matching: Matching = any_call, done: bool = True) -> HeldCall:
        """Hold the next matching call until it is released. It is executed before (`done`) or after the release."""
        held = HeldCall()
        self._problems.append(_Problem(matching, done, whole, held=held))
        return held

    def recover(self) -> None:
        """Remove all faults, also faults that have not occurred yet."""
        self._problems.clear()

    def be_away(self) -> None:
        """Refuse all connections from now on, but keep the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._kept = _bound(self._port)

    async def come_back(self) -> None:
        """Accept connections again."""
        if self._server is None:
            place = self._kept or _bound(0)
            self._port, self._kept = place.getsockname()[1], None
            self._server = await asyncio.start_server(self._connected, sock=place, limit=_HEAD_LIMIT)

    async def __aenter__(self) -> Self:
        await self.come_back()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything. Raises: the exception of a handler, unless the block raised another."""
        self.be_away()
        if self._kept is not None:
            self._kept.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._raised is not None and error is None:
            raise self._raised

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTION_LIMIT:
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. A client that disconnects or does not speak HTTP gets no answer."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader, writer, self._body_limit)
        except TooLarge:
            writer.write(b"".join(whole(ProviderAnswer(status=413))))
            await writer.drain()
            return
        self.requests.append(request)
        problem = self._problem_of(request)
        held = problem.held
        try:
            answer = await self._handled(request) if problem.done else ProviderAnswer()
            if held is not None:
                await held.wait()
                if not problem.done:
                    answer = await self._handled(request)
            for piece in problem.wire(answer):
                if request.method == "HEAD":  # answered without a body, whatever the headers say
                    head, end, _ = piece.partition(b"\r\n\r\n")
                    writer.write(head + end)
                    break
                writer.write(piece)
                await writer.drain()
        finally:
            if held is not None:
                held.end()

    def _problem_of(self, request: ProviderRequest) -> _Problem:
        for problem in self._problems:
            if problem.matching(request):
                if not problem.stays:
                    self._problems.remove(problem)
                return problem
        return _Problem(any_call, True, whole)

    async def _handled(self, request: ProviderRequest) -> ProviderAnswer:
        for method, pattern, handler in self._routes:
            found = pattern.fullmatch(request.path)
            if method == request.method and found is not None:
                try:
                    said = handler(msgspec.structs.replace(request, parts=found.groupdict()))
                    return said if isinstance(said, ProviderAnswer) else await said
                except Exception as error:  # noqa: BLE001 - raised again at the end
                    self._raised = self._raised or error
                    return ProviderAnswer(status=500)
        return ProviderAnswer.of_json({"error": "not found"}, 404)


_DENIALS = {ProviderFault.UNAUTHORIZED: 401, ProviderFault.FORBIDDEN: 403}


def _bound(port: int) -> socket.socket:
    """Return a socket that is bound to the port but does not listen yet."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.setblocking(False)
    return made


def _this(answer: ProviderAnswer, _: ProviderAnswer) -> Iterator[bytes]:
    return whole(answer)


def _said(retry_after: int | datetime) -> str:
    if isinstance(retry_after, datetime):
        return format_datetime(retry_after, usegmt=True)
    return str(retry_after)


def _with_header(wire: Wire, name: str, value: str) -> Wire:
    def told(answer: ProviderAnswer) -> Iterator[bytes]:
        first, *more = wire(answer)
        yield first.replace(b"\r\n", f"\r\n{name}: {value}\r\n".encode("latin-1"), 1)
        yield from more

    return told
