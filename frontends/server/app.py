"""The HTTP application: the edge, then API operations, then the framework."""

from collections.abc import Callable, Sequence
from contextvars import Context

from litestar.types import ASGIApp, Receive, Scope, Send

from ...core.domain.accounts.rate_limit import Network
from ...core.usecases.accounts.rate_limits import NOTIFICATIONS_PER_MINUTE, PAGES_PER_MINUTE
from ...ports.bundle import Ports
from ..app.public_addresses import is_servable
from ..dashboard.serving import WithDashboard
from ..http.api import Api
from ..http.edge.edge import Edge
from ..http.edge.kept import Kept
from ..http.edge.operation import AppContext
from ..http.edge.streams import WindowStreams
from ..http.health import Doctor, probes
from ..http.operations import OPERATIONS
from ..telemetry.requests import RequestWatch


def create_app(
    ports: Ports,
    *,
    trusted_proxies: Sequence[Network] = (),
    streams: WindowStreams | None = None,
    watch: RequestWatch | None = None,
    is_leaving: Callable[[], bool] = lambda: False,
    pages_per_minute: int = PAGES_PER_MINUTE,
    notifications_per_minute: int = NOTIFICATIONS_PER_MINUTE,
    has_front: bool = True,
) -> ASGIApp:
    """Build the HTTP application of an app as one ASGI application. It opens and closes no resources; compose does.

    Before stopping the server, end the `streams` (see WindowStreams). `is_leaving` returns whether load balancers
    should send requests elsewhere. `watch` counts, traces and logs requests. `pages_per_minute` and
    `notifications_per_minute` limit the pages and provider notifications of a client address. `has_front` serves a page
    for browsers at `/`; a program that mounts the application has its own.
    """
    streams = streams or WindowStreams()
    watch = watch or RequestWatch(ports.clock)
    doctor = Doctor(ports)
    context = AppContext(streams, trusted_proxies, doctor.degraded, watch.written)

    def make_framework() -> ASGIApp:
        # Imported late: the framework takes two megabytes, and a process that serves only API operations does without
        # it.
        from ..http.framework import framework

        return framework(
            ports,
            trusted_proxies=trusted_proxies,
            streams=streams,
            watch=watch,
            pages_per_minute=pages_per_minute,
            notifications_per_minute=notifications_per_minute,
            has_front=has_front,
        )

    pages: ASGIApp = _Late(make_framework)
    if is_servable(ports.urls.app_url):

        def make_dashboard() -> ASGIApp:
            from ..dashboard.app import dashboard
            from ..http.payer.page_limit import PageLimit

            limit = PageLimit(ports, trusted_proxies, pages_per_minute, watch.hits)
            return dashboard(ports, trusted_proxies, limit, streams)

        pages = WithDashboard(pages, _Late(make_dashboard), ports.urls.app_url)
    operations = (*OPERATIONS, *probes(doctor, is_leaving))
    return Edge(Api(pages, ports, context, operations), ports, trusted_proxies, watch)


class _Late:
    """ASGI application built on its first request, in an empty context: objects shared by all requests must not keep
    the context of the first."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        # A new context each time: if the first request is cancelled, another may start while the first thread still
        # builds.
        self._app = Kept(lambda: Context().run(make))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        app = await self._app.value()
        await app(scope, receive, send)
