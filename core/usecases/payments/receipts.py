"""Receipts by 54-FZ: the choice of banks that can take a payment with the known data, and the receipt for the bank
(docs/payments.md "Receipts"; docs/adapters.md "Receipts").
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ....ports.bank import Bank
from ....ports.bundle import Ports
from ....ports.receipts import PaymentMode, PaymentSubject, Receipt, ReceiptItem, ReceiptNeed, TaxSystem, Vat
from ...domain.accounts.accounts import Settings
from ...domain.accounts.receipts import ReceiptTerms, receipts_lack
from ...domain.errors import Refusal
from ...domain.payments.payer_contact import PayerContact, payer_contact
from ...domain.payments.payments import Payment
from ...domain.receipts.carts import Cart, part_of
from ..common.encrypted import private_aad

_WRITES_NONE: Final = ReceiptNeed.NONE
_MUST_WRITE: Final = ReceiptNeed.REQUIRED
"""Constants for code that every new payment runs (domain/accounts/accounts.py: TEST)."""

_NAME_LONGEST = 128
"""Longest name of an item (tag 1030)."""


def receipt_terms(
    settings: Settings,
    routes: Sequence[Bank],
    cart: Cart | None = None,
    *,
    has_contact: bool,
    has_register: bool = False,
) -> ReceiptTerms | None:
    """Return the receipt terms of a new payment that may go by these banks; None if neither they nor the register
    write receipts, or data for one is missing. `cart`: the receipt that the merchant sent.
    """
    for bank in routes:  # A loop, not a generator: every new payment runs it, mostly with one bank.
        if has_register or bank.capabilities.receipts is not _WRITES_NONE:
            if cart is not None:
                return cart.terms
            return settings.receipt_terms(has_contact=has_contact)
    return None


def takes_without(bank: Bank, terms: ReceiptTerms | None) -> bool:
    """Return whether the bank takes a payment with these terms, or without any."""
    return terms is not None or bank.capabilities.receipts is not _MUST_WRITE


def no_receipt(settings: Settings) -> Refusal:
    """Return the refusal of a payment when every bank requires a receipt and none can be written."""
    lacking = settings.receipt_lacks(has_contact=True)
    if lacking:
        return receipts_lack(lacking)
    return Refusal(
        "PAYER_DATA_REQUIRED",
        "The payer gets a receipt, so client_email or client_phone is required",
        details={"missing_fields": ["client_email"]},
    )


def contact_of(ports: Ports, payment: Payment) -> PayerContact:
    """Return the payer's contact data as the merchant sent it."""
    if payment.private is None:
        return PayerContact()
    return payer_contact(ports.vault.decrypt(payment.private, private_aad(payment.id)))


def receipt_of(
    ports: Ports, payment: Payment, bank: Bank, kopecks: int | None = None, cart: Cart | None = None
) -> Receipt | None:
    """Return the receipt that goes to the bank with the money of the payment, or of `kopecks` of it; None if the bank
    writes none or the payment has no terms. `cart`: the receipt that the merchant sent for this part.
    """
    if payment.receipt is None or bank.capabilities.receipts is _WRITES_NONE:
        return None
    return receipt_content(ports, payment, payment.receipt, kopecks, cart)


def receipt_content(
    ports: Ports, payment: Payment, terms: ReceiptTerms, kopecks: int | None = None, cart: Cart | None = None
) -> Receipt:
    """Return the receipt of the payment, or of `kopecks` of it."""
    if cart is not None:
        return sent_receipt(cart)
    contact = contact_of(ports, payment)
    if contact.receipt is not None:
        amount = payment.amount.kopecks if kopecks is None else kopecks
        return sent_receipt(part_of(contact.receipt, amount))
    item = ReceiptItem(
        name=purpose_of(payment)[:_NAME_LONGEST],
        price_kopecks=payment.amount.kopecks if kopecks is None else kopecks,
        vat=Vat(terms.vat.value),
        subject=PaymentSubject(terms.subject.value),
        mode=PaymentMode(terms.mode.value),
    )
    return Receipt(
        items=(item,),
        tax_system=TaxSystem(terms.tax_system.value),
        email=contact.receipt_email or terms.email,
        phone=contact.client_phone,
    )


def sent_receipt(cart: Cart) -> Receipt:
    """Return the cart in the types of the port: its fields and words are the same."""
    return msgspec.convert(msgspec.to_builtins(cart), type=Receipt)


def purpose_of(payment: Payment) -> str:
    """Return the purpose that payers read at their bank and on their receipt."""
    return (payment.description or "").strip() or f"Payment {payment.id}"
