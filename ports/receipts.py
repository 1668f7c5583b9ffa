"""Fiscal receipts by 54-FZ in provider-neutral words, for providers whose cash register sends them to the payer
(docs/adapters.md "Receipts"). Each adapter maps every value to its provider's code."""

from datetime import date, datetime
from decimal import Decimal
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
    """Of several subjects; format 1.05 only."""
    ANOTHER = "another"
    PROPERTY_RIGHT = "property_right"
    MARKED = "marked"
    """Goods with a marking code."""
    NON_MARKED = "non_marked"
    """Goods that need a marking code, sold without it."""
    MARKED_EXCISE = "marked_excise"
    NON_MARKED_EXCISE = "non_marked_excise"


class PaymentMode(StrEnum):
    """Method of payment in relation to the delivery (tag 1214)."""

    FULL_PREPAYMENT = "full_prepayment"
    PREPAYMENT = "prepayment"
    """Partial, before delivery."""
    ADVANCE = "advance"
    FULL_PAYMENT = "full_payment"
    PARTIAL_PAYMENT = "partial_payment"
    """Partial, at delivery; the rest is on credit."""
    CREDIT = "credit"
    """Delivered on credit; nothing is paid yet."""
    CREDIT_PAYMENT = "credit_payment"


class Measure(StrEnum):
    """Unit of a quantity (tag 2108, format 1.2)."""

    PIECE = "piece"
    GRAM = "gram"
    KILOGRAM = "kilogram"
    TON = "ton"
    CENTIMETER = "centimeter"
    DECIMETER = "decimeter"
    METER = "meter"
    SQUARE_CENTIMETER = "square_centimeter"
    SQUARE_DECIMETER = "square_decimeter"
    SQUARE_METER = "square_meter"
    MILLILITER = "milliliter"
    LITER = "liter"
    CUBIC_METER = "cubic_meter"
    KILOWATT_HOUR = "kilowatt_hour"
    GIGACALORIE = "gigacalorie"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    KILOBYTE = "kilobyte"
    MEGABYTE = "megabyte"
    GIGABYTE = "gigabyte"
    TERABYTE = "terabyte"
    ANOTHER = "another"


class AgentType(StrEnum):
    """Capacity in which the seller sells for another (tag 1222)."""

    BANK_AGENT = "bank_agent"
    BANK_SUBAGENT = "bank_subagent"
    PAYMENT_AGENT = "payment_agent"
    PAYMENT_SUBAGENT = "payment_subagent"
    ATTORNEY = "attorney"
    COMMISSIONER = "commissioner"
    AGENT = "agent"


class MarkFormat(StrEnum):
    """Format of a marking code (tag 1163)."""

    UNKNOWN = "unknown"
    EAN_8 = "ean_8"
    EAN_13 = "ean_13"
    ITF_14 = "itf_14"
    GS_1M = "gs_1m"
    SHORT = "short"
    FUR = "fur"
    EGAIS_20 = "egais_20"
    EGAIS_30 = "egais_30"


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Agent of an item (tags 1222 and 1223). Bank agents have all fields but `receiver_phones`; payment agents have
    `phones` and `receiver_phones`; the others have the type only. Phones are `+` and 10 to 15 digits."""

    type: AgentType
    operation: str | None = None
    phones: tuple[str, ...] = ()
    receiver_phones: tuple[str, ...] = ()
    transfer_phones: tuple[str, ...] = ()
    operator_name: str | None = None
    operator_address: str | None = None
    operator_inn: str | None = None


class Supplier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Supplier for whom an agent sells (tags 1224 and 1226)."""

    name: str
    inn: str
    phone: str


class MarkCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Marking code of an item as read by a scanner, with its group separators. The item has the quantity 1."""

    format: MarkFormat
    value: str


class ReceiptItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a receipt."""

    name: str
    """1 to 128 characters."""
    price_kopecks: int
    """Price of one unit, after discounts."""
    thousandths: int = 1000
    """Quantity in thousandths of the unit."""
    measure: Measure = Measure.PIECE
    vat: Vat
    subject: PaymentSubject
    mode: PaymentMode
    agent: Agent | None = None
    supplier: Supplier | None = None
    """Set if and only if there is an agent."""
    mark: MarkCode | None = None
    excise_kopecks: int | None = None
    """Excise within the sum (tag 1229)."""
    country: str | None = None
    """Country of origin (tag 1230): two capital letters of ISO 3166."""
    customs_declaration: str | None = None
    """Number of the customs declaration (tag 1231)."""
    additional: str | None = None
    """Additional attribute of the item (tag 1191)."""

    @property
    def quantity(self) -> Decimal:
        """The quantity without trailing zeros."""
        whole, part = divmod(self.thousandths, 1000)
        return Decimal(whole) if part == 0 else Decimal(self.thousandths).scaleb(-3).normalize()

    @property
    def amount_kopecks(self) -> int:
        """Price times quantity, rounded half up to the kopeck."""
        return (self.price_kopecks * self.thousandths + 500) // 1000


class UserAttribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Additional attribute of a receipt (tag 1084)."""

    name: str
    value: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt of a payment or of a refund. Its items add up exactly to the request's amount. Its repr is empty: the
    payer's contact is personal data."""

    items: tuple[ReceiptItem, ...]
    tax_system: TaxSystem
    email: str | None = None
    phone: str | None = None
    """`+` and 10 to 15 digits. The receipt goes to the e-mail address or to the phone; at least one of them is set."""
    name: str | None = None
    """Name of the customer (tag 1227)."""
    inn: str | None = None
    """Taxpayer number of the customer (tag 1228)."""
    attribute: UserAttribute | None = None

    @property
    def total_kopecks(self) -> int:
        return sum(item.amount_kopecks for item in self.items)

    def __repr__(self) -> str:
        return "<receipt>"


class ReceiptKind(StrEnum):
    """Kind of a receipt (tag 1054, and whether it is a correction)."""

    SALE = "sale"
    REFUND = "refund"
    SALE_CORRECTION = "sale_correction"
    """A sale for which no receipt, or a wrong one, was written."""
    REFUND_CORRECTION = "refund_correction"


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Reason of a correction (tags 1173, 1178 and 1179)."""

    day: date
    """Day of the sale or refund that is corrected."""
    order: str | None = None
    """Number of the tax authority's order; None: the seller corrects on its own."""


class ReceiptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the receipt of money that has moved."""

    operation: str
    """Id of this receipt, in the form of docs/adapters.md "Operation ids". One id is one receipt; a receipt that failed
    gets another id when it is tried again."""
    of: str
    """Operation that moved the money: a payment, a charge, a binding, or a refund."""
    amount_kopecks: int
    """The money that moved."""
    reference: str = ""
    """The bank's reference of the invoice, charge or mandate that received the money, also for a refund."""
    receipt: Receipt
    kind: ReceiptKind = ReceiptKind.SALE
    prepaid_kopecks: int = 0
    """Part of the receipt's total that an earlier receipt reported as prepaid (tag 1215); the rest is paid by this
    money (tag 1081). A second receipt, after a prepayment, has all of it."""
    is_with_money: bool = False
    """The receipt was part of the request that moved the money; only its state is wanted."""
    correction: Correction | None = None
    """Set for corrections."""
    requested_at: datetime
    """When this receipt was first wanted."""
    account: str | None = None
    """The merchant's account; below it the shop and the terminal (docs/adapters.md "Credentials of several
    merchants")."""
    shop: str | None = None
    terminal: str | None = None

    @property
    def goes_back(self) -> bool:
        """Whether the money goes back to the customer."""
        return self.kind in (ReceiptKind.REFUND, ReceiptKind.REFUND_CORRECTION)


class ReceiptStatus(StrEnum):
    """State of a receipt."""

    PROCESSING = "processing"
    DONE = "done"
    """The cash register has written the receipt."""
    FAILED = "failed"
    """The cash register rejected the receipt, for good: nothing was written under this id."""


class FiscalData(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers by which a written receipt is found; as far as the provider tells them."""

    storage: str | None = None
    """Number of the fiscal storage (FN, tag 1041)."""
    document: str | None = None
    """Number of the fiscal document (FD, tag 1040)."""
    sign: str | None = None
    """Fiscal sign of the document (FP, tag 1077)."""
    register: str | None = None
    """Registration number of the cash register (tag 1037)."""
    url: str | None = None
    """Page of the receipt at the operator of fiscal data."""
    registered_at: datetime | None = None
    """Time on the receipt."""


class ReceiptState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a receipt. With FAILED, `failure` is the provider's reason, without personal data."""

    status: ReceiptStatus
    failure: str | None = None
    fiscal: FiscalData = FiscalData()


@runtime_checkable
class ReceiptFinder(Protocol):
    """A provider that tells the state of receipts."""

    async def find_receipt(self, request: ReceiptRequest) -> ReceiptState | None:
        """Return the state of this request's receipt, or None when the provider never saw it. A read."""
        ...


@runtime_checkable
class ReceiptBank(ReceiptFinder, Protocol):
    """A bank that writes receipts by a separate call. With `BankCapabilities.receipts_apart` it gets all of them so,
    after the money has moved: the receipt inside a request for money is then only validated, so that an invalid one is
    refused before anybody pays. Otherwise it gets second receipts, and those that are tried again."""

    async def write_receipt(self, request: ReceiptRequest) -> ReceiptState:
        """Request the receipt. Idempotent by `request.operation`: a repeat returns the state of the same receipt.

        Raises: Refused, it will not be written: `receipt`, `operation` (the operation has a different receipt);
        NotSupported; NotConfigured; OutcomeUnknown; Unavailable.
        """
        ...


class ReceiptRegister(ReceiptBank, Protocol):
    """A cash register beside the banks, such as a cloud register of the merchant. It writes the receipts of money that
    a bank without receipts has moved, and corrections."""

    @property
    def name(self) -> str:
        """Name stored with every receipt; it must never change."""
        ...
