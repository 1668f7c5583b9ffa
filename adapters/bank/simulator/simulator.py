"""A simulated bank without real money: SBP invoices, refunds and mandates that simulated events drive.

Its records are in the storage, so they survive a restart as a real bank's would. It has no timers: each call derives
the current state from the records and the clock. It can do everything that a bank can do to us, late and double
payments included; the core decides how to handle them.
"""

from collections.abc import Sequence
from datetime import timedelta

from ....ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    Notification,
)
from ....ports.bank_simulator import Simulation
from ....ports.clock import Clock, Ids
from ....ports.faults import OutcomeUnknown, Refused
from ....ports.operation_log import OperationLog
from ....ports.receipts import ReceiptNeed
from ....ports.storage import Storage
from ...script import Script, begin_read, begin_write, end_write
from .drawn import drawn_chance, drawn_reference
from .mandate_events import page_as_of
from .mandates import MandateCore
from .pages import (
    ACTING,
    OUTCOME_UNKNOWN,
    REACTION,
    InvoiceEntry,
    RefundPage,
    simulated,
)
from .receipts import ReceiptCore, WrittenReceipt
from .refunds import RefundCore
from .remittances import RemittanceCore, RemittancePage
from .reporting import ReportingCore

_AT_ONCE = timedelta(0)

REMITTANCE_MOST = 500_000_00
"""Kopecks of one remittance: the limit of a real provider, and below the largest exchange."""


class SimulatedBank(RefundCore, MandateCore, RemittanceCore, ReportingCore, ReceiptCore):
    """Implement the ports ListingBank, CancellingBank and BankSimulator. The base classes implement the ports for
    mandates, remittances, receipts and reconciliation."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        *,
        link_base: str = "https://qr.nspk.ru",
        script: Script | None = None,
        capabilities: BankCapabilities | None = None,
        refunds_hold: timedelta | None = _AT_ONCE,
        links_after: timedelta | None = _AT_ONCE,
        asked: bool = False,
    ) -> None:
        """`link_base` is the start of payment links, without a slash at the end. `capabilities` restricts what the bank
        supports; the default is everything. `refunds_hold` is how long a refund stays in processing before it completes
        by itself. `links_after` is how long a binding waits for its link. For both, None means until a simulated event.
        `asked`: callers cannot create invoices without a call to the bank."""
        super().__init__(
            name,
            storage,
            clock,
            ids,
            link_base=link_base,
            script=script,
            capabilities=capabilities or _everything(links_later=links_after != _AT_ONCE, draws=not asked),
        )
        # A provider name of its own, so that a refund's entry is never read as an invoice.
        self._refund_pages = OperationLog(f"{name}/refunds", RefundPage, storage, clock)
        self._remittances = OperationLog(f"{name}/remittances", RemittancePage, storage, clock)
        self._receipts = OperationLog(f"{name}/receipts", WrittenReceipt, storage, clock)
        self._refunds_hold = refunds_hold
        self._links_after = links_after

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Open an invoice, or return the invoice that this operation opened before.

        Raises: Refused for an amount that is not above zero; OutcomeUnknown at the first call for 404.04, and when the
        storage lost its answer; any error that the script sets.
        """
        twist = await begin_write(self._clock, self._script.create)
        if request.amount_kopecks <= 0:
            raise Refused("an invoice is for more than nothing", reason="amount")
        self._check_receipt(request.receipt, request.amount_kopecks)
        entry, is_new = await self._open(request)
        await end_write(self._clock, twist)
        if not entry.is_invoice:
            raise Refused(f"{request.operation} began as no invoice", reason="operation")
        if is_new and request.amount_kopecks == OUTCOME_UNKNOWN:
            raise OutcomeUnknown("the bank's answer was lost")
        return self._invoice(entry)

    def draw_invoice(self, request: InvoiceRequest) -> Invoice | None:
        """Return an invoice that its reference fully encodes; its record is written when somebody pays it. Return None
        for an amount that acts by itself, or if the script changes invoice creation."""
        if (
            not self._capabilities.draws_invoices
            or self._script.create
            or request.amount_kopecks <= 0
            or request.amount_kopecks in ACTING
        ):
            return None
        payload = self._payload(request.amount_kopecks, drawn_chance(request.operation))
        reference = self._reference(drawn_reference(request, self._clock.now()))
        return Invoice(reference=reference, payload=payload, link=payload)

    async def find_invoice(self, operation: str) -> Invoice | None:
        """Return the invoice of this operation, or None. Raises: errors that the script sets."""
        await begin_read(self._clock, self._script.find)
        entry = await self._pages.read(operation)
        return None if entry is None or not entry.is_invoice else self._invoice(entry)

    async def invoice_state(self, reference: str) -> InvoiceState:
        """Return the invoice's state at the current clock time. Raises: Refused when it does not exist; errors that the
        script sets."""
        await begin_read(self._clock, self._script.state)
        entry = await self._invoice_page(reference)
        if entry is None or not entry.is_invoice:
            raise self._missing(f"invoice {reference}")
        return InvoiceState(reference=reference, status=entry.status, transfers=entry.transfers, failure=entry.failure)

    async def cancel_invoice(self, reference: str) -> None:
        """Cancel the invoice unless it is already over. Raises: the errors of the port; any error that the script
        sets."""
        twist = await begin_write(self._clock, self._script.cancel)
        entry = await self._invoice_page(reference)
        if entry is None or not entry.is_invoice:
            raise self._missing(f"invoice {reference}")
        if entry.status is InvoiceStatus.OPEN:
            await self.simulate(entry.operation, Simulation(status=InvoiceStatus.CANCELLED), reference=reference)
        elif entry.status in (InvoiceStatus.PAID, InvoiceStatus.PROCESSING):
            raise Refused(f"it is {entry.status}", reason="state")
        await end_write(self._clock, twist)

    async def simulate(
        self, operation: str, simulation: Simulation, *, reference: str | None = None
    ) -> Sequence[Notification]:
        """Apply a simulated event to the invoice, and return the notifications that the bank sends: one, none when
        silent, two when doubled.

        A paid invoice stays paid: further events change nothing, except a second transfer with `again`. FAILED without
        a reason means `declined_by_bank`. Money is accepted in every state, however late.

        Raises: Refused when the invoice does not exist; ValueError for an event that no bank reports (OPEN, a transfer
        that is not above zero); Unavailable, after which the same event may be sent again.
        """
        if simulation.status is InvoiceStatus.OPEN:
            raise ValueError("an invoice does not become open again")
        if simulation.amount_kopecks is not None and simulation.amount_kopecks <= 0:
            raise ValueError("a transfer is of more than nothing")
        now, found = self._clock.now(), await self._pages.read(operation)
        if found is None and reference is not None and (drawn := self._drawn(reference)) is not None:
            found, _ = await self._pages.start(drawn.operation, drawn)
        if found is None or not found.is_invoice:
            raise self._missing(f"invoice of {operation}")
        await self._pages.change(operation, lambda entry: simulated(page_as_of(entry, now), simulation, now))
        if simulation.silent:
            return ()
        return (Notification(operation=operation),) * (2 if simulation.doubled else 1)

    async def _open(self, request: InvoiceRequest) -> tuple[InvoiceEntry, bool]:
        """Return the record of the operation, and whether this call wrote it. A crash may lose the record and
        everything that happened to it since; a repeated request with the same operation creates the same invoice again.
        """
        entry = InvoiceEntry(
            operation=request.operation,
            amount_kopecks=request.amount_kopecks,
            purpose=request.purpose,
            payload=self._payload(request.amount_kopecks, drawn_chance(request.operation)),
            created_at=self._clock.now(),
            expires_at=request.expires_at,
        )
        return await self._start(entry, durable=False)

    def _invoice(self, entry: InvoiceEntry) -> Invoice:
        return Invoice(
            reference=self._reference(entry.operation),
            payload=entry.payload,
            link=entry.payload,
            check_after=REACTION.total_seconds() if entry.actions_alone else None,
        )


def _everything(*, links_later: bool, draws: bool) -> BankCapabilities:
    return BankCapabilities(
        own_lifetime=True,
        direct_link=True,
        simulated=True,
        sends_notifications=True,
        draws_invoices=draws,
        mandates=True,
        mandate_charges=True,
        mandate_links_later=links_later,
        receipts=ReceiptNeed.OPTIONAL,
        rewrites_receipts=True,
        remittances=True,
        remittance_max_kopecks=REMITTANCE_MOST,
    )
