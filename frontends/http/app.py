"""The HTTP application: the routers behind the edge."""

from collections.abc import Callable, Sequence

from litestar.types import ASGIApp

from ...core.domain.accounts.quota import API, Network
from ...ports.bundle import Ports
from ..telemetry.requests import RequestWatch
from .charges import charges_router, sandbox_charges_router
from .clients import clients_router, sandbox_clients_router
from .door.access import authorized
from .door.edge import Edge
from .door.errors import HANDLERS
from .door.options import say_methods
from .door.routing import Application, Router
from .door.streams import WindowStreams
from .events import events_router, webhook_endpoint_router
from .exchanges import exchanges_router, sandbox_exchanges_router
from .feed import letters_router
from .gateways import gateways_router, sandbox_gateways_router
from .health import health_handlers
from .hot import HotPaths
from .kyc import kyc_router
from .money import money_router
from .openapi.documentation import docs_router, openapi_handler
from .payer.binding_window import binding_router
from .payer.kyc_page import kyc_page_router
from .payer.page_limit import PER_MINUTE, PageLimit
from .payer.window import window_router
from .payments import payments_router
from .proofs import proofs_router
from .refunds import refunds_router, sandbox_refunds_router
from .sandbox import sandbox_router
from .sandbox_clock import sandbox_clock_router
from .settlement import sandbox_settlements_router, settlements_router
from .subscriptions import sandbox_subscriptions_router, subscriptions_router
from .terminals import methods_router
from .turnover import turnover_router
from .uploads import uploads_router
from .withdrawals import sandbox_withdrawals_router, withdrawals_router


def create_app(
    ports: Ports,
    *,
    trusted_proxies: Sequence[Network] = (),
    streams: WindowStreams | None = None,
    watch: RequestWatch | None = None,
    is_leaving: Callable[[], bool] = lambda: False,
    pages_per_minute: int = PER_MINUTE,
) -> ASGIApp:
    """The whole HTTP face of a house, as one ASGI application. It opens and closes nothing: that is compose's.

    Whoever stops the server ends the `streams` first (see WindowStreams), and says by `is_leaving` that balancers shall
    go elsewhere. Requests are counted, traced and logged by
    `watch`; of pages a client address may ask for so many a minute.
    """
    streams = streams or WindowStreams()
    watch = watch or RequestWatch(ports.clock)
    limit = PageLimit(ports, trusted_proxies, pages_per_minute, watch.hits)
    api = Router(
        API,
        route_handlers=[
            payments_router(ports),
            turnover_router(ports),
            proofs_router(ports),
            methods_router(ports),
            sandbox_router(ports),
            sandbox_clock_router(ports),
            gateways_router(ports),
            sandbox_gateways_router(ports),
            letters_router(ports, streams, trusted_proxies),
            events_router(ports),
            webhook_endpoint_router(ports),
            refunds_router(ports),
            sandbox_refunds_router(ports),
            settlements_router(ports),
            sandbox_settlements_router(ports),
            money_router(ports),
            withdrawals_router(ports),
            kyc_router(ports),
            clients_router(ports),
            sandbox_clients_router(ports),
            exchanges_router(ports),
            sandbox_exchanges_router(ports),
            sandbox_withdrawals_router(ports),
            subscriptions_router(ports),
            sandbox_subscriptions_router(ports),
            charges_router(ports),
            sandbox_charges_router(ports),
        ],
        guards=[authorized(ports)],
        before_request=say_methods,
    )
    app = Application(
        route_handlers=[
            api,
            window_router(ports, streams, trusted_proxies, limit),
            binding_router(ports, streams, trusted_proxies, limit),
            uploads_router(ports, trusted_proxies),
            kyc_page_router(ports, limit),
            *health_handlers(ports, is_leaving),
            openapi_handler(ports),
            docs_router(ports),
        ],
        exception_handlers=dict(HANDLERS),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
    return Edge(HotPaths(app, ports), ports, trusted_proxies, watch)
