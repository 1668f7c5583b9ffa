"""Who asks: the guard of everything under /api/v1 but the health check (docs/concepts.md "Accounts, keys, modes")."""

from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard, Scope

from ....core.domain.accounts.accounts import Caller, Mode
from ....core.usecases.accounts.access import authenticate
from ....core.usecases.test_clock import test_clock_of
from ....ports.bundle import Ports
from ...telemetry.logs import of_account
from .errors import endpoint_not_found

ApiRequest = Request[Any, Caller, Any]
"""A request behind the guard: `request.auth` is its Caller."""


def authorized(ports: Ports) -> Guard:
    """A guard that leaves the caller in `request.auth`, and enters his account's time. Raises: Refusal Unauthorized.

    It is `async`, because the framework sends a plain function to a thread.
    """

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        headers = connection.headers
        await enter(ports, connection.scope, headers.get("x-api-key", ""), headers.get("x-api-secret", ""))

    return guard


async def enter(ports: Ports, scope: Scope, api_key: str, api_secret: str) -> Caller:
    """Who holds this pair; the rest of the request is his, and in his account's time. Raises: Refusal Unauthorized."""
    caller = await authenticate(ports, api_key, api_secret)
    scope["auth"] = caller
    of_account(caller.account_id, caller.mode)
    ports.clock.enter(test_clock_of(caller.account, caller.mode))
    return caller


async def require_test_mode(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """The sandbox is not there for live keys (docs/sandbox.md "The calls")."""
    if connection.auth.mode is not Mode.TEST:
        raise endpoint_not_found()
