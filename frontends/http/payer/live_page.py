"""Common HTTP routes of the payment and subscription pages: the page, its live status, and the panel that simulates the
payer (docs/window.md "Subscriptions").

There are no cookies and no sessions: anyone with the link is treated as the payer.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from litestar import Response, get, post, route
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from ....core.domain.accounts.rate_limit import Network
from ....ports.bundle import Ports
from ..edge.answers import answer
from ..edge.origin import origin
from ..edge.routing import Router
from ..edge.streams import CLOSED, Seat, Sight, WindowStreams, follow
from .page_limit import PageLimit
from .pages import HEADERS, Asked, Notifications, Page, html_page, is_foreign, language_of, see_other, wished_language


class LivePage(ABC):
    """The routes of one kind of page. `parameter` is the part of the path that names the object."""

    def __init__(
        self, ports: Ports, page: Page, parameter: str, streams: WindowStreams | None, trusted: Sequence[Network]
    ) -> None:
        self._ports = ports
        self._parameter = parameter
        self._streams = streams or WindowStreams()
        self._trusted = trusted
        self.notifications = Notifications(page, parameter)

    @abstractmethod
    async def draw(self, request: Asked, object_id: str) -> str | None:
        """Render the page in its present state; None when it does not exist."""

    @abstractmethod
    async def draw_closed(self, request: Asked, object_id: str) -> str | None:
        """Render the page of a known object for which `draw` returns None; None when there is no such page either."""

    @abstractmethod
    async def look(self, object_id: str, *, opened: bool = False) -> Sight | None:
        """Return the present state for the page's script; None when there is no such page. `opened`: the script starts
        to read, or the payer has returned from the bank."""

    @abstractmethod
    async def is_simulated(self, object_id: str) -> bool:
        """Return whether the page has the panel."""

    @abstractmethod
    async def simulate(self, object_id: str, form: Mapping[str, Any]) -> bool:
        """Simulate the payer as the form says. Return False when the panel is gone. Raises: ValueError for an unknown
        action."""

    @abstractmethod
    def back(self, object_id: str, wish: str | None) -> str:
        """Return the address for the browser after the panel was used."""

    def router(self, path: str, limit: PageLimit | None, *more: HTTPRouteHandler) -> Router:
        """Return all routes of the page, and `more`. Handlers are functions, because the framework deep-copies a
        method's object."""
        own = f"/{{{self._parameter}:str}}"

        @route(own, http_method=["GET", "HEAD"], include_in_schema=False)
        async def show(request: Asked) -> Response[str]:
            return await self._show(request, self._id(request))

        @get(f"{own}/state", include_in_schema=False)
        async def state(request: Asked) -> Response[bytes]:
            return await self._state(self._id(request))

        @get(f"{own}/events", include_in_schema=False)
        async def events(request: Asked) -> Response[Any]:
            return await self._events(request, self._id(request))

        @post(f"{own}/simulate", include_in_schema=False)
        async def simulate(request: Asked) -> Response[str]:
            return await self._simulate(request, self._id(request))

        notifications = self.notifications
        return Router(
            path,
            route_handlers=[show, state, events, simulate, *more],
            exception_handlers=notifications.handlers(),
            before_request=(limit or PageLimit(self._ports, self._trusted)).before(
                notifications.busy, notifications.shown
            ),
        )

    def _id(self, request: Asked) -> str:
        object_id: str = request.path_params[self._parameter]
        return object_id

    async def _show(self, request: Asked, object_id: str) -> Response[str]:
        body = await self.draw(request, object_id)
        if body is not None:
            return html_page(body, language_of(request))
        body = await self.draw_closed(request, object_id)
        return (
            self.notifications.say(request, "closed", 404)
            if body is None
            else html_page(body, language_of(request), 404)
        )

    async def _state(self, object_id: str) -> Response[bytes]:
        """Return the state for pages that cannot keep a stream open."""
        sight = await self.look(object_id, opened=True)
        response = (answer(CLOSED, status=404) if sight is None else answer(sight.wire)).of_framework()
        response.headers.update(HEADERS)
        return response

    async def _events(self, request: Asked, object_id: str) -> Response[Any]:
        sight = await self.look(object_id, opened=True)
        if sight is None:
            return self.notifications.say(request, "closed", 404)
        seat = Seat(page=object_id, address=origin(request, self._trusted))
        if not self._streams.is_free(seat):
            return self.notifications.say(request, "unavailable", 503)
        return Stream(
            follow(self._ports.clock, self._streams, seat, sight, lambda: self.look(object_id)),
            media_type="text/event-stream",
            headers={**HEADERS, "X-Accel-Buffering": "no"},
        )

    async def _simulate(self, request: Asked, object_id: str) -> Response[str]:
        """Simulate the payer, and send the browser back to the page."""
        if not await self.is_simulated(object_id):
            return self.notifications.say(request, "closed", 404)
        if is_foreign(request):
            return self.notifications.say(request, "rejected", 403)
        try:
            is_done = await self.simulate(object_id, await request.form())
        except ValueError:
            return self.notifications.say(request, "rejected", 400)
        if not is_done:
            return self.notifications.say(request, "closed", 404)
        return see_other(self.back(object_id, wished_language(request)))
