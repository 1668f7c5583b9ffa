"""Payloads of events, field by field (docs/payloads.md is generated from it). The sender, the checks in tests and the
`webhooks` of /openapi.json use these types. UNSET fields are omitted, None is null, and nothing else is sent.

Fields that the API describes as text are text here: only a documented list of values is an enum, so that a new status
does not break a strict reader.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from . import shared_fields as shared
from .gateways.gateways import GatewayReason, GatewayStatus
from .payments.payments import FailureReason
from .payments.proofs import RejectionReason
from .webhooks.events import EventType

TwoDecimals = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]{2}$")]
"""An amount in RUB in events of refunds: always two decimals."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an event. `event` never has a default: it is required, so a receiver may rely on it."""


class PaymentPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Payment"."""

    event: Annotated[Literal["payment.status_changed"], shared.EVENT]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    status: Annotated[str, shared.STATUS]
    previous_status: Annotated[str | None, shared.PREVIOUS_STATUS]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    actual_amount_rub: Annotated[str | None, shared.ACTUAL_AMOUNT_RUB]
    amount_usdt: Annotated[str | None, shared.AMOUNT_USDT]
    payment_method: Annotated[str, shared.PAYMENT_METHOD]
    refund_pending: Annotated[bool, Meta(description="Whether a refund is under way; the status does not change")]
    timestamp: Annotated[str, shared.TIMESTAMP]
    metadata: Annotated[dict[str, Any] | None, shared.METADATA]
    payer_name: Annotated[str | UnsetType, shared.PAYER_NAME] = UNSET
    subscription_id: Annotated[str | UnsetType, shared.SUBSCRIPTION_ID] = UNSET
    period_ref: Annotated[str | UnsetType, shared.PERIOD_REF] = UNSET
    failure_reason: Annotated[FailureReason | UnsetType, shared.FAILURE_REASON] = UNSET
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET
    shop_id: Annotated[str | None | UnsetType, shared.SHOP_ID] = UNSET
    shop_name: Annotated[str | None | UnsetType, shared.SHOP_NAME] = UNSET


class ProofReminderPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Delivery proof reminder"."""

    event: Annotated[Literal["payment.delivery_proof_reminder"], shared.EVENT]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    paid_at: Annotated[str, Meta(description="Time of payment, by the bank's clock")]
    reminder: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=3)], Meta(description="1, 2 or 3: 24, 48 and 72 hours after the payment")
    ]
    status: Annotated[Literal["waiting", "rejected"], shared.STATUS]
    timestamp: Annotated[str, shared.TIMESTAMP]
    reason: Annotated[RejectionReason | UnsetType, Meta(description="Reason of the last rejection; only after one")] = (
        UNSET
    )
    """Set with `rejected` only."""
    shop_id: Annotated[str | None | UnsetType, shared.SHOP_ID] = UNSET
    shop_name: Annotated[str | None | UnsetType, shared.SHOP_NAME] = UNSET


class WithdrawalPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Payout"."""

    event: Annotated[Literal["withdrawal.status_changed"], shared.EVENT]
    withdrawal_id: Annotated[str, shared.WITHDRAWAL_ID]
    status: Annotated[str, shared.STATUS]
    previous_status: Annotated[str | None, shared.PREVIOUS_STATUS]
    amount_usdt: Annotated[str, shared.AMOUNT_USDT]
    wallet_address: Annotated[str, Meta(description="Address of your wallet")]
    tx_hash: Annotated[str | None, shared.TX_HASH]
    timestamp: Annotated[str, shared.TIMESTAMP]


class ExchangePayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Exchange"."""

    event: Annotated[Literal["exchange.status_changed"], shared.EVENT]
    exchange_id: Annotated[str, Meta(description="Id of the exchange")]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    direction: Annotated[Literal["usdt_to_rub", "rub_to_usdt"], Meta(description="`usdt_to_rub` or `rub_to_usdt`")]
    status: Annotated[str, shared.STATUS]
    previous_status: Annotated[str | None, shared.PREVIOUS_STATUS]
    amount_usdt: Annotated[str, shared.AMOUNT_USDT]
    amount_usdt_received: Annotated[
        str | None, Meta(description="The amount that the client sent; null until a final status")
    ]
    amount_rub: Annotated[str, shared.AMOUNT_RUB]
    rate: Annotated[str, shared.RATE]
    client_phone: Annotated[str, shared.CLIENT_PHONE]
    crypto_deposit_address: Annotated[str | None, shared.CRYPTO_DEPOSIT_ADDRESS]
    network: Annotated[str | None, shared.NETWORK]
    expires_at: Annotated[str, shared.EXPIRES_AT]
    timestamp: Annotated[str, shared.TIMESTAMP]


class SubscriptionPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Subscription"."""

    event: Annotated[Literal["subscription.status_changed"], shared.EVENT]
    subscription_id: Annotated[str, shared.SUBSCRIPTION_ID]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    status: Annotated[str, shared.STATUS]
    past_due: Annotated[
        bool, Meta(description="Whether the mandate is overdue at the bank; the status does not change")
    ]
    binding_url: Annotated[str | None, Meta(description="Page where the payer confirms the mandate")]
    binding_url_pending: Annotated[bool, Meta(description="The link is not ready yet; an event follows")]
    previous_status: Annotated[str | None, shared.PREVIOUS_STATUS]
    """Equals `status` when only a flag or the link changed."""
    timestamp: Annotated[str, shared.TIMESTAMP]
    rebind_required: Annotated[
        bool | UnsetType, Meta(description="Whether the mandate is lost; present only when true")
    ] = UNSET
    sandbox: Annotated[bool | UnsetType, shared.SANDBOX] = UNSET


class ChargeExhaustedPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Charge exhausted"."""

    event: Annotated[Literal["subscription.charge_exhausted"], shared.EVENT]
    subscription_id: Annotated[str, shared.SUBSCRIPTION_ID]
    external_id: Annotated[str | None, shared.EXTERNAL_ID]
    is_sandbox: Annotated[bool, Meta(description="Whether this is test mode")]
    period_ref: Annotated[str, shared.PERIOD_REF]
    retries_used: Annotated[int, Meta(description="Attempts made in the period")]
    retries_max: Annotated[int, Meta(description="Attempts allowed in the period")]
    retry_window_hours: Annotated[int, Meta(description="Hours for further attempts, counted from the first")]
    next_allowed_at: Annotated[str, shared.NEXT_ALLOWED_AT]
    timestamp: Annotated[str, shared.TIMESTAMP]


RefundEvent = Literal["refund.completed", "refund.rejected", "refund.failed", "refund.reversed"]


class RefundPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of all four refund events (docs/payloads.md "Refund")."""

    event: Annotated[RefundEvent, shared.EVENT]
    payment_id: Annotated[str, shared.PAYMENT_ID]
    refund_id: Annotated[str, Meta(description="Id of the refund")]
    amount_rub: Annotated[TwoDecimals, shared.AMOUNT_RUB]
    status: Annotated[str, shared.STATUS]
    external_id: Annotated[str | None | UnsetType, shared.EXTERNAL_ID] = UNSET
    metadata: Annotated[dict[str, Any] | None | UnsetType, shared.METADATA] = UNSET
    shop_id: Annotated[str | None | UnsetType, shared.SHOP_ID] = UNSET
    shop_name: Annotated[str | None | UnsetType, shared.SHOP_NAME] = UNSET


class KycPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "KYC"."""

    event: Annotated[Literal["kyc.status_changed"], shared.EVENT]
    client_id: Annotated[str, Meta(description="Id of the end client")]
    phone: Annotated[str, shared.PHONE]
    status: Annotated[Literal["verified", "failed"], Meta(description="`verified` or `failed`")]
    previous_status: Annotated[Literal["pending", "failed"], shared.PREVIOUS_STATUS]
    verified_at: Annotated[str, Meta(description="Time of the verifier's decision")]
    """Never null: with `failed` it is the time of that decision."""
    timestamp: Annotated[str, shared.TIMESTAMP]


class GatewayPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Gateway"."""

    event: Annotated[Literal["gateway.status_changed"], shared.EVENT]
    gateway_id: Annotated[str, Meta(description="Id of the gateway")]
    payment_method: Annotated[str | None, shared.PAYMENT_METHOD]
    status: Annotated[GatewayStatus, shared.STATUS]
    previous_status: Annotated[GatewayStatus | None, shared.PREVIOUS_STATUS]
    reason: Annotated[GatewayReason | None, Meta(description="Reason of the status")]
    timestamp: Annotated[str, shared.TIMESTAMP]


EVENT_PAYLOADS: Mapping[EventType, type[Payload]] = {
    EventType.PAYMENT_STATUS_CHANGED: PaymentPayload,
    EventType.DELIVERY_PROOF_REMINDER: ProofReminderPayload,
    EventType.WITHDRAWAL_STATUS_CHANGED: WithdrawalPayload,
    EventType.EXCHANGE_STATUS_CHANGED: ExchangePayload,
    EventType.SUBSCRIPTION_STATUS_CHANGED: SubscriptionPayload,
    EventType.CHARGE_EXHAUSTED: ChargeExhaustedPayload,
    EventType.REFUND_COMPLETED: RefundPayload,
    EventType.REFUND_REJECTED: RefundPayload,
    EventType.REFUND_FAILED: RefundPayload,
    EventType.REFUND_REVERSED: RefundPayload,
    EventType.KYC_STATUS_CHANGED: KycPayload,
    EventType.GATEWAY_STATUS_CHANGED: GatewayPayload,
}
"""All twelve events and their payloads."""


def read_payload(event_type: EventType, body: bytes) -> Payload:
    """Parse the body of an event strictly, and compare its `event` with its type (one struct serves four refund
    events).

    Raises: msgspec.ValidationError, msgspec.DecodeError.
    """
    payload = msgspec.json.decode(body, type=EVENT_PAYLOADS[event_type])
    said = getattr(payload, "event", None)
    if said != event_type:
        raise msgspec.ValidationError(f"the payload says {said}, the event is {event_type.value}")
    return payload
