"""The HTTP application: operations and pages behind the edge."""

from collections.abc import Callable, Sequence

from litestar.types import ASGIApp

from ...core.domain.accounts.quota import Network
from ...ports.bundle import Ports
from ..telemetry.requests import RequestWatch
from .api import Api
from .door.edge import Edge
from .door.errors import on_error
from .door.operation import AppContext
from .door.routing import Application
from .door.streams import WindowStreams
from .front import front_router
from .health import Doctor, probe_handlers
from .notices import PER_MINUTE as NOTICES_PER_MINUTE
from .notices import NoticeDoor, notices_router
from .openapi.documentation import docs_router, openapi_handler
from .operations import OPERATIONS
from .payer.binding_window import binding_router
from .payer.kyc_page import kyc_page_router
from .payer.page_limit import PER_MINUTE, PageLimit
from .payer.window import window_router
from .uploads import uploads_router


def create_app(
    ports: Ports,
    *,
    trusted_proxies: Sequence[Network] = (),
    streams: WindowStreams | None = None,
    watch: RequestWatch | None = None,
    is_leaving: Callable[[], bool] = lambda: False,
    pages_per_minute: int = PER_MINUTE,
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
    limit = PageLimit(ports, trusted_proxies, pages_per_minute, watch.hits)
    doctor = Doctor(ports)
    context = AppContext(streams, trusted_proxies, doctor.degraded)
    app = Application(
        route_handlers=[
            window_router(ports, streams, trusted_proxies, limit),
            binding_router(ports, streams, trusted_proxies, limit),
            notices_router(NoticeDoor(ports, watch, trusted_proxies, notices_per_minute)),
            uploads_router(ports, trusted_proxies),
            kyc_page_router(ports, limit),
            *probe_handlers(doctor, is_leaving),
            openapi_handler(ports),
            docs_router(ports),
            *([front_router(ports, limit)] if has_front else []),
        ],
        exception_handlers={Exception: on_error},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
    return Edge(Api(app, ports, context, OPERATIONS), ports, trusted_proxies, watch)
