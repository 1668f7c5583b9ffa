"""HTTP API of subscription charges, without business rules (docs/subscriptions.md "Charging"; docs/sandbox.md "The
calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso_or_none
from ...core.domain.subscriptions.charge_decisions import ChargeWindow
from ...core.domain.subscriptions.charges import ChargeOrder
from ...core.usecases.common.paging import ListFilter
from ...core.usecases.sandbox.charges import NextChargeWish, wish_next_charge
from ...core.usecases.subscriptions.charges import create_charge, list_charges, read_charge_window
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FOUND_BY, PAGES, ApiRequest, Operation, Refusals
from .records import PaymentView, payment_view
from .views import PaymentsView, payments_view


class ChargeWindowView(msgspec.Struct, frozen=True, kw_only=True):
    """Period of the next charge, and whether a charge is allowed now (docs/subscriptions.md "Charging"). All times are
    in UTC."""

    period_ref: Annotated[str | None, shared.PERIOD_REF]
    opens_at: Annotated[str | None, Meta(description="Start of the period")]
    closes_at: Annotated[str | None, Meta(description="End of the period")]
    attempts_used: Annotated[int, Meta(description="Attempts made in this period")]
    attempts_max: Annotated[int | None, Meta(description="Attempts allowed in a period")]
    window_ends_at: Annotated[
        str | None, Meta(description="End of the hours for attempts; null before the first attempt")
    ]
    can_charge: Annotated[bool, Meta(description="Whether a charge is allowed now")]
    reason: Annotated[str | None, Meta(description="The error code of a charge made now, or `CHARGE_PENDING`")]
    next_allowed_at: Annotated[str | None, shared.NEXT_ALLOWED_AT]


def charge_window_view(window: ChargeWindow) -> ChargeWindowView:
    """Return the charge window as merchants see it."""
    return ChargeWindowView(
        period_ref=window.period_ref,
        opens_at=iso_or_none(window.opens_at),
        closes_at=iso_or_none(window.closes_at),
        attempts_used=window.attempts_used,
        attempts_max=window.attempts_max,
        window_ends_at=iso_or_none(window.window_ends_at),
        can_charge=window.can_charge,
        reason=window.reason,
        next_allowed_at=iso_or_none(window.next_allowed_at),
    )


async def charge(ports: Ports, caller: Caller, request: ApiRequest[ChargeOrder]) -> ASGIApp:
    charged = await create_charge(ports, caller, request.id, request.key, request.read)
    view = payment_view(ports, charged.payment)
    if charged.is_new or charged.replayed:
        return made(view, replayed=charged.replayed)
    return answer(view)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    asked = request.asked(ListFilter)
    found = await list_charges(ports, caller, request.id, asked, lambda: page_of(request.query))
    return answer(payments_view(ports, found))


async def window(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(charge_window_view(await read_charge_window(ports, caller, request.id)))


async def next_charge(ports: Ports, caller: Caller, request: ApiRequest[NextChargeWish]) -> ASGIApp:
    """Handle POST /sandbox/subscriptions/{id}/next-charge. The answer repeats the requested outcome."""
    return answer(await wish_next_charge(ports, caller, request.id, request.read))


_NO_SUBSCRIPTION: Refusals = {404: ("SUBSCRIPTION_NOT_FOUND",)}

CHARGES = (
    Operation(
        "create_charge",
        "post",
        "/api/v1/subscriptions/{subscription_id}/charges",
        "Subscriptions",
        "Charge the payer by the mandate, once per period",
        charge,
        body=ChargeOrder,
        answer=PaymentView,
        creates=True,
        refusals={
            **_NO_SUBSCRIPTION,
            400: ("INVALID_AMOUNT", "PAYMENT_ROUTE_UNAVAILABLE"),
            409: (
                "CHARGE_MANDATE_INACTIVE",
                "CHARGE_BEFORE_WINDOW",
                "RECURRING_CHARGE_EXHAUSTED",
                "CHARGE_PERIOD_OCCUPIED",
                "CAP_EXCEEDED",
            ),
            501: ("RECURRING_NOT_SUPPORTED",),
            502: ("PROVIDER_ERROR",),
            503: ("PROVIDER_NOT_CONFIGURED", "PROVIDER_UNAVAILABLE"),
        },
        right=Right.PAYMENTS,
    ),
    Operation(
        "list_charges",
        "get",
        "/api/v1/subscriptions/{subscription_id}/charges",
        "Subscriptions",
        "List the charges of a subscription, newest first; a binding charge has external_id null",
        page,
        answer=PaymentsView,
        query=(*PAGES, *FOUND_BY),
        refusals=_NO_SUBSCRIPTION,
    ),
    Operation(
        "get_charge_window",
        "get",
        "/api/v1/subscriptions/{subscription_id}/charge-window",
        "Subscriptions",
        "Get the period of the next charge and whether a charge is allowed now",
        window,
        answer=ChargeWindowView,
        refusals=_NO_SUBSCRIPTION,
    ),
    Operation(
        "set_next_charge",
        "post",
        "/api/v1/sandbox/subscriptions/{subscription_id}/next-charge",
        "Sandbox",
        "Set the bank's answer to the next charge",
        next_charge,
        body=NextChargeWish,
        answer=NextChargeWish,
        refusals={404: ("SUBSCRIPTION_NOT_FOUND", "NOT_FOUND"), 409: ("INVALID_STATE",)},
    ),
)
