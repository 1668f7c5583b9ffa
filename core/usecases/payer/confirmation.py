"""The confirmation of a payment: a page of its own that the payer can keep, print and mail to an address
(docs/window.md "The confirmation"). It is no fiscal receipt."""

import hmac
from datetime import datetime
from enum import StrEnum

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.shops import Shop
from ...domain.days import MOSCOW
from ...domain.errors import Refusal
from ...domain.money import Rub
from ...domain.payer.brand import Brand
from ...domain.payer.window import order_number
from ...domain.payments.payments import Payment, PaymentStatus, short_number
from ...domain.people.people import read_email
from ..accounts.rate_limits import admit_stranger
from ..common.encrypted import confirmation_key
from ..common.units import retrying
from ..people.letters import add_letter
from ..people.payment_links import seller_values
from ..people.sign_in import take_attempt
from ..people.users import email_digest
from .window import one_off, seller_of

MAILS = "confirmations"
MAILS_PER_MINUTE = 5
"""Letters that one address may cause in a minute."""
_PAID = (PaymentStatus.PAID, PaymentStatus.SETTLED, PaymentStatus.REFUNDED)


class ConfirmationView(msgspec.Struct, frozen=True, kw_only=True):
    """All data of the page."""

    id: str
    key: str
    shop_name: str
    brand: Brand
    amount: Rub
    refunded: Rub | None
    """Sum of the refunds, if any."""
    description: str | None
    order_number: str | None
    paid_at: datetime
    sbp_operation_id: str | None
    return_url: str | None
    test_mode: bool
    can_mail: bool


class Mailed(StrEnum):
    """Result of asking for a letter."""

    SENT = "sent"
    WRONG = "wrong"
    """This is no e-mail address."""
    BUSY = "busy"
    """Too many letters were asked for."""


async def confirmation_view(ports: Ports, payment_id: str, key: str) -> ConfirmationView | None:
    """Return the data of the page; None for a wrong address and for a payment without money."""
    async with ports.storage.unit() as unit:
        payment = await _paid(ports, unit, payment_id, key)
        seller = None if payment is None else await seller_of(unit, payment)
    if payment is None or payment.paid_at is None or seller is None:
        return None
    return ConfirmationView(
        id=payment.id,
        key=key,
        shop_name=seller.name,
        brand=seller.brand,
        amount=payment.actual_amount or payment.amount,
        refunded=payment.refund_taken if payment.refund_taken > Rub(0) and not payment.refund_pending else None,
        description=payment.description,
        order_number=order_number(payment.external_id),
        paid_at=payment.paid_at,
        sbp_operation_id=payment.sbp_operation_id,
        return_url=seller.return_url,
        test_mode=payment.mode is Mode.TEST,
        can_mail=ports.mailer is not None,
    )


async def mail_confirmation(
    ports: Ports, payment_id: str, key: str, typed: str, language: str, address: str
) -> Mailed | None:
    """Send the confirmation to the e-mail address that the payer typed; None for a wrong address of the page. Only the
    encrypted letter has the e-mail address, until it is sent. `address`: the payer's, for the rate limit.
    """
    async with ports.storage.unit() as unit:
        payment = await _paid(ports, unit, payment_id, key)
    if payment is None or payment.paid_at is None or ports.mailer is None:
        return None
    try:
        email = read_email(typed)
    except Refusal:
        return Mailed.WRONG
    if (await admit_stranger(ports, f"{MAILS}:ip", address, MAILS_PER_MINUTE)).over:
        return Mailed.BUSY
    try:
        # Test payments cost nothing, so the bound per payment alone spares no stranger. Addresses share short digests.
        for budget in (f"confirmation:{payment.id}", f"recipient:{email_digest(ports, email)[:3].hex()}"):
            await take_attempt(ports, budget, code="LINK_LIMIT", message="Too many letters")
    except Refusal:
        return Mailed.BUSY
    at, paid = payment.paid_at.astimezone(MOSCOW), payment.actual_amount or payment.amount

    async def work(unit: Unit) -> None:
        shop, account = await unit[Shop].get(payment.shop_id), await unit[Account].get(payment.account_id)
        if account is None:
            return
        values = {
            **seller_values(account, shop, order_number(payment.external_id), language),
            "amount": str(paid),
            "when": f"{at:%d.%m.%Y %H:%M}",
            "number": short_number(payment.id),
            "link": ports.urls.confirmation_page(payment.id, key),
        }
        add_letter(ports, unit, email, "confirmation", language, values)

    await retrying(ports.storage, work)
    return Mailed.SENT


async def _paid(ports: Ports, unit: Unit, payment_id: str, key: str) -> Payment | None:
    if not hmac.compare_digest(key.encode(), confirmation_key(ports.vault, payment_id).encode()):
        return None
    payment = await one_off(unit, payment_id)
    return payment if payment is not None and payment.status in _PAID else None
