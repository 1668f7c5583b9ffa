"""Terminals over HTTP, as merchants choose them (docs/payments.md "Terminals")."""

from collections.abc import Sequence

import msgspec
from litestar import Response, get

from ...core.domain.accounts.terminals import Terminal
from ...core.domain.errors import Refusal
from ...core.usecases.accounts.terminals import list_methods
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import answer
from .door.routing import Router


class MethodView(msgspec.Struct, frozen=True, kw_only=True):
    """One element of GET /payment-methods."""

    method_id: str
    payment_method: str
    label: str
    required_fields: Sequence[str]


def method_view(terminal: Terminal) -> MethodView:
    """A terminal as merchants see it."""
    return MethodView(
        method_id=terminal.id,
        payment_method=terminal.payment_method,
        label=terminal.label,
        required_fields=terminal.required_fields,
    )


def methods_router(ports: Ports) -> Router:
    """GET /payment-methods, GET /payment-methods/{method_id}/exchange-rate."""

    @get("/")
    async def every(request: ApiRequest) -> Response[bytes]:
        return answer([method_view(terminal) for terminal in await list_methods(ports, request.auth)])

    @get("/{_:str}/exchange-rate")
    async def rate() -> Response[bytes]:
        # For every method, whatever the id, and whether or not terminals are on (docs/payments.md "Terminals").
        raise Refusal("EXCHANGE_RATE_NOT_SUPPORTED", "Methods have no rate of their own; see GET /rates")

    return Router("/payment-methods", route_handlers=[every, rate])
