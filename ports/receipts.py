"""Fiscal receipts by 54-FZ in words of our own: what a provider with a cash register sends to the payer
(docs/adapters.md "Receipts"). Adapters have a table from each word to their provider's code."""

from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec


class ReceiptNeed(StrEnum):
    """What a provider does about receipts."""

    NONE = "none"
    """It writes none: no request names one."""
    OPTIONAL = "optional"
    """It writes one where the request names it."""
    REQUIRED = "required"
    """It takes no money without: requests without a receipt are refused before the bank is asked."""


class TaxSystem(StrEnum):
    """By which the seller is taxed (tag 1055)."""

    OSN = "osn"
    """The general one."""
    USN_INCOME = "usn_income"
    """Simplified, of the income."""
    USN_INCOME_OUTCOME = "usn_income_outcome"
    """Simplified, of the income less costs."""
    ESN = "esn"
    """Of agriculture."""
    PATENT = "patent"


class Vat(StrEnum):
    """The rate of VAT (tag 1199). What has a stroke is the calculated rate, for money that holds VAT, such as an
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
    """What is paid for (tag 1212)."""

    COMMODITY = "commodity"
    EXCISE = "excise"
    """Goods under excise."""
    JOB = "job"
    SERVICE = "service"
    INTELLECTUAL_ACTIVITY = "intellectual_activity"
    PAYMENT = "payment"
    """An advance, a deposit, a credit."""
    AGENT_COMMISSION = "agent_commission"
    COMPOSITE = "composite"
    ANOTHER = "another"


class PaymentMode(StrEnum):
    """What the money is, set against the delivery (tag 1214)."""

    FULL_PREPAYMENT = "full_prepayment"
    PREPAYMENT = "prepayment"
    """A part, before delivery."""
    ADVANCE = "advance"
    FULL_PAYMENT = "full_payment"
    PARTIAL_PAYMENT = "partial_payment"
    """A part at delivery; the rest is on credit."""
    CREDIT_PAYMENT = "credit_payment"


class ReceiptItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a receipt."""

    name: str
    """1 to 128 characters."""
    price_kopecks: int
    """Of one."""
    quantity: int = 1
    vat: Vat
    subject: PaymentSubject
    mode: PaymentMode


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt of a payment, or of what goes back of one. Its items sum up to the request's amount, to the kopeck.
    Its repr says nothing: who pays is personal data."""

    items: tuple[ReceiptItem, ...]
    tax_system: TaxSystem
    email: str | None = None
    phone: str | None = None
    """`+` and 10 to 15 digits. One of the two is there: where the receipt is sent."""

    @property
    def total_kopecks(self) -> int:
        return sum(item.price_kopecks * item.quantity for item in self.items)

    def __repr__(self) -> str:
        return "<receipt>"


class ReceiptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Have a receipt written of money that has moved."""

    operation: str
    """What moved it: a payment, a charge, a binding, or a refund."""
    reference: str
    """The bank's: of the invoice, charge or mandate that the money came by, also where it goes back."""
    receipt: Receipt
    goes_back: bool = False
    """It is of a refund."""


class ReceiptStatus(StrEnum):
    """How a receipt stands."""

    PROCESSING = "processing"
    DONE = "done"
    """The cash register has written it."""
    FAILED = "failed"
    """It would not; a person has to look there."""


class ReceiptState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a receipt stands."""

    status: ReceiptStatus


@runtime_checkable
class ReceiptBank(Protocol):
    """A bank whose cash register is told of money after it has moved, by a call of its own. What goes with the requests
    for money is then only looked at, so that one that could not be written is refused before anybody pays."""

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Have the receipt written. Idempotent by `operation`, for ever: a repeat says how the one receipt stands.

        Raises: Refused, it will not be written: `receipt`, `operation` (the operation has another one); NotConfigured;
        OutcomeUnknown; Unavailable.
        """
        ...
