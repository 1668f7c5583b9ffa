"""The operations about subscriptions, without their charges."""

from ....core.domain.subscriptions.orders import SubscriptionOrder
from ....core.domain.subscriptions.patches import SubscriptionPatch
from ....core.usecases.sandbox.subscriptions import SubscriptionSimulation
from ..subscriptions import SubscriptionsView, SubscriptionView
from .model import API, PAGES, Operation, Query, Refusals

_PATH = f"{API}/subscriptions/{{subscription_id}}"
_NO_SUBSCRIPTION: Refusals = {404: ("SUBSCRIPTION_NOT_FOUND",)}
_IN_STATE: Refusals = {**_NO_SUBSCRIPTION, 409: ("INVALID_STATE",)}
_NO_ROUTE = "PAYMENT_ROUTE_UNAVAILABLE"
_NO_BANK = "PROVIDER_NOT_CONFIGURED"

SUBSCRIPTIONS = (
    Operation(
        "post",
        f"{API}/subscriptions",
        "Subscriptions",
        "Make a subscription, to be confirmed by the payer at its binding_url",
        body=SubscriptionOrder,
        answer=SubscriptionView,
        creates=True,
        refusals={
            400: (
                "INVALID_AMOUNT",
                "SHOP_NOT_FOUND",
                "METHOD_NOT_AVAILABLE",
                "METHOD_SELECTION_DISABLED",
                _NO_ROUTE,
            ),
            403: ("SHOP_DISABLED",),
            422: ("SHOP_MARKUP_NOT_SET", "PAYER_DATA_REQUIRED", "PAYMENT_UNAVAILABLE"),
            503: (_NO_ROUTE, _NO_BANK),
        },
    ),
    Operation(
        "get",
        f"{API}/subscriptions",
        "Subscriptions",
        "Subscriptions, the newest first",
        answer=SubscriptionsView,
        query=(*PAGES, Query("status", "A subscription status, in any case.")),
    ),
    Operation("get", _PATH, "Subscriptions", "A subscription", answer=SubscriptionView, refusals=_NO_SUBSCRIPTION),
    Operation(
        "patch",
        _PATH,
        "Subscriptions",
        "Change the amounts, from the next charge on",
        body=SubscriptionPatch,
        answer=SubscriptionView,
        refusals={**_IN_STATE, 400: ("INVALID_AMOUNT",)},
    ),
    Operation(
        "post",
        f"{_PATH}/cancel",
        "Subscriptions",
        "Cancel a subscription for good",
        answer=SubscriptionView,
        refusals=_IN_STATE,
    ),
    Operation(
        "post",
        f"{_PATH}/rebind",
        "Subscriptions",
        "Give the payer of a lost mandate a link to bind anew",
        answer=SubscriptionView,
        creates=True,
        refusals={**_IN_STATE, 400: (_NO_ROUTE,), 503: (_NO_ROUTE, _NO_BANK)},
    ),
    Operation(
        "post",
        f"{API}/sandbox/subscriptions/{{subscription_id}}/simulate",
        "Sandbox",
        "Let the payer or the bank of a subscription act",
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
