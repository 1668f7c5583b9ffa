"""A provider's HTTP server on a port of this machine, which answers as its author says and fails when it is told to."""

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
    """A call whose answer waits for the test: what is slow, without any sleep."""

    def __init__(self) -> None:
        self._arrived, self._released, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def arrived(self) -> None:
        """Return once the request is there whole, and carried out if it was to be."""
        await self._arrived.wait()

    async def release(self) -> None:
        """Let it go on, and return when it has come to its end at the provider, whether anybody still listens or
        not."""
        self._released.set()
        await self._ended.wait()

    async def wait(self) -> None:
        """The server's side: the request is there, and goes on when it is released."""
        self._arrived.set()
        await self._released.wait()

    def end(self) -> None:
        """The server's side: nothing more happens."""
        self._ended.set()


class _Trouble(msgspec.Struct):
    """What the next call that matches meets."""

    matching: Matching
    done: bool
    wire: Wire
    held: HeldCall | None = None
    stays: bool = False


class FakeProvider:
    """Answers requests by handlers, and spoils the answers that it was told to spoil.

        async with FakeProvider() as provider:
            provider.on("POST", "/invoices", make_invoice)
            provider.on("GET", "/invoices/{reference}", show_invoice)
            provider.next(ProviderFault.LOST_AFTER, matching=is_write)
            ... an adapter at provider.url ...
            [request] = provider.requests

    Each connection serves one request, so that a fault meets one call. Some clients (aiohttp) repeat a read that found
    no answer by themselves: spoil reads by `always`. At most 100 connections are open; a body over 1 MB (`body_limit`)
    is answered 413; the last 1000 requests are kept. A path without a handler is 404. What a handler raises is answered
    500, and raised again at the end of the block.
    """

    def __init__(self, *, body_limit: int = BODY_LIMIT) -> None:
        """`body_limit`: bytes of a request's body; a larger one is answered 413."""
        self.requests: deque[ProviderRequest] = deque(maxlen=KEPT_REQUESTS)
        self._body_limit = body_limit
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = []
        self._troubles: list[_Trouble] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._kept: socket.socket | None = None
        """Has the port while nobody listens there."""
        self._port = 0
        self._raised: Exception | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}, {len(self.requests)} requests>"

    @property
    def url(self) -> str:
        """Where it is, inside the block; the port stays the same while it is away."""
        return f"http://127.0.0.1:{self._port}"

    def on(self, method: str, path: str, handler: Handler) -> None:
        """Answer such requests by this handler; `{name}` in the path is one part of it. A later handler goes before
        an earlier one."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
        self._routes.insert(0, (method, re.compile(pattern), handler))

    def next(
        self,
        trouble: ProviderFault | ProviderAnswer,
        *,
        matching: Matching = any_call,
        done: bool | None = None,
        retry_after: int | datetime | None = None,
        always: bool = False,
    ) -> None:
        """The next call that matches meets this fault, or gets this answer; each later word is for the call after.

        `done` says whether the handler runs all the same (else by the fault; of an answer: no); `retry_after` goes
        with the fault's status as seconds or a date (for BUSY and 5xx); `always`: every such call from now on, until
        `recover()`.
        """
        if isinstance(trouble, ProviderFault) and trouble in _DENIALS:
            trouble = self.denial(_DENIALS[trouble]) or trouble
        wire: Wire = trouble.wire if isinstance(trouble, ProviderFault) else partial(_this, trouble)
        likely = isinstance(trouble, ProviderFault) and trouble.done
        if retry_after is not None:
            wire = _with_header(wire, "Retry-After", _said(retry_after))
        self._troubles.append(_Trouble(matching, likely if done is None else done, wire, stays=always))

    def denial(self, status: int) -> ProviderAnswer | None:  # noqa: ARG002 - of those that override it
        """Return what the provider itself answers to credentials that it does not take, as UNAUTHORIZED (401) and
        FORBIDDEN (403) are to look. Override it where the adapter tells this from a proxy's answer by the body."""
        return None

    def hold_next(self, *, matching: Matching = any_call, done: bool = True) -> HeldCall:
        """The next call that matches waits until it is released: carried out before (`done`) or after it."""
        held = HeldCall()
        self._troubles.append(_Trouble(matching, done, whole, held=held))
        return held

    def recover(self) -> None:
        """Nothing goes wrong any more, of what was told and has not happened yet, too."""
        self._troubles.clear()

    def be_away(self) -> None:
        """No connection can be made from now on; the port is kept."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._kept = _bound(self._port)

    async def come_back(self) -> None:
        """Connections can be made again."""
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
        """Nothing stays open. Raises: what a handler raised, where nothing else was."""
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
        """A client that goes away, or speaks no HTTP, gets nothing."""
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
        trouble = self._trouble_of(request)
        held = trouble.held
        try:
            answer = await self._handled(request) if trouble.done else ProviderAnswer()
            if held is not None:
                await held.wait()
                if not trouble.done:
                    answer = await self._handled(request)
            for piece in trouble.wire(answer):
                if request.method == "HEAD":  # which is answered without a body, whatever the head says
                    head, end, _ = piece.partition(b"\r\n\r\n")
                    writer.write(head + end)
                    break
                writer.write(piece)
                await writer.drain()
        finally:
            if held is not None:
                held.end()

    def _trouble_of(self, request: ProviderRequest) -> _Trouble:
        for trouble in self._troubles:
            if trouble.matching(request):
                if not trouble.stays:
                    self._troubles.remove(trouble)
                return trouble
        return _Trouble(any_call, True, whole)

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
    """A socket that has the port and takes no connections yet."""
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
