"""Receipts of refunds at banks whose cash register gets its own request once the money has gone
(payments/receipt_sales.py).
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Settings
from ...domain.money import Rub
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart
from ...domain.receipts.orders import Contact, cart_of
from ...domain.refunds.orders import RefundOrder
from ...domain.refunds.refunds import Refund
from ..common.encrypted import refund_aad
from ..common.schedule import FollowUp, reschedule_at
from ..payments.receipt_sales import register_of, write
from ..payments.receipts import contact_of

BACK = FollowUp("receipt.refund")


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
    if register_of(ports, payment) is not None:
        now = ports.clock.now()
        await BACK.keep(unit, refund.id, now, now)


async def write_back(ports: Ports, job: Job) -> None:
    """Write the receipt of a refund (the job of `plan_back`)."""
    refund = await ports.storage.get(Refund, job.argument)
    payment = None if refund is None else await ports.storage.get(Payment, refund.payment_id)
    if refund is None or payment is None:
        await reschedule_at(ports, job, None)
        return
    cart = returned_items(ports, refund)
    await write(ports, job, payment, refund.id, refund.amount.kopecks, back=True, cart=cart)
