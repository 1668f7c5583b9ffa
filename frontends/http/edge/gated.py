"""`GatedProtocol` begins new work only when the intake admits it, and answers 503 to work that the intake refuses
(docs/operations.md "Overload"). A refusal starts no task, calls no application, and is one write."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import httptools

from ....ports.clock import Ids
from .bounded import DRAIN, BoundedProtocol, named
from .edge import request_id_of
from .errors import envelope, help_header
from .headers import headers_of
from .intake import RETRY_AFTER, Intake
from .parse_budget import ParseBudget
from .whole_answers import answer_whole

_READS = frozenset({"GET", "HEAD", "OPTIONS"})

JUST = 0.25
"""Seconds after `wake` during which a request counts as received while the connection was not being read."""

_CODE = "PROVIDER_UNAVAILABLE"
_BODY = envelope(_CODE, "Too much work at the moment; nothing was done: try again")
_HEAD = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\nretry-after: %d\r\n"
) % (len(_BODY), RETRY_AFTER)


class GatedProtocol(BoundedProtocol):
    """HTTP protocol that begins GET, HEAD and OPTIONS at once, and every other request when the intake admits it."""

    __slots__ = ("_context", "_intake", "_refused", "_woken_at", "ended", "rests_since")

    def __init__(self, intake: Intake, budget: ParseBudget, ids: Ids, base_url: str, **given: Any) -> None:
        super().__init__(budget, ids, base_url, **given)
        self._intake = intake
        self._refused: Any = None
        """The request to refuse once its body is read."""
        self.rests_since = 0.0
        """Time of the last refusal on this connection, in seconds of the intake's clock."""
        self._woken_at = 0.0
        self._context = copy_context()
        self.ended: Callable[[], None] | None = None
        """Called last by `connection_lost`."""

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection as uvicorn does, then call `ended`."""
        super().connection_lost(exc)
        if self.ended is not None:
            self.ended()

    def _parse(self, data: bytes) -> None:
        """Parse the bytes. Drop the parser if they end with a complete request, so that an idle connection keeps none.
        The next bytes get a new one."""
        if self.parser is None and not self.transport.is_closing():
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as in uvicorn
        super()._parse(data)
        scope: Any = self.scope
        cycle: Any = self.cycle
        if scope is None or (cycle is not None and scope is cycle.scope and not cycle.more_body):
            nothing: Any = None
            self.parser = nothing

    def on_response_complete(self) -> None:
        """End the request as uvicorn does. If the connection is then idle, drop the request."""
        super().on_response_complete()
        if self.idle_since is not None:
            self._forget(self.cycle)

    def _forget(self, cycle: Any) -> None:
        """Drop cycle, scope and headers of this request, unless another head has begun or its body is incomplete."""
        if self.scope is cycle.scope and not cycle.more_body:
            nothing: Any = None
            self.cycle = self.scope = self.headers = nothing

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if cycle.scope["method"] in _READS:
            self.begin(cycle, app)
        else:
            self._intake.take(self, cycle, app)

    def begin(self, cycle: Any, app: Any) -> "asyncio.Task[None]":
        """Start the task in which the application answers this request, and return the task.

        It runs in the context of the connection: `begin` may be called at the end of another request, whose context
        this one must neither see nor keep alive.
        """
        task = self.loop.create_task(cycle.run_asgi(partial(answer_whole, app, cycle)), context=self._context.copy())
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        return task

    def refuse(self, cycle: Any) -> None:
        """Answer 503 once the rest of the body is read, and drop the body. A client that waits for 100 Continue is
        answered at once and its connection closed; so is a client that sends more than `DRAIN` bytes."""
        cycle.body.clear()
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = False  # it is unknown whether the body will come
            self._answer(cycle)
        elif cycle.more_body:
            self._refused = cycle
            self.flow.resume_reading()
        else:
            self._answer(cycle)

    def wake(self) -> None:
        """Resume reading a connection that `_answer` paused after a refusal."""
        self._woken_at = self._intake.now()
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def heard_since(self, now: float) -> float:
        """Return the earliest time at which a request read at `now` may have arrived, in seconds of the intake's clock:
        the time of the last refusal if it is read within `JUST` of `wake`, else `now`."""
        return self.rests_since if now - self._woken_at < JUST else now

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of a body as uvicorn does. For a refused request, count it and drop it."""
        if self._refused is None:
            super().on_body(body)
        else:
            self.count_body(len(body))
            if self.body_received > DRAIN:
                refused, self._refused = self._refused, None
                refused.keep_alive = False
                self._answer(refused)

    def on_message_complete(self) -> None:
        """End the reading of a request as uvicorn does. Answer a refused request now."""
        super().on_message_complete()
        refused, self._refused = self._refused, None
        if refused is not None:
            self._answer(refused)

    def _answer(self, cycle: Any) -> None:
        """Write the 503 and end the request as uvicorn does, which begins the next pipelined request. Without a next
        request, stop reading the connection until the intake calls `wake`. The connection closes if the request asked
        for that or the server is stopping."""
        cycle.response_started = cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        request_id = request_id_of(headers_of(cycle.scope).get(b"x-request-id"), self._ids)
        ours = dict(cycle.default_headers)  # the date; from a stopping server also `Connection: close`
        ours.update([help_header(self._base_url, _CODE)])
        if not cycle.keep_alive:
            ours[b"connection"] = b"close"
        lines = b"".join([b"%s: %s\r\n" % each for each in ours.items()])
        self.transport.write(b"%s%s%s\r\n%s" % (_HEAD, lines, named(request_id), _BODY))
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
