"""Every operation of the interface, one row each: what goes in, what comes out, and how it is refused. A test holds the
rows against the application's routes, and real answers against the document that is made of them (openapi.py)."""

import msgspec

from ....core.domain.payments.orders import PaymentOrder
from ....core.domain.payments.proofs import ProofOrder
from ....core.usecases.gateways.gateways import GatewaySimulation
from ....core.usecases.operators.review import Review
from ....core.usecases.sandbox.sandbox import PaymentSimulation
from ....core.usecases.webhooks.events import EventRange
from ..events import EndpointView, EventsView, EventView, TestView, WholeEventView
from ..feed import LONGEST_WAIT, LettersView
from ..gateways import GatewayView
from ..health import Health
from ..proofs import ProofView
from ..sandbox import ForgottenView
from ..terminals import MethodView
from ..views import PaymentsView, PaymentView
from .charges import CHARGES
from .exchanges import EXCHANGES
from .kyc import KYC
from .model import API, MOMENT, PAGES, UUID, Operation, Query, Refusals
from .money import MONEY
from .refunds import REFUNDS
from .sandbox_clock import SANDBOX_CLOCK
from .subscriptions import SUBSCRIPTIONS


class SbpLink(msgspec.Struct, frozen=True, kw_only=True):
    """The bank's own link; null for payments by an exchange terminal, and once it cannot be paid any more."""

    sbp_link: str | None


class ResendCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events are being sent again."""

    events: int


_NO_PAYMENT: Refusals = {404: ("PAYMENT_NOT_FOUND",)}
_NO_EVENT: Refusals = {404: ("EVENT_NOT_FOUND",)}

_PAYMENTS = (
    Operation(
        "post",
        f"{API}/payments",
        "Payments",
        "Take a payment",
        body=PaymentOrder,
        answer=PaymentView,
        creates=True,
        refusals={
            400: (
                "INVALID_AMOUNT",
                "AMOUNT_BELOW_MINIMUM",
                "SHOP_NOT_FOUND",
                "METHOD_SELECTION_DISABLED",
                "METHOD_NOT_AVAILABLE",
                "KYC_REQUIRED",
                "KYC_PROCESSING",
                "KYC_FAILED",
                "PAYMENT_ROUTE_UNAVAILABLE",
            ),
            403: ("SHOP_DISABLED",),
            422: ("VALIDATION_ERROR", "PAYMENT_UNAVAILABLE", "SHOP_MARKUP_NOT_SET", "PAYER_DATA_REQUIRED"),
            502: ("PROVIDER_ERROR",),
            503: ("PAYMENT_ROUTE_UNAVAILABLE", "PROVIDER_NOT_CONFIGURED"),
        },
    ),
    Operation(
        "get",
        f"{API}/payments",
        "Payments",
        "Payments, the newest first",
        answer=PaymentsView,
        query=(
            *PAGES,
            Query("shop_id", "Of this shop only.", UUID),
            Query("status", "A payment status, in any case."),
            *(Query(name, "Exactly this.") for name in ("external_id", "payment_method", "subscription_id")),
            Query("created_from", "From this moment on.", MOMENT),
            Query("created_to", "Until before this moment.", MOMENT),
        ),
        refusals={400: ("SHOP_NOT_FOUND",)},
    ),
    Operation(
        "get", f"{API}/payments/{{payment_id}}", "Payments", "A payment", answer=PaymentView, refusals=_NO_PAYMENT
    ),
    Operation(
        "get",
        f"{API}/payments/{{payment_id}}/sbp-link",
        "Payments",
        "The bank's own link of a payment",
        answer=SbpLink,
        refusals={403: ("DIRECT_LINK_NOT_ALLOWED",), **_NO_PAYMENT},
    ),
    Operation(
        "post",
        f"{API}/payments/{{payment_id}}/delivery-proof",
        "Payments",
        "Submit the hash of the USDT transfer to the client",
        body=ProofOrder,
        answer=ProofView,
        refusals={
            400: ("FEATURE_NOT_ENABLED",),
            **_NO_PAYMENT,
            409: ("INVALID_STATUS", "DELIVERY_PROOF_LOCKED", "DELIVERY_PROOF_CONFLICT"),
        },
    ),
    Operation(
        "get",
        f"{API}/payments/{{payment_id}}/delivery-proof",
        "Payments",
        "How the delivery proof stands",
        answer=ProofView,
        refusals={400: ("FEATURE_NOT_ENABLED",), **_NO_PAYMENT},
    ),
    Operation(
        "get",
        f"{API}/payment-methods",
        "Payments",
        "The terminals that may be chosen",
        answer=list[MethodView],
        refusals={403: ("METHOD_SELECTION_DISABLED",)},
    ),
    Operation(
        "get",
        f"{API}/payment-methods/{{method_id}}/exchange-rate",
        "Payments",
        "No longer supported",
        refusals={404: ("EXCHANGE_RATE_NOT_SUPPORTED",)},
    ),
)

_EVENTS = (
    Operation(
        "get",
        f"{API}/events",
        "Events",
        "Events, the newest first",
        answer=EventsView,
        query=(
            *PAGES,
            *(Query(name, "Exactly this.") for name in ("type", "object_id", "delivery_status")),
            Query("from", "From this moment on.", MOMENT),
            Query("to", "Until before this moment.", MOMENT),
        ),
    ),
    Operation(
        "get",
        f"{API}/events/{{event_id}}",
        "Events",
        "An event with its payload and every attempt",
        answer=WholeEventView,
        refusals=_NO_EVENT,
    ),
    Operation(
        "post",
        f"{API}/events/{{event_id}}/resend",
        "Events",
        "Send an event again",
        answer=EventView,
        refusals=_NO_EVENT,
    ),
    Operation(
        "post",
        f"{API}/events/resend",
        "Events",
        "Send all events of a range again",
        body=EventRange,
        answer=ResendCount,
    ),
    Operation("get", f"{API}/webhook-endpoint", "Events", "How the receiver does", answer=EndpointView),
    Operation(
        "post",
        f"{API}/webhook-endpoint/test",
        "Events",
        "Post a test event to the receiver now",
        answer=TestView,
        refusals={409: ("INVALID_STATE",)},
    ),
)

_SANDBOX = (
    Operation(
        "post",
        f"{API}/sandbox/payments/{{payment_id}}/simulate",
        "Sandbox",
        "Let the bank report something about a payment",
        body=PaymentSimulation,
        answer=PaymentView,
        refusals={404: ("PAYMENT_NOT_FOUND", "NOT_FOUND")},
    ),
    Operation(
        "post",
        f"{API}/sandbox/payments/{{payment_id}}/resolve",
        "Sandbox",
        "Play the review of an amount mismatch",
        body=Review,
        answer=PaymentView,
        refusals={404: ("PAYMENT_NOT_FOUND", "NOT_FOUND"), 409: ("INVALID_STATUS",)},
    ),
    Operation(
        "post",
        f"{API}/sandbox/gateways/{{gateway_id}}/simulate",
        "Sandbox",
        "Play a status with a gateway, for this account only",
        body=GatewaySimulation,
        answer=GatewayView,
        refusals={404: ("GATEWAY_NOT_FOUND", "NOT_FOUND")},
    ),
    Operation(
        "delete",
        f"{API}/sandbox/data",
        "Sandbox",
        "Forget the account's test objects",
        answer=ForgottenView,
        refusals={404: ("NOT_FOUND",)},
    ),
    Operation(
        "get",
        f"{API}/sandbox/letters",
        "Sandbox",
        "Follow the test events, signed, in the order of a cursor",
        answer=LettersView,
        query=(
            Query("after", "A cursor, `beginning` (the default) or `now`."),
            Query("wait", "Seconds to wait for an event.", {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT}),
            Query("types", "Event types with commas; without: all."),
        ),
        refusals={404: ("NOT_FOUND",)},
    ),
)

_HEALTH = tuple(
    Operation(
        method="get",
        path=path,
        tag="Health",
        summary="Whether the service works; needs no key",
        answer=Health,
        failing=503,
        keyed=False,
    )
    for path in ("/health", f"{API}/health")
)

OPERATIONS: tuple[Operation, ...] = (
    *_PAYMENTS,
    *REFUNDS,
    *MONEY,
    *SANDBOX_CLOCK,
    *KYC,
    *EXCHANGES,
    *SUBSCRIPTIONS,
    *CHARGES,
    *_EVENTS,
    *_SANDBOX,
    *_HEALTH,
)
