"""The page where a payer confirms a subscription, over HTTP: the page, its live status, and the panel that plays the
payer (docs/window.md "Subscriptions"; docs/subscriptions.md "How the payer binds").

There are no cookies and no sessions: who has the link is the payer. Opening the page asks a bank for a QR; a page that
looks again by itself does not.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from litestar import Request, Response, get, post, route
from litestar.params import FromPath
from litestar.response import Stream

from ....core.domain.accounts.quota import Network
from ....core.domain.payer.binding_window import FINAL_BINDING_FACES, BindingFace
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.payer import binding_window
from ....core.usecases.payer.binding_window import BindingAct, BindingStanding
from ....ports.bundle import Ports
from ..door.answers import answer
from ..door.origin import origin
from ..door.routing import Router
from ..door.streams import CLOSED, Seat, Sight, WindowStreams, follow
from .binding_page import BindingPage
from .page_limit import PageLimit
from .pages import HEADERS, HTML, Asked, Notices, html_page, is_foreign, language_of, wished_language
from .window_page import WindowPage, millis

_SLOW = (BindingFace.LAPSED, BindingFace.LAPSED_PAID, BindingFace.PAUSED)
"""News of these may take hours: looked at every five seconds instead of every one."""


def binding_router(
    ports: Ports,
    streams: WindowStreams | None = None,
    trusted_proxies: Sequence[Network] = (),
    limit: PageLimit | None = None,
) -> Router:
    """Everything under `/s`. Its assets are those of the payer window."""
    base = urlsplit(ports.places.pay_url).path.rstrip("/")
    page = BindingPage(f"{base}/s", WindowPage(f"{base}/p"))
    window = _Window(ports, page, streams or WindowStreams(), trusted_proxies)

    @route("/{subscription_id:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def show(request: Asked, subscription_id: FromPath[str]) -> Response[str]:
        return await window.show(request, subscription_id)

    @get("/{subscription_id:str}/state", include_in_schema=False)
    async def state(subscription_id: FromPath[str]) -> Response[bytes]:
        return await window.state(subscription_id)

    @get("/{subscription_id:str}/events", include_in_schema=False)
    async def events(request: Asked, subscription_id: FromPath[str]) -> Response[Any]:
        return await window.events(request, subscription_id)

    @post("/{subscription_id:str}/simulate", include_in_schema=False)
    async def simulate(request: Asked, subscription_id: FromPath[str]) -> Response[str]:
        return await window.simulate(request, subscription_id)

    return Router(
        "/s",
        route_handlers=[show, state, events, simulate],
        exception_handlers=window.notices.handlers(),
        before_request=(limit or PageLimit(ports, trusted_proxies)).before(window.notices.busy, window.notices.shown),
    )


class _Window:
    def __init__(
        self, ports: Ports, page: BindingPage, streams: WindowStreams, trusted_proxies: Sequence[Network]
    ) -> None:
        self._ports = ports
        self._page = page
        self._streams = streams
        self._trusted = trusted_proxies
        self.notices = Notices(page, "subscription_id")

    async def show(self, request: Asked, subscription_id: str) -> Response[str]:
        if _opens(request):
            view = await binding_window.open_window(self._ports, subscription_id)
        else:
            view = await binding_window.binding_view(self._ports, subscription_id)
        if view is None:
            return self.notices.say(request, "closed", 404)
        language = language_of(request)
        return html_page(self._page.draw(view, language, wished_language(request)), language)

    async def state(self, subscription_id: str) -> Response[bytes]:
        """For pages that cannot keep a stream open."""
        standing = await binding_window.binding_standing(self._ports, subscription_id)
        response = answer(CLOSED, status=404) if standing is None else answer(_sight(standing).wire)
        response.headers.update(HEADERS)
        return response

    async def events(self, request: Asked, subscription_id: str) -> Response[Any]:
        standing = await binding_window.binding_standing(self._ports, subscription_id)
        if standing is None:
            return self.notices.say(request, "closed", 404)
        seat = Seat(page=subscription_id, address=origin(request, self._trusted))
        if not self._streams.is_free(seat):
            return self.notices.say(request, "unavailable", 503)

        async def read() -> Sight | None:
            present = await binding_window.binding_standing(self._ports, subscription_id)
            return None if present is None else _sight(present)

        return Stream(
            follow(self._ports.clock, self._streams, seat, _sight(standing), read),
            media_type="text/event-stream",
            headers={**HEADERS, "X-Accel-Buffering": "no"},
        )

    async def simulate(self, request: Asked, subscription_id: str) -> Response[str]:
        """Play the payer, and send the browser back to the page."""
        view = await binding_window.binding_view(self._ports, subscription_id)
        if view is None or not view.simulated:
            return self.notices.say(request, "closed", 404)
        if is_foreign(request):
            return self.notices.say(request, "rejected", 403)
        form = await request.form()
        try:
            act = BindingAct(form.get("act", ""))
            reason = FailureReason(form.get("reason", FailureReason.UNKNOWN))
        except ValueError:
            return self.notices.say(request, "rejected", 400)
        await binding_window.play_binding(self._ports, subscription_id, act, reason)
        back = self._page.link(subscription_id, wished_language(request), keep=True)
        return Response("", status_code=303, media_type=HTML, headers={**HEADERS, "Location": back})


def _opens(request: Request[Any, Any, Any]) -> bool:
    """A payer opens the page. One that looks again by itself, a look at the headers, and a browser that fetches links
    before anybody follows them do not."""
    purpose = request.headers.get("sec-purpose", "") + request.headers.get("purpose", "")
    return request.method == "GET" and "keep" not in request.query_params and "prefetch" not in purpose


def _sight(standing: BindingStanding) -> Sight:
    """What the page's script reads; times are Unix milliseconds of the service's clock."""
    return Sight(
        wire={"face": standing.face.value, "now": millis(standing.now), "deadline": millis(standing.deadline)},
        key=(standing.face, standing.deadline) if standing.face is BindingFace.WAITING else (standing.face,),
        is_final=standing.face in FINAL_BINDING_FACES,
        pause=5.0 if standing.face in _SLOW else 1.0,
    )
