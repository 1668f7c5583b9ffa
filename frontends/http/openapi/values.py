"""Allowed values of fields that are plain text in the code: rules refuse other values, or they come from an enum."""

from collections.abc import Mapping
from typing import Any

from ....core.domain.gateways.gateways import GatewayReason, GatewayStatus
from ....core.domain.kyc.clients import ClientStatus, DocumentState
from ....core.domain.kyc.kyc import CONTENT_TYPES, UPLOAD_MAX, UserType
from ....core.domain.movements import MOVEMENT_KINDS, ObjectType
from ....core.domain.payments.payments import BindingCharge, FailureReason, PaymentStatus
from ....core.domain.payments.proofs import ProofNetwork, ProofStatus, RejectionReason
from ....core.domain.subscriptions.periods import Interval
from ....core.domain.subscriptions.subscriptions import SubscriptionStatus
from ....core.domain.webhooks.endpoints import ALL, DESCRIPTION_LONGEST
from ....core.domain.webhooks.events import DeliveryStatus, EventType
from ....core.domain.webhooks.static_headers import MOST as MOST_HEADERS
from ....core.domain.webhooks.static_headers import VALUE_LONGEST
from ....core.usecases.settlement.payout_items import CarryKind

Json = dict[str, Any]


def _or_null(values: Json) -> Json:
    """Allow null for an optional field."""
    return {"anyOf": [values, {"type": "null"}], "default": None}


_RUB = {"type": "string", "pattern": r"^[0-9]{1,10}(\.[0-9]{1,2})?$", "examples": ["1500.00"]}
_USDT = {"type": "string", "pattern": r"^[0-9]{1,10}(\.[0-9]{1,8})?$", "examples": ["100"]}
_RUSSIAN_PHONE = {"type": "string", "pattern": r"^\+7[0-9]{10}$", "examples": ["+79001234567"]}
_PHONE = {"type": "string", "pattern": r"^\+[0-9]{10,15}$", "examples": ["+79001234567"]}
_MOMENT = {"type": "string", "format": "date-time"}
_UUID = {"type": "string", "format": "uuid"}

_STATIC_HEADERS = {
    "type": "object",
    "maxProperties": MOST_HEADERS,
    "additionalProperties": {"type": "string", "minLength": 1, "maxLength": VALUE_LONGEST},
    "examples": [{"Authorization": "Bearer 7f3a"}],
}
_WANTED = _or_null({"type": "array", "items": {"enum": [ALL, *EventType]}})

VALUES: Mapping[tuple[str, str], Json] = {
    ("ErrorDetails", "next_allowed_at"): _MOMENT,
    ("ErrorDetails", "failure_reason"): {"enum": [*FailureReason]},
    ("PaymentOrder", "amount_rub"): _RUB,
    ("PaymentOrder", "method_id"): _or_null(_UUID),
    ("PaymentOrder", "shop_id"): _or_null(_UUID),
    ("PaymentOrder", "payment_method"): _or_null({"enum": ["sbp"]}),
    ("PaymentOrder", "external_id"): _or_null({"type": "string", "maxLength": 256}),
    ("PaymentOrder", "client_phone"): _or_null(_PHONE),
    ("PaymentOrder", "client_email"): _or_null({"type": "string", "maxLength": 254}),
    ("PaymentOrder", "description"): _or_null({"type": "string", "maxLength": 255}),
    ("PaymentOrder", "ttl_minutes"): _or_null({"type": "integer", "minimum": 1}),
    ("PaymentOrder", "webhook_url"): _or_null({"type": "string", "format": "uri", "maxLength": 2048}),
    ("Payer", "full_name"): {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^0-9,]+$"},
    ("Payer", "document_number"): {"type": "string", "pattern": r"^[0-9A-Za-z]{5,32}$"},
    ("Payer", "kyc_completed_at"): _or_null(_MOMENT),
    ("PaymentSimulation", "outcome"): {
        "enum": ["processing", "paid", "failed", "cancelled", "amount_mismatch", "expired"]
    },
    ("PaymentSimulation", "actual_amount_rub"): _or_null(_RUB),
    ("PaymentSimulation", "failure_reason"): _or_null({"enum": [*FailureReason]}),
    ("ProofOrder", "network"): {"enum": [*ProofNetwork]},
    ("ProofOrder", "tx_hash"): {"type": "string", "minLength": 1, "maxLength": 200},
    ("GatewaySimulation", "status"): {"enum": [*GatewayStatus]},
    ("Review", "outcome"): {"enum": ["paid", "failed"]},
    ("RefundSimulation", "outcome"): {"enum": ["completed", "rejected", "failed", "reversed"]},
    ("SubscriptionSimulation", "outcome"): {
        "enum": [
            *("confirm", "refuse", "link_ready", "no_link", "mandate_lost", "mandate_restored"),
            *("past_due", "past_due_cleared", "consent_ended"),
        ]
    },
    ("RefundOrder", "amount_rub"): _or_null(_RUB),
    ("RefundOrder", "external_id"): _or_null({"type": "string", "maxLength": 256}),
    ("RefundOrder", "reason"): _or_null({"type": "string", "maxLength": 255}),
    ("ChargeOrder", "amount_rub"): _RUB,
    ("ChargeOrder", "external_id"): _or_null({"type": "string", "maxLength": 256}),
    ("ExchangeOrder", "amount_usdt"): _USDT,
    ("ExchangeOrder", "client_phone"): _PHONE,
    ("ExchangeOrder", "client_bank_id"): {"type": "string", "pattern": "^bank[0-9]+$"},
    ("ExchangeOrder", "external_id"): _or_null({"type": "string", "maxLength": 40}),
    ("ExchangeSimulation", "amount_usdt"): _or_null(_USDT),
    ("ExchangeSimulation", "amount_rub"): _or_null(_RUB),
    ("ExchangeWish", "amount_usdt"): _or_null(_USDT),
    ("ExchangeWish", "amount_rub"): _or_null(_RUB),
    ("ExchangeWish", "client_phone"): _PHONE,
    ("ExchangeWish", "client_bank_id"): _or_null({"type": "string", "pattern": "^bank[0-9]+$"}),
    ("ExchangeWish", "external_id"): _or_null({"type": "string", "maxLength": 40}),
    ("EventRange", "from"): _MOMENT,
    ("EventRange", "to"): _MOMENT,
    ("EventRange", "type"): _or_null({"enum": [*EventType]}),
    ("EventRange", "delivery_status"): _or_null({"enum": [*DeliveryStatus]}),
    ("ClockWish", "to"): _or_null(_MOMENT),
    ("ClockWish", "seconds"): _or_null({"type": "integer", "minimum": 1, "maximum": 366 * 86400}),
    ("Payment", "status"): {"enum": [*PaymentStatus]},
    ("Payment", "failure_reason"): {"enum": [*FailureReason]},
    ("SubscriptionOrder", "amount_rub"): _RUB,
    ("SubscriptionOrder", "interval"): {"enum": [*Interval]},
    ("SubscriptionOrder", "description"): {"type": "string", "minLength": 1, "maxLength": 32},
    ("SubscriptionOrder", "shop_id"): _or_null(_UUID),
    ("SubscriptionOrder", "method_id"): _or_null(_UUID),
    ("SubscriptionOrder", "external_id"): _or_null({"type": "string", "maxLength": 256}),
    ("SubscriptionOrder", "client_ref"): _or_null({"type": "string", "maxLength": 256}),
    ("SubscriptionOrder", "client_phone"): _or_null({"type": "string", "maxLength": 32}),
    ("SubscriptionOrder", "success_url"): _or_null({"type": "string", "format": "uri", "maxLength": 2048}),
    ("SubscriptionOrder", "binding_charge"): _or_null({"enum": [*BindingCharge]}),
    ("SubscriptionPatch", "amount_rub"): _or_null(_RUB),
    ("SubscriptionPatch", "cap_amount_rub"): _or_null(_RUB),
    ("SubscriptionPatch", "cap_window_rub"): _or_null(_RUB),
    ("Subscription", "status"): {"enum": [*SubscriptionStatus]},
    ("Subscription", "interval"): {"enum": [*Interval]},
    ("Subscription", "binding_charge"): {"enum": [*BindingCharge]},
    ("Proof", "status"): {"enum": [*ProofStatus]},
    ("Proof", "reason"): {"enum": [*RejectionReason]},
    ("Event", "type"): {"enum": [*EventType]},
    ("Event", "delivery_status"): {"enum": [*DeliveryStatus]},
    ("WholeEvent", "type"): {"enum": [*EventType]},
    ("WholeEvent", "delivery_status"): {"enum": [*DeliveryStatus]},
    ("Letter", "type"): {"enum": [*EventType]},
    ("EventRange", "endpoint_id"): _or_null({"type": "string", "maxLength": 64}),
    ("EndpointOrder", "url"): {"type": "string", "format": "uri", "maxLength": 2048},
    ("EndpointOrder", "event_types"): _WANTED,
    ("EndpointOrder", "description"): _or_null({"type": "string", "maxLength": DESCRIPTION_LONGEST}),
    ("EndpointOrder", "headers"): _or_null(_STATIC_HEADERS),
    ("EndpointPatch", "headers"): _or_null(_STATIC_HEADERS),
    ("EndpointPatch", "url"): _or_null({"type": "string", "format": "uri", "maxLength": 2048}),
    ("EndpointPatch", "event_types"): _WANTED,
    ("EndpointPatch", "description"): _or_null({"type": "string", "maxLength": DESCRIPTION_LONGEST}),
    ("FurtherEndpoint", "event_types"): _or_null({"type": "array", "items": {"enum": [*EventType]}}),
    ("NewEndpoint", "event_types"): _or_null({"type": "array", "items": {"enum": [*EventType]}}),
    ("FurtherDelivery", "delivery_status"): {"enum": [*DeliveryStatus]},
    ("WebhookEndpoint", "event_types"): _or_null({"type": "array", "items": {"enum": [*EventType]}}),
    ("CheckOrder", "phone"): _RUSSIAN_PHONE,
    ("RegisterOrder", "phone"): _RUSSIAN_PHONE,
    ("RegisterOrder", "user_type"): {"enum": [*UserType, None]},
    ("UploadOrder", "content_type"): {"enum": [*CONTENT_TYPES]},
    ("UploadOrder", "size"): _or_null({"type": "integer", "minimum": 1, "maximum": UPLOAD_MAX}),
    ("Check", "status"): {"enum": ["not_required", "required", "processing", "verified", "failed"]},
    ("Registration", "status"): {"enum": ["required", "processing", "verified", "failed"]},
    ("Client", "kyc_status"): {"enum": [*ClientStatus]},
    ("ClientSimulation", "kyc_status"): {"enum": [*ClientStatus]},
    ("ClientSimulation", "phone"): _PHONE,
    ("KycDetails", "passport_state"): {"enum": [*DocumentState, None]},
    ("KycDetails", "address_state"): {"enum": [*DocumentState, None]},
    ("Movement", "kind"): {"enum": [*MOVEMENT_KINDS]},
    ("Movement", "object_type"): {"enum": [*ObjectType]},
    ("WithdrawalItem", "kind"): {"enum": [*MOVEMENT_KINDS, *CarryKind]},
    ("WithdrawalItem", "object_type"): {"enum": [*ObjectType, None]},
    ("Gateway", "status"): {"enum": [*GatewayStatus]},
    ("Gateway", "reason"): {"enum": [*GatewayReason, None]},
}
"""Allowed values by schema and field."""
