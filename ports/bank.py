"""The bank or payment system, in its own words: an operation, an amount in kopecks, an outcome.

Every writing call carries an operation id chosen and stored by the caller before the call. A repeat with the same id
is the same operation. Faults: Refused, OutcomeUnknown, Unavailable, NotConfigured, NotSupported (ports/faults.py).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

import msgspec

from .receipts import Receipt, ReceiptNeed


class BankCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter can do; the core asks instead of assuming."""

    own_lifetime: bool = False
    """The provider lets us choose when an invoice ends; else `expires_at` of a payment does not follow the wish."""
    direct_link: bool = True
    """The provider's own link may be handed out without our window."""
    simulated: bool = False
    """No real money: the adapter is also a BankSimulator."""
    draws_invoices: bool = False
    """Its invoices can be drawn up without asking it: the adapter is also a DrawingBank."""
    cancels_invoices: bool = False
    """An open invoice can be closed: the adapter is also a CancellingBank."""
    min_kopecks: int = 1
    max_kopecks: int | None = None
    """The least and the most that one invoice may be; None: no such bound. Outside of it the bank is passed over before
    it is asked."""
    wants_payer: bool = False
    """It asks for the payer's e-mail, phone or address: requests name what the merchant gave of them. Else they name
    nobody."""
    receipts: ReceiptNeed = ReceiptNeed.NONE
    """What it does about receipts by 54-FZ (docs/adapters.md "Receipts")."""
    refunds: bool = True
    """It sends money back to payers; else `refund` and `find_refund` raise NotSupported."""
    mandates: bool = False
    """Payers can bind: the adapter is also a MandateBank (ports/mandates.py)."""
    mandate_charges: bool = False
    """Mandates can be charged; else `charge` raises NotConfigured."""
    mandate_links_later: bool = False
    """The link of a binding may come some time after it was asked for."""
    remittances: bool = False
    """It sends money to people: the adapter is also a RemittanceBank (ports/remittances.py)."""
    sends_notices: bool = False
    """It tells of what became of an invoice or a mandate (`Notice`). Else what waits for a payer is asked for by
    schedule, every few seconds at first (docs/adapters.md "How often a provider is asked")."""
    looks_per_minute: int = 600
    """How often a minute all processes together may ask for states by schedule. What a request or a notice asks, and
    all that writes, comes on top: leave room for it below the provider's own limit."""
    remittance_max_kopecks: int | None = None
    """The most that one remittance may be; a larger sum goes in several. None: no such bound."""
    repeat_window: timedelta | None = None
    """For how long after it was first sent a repeat of an operation is the same operation there; say an hour less than
    the provider promises. Past it the operation is only asked for, and what the bank does not know waits for an
    operator (docs/adapters.md "Finding and repeating"). None: for ever."""

    def takes(self, amount_kopecks: int) -> bool:
        """Whether one invoice may be of so much."""
        return self.min_kopecks <= amount_kopecks and (self.max_kopecks is None or amount_kopecks <= self.max_kopecks)


class InvoicePayer(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays, as the merchant said it. Its repr says nothing: it is personal data."""

    phone: str | None = None
    """`+` and 10 to 15 digits."""
    email: str | None = None
    ip: str | None = None
    """The address from which the payer came to the merchant: IPv4 or IPv6."""

    def __repr__(self) -> str:
        return "<payer>"


class InvoiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask for money by QR. `operation` is the caller's row id, in one of the forms of docs/adapters.md "Operation ids";
    `expires_at` is a wish (see `own_lifetime`)."""

    operation: str
    amount_kopecks: int
    purpose: str
    expires_at: datetime
    return_url: str | None = None
    """Where the payer comes back from a page of the provider, paid or not: our window, which knows how the payment
    stands and returns the payer to the shop. None: there is no such page."""
    payer: InvoicePayer | None = None
    """With `wants_payer`, where the merchant said anything."""
    account: str | None = None
    """Whose money it will be: the merchant's account, below it the shop and the terminal. For adapters that know the
    credentials of several (docs/adapters.md "Credentials of several merchants")."""
    shop: str | None = None
    terminal: str | None = None
    """None: the payment goes by none."""
    receipt: Receipt | None = None
    """Of this amount, where the bank writes receipts and the merchant wants them; always there where it requires
    them."""


class InvoiceKind(StrEnum):
    """Where the link of an invoice leads."""

    QR = "qr"
    """It is an SBP link: drawn as a QR, and opened by a phone's bank application."""
    PAGE = "page"
    """To a page of the provider, on which the payer goes on."""
    DEEPLINK = "deeplink"
    """Into an application on the payer's phone. Its scheme may be one of the application's own."""


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice at the bank. `reference` is the bank's id of it; `payload` is what the QR says, where its `kind` has
    one."""

    reference: str
    payload: str | None = None
    link: str
    kind: InvoiceKind = InvoiceKind.QR
    expires_at: datetime | None = None
    """When it ends at the provider, where the provider says so. Earlier than was asked: the payment ends then, too.
    Later: it ends when it would have, and what comes meanwhile is late money."""
    check_after: float | None = None
    """Seconds after which asking for the state is worthwhile, for the first time."""


class InvoiceStatus(StrEnum):
    """How the bank sees an invoice."""

    OPEN = "open"
    PROCESSING = "processing"
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Money that came in. One invoice may see several: a payer can scan a QR twice."""

    id: str
    """Unique within the invoice, or within the mandate or charge that it is reported for, and the same in every report.
    Other invoices may have transfers of the same id. Never derive it from something that two transfers of one invoice
    share, such as the invoice's own id or an order number: the second transfer would be taken for the first."""
    amount_kopecks: int
    at: datetime
    payer_name: str | None = None
    fee_kopecks: int | None = None
    """What the provider keeps of it, where it says so with the money."""
    payer_bank: str | None = None
    """The bank that it came from, in the provider's words: an id, a BIC or a name."""
    sbp_operation_id: str | None = None
    """The payment system's number of it, by which banks find it."""
    taken_back: bool = False
    """It came and the payer's bank has taken it away again (a chargeback). Most providers know of no such thing."""


class InvoiceState(msgspec.Struct, frozen=True, kw_only=True):
    """All the bank knows of an invoice. `failure` is a failure reason of docs/payments.md "What you get", with
    FAILED."""

    reference: str
    status: InvoiceStatus
    transfers: tuple[Transfer, ...] = ()
    failure: str | None = None
    check_after: float | None = None
    """Seconds after which asking again is worthwhile, as long as the invoice is open. None: as `sends_notices` says."""


class RefundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Send money of an invoice back to who paid it. `operation` is the refund's row id at the caller."""

    operation: str
    reference: str
    """The invoice's, as `Invoice.reference` gave it."""
    amount_kopecks: int
    transfer: str | None = None
    """The id of the transfer to send back (`Transfer.id`), where the caller knows it: no more goes back than is left
    of that one. None: of whatever came."""
    receipt: Receipt | None = None
    """Of what goes back, where the payment had one."""


class RefundStatus(StrEnum):
    """How the bank sees a refund."""

    PROCESSING = "processing"
    DONE = "done"
    """The payer has the money."""
    FAILED = "failed"
    """For good; the money did not go."""
    REVERSED = "reversed"
    """It was DONE and came back: the payer's bank returned the money. Who looks seldom may never have seen it DONE."""


class RefundState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a refund stands. `failure` is the provider's reason, with FAILED."""

    status: RefundStatus
    failure: str | None = None
    check_after: float | None = None
    """Seconds after which asking again is worthwhile, for providers that send no notice."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """The bank says that something happened to an operation. A hint: the core asks for the state itself."""

    operation: str
    """Of an invoice, a refund, a binding or a charge; the caller knows by its own ids of which."""


class Bank(Protocol):
    """A provider that takes RUB from payers, and sends it back to them."""

    @property
    def name(self) -> str:
        """Stored with every payment that goes this way; stable for ever."""
        ...

    @property
    def capabilities(self) -> BankCapabilities: ...

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Open an invoice. Idempotent by `request.operation`."""
        ...

    async def find_invoice(self, operation: str) -> Invoice | None:
        """The invoice that this operation id made, or None when the bank never saw the operation. A read. Of a bank
        that has to search for it: ports/searching.py."""
        ...

    async def invoice_state(self, reference: str) -> InvoiceState:
        """Where the invoice stands now. A read."""
        ...

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back. Idempotent by `request.operation`: a repeat answers with the present state and moves no
        second money, whatever else it says.

        Raises: Refused, no money moved: `not_found` (no such invoice or transfer), `not_paid`, `amount` (not above
        zero, or more than came and was not sent back already), or another word of the provider's; OutcomeUnknown;
        Unavailable; NotSupported.
        """
        ...

    async def find_refund(self, operation: str) -> RefundState | None:
        """Where the refund of this operation id stands now, or None when the bank never saw the operation, or refused
        it. A read."""
        ...


class SentRefund(msgspec.Struct, frozen=True, kw_only=True):
    """What a bank sent back, or has under way."""

    operation: str
    reference: str
    """The invoice's."""
    amount_kopecks: int


@runtime_checkable
class ListingBank(Bank, Protocol):
    """A bank that can list what it sent back: for a database that was restored from a backup, which knows nothing of
    refunds that were begun since."""

    async def refunds_since(self, moment: datetime) -> Sequence[SentRefund]:
        """Every refund that it took from that moment on and that did not fail. A read. Raises: Unavailable."""
        ...


@runtime_checkable
class DrawingBank(Bank, Protocol):
    """A bank whose invoices we may draw up ourselves, as where the payer's link is signed with the merchant's key: the
    bank first hears of one from whoever pays it. Such a creation has no step that can be lost on the way."""

    def draw_invoice(self, request: InvoiceRequest) -> Invoice | None:
        """The invoice of this request, of which the bank may know nothing yet; None: it must be asked for this one
        (`create_invoice`). Asks nobody and keeps nothing: what is thrown away never was.

        `invoice_state` and `refund` take its reference, as if it had been created.
        """
        ...


@runtime_checkable
class CancellingBank(Bank, Protocol):
    """A bank at which an open invoice can be closed, so that nobody pays it after its payment has expired."""

    async def cancel_invoice(self, reference: str) -> None:
        """Close the invoice. One that is closed already, or has expired, stays as it is.

        Raises: Refused where it is paid or the payer is about it, and for one that is not there; OutcomeUnknown;
        Unavailable.
        """
        ...
