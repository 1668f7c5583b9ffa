"""Webhooks on the receiver's side: verified, typed, and with an id to detect duplicates.

webhook = verify_webhook(request.headers, raw_body, [WEBHOOK_SECRET])
match webhook.event:
    case PaymentStatusChanged(payment_id=payment_id, status=PaymentStatus.PAID):
        ...
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from ...core.domain.webhooks.signing import TOLERANCE, NotVerified, verify_signature
from .exchanges import Direction, ExchangeStatus
from .model import Record
from .money import GatewayStatus
from .payments import FailureReason, PaymentStatus, ProofRejection, ProofStatus
from .refunds import RefundStatus
from .subscriptions import SubscriptionStatus
from .withdrawals import WithdrawalStatus

__all__ = ["NotVerified", "Webhook", "verify_webhook"]


class WebhookEvent(Record, frozen=True, kw_only=True):
    """Payload of an event; `event` is its type."""

    event: str


class PaymentStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """A payment has another status: an event `payment.status_changed`."""

    payment_id: str
    external_id: str | None
    status: PaymentStatus
    previous_status: PaymentStatus | None
    amount_rub: Decimal
    actual_amount_rub: Decimal | None
    amount_usdt: Decimal | None
    payment_method: str
    refund_pending: bool
    timestamp: datetime
    metadata: dict[str, Any] | None
    payer_name: str | None = None
    subscription_id: str | None = None
    period_ref: str | None = None
    failure_reason: FailureReason | None = None
    sandbox: bool = False
    shop_id: str | None = None
    shop_name: str | None = None


class DeliveryProofReminder(WebhookEvent, frozen=True, kw_only=True):
    """A paid order still needs a delivery proof: `payment.delivery_proof_reminder`."""

    payment_id: str
    external_id: str | None
    paid_at: datetime
    reminder: int
    status: ProofStatus
    timestamp: datetime
    reason: ProofRejection | None = None
    shop_id: str | None = None
    shop_name: str | None = None


class WithdrawalStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """A payout has another status: `withdrawal.status_changed`."""

    withdrawal_id: str
    status: WithdrawalStatus
    previous_status: WithdrawalStatus | None
    amount_usdt: Decimal
    wallet_address: str
    tx_hash: str | None
    timestamp: datetime


class ExchangeStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """An exchange has another status: `exchange.status_changed`."""

    exchange_id: str
    external_id: str | None
    direction: Direction
    status: ExchangeStatus
    previous_status: ExchangeStatus | None
    amount_usdt: Decimal
    amount_usdt_received: Decimal | None
    amount_rub: Decimal
    rate: Decimal
    client_phone: str
    crypto_deposit_address: str | None
    network: str | None
    expires_at: datetime
    timestamp: datetime


class SubscriptionStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """A subscription has another status, flag or link: `subscription.status_changed`. `previous_status` equals `status`
    when only a flag or the link changed."""

    subscription_id: str
    external_id: str | None
    status: SubscriptionStatus
    past_due: bool
    binding_url: str | None
    binding_url_pending: bool
    previous_status: SubscriptionStatus | None
    timestamp: datetime
    rebind_required: bool = False
    sandbox: bool = False


class ChargeExhausted(WebhookEvent, frozen=True, kw_only=True):
    """The charges of a subscription period are used up: `subscription.charge_exhausted`."""

    subscription_id: str
    external_id: str | None
    is_sandbox: bool
    period_ref: str
    retries_used: int
    retries_max: int
    retry_window_hours: int
    next_allowed_at: datetime
    timestamp: datetime


class RefundChanged(WebhookEvent, frozen=True, kw_only=True):
    """A refund has ended: `refund.completed`, `refund.rejected`, `refund.failed` or `refund.reversed`; see `event`."""

    payment_id: str
    refund_id: str
    amount_rub: Decimal
    status: RefundStatus
    external_id: str | None = None
    metadata: dict[str, Any] | None = None
    shop_id: str | None = None
    shop_name: str | None = None


class KycStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """The identity check of a client has ended: `kyc.status_changed`."""

    client_id: str
    phone: str
    status: str
    previous_status: str
    verified_at: datetime
    timestamp: datetime


class GatewayStatusChanged(WebhookEvent, frozen=True, kw_only=True):
    """A gateway has another status: `gateway.status_changed`."""

    gateway_id: str
    payment_method: str | None
    status: GatewayStatus
    previous_status: GatewayStatus | None
    reason: str | None
    timestamp: datetime


class UnknownEvent(WebhookEvent, frozen=True, kw_only=True):
    """An event that this version has no type for, including `webhook.test`: answer 200."""

    payload: dict[str, Any]


EVENTS: Mapping[str, type[WebhookEvent]] = {
    "payment.status_changed": PaymentStatusChanged,
    "payment.delivery_proof_reminder": DeliveryProofReminder,
    "withdrawal.status_changed": WithdrawalStatusChanged,
    "exchange.status_changed": ExchangeStatusChanged,
    "subscription.status_changed": SubscriptionStatusChanged,
    "subscription.charge_exhausted": ChargeExhausted,
    "refund.completed": RefundChanged,
    "refund.rejected": RefundChanged,
    "refund.failed": RefundChanged,
    "refund.reversed": RefundChanged,
    "kyc.status_changed": KycStatusChanged,
    "gateway.status_changed": GatewayStatusChanged,
}


class Webhook(Record, frozen=True, kw_only=True):
    """A genuine webhook."""

    id: str
    """The id is the same for all attempts of an event. Store it with your changes, and ignore repeats."""
    sent_at: datetime
    event: WebhookEvent
    attempt: int
    sequence: int
    """Increases per object: a higher number of the same object is newer. The signature covers neither this nor
    `attempt`, so base no decision about money on them; read the object instead."""


class _Named(msgspec.Struct):
    event: str


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[str],
    *,
    now: float | datetime | Callable[[], datetime] | None = None,
    tolerance: float = TOLERANCE,
) -> Webhook:
    """Verify a request and decode it. `body` is the raw body; `secrets` are yours, including the old one during a
    rotation.

    Raises: NotVerified: answer 400 and do nothing. msgspec.ValidationError for a genuine webhook that cannot be
    decoded: answer 500, so that it is sent again.
    """
    if isinstance(secrets, str):
        raise TypeError("secrets is a list of secrets")
    given = dict(headers.items())
    event_id = verify_signature(given, body, secrets, _seconds(now), tolerance)
    lowered = {name.lower(): value for name, value in given.items()}
    return Webhook(
        id=event_id,
        sent_at=datetime.fromtimestamp(int(lowered["x-webhook-timestamp"]), UTC),
        event=read_event(body),
        attempt=_count(lowered.get("x-webhook-attempt")),
        sequence=_count(lowered.get("x-webhook-sequence")),
    )


def read_event(body: bytes) -> WebhookEvent:
    """Decode the payload of an event. Raises: msgspec.DecodeError."""
    name = msgspec.json.decode(body, type=_Named).event
    known = EVENTS.get(name)
    if known is None:
        return UnknownEvent(event=name, payload=msgspec.json.decode(body, type=dict[str, Any]))
    return msgspec.json.decode(body, type=known)


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 1


def _seconds(now: float | datetime | Callable[[], datetime] | None) -> float:
    if callable(now):
        now = now()
    if isinstance(now, datetime):
        return now.timestamp()
    return time.time() if now is None else now
