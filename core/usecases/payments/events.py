"""The event of a payment's move (docs/webhooks.md)."""

from datetime import datetime
from functools import partial

from msgspec import UNSET

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.days import iso
from ...domain.payloads import PaymentPayload
from ...domain.payments.payments import Payment, PaymentMove, PaymentStatus, shown_metadata, shows_payer_name
from ...domain.receipts.receipts import ReceiptKind, receipt_id
from ...domain.webhooks.events import EventType
from ..common.encrypted import open_payer_name
from ..webhooks.outbox import announce_to


async def announce_payment(ports: Ports, unit: Unit, move: PaymentMove) -> None:
    """Write `payment.status_changed` for a move that the same unit saves."""
    shop_name = None if move.shop is None else move.shop.name
    payload = partial(_payload, ports, move.after, move.before.status, shop_name)
    kind, retry_of = EventType.PAYMENT_STATUS_CHANGED, move.after.retry_of
    receipt = None if move.after.receipt is None else receipt_id(ReceiptKind.SALE, move.after.id)
    announce_to(ports, unit, move.account, move.after, kind, payload, retry_of=retry_of, receipt_id=receipt)


def _payload(
    ports: Ports, payment: Payment, previous: PaymentStatus, shop_name: str | None, now: datetime
) -> PaymentPayload:
    payer_name = open_payer_name(ports.vault, payment) if shows_payer_name(payment) else None
    return PaymentPayload(
        event="payment.status_changed",
        payment_id=payment.id,
        external_id=payment.external_id,
        status=payment.status,
        previous_status=previous,
        amount_rub=str(payment.amount),
        actual_amount_rub=None if payment.actual_amount is None else str(payment.actual_amount),
        amount_usdt=None if payment.amount_usdt is None else str(payment.amount_usdt),
        payment_method=payment.payment_method,
        refund_pending=payment.refund_pending,
        timestamp=iso(now),
        metadata=shown_metadata(payment),
        payer_name=UNSET if payer_name is None else payer_name,
        subscription_id=UNSET if payment.subscription_id is None else payment.subscription_id,
        period_ref=UNSET if payment.period_ref is None else payment.period_ref,
        failure_reason=UNSET if payment.failure_reason is None else payment.failure_reason,
        sandbox=True if payment.mode is Mode.TEST else UNSET,
        shop_id=payment.shop_id,
        shop_name=shop_name,
    )
