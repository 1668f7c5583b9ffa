"""The framework's part of the application: pages and assets, uploads, provider notifications, and unknown paths."""

from collections.abc import Sequence

from ...core.domain.accounts.rate_limit import Network
from ...ports.bundle import Ports
from ..telemetry.requests import RequestWatch
from .edge.errors import on_error
from .edge.routing import Application
from .edge.streams import WindowStreams
from .front import front_router
from .notifications import NotificationEndpoint, notifications_router
from .openapi.documentation import docs_router, llms_handler, openapi_handler
from .payer.binding_window import binding_router
from .payer.kyc_page import kyc_page_router
from .payer.link_page import link_router
from .payer.page_limit import PageLimit
from .payer.window import window_router
from .uploads import uploads_router


def framework(
    ports: Ports,
    *,
    trusted_proxies: Sequence[Network],
    streams: WindowStreams,
    watch: RequestWatch,
    pages_per_minute: int,
    notifications_per_minute: int,
    has_front: bool,
) -> Application:
    """Build the framework's application from the arguments of `create_app`."""
    limit = PageLimit(ports, trusted_proxies, pages_per_minute, watch.hits)
    return Application(
        route_handlers=[
            window_router(ports, streams, trusted_proxies, limit),
            binding_router(ports, streams, trusted_proxies, limit),
            link_router(ports, trusted_proxies, limit),
            notifications_router(NotificationEndpoint(ports, watch, trusted_proxies, notifications_per_minute)),
            uploads_router(ports, trusted_proxies),
            kyc_page_router(ports, limit),
            openapi_handler(ports),
            llms_handler(ports),
            docs_router(ports),
            *([front_router(ports, limit)] if has_front else []),
        ],
        exception_handlers={Exception: on_error},
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
