"""The operations about charges of subscriptions."""

from ....core.domain.subscriptions.charges import ChargeOrder
from ....core.usecases.sandbox.charges import NextChargeWish
from ..charges import ChargeWindowView
from ..views import PaymentsView, PaymentView
from .model import API, PAGES, Operation, Refusals

_PATH = f"{API}/subscriptions/{{subscription_id}}"
_NO_SUBSCRIPTION: Refusals = {404: ("SUBSCRIPTION_NOT_FOUND",)}

CHARGES = (
    Operation(
        "post",
        f"{_PATH}/charges",
        "Subscriptions",
        "Charge the payer by the mandate, once per period",
        body=ChargeOrder,
        answer=PaymentView,
        creates=True,
        refusals={
            **_NO_SUBSCRIPTION,
            400: ("INVALID_AMOUNT",),
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
    ),
    Operation(
        "get",
        f"{_PATH}/charges",
        "Subscriptions",
        "The charges of a subscription, the newest first; external_id null marks the binding's",
        answer=PaymentsView,
        query=PAGES,
        refusals=_NO_SUBSCRIPTION,
    ),
    Operation(
        "get",
        f"{_PATH}/charge-window",
        "Subscriptions",
        "The period that a charge would be for, and whether one may be made now",
        answer=ChargeWindowView,
        refusals=_NO_SUBSCRIPTION,
    ),
    Operation(
        "post",
        f"{API}/sandbox/subscriptions/{{subscription_id}}/next-charge",
        "Sandbox",
        "What the bank answers to the next charge",
        body=NextChargeWish,
        answer=NextChargeWish,
        refusals={404: ("SUBSCRIPTION_NOT_FOUND", "NOT_FOUND"), 409: ("INVALID_STATE",)},
    ),
)
