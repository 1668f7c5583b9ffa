"""The payer window over HTTP: the page, its live status, and in test mode the panel that plays the payer
(docs/window.md "Back to the shop", "How long it is there").

There are no cookies and no sessions: who has the link is the payer.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import urlsplit

from litestar import Response, get, post, route
from litestar.params import FromPath
from litestar.response import Stream

from ....core.domain.accounts.quota import Network
from ....core.domain.payer.window import FINAL_FACES, Face
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.payer import window as payer_window
from ....core.usecases.payer.window import Act, Standing
from ....ports.bundle import Ports
from ..door.answers import answer
from ..door.origin import origin
from ..door.routing import Router
from ..door.streams import CLOSED, Seat, Sight, WindowStreams, follow
from .page_limit import PageLimit
from .pages import HEADERS, HTML, Asked, Notices, html_page, is_foreign, language_of, wished_language
from .window_page import WindowPage, millis

_SLOW = {Face.EXPIRED: 5.0, Face.REVIEW: 5.0}
"""Seconds between two looks at payments whose news may take hours; one second for all others."""


def window_router(
    ports: Ports,
    streams: WindowStreams | None = None,
    trusted_proxies: Sequence[Network] = (),
    limit: PageLimit | None = None,
) -> Router:
    """Everything under `/p`. It brings its own templates and assets and needs nothing from the application."""
    base = urlsplit(ports.places.pay_url).path.rstrip("/")
    window = _Window(ports, WindowPage(f"{base}/p"), streams or WindowStreams(), trusted_proxies)

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

    return Router(
        "/p",
        route_handlers=[show, state, events, simulate, asset],
        exception_handlers=window.notices.handlers(),
        before_request=(limit or PageLimit(ports, trusted_proxies)).before(window.notices.busy, window.notices.shown),
    )


class _Window:
    def __init__(
        self, ports: Ports, page: WindowPage, streams: WindowStreams, trusted_proxies: Sequence[Network]
    ) -> None:
        self._ports = ports
        self._page = page
        self._streams = streams
        self._trusted = trusted_proxies
        self.notices = Notices(page, "payment_id")

    async def show(self, request: Asked, payment_id: str) -> Response[str]:
        view = await payer_window.view(self._ports, payment_id)
        if view is None:
            return self.notices.say(request, "closed", 404)
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
            return self.notices.say(request, "closed", 404)
        seat = Seat(page=payment_id, address=origin(request, self._trusted))
        if not self._streams.is_free(seat):
            return self.notices.say(request, "unavailable", 503)
        return Stream(
            event_stream(self._ports, self._streams, seat, standing),
            media_type="text/event-stream",
            headers={**HEADERS, "X-Accel-Buffering": "no"},
        )

    async def simulate(self, request: Asked, payment_id: str) -> Response[str]:
        """Play the payer, and send the browser back to the page."""
        view = await payer_window.view(self._ports, payment_id)
        if view is None or not view.simulated:
            return self.notices.say(request, "closed", 404)
        if is_foreign(request):
            return self.notices.say(request, "rejected", 403)
        form = await request.form()
        try:
            act = Act(form.get("act", ""))
            reason = FailureReason(form.get("reason", FailureReason.UNKNOWN))
        except ValueError:
            return self.notices.say(request, "rejected", 400)
        if not await payer_window.play(self._ports, payment_id, act, reason):
            return self.notices.say(request, "closed", 404)
        back = self._page.link(payment_id, wished_language(request))
        return Response("", status_code=303, media_type=HTML, headers={**HEADERS, "Location": back})

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


def event_stream(ports: Ports, streams: WindowStreams, seat: Seat, standing: Standing) -> AsyncGenerator[bytes, None]:
    """Server-sent events of the seat's payment: the standing at once, then whenever it changes, until it is final or
    the window closes."""

    async def read() -> Sight | None:
        present = await payer_window.standing(ports, seat.page)
        return None if present is None else _sight(present)

    return follow(ports.clock, streams, seat, _sight(standing), read)


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
