"""Who asks: what everything under /api/v1 but the health check passes first
(docs/concepts.md "Accounts, keys, modes")."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard, HTTPScope

from ....core.domain.accounts.accounts import TEST, Caller
from ....core.usecases.accounts.access import authenticate
from ....core.usecases.test_clock import test_clock_of
from ....ports.bundle import Ports
from ...telemetry.logs import of_account
from .errors import endpoint_not_found
from .headers import headers_of


async def enter(ports: Ports, scope: HTTPScope, known: dict[bytes, bytes], sandbox: bool) -> Caller:
    """Who holds the key pair; the rest of the request is his, and in his account's time. The sandbox is not there for
    live keys (docs/sandbox.md "The calls"). Raises: Refusal Unauthorized, NOT_FOUND."""
    api_key, secret = known.get(b"x-api-key", b""), known.get(b"x-api-secret", b"")
    caller = await authenticate(ports, api_key.decode("latin-1"), secret.decode("latin-1"))
    scope["auth"] = caller
    of_account(caller.account_id, caller.mode)
    ports.clock.enter(test_clock_of(caller.account, caller.mode))
    if sandbox and caller.mode is not TEST:
        raise endpoint_not_found()
    return caller


def authorized(ports: Ports, *, sandbox: bool) -> Guard:
    """The same as a guard of the framework's, which leaves the caller in the scope.

    It is `async`, because the framework sends a plain function to a thread.
    """

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        scope: HTTPScope = connection.scope  # type: ignore[assignment]  # it stands before routes of HTTP only
        await enter(ports, scope, headers_of(scope), sandbox)

    return guard
