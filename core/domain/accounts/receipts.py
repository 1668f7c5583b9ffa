"""Content of an account's receipts by 54-FZ, besides name, amount and address (docs/payments.md "Receipts"). The values
are those of ports/receipts.py, which explains them."""

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from ..errors import Refusal


class TaxSystem(StrEnum):
    """The setting `receipt_tax_system`."""

    OSN = "osn"
    USN_INCOME = "usn_income"
    USN_INCOME_OUTCOME = "usn_income_outcome"
    ESN = "esn"
    PATENT = "patent"


class Vat(StrEnum):
    """The setting `receipt_vat`."""

    NONE = "none"
    VAT_0 = "0"
    VAT_5 = "5"
    VAT_7 = "7"
    VAT_10 = "10"
    VAT_20 = "20"
    VAT_22 = "22"
    VAT_5_105 = "5/105"
    VAT_7_107 = "7/107"
    VAT_10_110 = "10/110"
    VAT_20_120 = "20/120"
    VAT_22_122 = "22/122"


class PaymentSubject(StrEnum):
    """The setting `receipt_subject`."""

    COMMODITY = "commodity"
    EXCISE = "excise"
    JOB = "job"
    SERVICE = "service"
    INTELLECTUAL_ACTIVITY = "intellectual_activity"
    PAYMENT = "payment"
    AGENT_COMMISSION = "agent_commission"
    COMPOSITE = "composite"
    ANOTHER = "another"
    PROPERTY_RIGHT = "property_right"
    MARKED = "marked"
    NON_MARKED = "non_marked"
    MARKED_EXCISE = "marked_excise"
    NON_MARKED_EXCISE = "non_marked_excise"


class PaymentMode(StrEnum):
    """The setting `receipt_mode`."""

    FULL_PREPAYMENT = "full_prepayment"
    PREPAYMENT = "prepayment"
    ADVANCE = "advance"
    FULL_PAYMENT = "full_payment"
    PARTIAL_PAYMENT = "partial_payment"
    CREDIT = "credit"
    CREDIT_PAYMENT = "credit_payment"


class ReceiptTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the receipts of one payment and its refunds, copied from the account's settings at its creation: a
    refund's receipt must match the payment's, and a repeat must match the first request."""

    tax_system: TaxSystem
    vat: Vat
    subject: PaymentSubject
    mode: PaymentMode
    email: str | None = None
    """The merchant's own address (the setting `receipt_email`), if the payer's address is unknown."""


def receipts_lack(settings: Sequence[str]) -> Refusal:
    """Return the refusal if every bank requires receipts and these settings of the account are missing."""
    return Refusal(
        "PAYMENT_ROUTE_UNAVAILABLE",
        f"The bank sends payers receipts, for which settings of the account are missing: {', '.join(settings)}",
    )


_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@]{1,189}\Z")


def is_email(text: str | None) -> bool:
    """Return whether a receipt could be sent there: merchants may write any text as `client_email`."""
    return text is not None and _EMAIL.match(text) is not None
