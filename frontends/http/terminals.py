"""HTTP API of the terminals that merchants choose from (docs/payments.md "Terminals")."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.terminals import Terminal
from ...core.domain.errors import Refusal
from ...core.usecases.accounts.terminals import list_methods
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation


class MethodView(msgspec.Struct, frozen=True, kw_only=True):
    """One element of GET /payment-methods."""

    method_id: Annotated[str, shared.METHOD_ID]
    payment_method: Annotated[str, shared.PAYMENT_METHOD]
    label: Annotated[str, Meta(description="Name for people")]
    required_fields: Annotated[Sequence[str], Meta(description="Fields required in every payment with this terminal")]


def method_view(terminal: Terminal) -> MethodView:
    """Return a terminal as merchants see it."""
    return MethodView(
        method_id=terminal.id,
        payment_method=terminal.payment_method,
        label=terminal.label,
        required_fields=terminal.required_fields,
    )


async def every(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    return answer([method_view(terminal) for terminal in await list_methods(ports, caller)])


async def rate(_: Ports, __: Caller, ___: ApiRequest[None]) -> ASGIApp:
    """Handle GET /payment-methods/{method_id}/exchange-rate: refuse for any id, even while terminals are off
    (docs/payments.md "Terminals")."""
    raise Refusal("EXCHANGE_RATE_NOT_SUPPORTED", "Methods have no rates; see GET /rates")


TERMINALS = (
    Operation(
        "list_payment_methods",
        "get",
        "/api/v1/payment-methods",
        "Payments",
        "List the terminals that you can choose",
        every,
        answer=list[MethodView],
        refusals={403: ("METHOD_SELECTION_DISABLED",)},
    ),
    Operation(
        "get_payment_method_rate",
        "get",
        "/api/v1/payment-methods/{method_id}/exchange-rate",
        "Payments",
        "No longer supported",
        rate,
        refusals={404: ("EXCHANGE_RATE_NOT_SUPPORTED",)},
    ),
)
