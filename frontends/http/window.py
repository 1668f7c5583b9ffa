"""The payer window over HTTP: the page, its live status, and in test mode the panel that plays the payer
(SPEC "Payments" creation rules 3 and 9, DECISIONS 2 "Payer window").

There are no cookies and no sessions: who has the link is the payer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar import Request, Response, Router, get, post, route
from litestar.params import FromPath
from litestar.response import Stream

from ...core.domain.errors import Refusal
from ...core.domain.payer_window import FINAL_FACES, Face
from ...core.domain.payments import FailureReason
from ...core.usecases import payer_window
from ...core.usecases.payer_window import Act, Standing
from ...ports.bundle import Ports
from ...ports.clock import Clock
from ...ports.faults import Fault, Unavailable
from .answers import answer
from .window_page import WindowPage, millis, pick_language
from .window_texts import TEXTS

log = logging.getLogger("cambist.window")

_HTML = "text/html"

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
"""On every answer of the window but assets. The link is the key to the page, hence no referrer and no store."""

HEARTBEAT = 15.0
"""Seconds of silence after which a stream says that it is alive, so that no proxy closes it."""
STREAM_LIFETIME = 1800.0
"""Seconds after which a stream ends; the page opens a new one."""
RETRY_MILLIS = 3000
"""How long a page waits before it opens a broken stream again."""
_SLOW = {Face.EXPIRED: 5.0, Face.REVIEW: 5.0}
"""Seconds between two looks at payments whose news may take hours; one second for all others."""
CLOSED = {"status": None, "face": "closed"}

Asked = Request[Any, Any, Any]


class WindowStreams:
    """The open event streams of one process, so that they can be counted and ended.

    A web server that is told to stop waits for its answers to finish, and only then ends the application's lifespan;
    an event stream would hold it until its deadline. So whoever stops the server calls `end()` first.
    """

    def __init__(self, limit: int = 1000) -> None:
        self.limit = limit
        """Above it pages poll instead: an open stream costs a read a second."""
        self.open = 0
        self._ended = asyncio.Event()

    @property
    def full(self) -> bool:
        return self._ended.is_set() or self.open >= self.limit

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


def window_router(ports: Ports, streams: WindowStreams | None = None) -> Router:
    """Everything under `/p`. It brings its own templates and assets and needs nothing from the application."""
    base = urlsplit(ports.places.pay_url).path.rstrip("/")
    window = _Window(ports, WindowPage(f"{base}/p"), streams or WindowStreams())

    @route("/{payment_id:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show(request: Asked, payment_id: FromPath[str]) -> Response[str]:
        return await window.show(request, payment_id)

    @get("/{payment_id:str}/state", include_in_schema=False)
    async def state(payment_id: FromPath[str]) -> Response[bytes]:
        return await window.state(payment_id)

    @get("/{payment_id:str}/events", include_in_schema=False)
    async def events(request: Asked, payment_id: FromPath[str]) -> Response[Any]:
        return await window.events(request, payment_id)

    @post("/{payment_id:str}/simulate", include_in_schema=False)
    async def simulate(request: Asked, payment_id: FromPath[str]) -> Response[str]:
        return await window.simulate(request, payment_id)

    @route("/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return window.asset(request, name)

    # Functions and not methods of `window`: the framework copies handlers deeply, and a method takes its object along.
    def on_fault(request: Asked, fault: Exception) -> Response[str]:
        return window.on_fault(request, fault)

    def on_anything(request: Asked, error: Exception) -> Response[str]:
        return window.on_anything(request, error)

    return Router(
        "/p",
        route_handlers=[show, state, events, simulate, asset],
        # Unavailable by its own name, because the application's handler of it would be found before one of Fault.
        exception_handlers={Refusal: on_fault, Fault: on_fault, Unavailable: on_fault, Exception: on_anything},
    )


class _Window:
    def __init__(self, ports: Ports, page: WindowPage, streams: WindowStreams) -> None:
        self._ports = ports
        self._page = page
        self._streams = streams

    async def show(self, request: Asked, payment_id: str) -> Response[str]:
        view = await payer_window.view(self._ports, payment_id)
        if view is None:
            return self._notice(request, "closed", 404)
        language = language_of(request)
        return html_page(self._page.window(view, language, wished_language(request)), language)

    async def state(self, payment_id: str) -> Response[bytes]:
        """For pages that cannot keep a stream open."""
        standing = await payer_window.standing(self._ports, payment_id)
        response = answer(CLOSED, status=404) if standing is None else answer(_wire(standing))
        response.headers.update(HEADERS)
        return response

    async def events(self, request: Asked, payment_id: str) -> Response[Any]:
        standing = await payer_window.standing(self._ports, payment_id)
        if standing is None:
            return self._notice(request, "closed", 404)
        if self._streams.full:
            return self._notice(request, "unavailable", 503)
        return Stream(
            event_stream(self._ports, self._streams, payment_id, standing),
            media_type="text/event-stream",
            headers={**HEADERS, "X-Accel-Buffering": "no"},
        )

    async def simulate(self, request: Asked, payment_id: str) -> Response[str]:
        """Play the payer, and send the browser back to the page."""
        view = await payer_window.view(self._ports, payment_id)
        if view is None or not view.simulated:
            return self._notice(request, "closed", 404)
        if is_foreign(request):
            return self._notice(request, "rejected", 403)
        form = await request.form()
        try:
            act = Act(form.get("act", ""))
            reason = FailureReason(form.get("reason", FailureReason.UNKNOWN))
        except ValueError:
            return self._notice(request, "rejected", 400)
        if not await payer_window.play(self._ports, payment_id, act, reason):
            return self._notice(request, "closed", 404)
        back = self._page.link(payment_id, wished_language(request))
        return Response("", status_code=303, media_type=_HTML, headers={**HEADERS, "Location": back})

    def asset(self, request: Asked, name: str) -> Response[bytes]:
        """A file of the page. Its link carries its hash, so that browsers may keep it for a year."""
        asset = self._page.assets.get(name)
        if asset is None:
            return Response(b"", status_code=404, media_type="text/plain", headers={"Cache-Control": "no-store"})
        named = request.query_params.get("v") == asset.tag
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable" if named else "no-cache",
            "ETag": f'"{asset.tag}"',
            "X-Content-Type-Options": "nosniff",
        }
        if asset.tag in request.headers.get("if-none-match", ""):
            return Response(b"", status_code=304, headers=headers)
        return Response(asset.body, media_type=asset.media_type, headers=headers)

    def on_fault(self, request: Asked, fault: Exception) -> Response[str]:
        """The storage or the bank does not answer for now."""
        log.warning("the payer window is unavailable: %s", fault)
        return self._notice(request, "unavailable", 503)

    def on_anything(self, request: Asked, error: Exception) -> Response[str]:
        """Our fault: nothing of it goes out, all of it goes to the log."""
        log.error("unhandled error in the payer window", exc_info=error)
        return self._notice(request, "unavailable", 500)

    def _notice(self, request: Asked, kind: str, status: int) -> Response[str]:
        again = 10 if status >= 500 and request.method in ("GET", "HEAD") else None
        language = language_of(request)
        # A page that answers a POST cannot be asked for again under its own address.
        payment_id = request.path_params.get("payment_id", "") if request.method == "POST" else ""
        here = self._page.link(payment_id, None) if payment_id else ""
        response = html_page(self._page.notice(kind, language, here=here, refresh=again), language, status)
        if status == 503:
            response.headers["Retry-After"] = "5"
        return response


class Sight(msgspec.Struct, frozen=True):
    """What a page is told at one moment. Pages are told again when `key` changes."""

    wire: Mapping[str, Any]
    key: tuple[Any, ...]
    is_final: bool
    pause: float
    """Seconds until the next look."""


def event_stream(
    ports: Ports, streams: WindowStreams, payment_id: str, standing: Standing
) -> AsyncGenerator[bytes, None]:
    """Server-sent events of a payment: the standing at once, then whenever it changes, until it is final or the window
    closes."""

    async def read() -> Sight | None:
        present = await payer_window.standing(ports, payment_id)
        return None if present is None else _sight(present)

    return follow(ports.clock, streams, _sight(standing), read)


async def follow(
    clock: Clock, streams: WindowStreams, seen: Sight, read: Callable[[], Awaitable[Sight | None]]
) -> AsyncGenerator[bytes, None]:
    """Server-sent events of whatever `read` looks at. It looks by the clock, and keeps still while the storage is
    away."""
    opened = spoken = clock.monotonic()
    streams.open += 1
    try:
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
    finally:
        streams.open -= 1


def _sight(standing: Standing) -> Sight:
    return Sight(
        wire=_wire(standing),
        key=(standing.face, standing.deadline),
        is_final=standing.face in FINAL_FACES,
        pause=_SLOW.get(standing.face, 1.0),
    )


def _wire(standing: Standing) -> dict[str, Any]:
    """What the page's script reads; times are Unix milliseconds of the service's clock."""
    return {
        "status": standing.status.value,
        "face": standing.face.value,
        "now": millis(standing.now),
        "deadline": millis(standing.deadline),
    }


def _frame(data: Mapping[str, Any]) -> bytes:
    return b"event: state\ndata: " + msgspec.json.encode(data) + b"\n\n"


def html_page(body: str, language: str, status: int = 200) -> Response[str]:
    headers = {**HEADERS, "Content-Language": language, "Vary": "Accept-Language"}
    return Response(body, status_code=status, media_type=_HTML, headers=headers)


def wished_language(request: Asked) -> str | None:
    wish = request.query_params.get("lang")
    return wish if wish in TEXTS else None


def language_of(request: Asked) -> str:
    return pick_language(wished_language(request), request.headers.get("accept-language", ""))


def is_foreign(request: Asked) -> bool:
    """Whether a browser says that another site sent this form.

    `Sec-Fetch-Site` decides where it is sent. Over plain http it is not, and `Origin` is `null` there, because our
    own page asks for no referrer: that is let through, since nobody without the link can name the payment at all.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None or origin == "null":
        return False
    return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
