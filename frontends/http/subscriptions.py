"""Subscriptions over HTTP. No rule lives here (docs/subscriptions.md "Subscriptions"; docs/sandbox.md "The calls")."""

from typing import Any

import msgspec
from litestar import Response, get, patch, post
from litestar.params import FromPath
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso_or_none
from ...core.domain.subscriptions.orders import SubscriptionOrder
from ...core.domain.subscriptions.patches import SubscriptionPatch
from ...core.domain.subscriptions.subscriptions import Subscription
from ...core.usecases.paging import Page
from ...core.usecases.sandbox.subscriptions import SubscriptionSimulation, simulate_subscription
from ...core.usecases.subscriptions.list import list_subscriptions
from ...core.usecases.subscriptions.subscriptions import (
    cancel_subscription,
    create_subscription,
    get_subscription,
    patch_subscription,
    rebind_subscription,
)
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer, created
from .door.bodies import body_reader, page_of, read_body
from .door.routing import Router
from .views import Pagination, pagination


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True):
    """See docs/subscriptions.md "Making one"."""

    id: str
    status: str
    past_due: bool
    rebind_required: bool | UnsetType = UNSET
    amount_rub: str
    interval: str
    interval_count: int
    cap_amount_rub: str
    cap_window_rub: str | UnsetType = UNSET
    description: str
    external_id: str | None
    binding_url: str | None
    binding_url_pending: bool
    binding_charge: str
    current_period_start: str | None
    current_period_end: str | None
    sandbox: bool | UnsetType = UNSET


class SubscriptionsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[SubscriptionView]
    pagination: Pagination


class _ShopOnly(msgspec.Struct, frozen=True):
    shop_id: str | None = None


def subscription_view(subscription: Subscription) -> SubscriptionView:
    """The subscription object of the interface."""
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
        binding_url=subscription.binding_url,
        binding_url_pending=subscription.binding_url_pending,
        binding_charge=subscription.binding_charge.value,
        current_period_start=iso_or_none(subscription.current_period_start),
        current_period_end=iso_or_none(subscription.current_period_end),
        sandbox=True if subscription.mode is Mode.TEST else UNSET,
    )


def subscriptions_view(page: Page[Subscription]) -> SubscriptionsView:
    """A page of subscriptions."""
    return SubscriptionsView(data=[subscription_view(each) for each in page.records], pagination=pagination(page))


def named_shop(body: bytes) -> str | None | UnsetType:
    """The shop that a repeated body names; UNSET where nothing can be read of it (docs/concepts.md "Idempotency")."""
    try:
        return msgspec.json.decode(body, type=_ShopOnly).shop_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSET


def subscriptions_router(ports: Ports) -> Router:
    """POST and GET /subscriptions, GET and PATCH /subscriptions/{id}, and its cancel and rebind."""

    @post("/")
    async def create(request: ApiRequest) -> Response[bytes]:
        body = await request.body()
        made = await create_subscription(
            ports,
            request.auth,
            request.headers.get("idempotency-key"),
            lambda: read_body(body, request.headers.get("content-type"), SubscriptionOrder),
            lambda: named_shop(body),
        )
        return created(subscription_view(made.resource), replayed=made.replayed)

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        query: Any = request.query_params
        number, size = page_of(query)
        found = await list_subscriptions(ports, request.auth, query.get("status"), number, size)
        return answer(subscriptions_view(found))

    @get("/{subscription_id:str}")
    async def one(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        return answer(subscription_view(await get_subscription(ports, request.auth, subscription_id)))

    @patch("/{subscription_id:str}")
    async def change(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        wish = read_body(await request.body(), request.headers.get("content-type"), SubscriptionPatch)
        return answer(subscription_view(await patch_subscription(ports, request.auth, subscription_id, wish)))

    @post("/{subscription_id:str}/cancel", status_code=200)
    async def cancel(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        return answer(subscription_view(await cancel_subscription(ports, request.auth, subscription_id)))

    @post("/{subscription_id:str}/rebind")
    async def rebind(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        key = request.headers.get("idempotency-key")
        made = await rebind_subscription(ports, request.auth, subscription_id, key)
        return created(subscription_view(made.resource), replayed=made.replayed)

    return Router("/subscriptions", route_handlers=[create, page, one, change, cancel, rebind])


def sandbox_subscriptions_router(ports: Ports) -> Router:
    """POST /sandbox/subscriptions/{id}/simulate, for test keys only (docs/sandbox.md "The calls")."""

    @post("/{subscription_id:str}/simulate", status_code=200)
    async def simulate(request: ApiRequest, subscription_id: FromPath[str]) -> Response[bytes]:
        simulated = await simulate_subscription(
            ports, request.auth, subscription_id, await body_reader(request, SubscriptionSimulation)
        )
        return answer(subscription_view(simulated))

    return Router("/sandbox/subscriptions", route_handlers=[simulate], guards=[require_test_mode])
