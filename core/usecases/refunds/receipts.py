"""Receipts of refunds: their items, and their records (payments/receipt_records.py)."""

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Settings
from ...domain.money import Rub
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart
from ...domain.receipts.orders import Contact, cart_of
from ...domain.receipts.receipts import ReceiptKind
from ...domain.refunds.orders import RefundOrder
from ...domain.refunds.refunds import Refund
from ..common.encrypted import refund_aad
from ..payments.receipt_records import add_receipt, writing_of
from ..payments.receipts import contact_of


def refund_receipt(
    ports: Ports, refund_id: str, order: RefundOrder, payment: Payment, amount: Rub, settings: Settings
) -> bytes | None:
    """Return the encrypted receipt of a refund's order; None without one, or if the payment has no receipts. The
    payment's contact and tax system are the defaults. Raises: Refusal VALIDATION_ERROR.
    """
    if order.receipt is None:
        return None
    sent = contact_of(ports, payment)
    contact = Contact(email=sent.client_email, phone=sent.client_phone)
    if sent.receipt is not None:
        contact = Contact(email=sent.receipt.email, phone=sent.receipt.phone)
    if payment.receipt is not None:
        settings = msgspec.structs.replace(settings, receipt_tax_system=payment.receipt.tax_system)
    cart = cart_of(order.receipt, amount, settings, contact)
    if payment.receipt is None:
        return None
    return ports.vault.encrypt(msgspec.json.encode(cart), refund_aad(refund_id))


def returned_items(ports: Ports, refund: Refund) -> Cart | None:
    """Return the receipt that the merchant sent for the refund."""
    if refund.private is None:
        return None
    return msgspec.json.decode(ports.vault.decrypt(refund.private, refund_aad(refund.id)), type=Cart)


async def plan_back(ports: Ports, unit: Unit, payment: Payment, refund: Refund) -> None:
    """Plan the receipt of a refund that this unit completes."""
    writing = writing_of(ports, payment)
    if writing is not None and refund.completed_at is not None:
        add_receipt(
            ports,
            unit,
            payment,
            writing,
            kind=ReceiptKind.REFUND,
            cause=refund.id,
            amount=refund.amount,
            moved_at=refund.completed_at,
            refund_id=refund.id,
        )
