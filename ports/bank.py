"""The port to a bank or payment system: an operation, an amount in kopecks, an outcome.

Every writing call carries an operation id that the caller chose and stored before the call. A repeat with the same id
is the same operation. Faults: Refused, OutcomeUnknown, Unavailable, NotConfigured, NotSupported (ports/faults.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .receipts import Receipt, ReceiptNeed


class BankCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities of an adapter; the core reads them instead of assuming."""

    own_lifetime: bool = False
    """The provider lets us choose when an invoice ends; otherwise the payment's requested `expires_at` is not
    honoured."""
    direct_link: bool = True
    """The provider's own link may be given to payers without our window."""
    simulated: bool = False
    """No real money moves: the adapter is also a BankSimulator."""
    draws_invoices: bool = False
    """Invoices can be created without a request to the provider: the adapter is also a DrawingBank."""
    cancels_invoices: bool = False
    """An open invoice can be closed: the adapter is also a CancellingBank."""
    min_kopecks: int = 1
    max_kopecks: int | None = None
    """Largest amount of one invoice; None: no limit. The core skips the bank without a request when an amount is
    outside `min_kopecks` and `max_kopecks`."""
    wants_payer: bool = False
    """The provider wants the payer's e-mail, phone or address: requests include the values that the merchant gave.
    Otherwise requests identify no payer."""
    receipts: ReceiptNeed = ReceiptNeed.NONE
    """How the provider handles receipts by 54-FZ (docs/adapters.md "Receipts")."""
    receipts_apart: bool = False
    """Receipts need a call of their own once the money has moved: the adapter is also a ReceiptBank."""
    rewrites_receipts: bool = False
    """A receipt that failed can be written by a call of its own: the adapter is also a ReceiptBank."""
    refunds: bool = True
    """The provider sends money back to payers; otherwise `refund` and `find_refund` raise NotSupported."""
    mandates: bool = False
    """Payers can bind: the adapter is also a MandateBank (ports/mandates.py)."""
    mandate_charges: bool = False
    """Mandates can be charged; else `charge` raises NotConfigured."""
    mandate_links_later: bool = False
    """The link of a binding may arrive some time after the request."""
    remittances: bool = False
    """It sends money to people: the adapter is also a RemittanceBank (ports/remittances.py)."""
    sends_notifications: bool = False
    """The provider sends notifications about invoices and mandates (`Notification`). Otherwise the core polls each open
    operation, every few seconds at first (docs/adapters.md "How often a provider is asked")."""
    polls_per_minute: int = 600
    """Limit of scheduled polls per minute, all processes together. Reads caused by a request or a notification, and all
    writes, come on top: leave room for them below the provider's own limit."""
    remittance_max_kopecks: int | None = None
    """Largest amount of one remittance; the core splits a larger sum. None: no limit."""
    repeat_window: timedelta | None = None
    """How long after the first request the provider treats a repeat as the same operation; state an hour less than the
    provider promises. After that the core only queries the operation, and one that the bank does not know waits for an
    operator (docs/adapters.md "Finding and repeating"). None: forever."""

    def takes(self, amount_kopecks: int) -> bool:
        """Return whether one invoice may have this amount."""
        return self.min_kopecks <= amount_kopecks and (self.max_kopecks is None or amount_kopecks <= self.max_kopecks)


class InvoicePayer(msgspec.Struct, frozen=True, kw_only=True):
    """The payer, as the merchant described them. Its repr is empty: this is personal data."""

    phone: str | None = None
    """`+` and 10 to 15 digits."""
    email: str | None = None
    ip: str | None = None
    """The IPv4 or IPv6 address from which the payer visited the merchant."""

    def __repr__(self) -> str:
        return "<payer>"


class InvoiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for money by QR. `operation` is the caller's row id, in one of the forms of docs/adapters.md "Operation
    ids"; `expires_at` is a wish (see `own_lifetime`)."""

    operation: str
    amount_kopecks: int
    purpose: str
    expires_at: datetime
    return_url: str | None = None
    """Where a page of the provider sends the payer afterwards, paid or not: our window, which shows the state of the
    payment and returns the payer to the shop. None: the provider has no such page."""
    payer: InvoicePayer | None = None
    """Set with `wants_payer` if the merchant gave any data."""
    account: str | None = None
    """The merchant's account that receives the money; below it the shop and the terminal. For adapters with the
    credentials of several merchants (docs/adapters.md "Credentials of several merchants")."""
    shop: str | None = None
    terminal: str | None = None
    """None: the payment has no terminal."""
    receipt: Receipt | None = None
    """Receipt for this amount, if the bank writes receipts and the merchant wants them; always set if the bank requires
    receipts."""


class InvoiceKind(StrEnum):
    """Destination of an invoice's link."""

    QR = "qr"
    """An SBP link: shown as a QR code, and opened by a bank application on the phone."""
    PAGE = "page"
    """A page of the provider, on which the payer continues."""
    DEEPLINK = "deeplink"
    """An application on the payer's phone. The link may have a scheme of that application."""


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice at the bank. `reference` is the bank's id of it; `payload` is the content of the QR code, if its
    `kind` has one."""

    reference: str
    payload: str | None = None
    link: str
    kind: InvoiceKind = InvoiceKind.QR
    expires_at: datetime | None = None
    """When the invoice ends at the provider, if the provider says so. If earlier than requested, the payment ends then,
    too. If later, the payment ends at the requested time, and money that arrives after it is late money."""
    check_after: float | None = None
    """Seconds until the first poll is worthwhile."""


class InvoiceStatus(StrEnum):
    """State of an invoice at the bank."""

    OPEN = "open"
    PROCESSING = "processing"
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Money that came in. One invoice may have several transfers: a payer can scan a QR code twice."""

    id: str
    """Unique within the invoice, mandate or charge that reports it, and the same in every report. Other invoices may
    have transfers with the same id. Never derive it from a value that two transfers of one invoice share, such as the
    invoice's own id or an order number: we would mistake the second transfer for the first."""
    amount_kopecks: int
    at: datetime
    payer_name: str | None = None
    fee_kopecks: int | None = None
    """The provider's fee for it, if reported together with the money."""
    payer_bank: str | None = None
    """The sending bank as the provider names it: an id, a BIC or a name."""
    sbp_operation_id: str | None = None
    """Operation number at the payment system, by which banks find the transfer."""
    taken_back: bool = False
    """The money came and the payer's bank has taken it back (a chargeback). Most providers do not report this."""


class InvoiceState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the bank knows about an invoice. With FAILED, `failure` is a failure reason of docs/payments.md "What
    you get"."""

    reference: str
    status: InvoiceStatus
    transfers: tuple[Transfer, ...] = ()
    failure: str | None = None
    check_after: float | None = None
    """Seconds until the next poll is worthwhile while the invoice is open. None: `sends_notifications` decides."""


class RefundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to send an invoice's money back to its payer. `operation` is the refund's row id at the caller."""

    operation: str
    reference: str
    """Reference of the invoice, from `Invoice.reference`."""
    amount_kopecks: int
    transfer: str | None = None
    """Id of the transfer to send back (`Transfer.id`), if the caller knows it: the bank returns at most the rest of
    that transfer. None: any of the invoice's transfers."""
    receipt: Receipt | None = None
    """Receipt for the returned money, if the payment had one."""


class RefundStatus(StrEnum):
    """State of a refund at the bank."""

    PROCESSING = "processing"
    DONE = "done"
    """The payer has the money."""
    FAILED = "failed"
    """Final; the money did not move."""
    REVERSED = "reversed"
    """It was DONE and came back: the payer's bank returned the money. With rare polls the core may never see DONE."""


class RefundState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a refund. With FAILED, `failure` is the provider's reason."""

    status: RefundStatus
    failure: str | None = None
    check_after: float | None = None
    """Seconds until the next poll is worthwhile, for providers that send no notifications."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification from the bank about an operation. It is only a hint: the core reads the state itself."""

    operation: str
    """Operation id of an invoice, a refund, a binding or a charge; the caller recognizes its own ids."""


class Bank(Protocol):
    """A provider that collects RUB from payers, and sends it back to them."""

    @property
    def name(self) -> str:
        """Name stored with every payment through this bank; it must never change."""
        ...

    @property
    def capabilities(self) -> BankCapabilities: ...

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Open an invoice. Idempotent by `request.operation`."""
        ...

    async def find_invoice(self, operation: str) -> Invoice | None:
        """Return the invoice that this operation id created, or None when the bank never saw the operation. A read.
        Adapters that have to search for it implement ports/searching.py."""
        ...

    async def invoice_state(self, reference: str) -> InvoiceState:
        """Return the present state of the invoice. A read."""
        ...

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back. Idempotent by `request.operation`: a repeat returns the present state and moves no money
        again, even if its other fields differ.

        Raises: Refused, no money moved: `not_found` (no such invoice or transfer), `not_paid`, `amount` (not above
        zero, or more than was paid and not yet refunded), or another reason of the provider; OutcomeUnknown;
        Unavailable; NotSupported.
        """
        ...

    async def find_refund(self, operation: str) -> RefundState | None:
        """Return the present state of the refund with this operation id, or None when the bank never saw the operation
        or refused it. A read."""
        ...


class SentRefund(msgspec.Struct, frozen=True, kw_only=True):
    """A refund that a bank has completed or has in progress."""

    operation: str
    reference: str
    """Reference of the invoice."""
    amount_kopecks: int


@runtime_checkable
class ListingBank(Bank, Protocol):
    """A bank that can list its refunds: for a database restored from a backup, which knows nothing about refunds begun
    since."""

    async def refunds_since(self, moment: datetime) -> Sequence[SentRefund]:
        """Return every refund that the bank accepted since that moment and that did not fail. A read. Raises:
        Unavailable."""
        ...


@runtime_checkable
class DrawingBank(Bank, Protocol):
    """A bank whose invoices we can create ourselves, for example where the merchant's key signs the payer's link: the
    bank first learns of the invoice when the payer opens it. Such a creation has no network step that could be lost."""

    def draw_invoice(self, request: InvoiceRequest) -> Invoice | None:
        """Return the invoice of this request, which the bank may not know yet; None: the core must create this one with
        `create_invoice`. Makes no request and stores nothing, so the result can be discarded.

        `invoice_state` and `refund` accept its reference as if `create_invoice` had made it.
        """
        ...


@runtime_checkable
class CancellingBank(Bank, Protocol):
    """A bank that can close an open invoice, so that nobody pays it after its payment has expired."""

    async def cancel_invoice(self, reference: str) -> None:
        """Close the invoice. An invoice that is already closed or expired does not change.

        Raises: Refused when it is paid, when the payer is paying it now, or when it does not exist; OutcomeUnknown;
        Unavailable.
        """
        ...
