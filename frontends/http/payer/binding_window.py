"""HTTP routes of the page where a payer confirms a subscription (docs/window.md "Subscriptions"; docs/subscriptions.md
"How the payer binds").

A GET shows the page without calling a bank, because messengers, mail scanners and browsers open links before a person
does. The page's button sends a form, and that POST requests a QR code from a bank.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from litestar import Response, post

from ....core.domain.accounts.rate_limit import Network
from ....core.domain.payer.binding_window import FINAL_BINDING_FACES, BindingFace
from ....core.domain.payments.payments import FailureReason
from ....core.usecases.payer import binding_window
from ....core.usecases.payer.binding_window import BindingAction, Pressed
from ....ports.bundle import Ports
from ..edge.routing import Router
from ..edge.streams import Sight, WindowStreams
from .binding_page import BindingPage
from .live_page import LivePage
from .page_limit import PageLimit
from .pages import Asked, is_foreign, language_of, read_form, see_other, wished_language
from .window_page import WindowPage, millis

_SLOW = (BindingFace.TERMS, BindingFace.LAPSED, BindingFace.LAPSED_PAID, BindingFace.PAUSED)
"""Faces that may take hours to change. They are read every five seconds instead of every second."""


def binding_router(
    ports: Ports,
    streams: WindowStreams | None = None,
    trusted_proxies: Sequence[Network] = (),
    limit: PageLimit | None = None,
) -> Router:
    """Return the router of everything under `/s`. It uses the assets of the payer window."""
    base = urlsplit(ports.urls.pay_url).path.rstrip("/")
    window = _Window(ports, BindingPage(f"{base}/s", WindowPage(f"{base}/p")), streams, trusted_proxies)

    @post("/{subscription_id:str}/open", include_in_schema=False)
    async def press(request: Asked) -> Response[str]:
        return await window.press(request, request.path_params["subscription_id"])

    return window.router("/s", limit, press)


class _Window(LivePage):
    def __init__(
        self, ports: Ports, page: BindingPage, streams: WindowStreams | None, trusted: Sequence[Network]
    ) -> None:
        super().__init__(ports, page, "subscription_id", streams, trusted)
        self._page = page

    async def draw(self, request: Asked, object_id: str) -> str | None:
        view = await binding_window.binding_view(self._ports, object_id)
        if view is None:
            return None
        said = request.query_params.get("say")
        return self._page.draw(view, language_of(request), wished_language(request), said)

    async def draw_closed(self, request: Asked, object_id: str) -> str | None:  # noqa: ARG002  (a page of these never closes)
        return None

    async def press(self, request: Asked, object_id: str) -> Response[str]:
        """Request a QR code from a bank for the payer, and send the browser back to the page."""
        if is_foreign(request):
            return self.notifications.say(request, "rejected", 403)
        seen = (await read_form(request)).get("amount", "")
        pressed = await binding_window.press_button(self._ports, object_id, seen)
        if pressed is None:
            return self.notifications.say(request, "closed", 404)
        said = None if pressed is Pressed.SHOWN else pressed.value
        return see_other(self._page.link(object_id, wished_language(request), say=said))

    async def look(self, object_id: str, *, opened: bool = False) -> Sight | None:
        standing = await binding_window.binding_standing(self._ports, object_id, opened=opened)
        if standing is None:
            return None
        return Sight(
            wire={
                "face": standing.face.value,
                "now": millis(standing.now),
                "deadline": millis(standing.deadline),
                "drawn": standing.drawn,
            },
            key=(standing.face, standing.drawn),
            is_final=standing.face in FINAL_BINDING_FACES,
            pause=5.0 if standing.face in _SLOW else 1.0,
        )

    async def is_simulated(self, object_id: str) -> bool:
        view = await binding_window.binding_view(self._ports, object_id)
        return view is not None and view.simulated

    async def simulate(self, object_id: str, form: Mapping[str, Any]) -> bool:
        action, reason = BindingAction(form.get("action", "")), FailureReason(form.get("reason", FailureReason.UNKNOWN))
        return await binding_window.simulate_binding(self._ports, object_id, action, reason)

    def back(self, object_id: str, wish: str | None) -> str:
        return self._page.link(object_id, wish)
