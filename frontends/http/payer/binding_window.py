"""The page where a payer confirms a subscription, over HTTP (docs/window.md "Subscriptions"; docs/subscriptions.md "How
the payer binds"). Opening the page asks a bank for a QR; a page that looks again by itself does not."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from litestar import Request

from ....core.domain.accounts.quota import Network
from ....core.domain.payer.binding_window import FINAL_BINDING_FACES, BindingFace
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.payer import binding_window
from ....core.usecases.payer.binding_window import BindingAct
from ....ports.bundle import Ports
from ..door.routing import Router
from ..door.streams import Sight, WindowStreams
from .binding_page import BindingPage
from .live_page import LivePage
from .page_limit import PageLimit
from .pages import Asked, language_of, wished_language
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
    base = urlsplit(ports.urls.pay_url).path.rstrip("/")
    page = BindingPage(f"{base}/s", WindowPage(f"{base}/p"))
    return _Window(ports, page, streams, trusted_proxies).router("/s", limit)


class _Window(LivePage):
    def __init__(
        self, ports: Ports, page: BindingPage, streams: WindowStreams | None, trusted: Sequence[Network]
    ) -> None:
        super().__init__(ports, page, "subscription_id", streams, trusted)
        self._page = page

    async def draw(self, request: Asked, object_id: str) -> str | None:
        see = binding_window.open_window if _opens(request) else binding_window.binding_view
        view = await see(self._ports, object_id)
        return None if view is None else self._page.draw(view, language_of(request), wished_language(request))

    async def draw_closed(self, request: Asked, object_id: str) -> str | None:  # noqa: ARG002  (a page of these never closes)
        return None

    async def look(self, object_id: str, *, opened: bool = False) -> Sight | None:
        standing = await binding_window.binding_standing(self._ports, object_id, opened=opened)
        if standing is None:
            return None
        return Sight(
            wire={"face": standing.face.value, "now": millis(standing.now), "deadline": millis(standing.deadline)},
            key=(standing.face, standing.deadline) if standing.face is BindingFace.WAITING else (standing.face,),
            is_final=standing.face in FINAL_BINDING_FACES,
            pause=5.0 if standing.face in _SLOW else 1.0,
        )

    async def is_simulated(self, object_id: str) -> bool:
        view = await binding_window.binding_view(self._ports, object_id)
        return view is not None and view.simulated

    async def simulate(self, object_id: str, form: Mapping[str, Any]) -> bool:
        act, reason = BindingAct(form.get("act", "")), FailureReason(form.get("reason", FailureReason.UNKNOWN))
        return await binding_window.simulate_binding(self._ports, object_id, act, reason)

    def back(self, object_id: str, wish: str | None) -> str:
        return self._page.link(object_id, wish, keep=True)


def _opens(request: Request[Any, Any, Any]) -> bool:
    """A payer opens the page. One that looks again by itself, a look at the headers, and a browser that fetches links
    before anybody follows them do not."""
    purpose = request.headers.get("sec-purpose", "") + request.headers.get("purpose", "")
    return request.method == "GET" and "keep" not in request.query_params and "prefetch" not in purpose
