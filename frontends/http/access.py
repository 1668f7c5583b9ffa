"""Who asks: the guard of everything under /api/v1 but the health check (SPEC "Authentication", 1-2)."""

from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from ...core.domain.accounts import Caller, Mode
from ...core.usecases.access import authenticate
from ...ports.bundle import Ports
from .errors import endpoint_not_found

ApiRequest = Request[Any, Caller, Any]
"""A request behind the guard: `request.auth` is its Caller."""


def authorized(ports: Ports) -> Guard:
    """A guard that leaves the caller in `request.auth`. Raises: Refusal Unauthorized.

    It is `async`, because the framework sends a plain function to a thread.
    """

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        headers = connection.headers
        connection.scope["auth"] = await authenticate(
            ports, headers.get("x-api-key", ""), headers.get("x-api-secret", "")
        )

    return guard


async def require_test_mode(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """The sandbox is not there for live keys (DECISIONS 8)."""
    if connection.auth.mode is not Mode.TEST:
        raise endpoint_not_found()
