"""Payloads of events, field by field (docs/payloads.md is generated from it). The sender, the checks in tests and the
`webhooks` of /openapi.json use these types. UNSET fields are omitted, None is null, and nothing else is sent.

Fields that the API describes as text are text here: only a documented list of values is an enum, so that a new status
does not break a strict reader.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

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

    event: Literal["payment.status_changed"]
    payment_id: str
    external_id: str | None
    status: str
    previous_status: str | None
    amount_rub: str
    actual_amount_rub: str | None
    amount_usdt: str | None
    payment_method: str
    refund_pending: bool
    timestamp: str
    metadata: dict[str, Any] | None
    payer_name: str | UnsetType = UNSET
    subscription_id: str | UnsetType = UNSET
    period_ref: str | UnsetType = UNSET
    failure_reason: FailureReason | UnsetType = UNSET
    sandbox: bool | UnsetType = UNSET
    shop_id: str | None | UnsetType = UNSET
    shop_name: str | None | UnsetType = UNSET


class ProofReminderPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Delivery proof reminder"."""

    event: Literal["payment.delivery_proof_reminder"]
    payment_id: str
    external_id: str | None
    paid_at: str
    reminder: Annotated[int, msgspec.Meta(ge=1, le=3)]
    status: Literal["waiting", "rejected"]
    timestamp: str
    reason: RejectionReason | UnsetType = UNSET
    """Set with `rejected` only."""
    shop_id: str | None | UnsetType = UNSET
    shop_name: str | None | UnsetType = UNSET


class WithdrawalPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Payout"."""

    event: Literal["withdrawal.status_changed"]
    withdrawal_id: str
    status: str
    previous_status: str | None
    amount_usdt: str
    wallet_address: str
    tx_hash: str | None
    timestamp: str


class ExchangePayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Exchange"."""

    event: Literal["exchange.status_changed"]
    exchange_id: str
    external_id: str | None
    direction: Literal["usdt_to_rub", "rub_to_usdt"]
    status: str
    previous_status: str | None
    amount_usdt: str
    amount_usdt_received: str | None
    amount_rub: str
    rate: str
    client_phone: str
    crypto_deposit_address: str | None
    network: str | None
    expires_at: str
    timestamp: str


class SubscriptionPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Subscription"."""

    event: Literal["subscription.status_changed"]
    subscription_id: str
    external_id: str | None
    status: str
    past_due: bool
    binding_url: str | None
    binding_url_pending: bool
    previous_status: str | None
    """Equals `status` when only a flag or the link changed."""
    timestamp: str
    rebind_required: bool | UnsetType = UNSET
    sandbox: bool | UnsetType = UNSET


class ChargeExhaustedPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Charge exhausted"."""

    event: Literal["subscription.charge_exhausted"]
    subscription_id: str
    external_id: str | None
    is_sandbox: bool
    period_ref: str
    retries_used: int
    retries_max: int
    retry_window_hours: int
    next_allowed_at: str
    timestamp: str


RefundEvent = Literal["refund.completed", "refund.rejected", "refund.failed", "refund.reversed"]


class RefundPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of all four refund events (docs/payloads.md "Refund")."""

    event: RefundEvent
    payment_id: str
    refund_id: str
    amount_rub: TwoDecimals
    status: str
    external_id: str | None | UnsetType = UNSET
    metadata: dict[str, Any] | None | UnsetType = UNSET
    shop_id: str | None | UnsetType = UNSET
    shop_name: str | None | UnsetType = UNSET


class KycPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "KYC"."""

    event: Literal["kyc.status_changed"]
    client_id: str
    phone: str
    status: Literal["verified", "failed"]
    previous_status: Literal["pending", "failed"]
    verified_at: str
    """Never null: with `failed` it is the time of that decision."""
    timestamp: str


class GatewayPayload(Payload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/payloads.md "Gateway"."""

    event: Literal["gateway.status_changed"]
    gateway_id: str
    payment_method: str | None
    status: GatewayStatus
    previous_status: GatewayStatus | None
    reason: GatewayReason | None
    timestamp: str


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
