"""Charges of subscriptions over HTTP. No rule lives here (docs/subscriptions.md "Charging";
docs/sandbox.md "The calls")."""

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from ...core.domain.days import iso_or_none
from ...core.domain.subscriptions.charge_decisions import ChargeWindow
from ...core.domain.subscriptions.charges import ChargeOrder
from ...core.usecases.sandbox.charges import NextChargeWish, wish_next_charge
from ...core.usecases.subscriptions.charges import create_charge, list_charges, read_charge_window
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer, created
from .door.bodies import body_reader, page_of
from .door.routing import Router
from .views import payment_view, payments_view


class ChargeWindowView(msgspec.Struct, frozen=True, kw_only=True):
    """The period that a charge would be for, and whether one may be made now (docs/subscriptions.md "Charging"). All
    moments in UTC."""

    period_ref: str | None
    opens_at: str | None
    closes_at: str | None
    attempts_used: int
    attempts_max: int | None
    window_ends_at: str | None
    can_charge: bool
    reason: str | None
    next_allowed_at: str | None


def charge_window_view(window: ChargeWindow) -> ChargeWindowView:
    """The window as merchants see it."""
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


def charges_router(ports: Ports) -> Router:
    """POST and GET /subscriptions/{id}/charges, GET /subscriptions/{id}/charge-window."""

    @post("/charges")
    async def charge(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        made = await create_charge(
            ports,
            request.auth,
            subscription_id,
            request.headers.get("idempotency-key"),
            await body_reader(request, ChargeOrder),
        )
        view = payment_view(ports, made.payment)
        if made.is_new or made.replayed:
            return created(view, replayed=made.replayed)
        return answer(view)

    @get("/charges")
    async def page(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        query = request.query_params
        found = await list_charges(ports, request.auth, subscription_id, lambda: page_of(query))
        return answer(payments_view(ports, found))

    @get("/charge-window")
    async def window(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        return answer(charge_window_view(await read_charge_window(ports, request.auth, subscription_id)))

    return Router("/subscriptions/{subscription_id:str}", route_handlers=[charge, page, window])


def sandbox_charges_router(ports: Ports) -> Router:
    """POST /sandbox/subscriptions/{id}/next-charge, for test keys only. Answers with the wish."""

    @post("/next-charge", status_code=200)
    async def next_charge(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        wish = await wish_next_charge(ports, request.auth, subscription_id, await body_reader(request, NextChargeWish))
        return answer(wish)

    return Router(
        "/sandbox/subscriptions/{subscription_id:str}", route_handlers=[next_charge], guards=[require_test_mode]
    )
