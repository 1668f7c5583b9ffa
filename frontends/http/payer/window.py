"""HTTP routes of the payer window: the page, its live status, and in test mode the panel that simulates the payer
(docs/window.md "Back to the shop", "How long it is there")."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from litestar import Response, post, route
from litestar.params import FromPath

from ....core.domain.accounts.rate_limit import Network
from ....core.domain.payer.colors import stylesheet
from ....core.domain.payer.window import FINAL_FACES, Face
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.accounts.logos import get_logo
from ....core.usecases.payer import window as payer_window
from ....core.usecases.payer.confirmation import Mailed, confirmation_view, mail_confirmation
from ....core.usecases.payer.retry import Problem, press_retry
from ....core.usecases.payer.window import PayerAction
from ....ports.bundle import Ports
from ..edge.routing import Router
from ..edge.streams import Sight, WindowStreams
from ..packed import asset
from .live_page import LivePage
from .page_limit import PageLimit
from .pages import Asked, html_page, is_foreign, is_opened, language_of, read_form, see_other, wished_language
from .window_page import WindowPage, millis

_SLOW = {Face.EXPIRED: 5.0, Face.REVIEW: 5.0}
"""Seconds between two reads of a payment that may take hours to change; one second for all others."""


def window_router(
    ports: Ports,
    streams: WindowStreams | None = None,
    trusted_proxies: Sequence[Network] = (),
    limit: PageLimit | None = None,
) -> Router:
    """Return the router of everything under `/p`. It has its own templates and assets and needs nothing from the
    application."""
    page = WindowPage(f"{urlsplit(ports.urls.pay_url).path.rstrip('/')}/p")

    @route("/assets/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def file(request: Asked, name: FromPath[str]) -> Response[bytes]:
        return asset(request, page.assets.get(name))

    limit = limit or PageLimit(ports, trusted_proxies)
    window = _Window(ports, page, streams, trusted_proxies)

    @post("/{payment_id:str}/retry", include_in_schema=False)
    async def retry(request: Asked) -> Response[str]:
        if is_foreign(request):
            return window.notifications.say(request, "rejected", 403)
        retried = await press_retry(ports, request.path_params["payment_id"], limit.address(request))
        if retried is None:
            return window.notifications.say(request, "closed", 404)
        if retried.problem is not None:
            return window.notifications.say(request, retried.problem, _PROBLEMS[retried.problem])
        return see_other(page.link(retried.payment_id or "", wished_language(request)))

    @route("/{payment_id:str}/confirmation/{key:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def confirmation(request: Asked, payment_id: FromPath[str], key: FromPath[str]) -> Response[str]:
        return await shown(request, payment_id, key)

    @post("/{payment_id:str}/confirmation/{key:str}", include_in_schema=False)
    async def mail(request: Asked, payment_id: FromPath[str], key: FromPath[str]) -> Response[str]:
        if is_foreign(request):
            return window.notifications.say(request, "rejected", 403)
        typed, language = (await read_form(request)).get("email", ""), language_of(request)
        mailed = await mail_confirmation(ports, payment_id, key, typed, language, limit.address(request))
        if mailed is None:
            return window.notifications.say(request, "closed", 404)
        return await shown(request, payment_id, key, mailed)

    async def shown(request: Asked, payment_id: str, key: str, said: Mailed | None = None) -> Response[str]:
        view = await confirmation_view(ports, payment_id, key)
        if view is None:
            return window.notifications.say(request, "closed", 404)
        language = language_of(request)
        body = page.confirmation(view, language, wished_language(request), said)
        return html_page(body, language, 200 if said is None else _MAILED[said])

    @route("/logos/{logo_id:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def logo(logo_id: FromPath[str]) -> Response[bytes]:
        found = await get_logo(ports, logo_id)
        return _kept(None if found is None else found.body, "text/plain" if found is None else found.media_type)

    @route("/colors/{name:str}", http_method=["GET", "HEAD"], include_in_schema=False)
    async def colors(name: FromPath[str]) -> Response[bytes]:
        try:
            text = stylesheet(name.removesuffix(".css"))
        except ValueError:
            return _kept(None, "text/plain")
        return _kept(text.encode(), "text/css")

    return window.router("/p", limit, file, logo, colors, retry, confirmation, mail)


_PROBLEMS = {Problem.BUSY: 429, Problem.AWAY: 503}
_MAILED = {Mailed.SENT: 200, Mailed.WRONG: 422, Mailed.BUSY: 429}
_UNCHANGING = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of a logo or of colours. A picture opened by itself may load and run nothing."""


def _kept(body: bytes | None, media_type: str) -> Response[bytes]:
    """Return what never changes at its address; 404 without a body."""
    if body is None:
        return Response(b"", status_code=404, media_type=media_type, headers={"Cache-Control": "no-store"})
    return Response(body, media_type=media_type, headers=_UNCHANGING)


class _Window(LivePage):
    def __init__(
        self, ports: Ports, page: WindowPage, streams: WindowStreams | None, trusted: Sequence[Network]
    ) -> None:
        super().__init__(ports, page, "payment_id", streams, trusted)
        self._page = page

    async def draw(self, request: Asked, object_id: str) -> str | None:
        view = await payer_window.view(self._ports, object_id, opened=is_opened(request))
        return None if view is None else self._page.window(view, language_of(request), wished_language(request))

    async def draw_closed(self, request: Asked, object_id: str) -> str | None:
        view = await payer_window.closed(self._ports, object_id)
        return None if view is None else self._page.closed(view, language_of(request))

    async def look(self, object_id: str, *, opened: bool = False) -> Sight | None:
        return await look(self._ports, object_id, opened=opened)

    async def is_simulated(self, object_id: str) -> bool:
        view = await payer_window.view(self._ports, object_id)
        return view is not None and view.simulated

    async def simulate(self, object_id: str, form: Mapping[str, Any]) -> bool:
        action, reason = PayerAction(form.get("action", "")), FailureReason(form.get("reason", FailureReason.UNKNOWN))
        return await payer_window.simulate(self._ports, object_id, action, reason)

    def back(self, object_id: str, wish: str | None) -> str:
        return self._page.link(object_id, wish)


async def look(ports: Ports, payment_id: str, *, opened: bool = False) -> Sight | None:
    """Return the state of a payment for the page's script. Times are Unix milliseconds of the service's clock. None
    when the window is closed. `opened`: as in `LivePage.look`."""
    standing = await payer_window.standing(ports, payment_id, opened=opened)
    if standing is None:
        return None
    return Sight(
        wire={
            "status": standing.status.value,
            "face": standing.face.value,
            "now": millis(standing.now),
            "deadline": millis(standing.deadline),
        },
        key=(standing.face, standing.deadline),
        is_final=standing.face in FINAL_FACES,
        pause=_SLOW.get(standing.face, 1.0),
    )
