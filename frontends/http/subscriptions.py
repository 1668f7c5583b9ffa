"""HTTP API of subscriptions, without business rules (docs/subscriptions.md "Subscriptions"; docs/sandbox.md "The
calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.accounts.key_terms import Right
from ...core.domain.days import iso_or_none
from ...core.domain.payments.payments import BindingCharge
from ...core.domain.subscriptions.orders import SubscriptionOrder
from ...core.domain.subscriptions.patches import SubscriptionPatch
from ...core.domain.subscriptions.periods import Interval
from ...core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ...core.usecases.common.encrypted import binding_url
from ...core.usecases.common.paging import Page
from ...core.usecases.sandbox.subscriptions import SubscriptionSimulation, simulate_subscription
from ...core.usecases.subscriptions.list import SubscriptionFilter, list_subscriptions
from ...core.usecases.subscriptions.subscriptions import (
    cancel_subscription,
    create_subscription,
    get_subscription,
    patch_subscription,
    rebind_subscription,
)
from ...ports.bundle import Ports
from .edge.answers import answer, made
from .edge.bodies import page_of
from .edge.operation import FOUND_BY, PAGES, ApiRequest, Operation, Query, Refusals
from .views import Pagination, pagination


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription (docs/subscriptions.md "Making one")."""

    id: Annotated[str, shared.ID]
    status: Annotated[str, shared.STATUS, shared.among(SubscriptionStatus)]
    past_due: Annotated[
        bool, Meta(description="Whether the mandate is overdue at the bank; the status does not change")
    ]
    rebind_required: Annotated[
        bool | UnsetType, Meta(description="Whether the mandate is lost; present only when true")
    ] = UNSET
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    interval: Annotated[str, Meta(description="Unit of the period"), shared.among(Interval)]
    interval_count: Annotated[
        int, Meta(description="Units per period: up to 365 days, 52 weeks or 12 months; default 1")
    ]
    cap_amount_rub: Annotated[str, Meta(description="Largest single charge; equals `amount_rub` on new subscriptions")]
    cap_window_rub: Annotated[
        str | UnsetType, Meta(description="Largest sum of charges in a period; only on old subscriptions")
    ] = UNSET
    description: Annotated[str, Meta(description="Shown to the payer")]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    binding_url: Annotated[str | None, Meta(description="Page where the payer confirms the mandate")]
    binding_url_pending: Annotated[bool, Meta(description="The link is not ready yet; an event follows")]
    binding_charge: Annotated[
        str,
        Meta(description="`first`: binding makes the first charge; `none`: a symbolic 1 RUB that is not debited"),
        shared.among(BindingCharge),
    ]
    current_period_start: Annotated[str | None, Meta(description="Start of the paid period")]
    current_period_end: Annotated[str | None, Meta(description="End of the paid period")]
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class SubscriptionsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[SubscriptionView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


class _ShopOnly(msgspec.Struct, frozen=True):
    shop_id: str | None = None


def subscription_view(ports: Ports, subscription: Subscription) -> SubscriptionView:
    """Return the subscription object of the API."""
    return SubscriptionView(
        id=subscription.id,
        status=subscription.status.value,
        past_due=subscription.past_due,
        rebind_required=True if subscription.rebind_required else UNSET,
        amount_rub=str(subscription.amount),
        interval=subscription.interval.value,
        interval_count=subscription.interval_count,
        cap_amount_rub=str(subscription.cap_amount),
        cap_window_rub=UNSET if subscription.cap_window is None else str(subscription.cap_window),
        description=subscription.description,
        external_id=subscription.external_id,
        binding_url=binding_url(ports.vault, subscription),
        binding_url_pending=subscription.binding_url_pending,
        binding_charge=subscription.binding_charge.value,
        current_period_start=iso_or_none(subscription.current_period_start),
        current_period_end=iso_or_none(subscription.current_period_end),
        sandbox=True if subscription.mode is Mode.TEST else UNSET,
    )


def subscriptions_view(ports: Ports, page: Page[Subscription]) -> SubscriptionsView:
    """Return a page of subscriptions."""
    return SubscriptionsView(
        data=[subscription_view(ports, each) for each in page.records], pagination=pagination(page)
    )


def named_shop(body: bytes) -> str | None | UnsetType:
    """Return the shop named in a repeated body; UNSET if the body cannot be read (docs/concepts.md "Idempotency")."""
    try:
        return msgspec.json.decode(body, type=_ShopOnly).shop_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSET


async def create(ports: Ports, caller: Caller, request: ApiRequest[SubscriptionOrder]) -> ASGIApp:
    subscription = await create_subscription(ports, caller, request.key, request.read, lambda: named_shop(request.body))
    return made(subscription_view(ports, subscription.resource), replayed=subscription.replayed)


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    number, size = page_of(request.query)
    asked = request.asked(SubscriptionFilter)
    return answer(subscriptions_view(ports, await list_subscriptions(ports, caller, asked, number, size)))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(subscription_view(ports, await get_subscription(ports, caller, request.id)))


async def change(ports: Ports, caller: Caller, request: ApiRequest[SubscriptionPatch]) -> ASGIApp:
    return answer(subscription_view(ports, await patch_subscription(ports, caller, request.id, request.read())))


async def cancel(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(subscription_view(ports, await cancel_subscription(ports, caller, request.id)))


async def rebind(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    subscription = await rebind_subscription(ports, caller, request.id, request.key)
    return made(subscription_view(ports, subscription.resource), replayed=subscription.replayed)


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[SubscriptionSimulation]) -> ASGIApp:
    return answer(subscription_view(ports, await simulate_subscription(ports, caller, request.id, request.read)))


_NO_SUBSCRIPTION: Refusals = {404: ("SUBSCRIPTION_NOT_FOUND",)}
_IN_STATE: Refusals = {**_NO_SUBSCRIPTION, 409: ("INVALID_STATE",)}
_NO_ROUTE = "PAYMENT_ROUTE_UNAVAILABLE"
_NO_BANK = "PROVIDER_NOT_CONFIGURED"

SUBSCRIPTIONS = (
    Operation(
        "create_subscription",
        "post",
        "/api/v1/subscriptions",
        "Subscriptions",
        "Create a subscription, which the payer confirms at its binding_url",
        create,
        body=SubscriptionOrder,
        answer=SubscriptionView,
        creates=True,
        refusals={
            400: (
                "INVALID_AMOUNT",
                "SHOP_NOT_FOUND",
                "METHOD_NOT_AVAILABLE",
                "METHOD_SELECTION_DISABLED",
                "KYC_REQUIRED",
                "KYC_PROCESSING",
                "KYC_FAILED",
                _NO_ROUTE,
            ),
            403: ("SHOP_DISABLED",),
            422: ("SHOP_MARKUP_NOT_SET", "PAYER_DATA_REQUIRED", "PAYMENT_UNAVAILABLE"),
            503: (_NO_ROUTE, _NO_BANK),
        },
        right=Right.PAYMENTS,
    ),
    Operation(
        "list_subscriptions",
        "get",
        "/api/v1/subscriptions",
        "Subscriptions",
        "List subscriptions, newest first",
        page,
        answer=SubscriptionsView,
        query=(
            *PAGES,
            Query("status", "Only in this status; upper or lower case.", {"enum": [*SubscriptionStatus]}),
            *FOUND_BY,
        ),
    ),
    Operation(
        "get_subscription",
        "get",
        "/api/v1/subscriptions/{subscription_id}",
        "Subscriptions",
        "Get a subscription",
        one,
        answer=SubscriptionView,
        refusals=_NO_SUBSCRIPTION,
    ),
    Operation(
        "update_subscription",
        "patch",
        "/api/v1/subscriptions/{subscription_id}",
        "Subscriptions",
        "Change the amounts from the next charge on",
        change,
        body=SubscriptionPatch,
        answer=SubscriptionView,
        refusals={**_IN_STATE, 400: ("INVALID_AMOUNT", _NO_ROUTE), 503: (_NO_ROUTE, _NO_BANK)},
        right=Right.PAYMENTS,
    ),
    Operation(
        "cancel_subscription",
        "post",
        "/api/v1/subscriptions/{subscription_id}/cancel",
        "Subscriptions",
        "Cancel a subscription for good",
        cancel,
        answer=SubscriptionView,
        refusals=_IN_STATE,
        right=Right.PAYMENTS,
    ),
    Operation(
        "rebind_subscription",
        "post",
        "/api/v1/subscriptions/{subscription_id}/rebind",
        "Subscriptions",
        "Get a new binding link for a subscription that lost its mandate",
        rebind,
        answer=SubscriptionView,
        creates=True,
        refusals={**_IN_STATE, 400: (_NO_ROUTE,), 503: (_NO_ROUTE, _NO_BANK)},
        right=Right.PAYMENTS,
    ),
    Operation(
        "simulate_subscription",
        "post",
        "/api/v1/sandbox/subscriptions/{subscription_id}/simulate",
        "Sandbox",
        "Simulate an action of the payer or the bank of a subscription",
        simulate,
        body=SubscriptionSimulation,
        answer=SubscriptionView,
        refusals={
            400: (_NO_ROUTE,),
            404: ("SUBSCRIPTION_NOT_FOUND", "NOT_FOUND"),
            409: ("INVALID_STATE",),
            503: (_NO_ROUTE, _NO_BANK, "PROVIDER_UNAVAILABLE"),
        },
    ),
)
