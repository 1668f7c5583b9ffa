"""The server's protocol, whose new work goes through the intake, and which refuses some of it by itself: without a
task, without the application, in one write."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import httptools

from ....ports.clock import Ids
from .bounded import BoundedProtocol
from .edge import request_id_of
from .errors import envelope
from .headers import headers_of
from .intake import RETRY_AFTER, Intake

_READS = frozenset({"GET", "HEAD", "OPTIONS"})

JUST = 0.25
"""Seconds after a connection is read on in which what it says may have been waiting."""

_BODY = envelope("PROVIDER_UNAVAILABLE", "Too much work at the moment; nothing was done: try again")
_HEAD = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\nretry-after: %d\r\n"
) % (len(_BODY), RETRY_AFTER)


class GatedProtocol(BoundedProtocol):
    """What reads is begun at once; all else when the intake says so."""

    __slots__ = ("_context", "_ids", "_intake", "_refused", "_woken_at", "ended", "rests_since")

    def __init__(self, intake: Intake, ids: Ids, **given: Any) -> None:
        super().__init__(**given)
        self._intake = intake
        self._ids = ids
        self._refused: Any = None
        """The request that will be refused once its body is read."""
        self.rests_since = 0.0
        """When it was last refused something."""
        self._woken_at = 0.0
        self._context = copy_context()
        self.ended: Callable[[], None] | None = None
        """Called when the connection has ended."""

    def connection_lost(self, exc: Exception | None) -> None:
        """As the server's, and tell of it."""
        super().connection_lost(exc)
        if self.ended is not None:
            self.ended()

    def _parse(self, data: bytes) -> None:
        """Parse it; who has begun to say nothing more behind a whole request needs no parser until it speaks again."""
        if self.parser is None and not self.transport.is_closing():
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the server's
        super()._parse(data)
        scope: Any = self.scope
        cycle: Any = self.cycle
        if scope is None or (cycle is not None and scope is cycle.scope and not cycle.more_body):
            nothing: Any = None
            self.parser = nothing

    def on_response_complete(self) -> None:
        """As the server's; of who is idle then, nothing is kept that belongs to a request."""
        super().on_response_complete()
        if self.idle_since is not None:
            self._forget(self.cycle)

    def _forget(self, cycle: Any) -> None:
        """Keep nothing of what was asked, unless the head of another has begun, or its body is still to come."""
        if self.scope is cycle.scope and not cycle.more_body:
            nothing: Any = None
            self.cycle = self.scope = self.headers = nothing

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if cycle.scope["method"] in _READS:
            self.begin(cycle, app)
        else:
            self._intake.take(self, cycle, app)

    def begin(self, cycle: Any, app: Any) -> "asyncio.Task[None]":
        """Let the application answer this request, in the context of its connection: what calls this may be the end of
        another request, whose context must neither be known to this one nor be kept for it."""
        task = self.loop.create_task(cycle.run_asgi(app), context=self._context.copy())
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        return task

    def refuse(self, cycle: Any) -> None:
        """Answer 503 as soon as the rest of the request is read, which is thrown away."""
        cycle.body.clear()
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = False  # whether its body comes is open
            self._answer(cycle)
        elif cycle.more_body:
            self._refused = cycle
            self.flow.resume_reading()
        else:
            self._answer(cycle)

    def wake(self) -> None:
        """Read on what was left unread."""
        self._woken_at = self._intake.now()
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def heard_since(self, now: float) -> float:
        """When a request that is read now may have come: while this connection was left unread, or just now."""
        return self.rests_since if now - self._woken_at < JUST else now

    def on_body(self, body: bytes) -> None:
        """As the server's."""
        if self._refused is None:
            super().on_body(body)
        else:
            self._unproven = 0
            self.body_received += len(body)

    def on_message_complete(self) -> None:
        """As the server's."""
        super().on_message_complete()
        refused, self._refused = self._refused, None
        if refused is not None:
            self._answer(refused)

    def _answer(self, cycle: Any) -> None:
        cycle.response_started = cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        request_id = request_id_of(headers_of(cycle.scope).get(b"x-request-id"), self._ids).encode()
        ours = dict(cycle.default_headers)  # the date; of a server that leaves, `Connection: close`
        if not cycle.keep_alive:
            ours[b"connection"] = b"close"
        lines = b"".join([b"%s: %s\r\n" % each for each in ours.items()])
        self.transport.write(b"%s%sx-request-id: %s\r\n\r\n%s" % (_HEAD, lines, request_id, _BODY))
        if b"connection" in ours:
            self.transport.close()
        if not self.transport.is_closing():
            self._forget(cycle)
        cycle.scope = None
        super().on_response_complete()
        if not self.transport.is_closing() and not self.pipeline:
            self.rests_since = self._intake.now()
            self.flow.pause_reading()
            self._intake.rest(self)
