"""Counts, traces and logs requests at the HTTP edge."""

import logging
import re
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from litestar.types import HTTPScope

from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.request_log import ID_LENGTH
from ...core.usecases.accounts.key_uses import KeyUses
from ...core.usecases.accounts.limit_hits import HitCounter
from ...core.usecases.accounts.request_log import Noted, RequestLog
from ...core.usecases.accounts.written_bytes import ByteCounter
from ...ports.clock import Clock
from .telemetry import Telemetry
from .tracing import Tracing, ended

if TYPE_CHECKING:
    from opentelemetry.trace import Span

NONE = "none"
"""Label for a missing route or a missing answer."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TYPE = re.compile(r":[a-z]+\}")

log = logging.getLogger("cambist.access")


class RequestWatch:
    """Watches the requests of a process. `access_log`: `off`, `errors` (answered 5xx, or not at all) or `all`.

    Rate-limit hits are counted even without telemetry: in `hits`, by default in the telemetry's own counter. `uses`
    records used keys, and `requests` the requests by declared path. `written` counts and bounds the bytes that accounts
    write.
    """

    def __init__(
        self,
        clock: Clock,
        telemetry: Telemetry | None = None,
        access_log: str = "off",
        hits: HitCounter | None = None,
        uses: KeyUses | None = None,
        requests: RequestLog | None = None,
        written: ByteCounter | None = None,
    ) -> None:
        self.clock = clock
        self.telemetry = telemetry
        self.hits = hits or (HitCounter() if telemetry is None else telemetry.counters.limit_hits)
        self.uses = uses or KeyUses()
        self.requests = requests or RequestLog()
        self.written = written or ByteCounter()
        if telemetry is not None:
            telemetry.counters.request_log = self.requests
        self._every = access_log == "all"
        self._failed = access_log != "off"
        self._routes: dict[str, str] = {}

    def begin(self, scope: HTTPScope, headers: dict[bytes, bytes], request_id: str = "") -> "Asked":
        """Return a context manager for an incoming request."""
        return Asked(self, scope, headers, request_id)

    def route_of(self, scope: HTTPScope) -> str:
        """Return the declared route without parameter types: `/api/v1/payments/{payment_id}`. The path itself may
        contain a token, and clients could send any number of different ones."""
        template: str = scope.get("path_template") or NONE
        route = self._routes.get(template)
        if route is None:
            route = self._routes[template] = _TYPE.sub("}", template)
        return route

    def writes(self, status: int | None) -> bool:
        """Return whether a request with this status gets a log line."""
        return self._every or (self._failed and (status is None or status >= 500))


class Asked(msgspec.Struct, eq=False):
    """One request in progress."""

    _watch: RequestWatch
    _scope: HTTPScope
    _headers: dict[bytes, bytes]
    _request_id: str
    _begun: float = 0.0
    _status: int | None = None
    _answered: float = 0.0
    _span: "_RequestSpan | None" = None

    __repr__ = object.__repr__  # the struct's own repr would show the headers with the secret

    def __enter__(self) -> Self:
        telemetry = self._watch.telemetry
        if telemetry is not None:
            telemetry.counters.requests_in_progress += 1
            if telemetry.tracing is not None:
                self._span = _RequestSpan(telemetry.tracing, method_of(self._scope), self._headers)
        self._begun = self._watch.clock.monotonic()
        return self

    def answers(self, status: int) -> None:
        """Record the status when the answer starts."""
        self._status = status
        self._answered = self._watch.clock.monotonic()

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        watch = self._watch
        caller: Caller | None = self._scope.get("auth")
        if caller is not None:
            self._note(watch, caller)
        writes = watch.writes(self._status)
        if watch.telemetry is None and not writes:
            return
        route = watch.route_of(self._scope)
        if watch.telemetry is not None:
            self._count(watch.telemetry, route)
        if self._span is not None:
            self._span.end(route, self._status)
        if writes:
            self._write(route)

    def _note(self, watch: RequestWatch, caller: Caller) -> None:
        """Record the request for the caller's request log. Every request passes here, so the values are stored
        unprocessed."""
        watch.uses.note(caller.key_id)
        if self._status is not None:
            scope: Any = self._scope
            named = scope.get("path_values", ())[:1]
            watch.requests.note(
                Noted(
                    caller.account.id,
                    caller.mode,
                    caller.key_id,
                    scope["method"],
                    scope.get("path_template") or NONE,
                    named if named and len(named[0]) <= ID_LENGTH else (),
                    self._status,
                    scope.get("refusal_code"),
                    self._begun,
                    self._answered,
                    self._request_id,
                )
            )

    def _count(self, telemetry: Telemetry, route: str) -> None:
        counters = telemetry.counters
        counters.requests_in_progress -= 1
        if self._status is None:
            counters.requests.add(method_of(self._scope), route, NONE)
            return
        counters.requests.add(method_of(self._scope), route, str(self._status))
        counters.request_seconds.add(self._answered - self._begun, route)

    def _write(self, route: str) -> None:
        method = method_of(self._scope)
        caller = self._scope.get("auth")
        line = {
            "method": method,
            "route": route,
            "status": self._status,
            "took_ms": round((self._watch.clock.monotonic() - self._begun) * 1000, 1),
        }
        if caller is not None:
            line |= {"account_id": caller.account_id, "mode": str(caller.mode)}
        log.info("%s %s %s", method, route, self._status or "was not answered", extra=line)


class _RequestSpan:
    """Span of a request, below the one that its `traceparent` names."""

    def __init__(self, tracing: Tracing, method: str, headers: dict[bytes, bytes]) -> None:
        carrier = {
            name: headers[name.encode()].decode("latin-1")
            for name in ("traceparent", "tracestate")
            if name.encode() in headers
        }
        self._method = method
        self._open: AbstractContextManager[Span] = tracing.span(
            method, "server", {"http.request.method": method}, carrier
        )
        self._span = self._open.__enter__()

    def end(self, route: str, status: int | None) -> None:
        if route != NONE:
            self._span.update_name(f"{self._method} {route}")
        failed = status is None or status >= 500
        attributes = {"http.route": route, "http.response.status_code": status}
        ended(self._span, attributes, str(status or "not answered") if failed else None)
        self._open.__exit__(None, None, None)


def method_of(scope: HTTPScope) -> str:
    """Return the method if it is a known one, otherwise `other`."""
    method = scope["method"]
    return method if method in _METHODS else "other"
