"""The API operations as routes of the framework: a second implementation of the same rows, with the framework's own
routing, guards and body parsing. Tests compare the answers of `Api` with it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from litestar import Litestar, Request, Router, route
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.types import ASGIApp, Guard, HTTPScope

from cambist.core.usecases.accounts.rate_limits import NOTIFICATIONS_PER_MINUTE, PAGES_PER_MINUTE
from cambist.core.usecases.accounts.written_bytes import ByteCounter
from cambist.frontends.http.edge.access import enter
from cambist.frontends.http.edge.edge import Edge
from cambist.frontends.http.edge.headers import headers_of
from cambist.frontends.http.edge.operation import ApiRequest, AppContext, Operation
from cambist.frontends.http.edge.streams import WindowStreams
from cambist.frontends.http.framework import framework
from cambist.frontends.http.health import Doctor
from cambist.frontends.http.operations import OPERATIONS
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.bundle import Ports

Row = Operation[Any]
_PARAMETER = re.compile(r"\{(\w+)\}")


def framework_way(ports: Ports, operations: Iterable[Row] = OPERATIONS) -> Edge:
    """The HTTP face of an app, with these operations as routes of the framework, and nothing in front of them."""
    asgi = framework_of(ports)
    context = AppContext(WindowStreams(), (), Doctor(ports).degraded, ByteCounter())
    for each in _routers(ports, context, operations):
        asgi.register(each)
    return Edge(asgi, ports, ())


def framework_of(ports: Ports) -> Litestar:
    """Build a framework app that answers as the HTTP app of an app does."""
    return framework(
        ports,
        trusted_proxies=(),
        streams=WindowStreams(),
        watch=RequestWatch(ports.clock),
        pages_per_minute=PAGES_PER_MINUTE,
        notifications_per_minute=NOTIFICATIONS_PER_MINUTE,
        has_front=True,
    )


def in_order(name: bytes, value: bytes) -> bytes:
    """The value of a header. The framework lists the methods of a path in any order."""
    return b", ".join(sorted(value.split(b", "))) if name.lower() == b"allow" else value


def _routers(ports: Ports, context: AppContext, operations: Iterable[Row]) -> list[Router]:
    """One route for each path, so that the framework knows all methods of it."""
    groups: dict[tuple[bool, bool], dict[str, dict[str, Row]]] = {}
    for each in operations:
        group = groups.setdefault((each.keyed, each.is_sandbox), {})
        group.setdefault(each.path, {})[each.method.upper()] = each
        if each.method == "get" and not each.keyed:
            group[each.path]["HEAD"] = each
    return [
        Router(
            "/",
            route_handlers=[_route(ports, context, path, rows) for path, rows in paths.items()],
            guards=[_authorized(ports, context, sandbox=sandbox)] if keyed else [],
        )
        for (keyed, sandbox), paths in groups.items()
    ]


def _authorized(ports: Ports, context: AppContext, *, sandbox: bool) -> Guard:
    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        scope: HTTPScope = connection.scope  # type: ignore[assignment]  # it stands before routes of HTTP only
        await enter(ports, scope, headers_of(scope), sandbox, context.trusted_proxies)

    return guard


def _route(ports: Ports, context: AppContext, path: str, rows: Mapping[str, Row]) -> HTTPRouteHandler:
    @route(_PARAMETER.sub(r"{\1:str}", path), http_method=list(rows), status_code=200, include_in_schema=False)  # type: ignore[arg-type]  # methods are text in rows
    async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
        operation = rows[request.method]
        body = b"" if operation.body is None else await request.body()
        values = [*request.path_params.values()]
        asked = ApiRequest(context, request.scope, headers_of(request.scope), operation.body, values, body)
        return await operation.handler(ports, request.scope.get("auth"), asked)

    return handle
