"""Fiscal receipts by 54-FZ in provider-neutral words, for providers whose cash register sends them to the payer
(docs/adapters.md "Receipts"). Each adapter maps every value to its provider's code."""

from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec


class ReceiptNeed(StrEnum):
    """How a provider handles receipts."""

    NONE = "none"
    """It writes none: requests contain no receipt."""
    OPTIONAL = "optional"
    """It writes a receipt when the request contains one."""
    REQUIRED = "required"
    """It accepts no money without a receipt: the core refuses such requests before it calls the bank."""


class TaxSystem(StrEnum):
    """Tax system of the seller (tag 1055)."""

    OSN = "osn"
    """General."""
    USN_INCOME = "usn_income"
    """Simplified, on income."""
    USN_INCOME_OUTCOME = "usn_income_outcome"
    """Simplified, on income less costs."""
    ESN = "esn"
    """Agricultural."""
    PATENT = "patent"


class Vat(StrEnum):
    """VAT rate (tag 1199). Values with a slash are calculated rates, for amounts that include VAT, such as an
    advance."""

    NONE = "none"
    """No VAT, which is not 0 %."""
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
    """Subject of the payment (tag 1212)."""

    COMMODITY = "commodity"
    EXCISE = "excise"
    """Excisable goods."""
    JOB = "job"
    SERVICE = "service"
    INTELLECTUAL_ACTIVITY = "intellectual_activity"
    PAYMENT = "payment"
    """An advance, a deposit, a credit."""
    AGENT_COMMISSION = "agent_commission"
    COMPOSITE = "composite"
    ANOTHER = "another"


class PaymentMode(StrEnum):
    """Method of payment in relation to the delivery (tag 1214)."""

    FULL_PREPAYMENT = "full_prepayment"
    PREPAYMENT = "prepayment"
    """Partial, before delivery."""
    ADVANCE = "advance"
    FULL_PAYMENT = "full_payment"
    PARTIAL_PAYMENT = "partial_payment"
    """Partial, at delivery; the rest is on credit."""
    CREDIT_PAYMENT = "credit_payment"


class ReceiptItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a receipt."""

    name: str
    """1 to 128 characters."""
    price_kopecks: int
    """Price of one piece."""
    quantity: int = 1
    vat: Vat
    subject: PaymentSubject
    mode: PaymentMode


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt of a payment or of a refund. Its items add up exactly to the request's amount. Its repr is empty: the
    payer's contact is personal data."""

    items: tuple[ReceiptItem, ...]
    tax_system: TaxSystem
    email: str | None = None
    phone: str | None = None
    """`+` and 10 to 15 digits. The receipt goes to the e-mail address or to the phone; at least one of them is set."""

    @property
    def total_kopecks(self) -> int:
        return sum(item.price_kopecks * item.quantity for item in self.items)

    def __repr__(self) -> str:
        return "<receipt>"


class ReceiptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the receipt of money that has moved."""

    operation: str
    """Operation that moved the money: a payment, a charge, a binding, or a refund."""
    reference: str
    """The bank's reference of the invoice, charge or mandate that received the money, also for a refund."""
    receipt: Receipt
    goes_back: bool = False
    """The receipt is for a refund."""


class ReceiptStatus(StrEnum):
    """State of a receipt."""

    PROCESSING = "processing"
    DONE = "done"
    """The cash register has written the receipt."""
    FAILED = "failed"
    """The cash register rejected the receipt; a person has to check there."""


class ReceiptState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a receipt."""

    status: ReceiptStatus


@runtime_checkable
class ReceiptBank(Protocol):
    """A bank whose cash register gets receipts by a separate call after the money has moved. The receipt inside a
    request for money is then only validated, so that an invalid one is refused before anybody pays."""

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Request the receipt. Idempotent by `request.operation`, forever: a repeat returns the state of the same
        receipt.

        Raises: Refused, it will not be written: `receipt`, `operation` (the operation has a different receipt);
        NotConfigured; OutcomeUnknown; Unavailable.
        """
        ...
