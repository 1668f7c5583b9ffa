"""The HTTP application: operations, and behind them what the framework answers, at the edge."""

from collections.abc import Callable, Sequence
from contextvars import Context

from litestar.types import ASGIApp, Receive, Scope, Send

from ...core.domain.accounts.quota import Network
from ...core.usecases.accounts.admission import NOTICES_PER_MINUTE, PAGES_PER_MINUTE
from ...ports.bundle import Ports
from ..telemetry.requests import RequestWatch
from .api import Api
from .door.edge import Edge
from .door.kept import Kept
from .door.operation import AppContext
from .door.streams import WindowStreams
from .health import Doctor, probes
from .operations import OPERATIONS


def create_app(
    ports: Ports,
    *,
    trusted_proxies: Sequence[Network] = (),
    streams: WindowStreams | None = None,
    watch: RequestWatch | None = None,
    is_leaving: Callable[[], bool] = lambda: False,
    pages_per_minute: int = PAGES_PER_MINUTE,
    notices_per_minute: int = NOTICES_PER_MINUTE,
    has_front: bool = True,
) -> ASGIApp:
    """The whole HTTP face of a house, as one ASGI application. It opens and closes nothing: that is compose's.

    Whoever stops the server ends the `streams` first (see WindowStreams), and says by `is_leaving` that balancers shall
    go elsewhere. Requests are counted, traced and logged by
    `watch`; of pages and notices a client address may have so many a minute. With `has_front` browsers get a page
    at `/`; a program that mounts the face has a front of its own.
    """
    streams = streams or WindowStreams()
    watch = watch or RequestWatch(ports.clock)
    doctor = Doctor(ports)
    context = AppContext(streams, trusted_proxies, doctor.degraded, watch.written)

    def make_framework() -> ASGIApp:
        # Here: with what it imports it is two megabytes, and a process that is asked for operations alone does without.
        from .framework import framework

        return framework(
            ports,
            trusted_proxies=trusted_proxies,
            streams=streams,
            watch=watch,
            pages_per_minute=pages_per_minute,
            notices_per_minute=notices_per_minute,
            has_front=has_front,
        )

    operations = (*OPERATIONS, *probes(doctor, is_leaving))
    return Edge(Api(_Late(make_framework), ports, context, operations), ports, trusted_proxies, watch)


class _Late:
    """An ASGI application that is made for its first request, in an empty context: what is made for all requests shall
    not know of the first."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        # A context each time: where the first request was given up, another may begin while its thread still makes one.
        self._app = Kept(lambda: Context().run(make))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        app = await self._app.value()
        await app(scope, receive, send)
