"""`Edge` refuses requests before routing and adds headers to every answer (docs/concepts.md "What is refused first").

It wraps the framework, because the framework runs its middleware neither for an unknown path nor for a wrong method,
and reads the body only after its guards.
"""

import logging
import re
from collections.abc import Sequence
from typing import Final

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPRequestEvent, HTTPScope, Message, Receive, Scope, Send

from ....core.domain.accounts.rate_limit import Header, Network, Verdict, api_path, headers, normalise_path
from ....core.domain.errors import Refusal
from ....core.domain.notifications import is_notification
from ....core.usecases.accounts.rate_limits import admit
from ....ports.bundle import Ports
from ....ports.clock import Ids
from ...layers.guard.asker import request_asks
from ...telemetry.logs import request_context
from ...telemetry.requests import RequestWatch
from .errors import help_header, internal_error, refused
from .headers import headers_of
from .origin import address_of

BODY_LIMIT = 102_400
"""Largest body, in bytes (docs/limits.md "Sizes")."""
UPLOADS = "/uploads/"
"""Path prefix of uploads. Under it uploads.py limits the body of a PUT to the granted size."""
_PRIVATE: Final[list[Header]] = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
"""Headers of every answer under /api/v1. Keys are sent in our own headers, so a cache would not know that an answer is
private."""
_HTTP: Final = ScopeType.HTTP
_REFUSED: Final = 400
"""Lowest status of a refusal."""

log = logging.getLogger("cambist.http")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_HOST = re.compile(rb"[0-9A-Za-z!$&'()*+,;=\-._~:\[\]%]*\Z")
"""Host and port (RFC 9110, 7.2). The framework accepts the same characters, but not every request reaches it."""


class TooLarge(Exception):
    """The body is over the limit."""


class Edge:
    """The outermost ASGI application. In this order it normalises the path, sets the request id, counts the request,
    checks Host, and bounds the body. It adds X-Request-Id and the rate limit headers to every answer, and a link to the
    error's documentation to refusals."""

    def __init__(
        self, app: ASGIApp, ports: Ports, trusted_proxies: Sequence[Network], watch: RequestWatch | None = None
    ) -> None:
        """Create the edge. `trusted_proxies` are networks whose X-Forwarded-For names the client's address. `watch`
        measures and logs each request."""
        self._app = app
        self._ports = ports
        self._trusted = frozenset(trusted_proxies)
        self._watch = watch or RequestWatch(ports.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it to the application. Log an exception of the application and answer 500; raise
        it again if an answer has begun."""
        if scope["type"] != _HTTP:
            await self._app(scope, receive, send)
            return
        path = normalise_path(scope["path"])
        if path != scope["path"]:
            scope["path"] = path
            scope["raw_path"] = path.encode("utf-8", "surrogatepass")
        known = headers_of(scope)
        request_id = request_id_of(known.get(b"x-request-id"), self._ports.ids)
        extra: list[Header] = [(b"x-request-id", request_id.encode())]
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                asked.answers(message["status"])
                if message["status"] >= _REFUSED and (code := scope.get("refusal_code")) is not None:
                    extra.append(help_header(self._ports.urls.base_url, str(code)))
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        with request_context(request_id), self._watch.begin(scope, known, request_id) as asked:
            relative = api_path(path)
            if relative is not None:
                extra += _PRIVATE
            # Provider notifications have their own limit (notifications.py).
            if relative is not None and not is_notification(scope["method"], path):
                verdict = await self._count(scope, relative, known)
                extra += headers(verdict)
                if verdict.over:
                    self._watch.hits.count(verdict)
                    await refused(Refusal("RATE_LIMIT_EXCEEDED", verdict.limit.message))(
                        scope, receive, send_with_headers
                    )
                    return
            if not _HOST.match(known.get(b"host", b"")):
                await refused(Refusal("VALIDATION_ERROR", "The header Host is malformed"))(
                    scope, receive, send_with_headers
                )
                return
            try:
                if not (_is_short(known) or _is_upload(scope)):
                    receive = await _bounded(known, receive)
            except TooLarge:
                await refused(Refusal("PAYLOAD_TOO_LARGE", "The body is over 100 KB"))(
                    scope, receive, send_with_headers
                )
                return
            try:
                # A server may handle many requests in one task, so reset the test clock after each request.
                with self._ports.clock.entered(None), request_asks():
                    await self._app(scope, receive, send_with_headers)
            except Exception:
                log.exception("an error came through the application")
                if started:
                    raise
                await refused(internal_error())(scope, receive, send_with_headers)

    async def _count(self, scope: HTTPScope, relative: str, known: dict[bytes, bytes]) -> Verdict:
        """Count a request against its limits (docs/limits.md "Requests"). `relative` is its path below /api/v1."""
        address = address_of(scope, known, self._trusted)
        key = known.get(b"x-api-key")
        return await admit(
            self._ports, scope["method"], relative, address, None if key is None else key.decode("latin-1")
        )


def request_id_of(given: bytes | None, ids: Ids) -> str:
    """Return the caller's X-Request-Id if it consists of 1 to 128 allowed characters; otherwise a new UUID."""
    text = (given or b"").decode("latin-1")
    return text if _REQUEST_ID.match(text) else ids.uuid()


def _is_upload(scope: HTTPScope) -> bool:
    """Whether this is an upload to a granted address. uploads.py bounds its body and never holds it in memory."""
    return scope["method"] == "PUT" and scope["path"].startswith(UPLOADS)


def _is_short(known: dict[bytes, bytes]) -> bool:
    """Whether Content-Length is within `BODY_LIMIT`. The server cuts a body off at that length."""
    length = known.get(b"content-length")
    return length is not None and _LENGTH.match(length) is not None and int(length) <= BODY_LIMIT


async def _bounded(known: dict[bytes, bytes], receive: Receive) -> Receive:
    """Return a `receive` that yields at most `BODY_LIMIT` bytes. Raises: TooLarge.

    Callers pass only bodies that are not `_is_short`, so any Content-Length is too long or not a number. A chunked body
    is read here as a whole, because 413 comes before 401.
    """
    if b"content-length" in known:
        raise TooLarge
    if b"transfer-encoding" not in known:
        return receive
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message["body"])
        size += len(message["body"])
        if size > BODY_LIMIT:
            raise TooLarge
        if not message.get("more_body"):
            break
    whole: HTTPRequestEvent = {"type": "http.request", "body": b"".join(parts), "more_body": False}
    waiting = [whole]

    async def replay() -> HTTPRequestEvent:
        return waiting.pop() if waiting else await receive()  # type: ignore[return-value]  # then it is a disconnect

    return replay
