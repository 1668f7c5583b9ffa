"""A bank without money: SBP invoices that are paid, refused or forgotten, and refunds, when somebody says so.

Its books lie in the storage, so that what it promised survives a restart, as a real bank would. It keeps no timers:
what has happened by now follows from the books and the clock whenever it is asked. It does everything that a bank can
do to us, late and double payments included; what becomes of them is the core's to decide.
"""

import binascii
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from ...ports.bank import (
    BankCapabilities,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    Notice,
    Pretence,
    RefundRequest,
    RefundState,
    RefundStatus,
)
from ...ports.clock import Clock, Ids
from ...ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.storage import Storage
from ..notebook import Notebook
from .books import (
    OUTCOME_UNKNOWN,
    REACTION,
    InvoiceEntry,
    RefundEntry,
    RefundPage,
    as_of,
    pretended,
    refund_pretended,
    refunded,
)
from .script import Ending, Script, Twist, fault, next_twist


class SimulatedBank:
    """Fills the ports Bank and BankSimulator. The reference of an invoice is the id of its note."""

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
        refunds_hold: timedelta | None = timedelta(0),
    ) -> None:
        """`link_base` is where payment links seem to lead, without a slash at the end; `capabilities` is what it says
        of itself, where it shall be less than everything; `refunds_hold` is how long a refund is in processing until
        it is done by itself: not at all, some time, or (None) until it is told."""
        self._books = Notebook(name, InvoiceEntry, storage, clock)
        # A provider of its own, so that no refund's page is ever read as an invoice.
        self._refund_pages = Notebook(f"{name}/refunds", RefundPage, storage, clock)
        self._refunds_hold = refunds_hold
        self._clock = clock
        self._ids = ids
        self._link_base = link_base
        self._script = script or Script()
        self._capabilities = capabilities or BankCapabilities(own_lifetime=True, direct_link=True, simulated=True)

    @property
    def name(self) -> str:
        """As given; part of every note's id."""
        return self._books.provider

    @property
    def capabilities(self) -> BankCapabilities:
        """It can do everything, unless told otherwise."""
        return self._capabilities

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        """Open an invoice, or return the one that this operation made before.

        Raises: Refused for an amount that is not above zero; OutcomeUnknown at the first call for 404.04, and when
        the storage lost its answer; whatever the script says.
        """
        twist = next_twist(self._script.create)
        if twist.ending not in (Ending.NORMAL, Ending.UNKNOWN_DONE):
            await self._be_silent(twist)
            raise fault(twist)
        if request.amount_kopecks <= 0:
            raise Refused("an invoice is for more than nothing", reason="amount")
        entry, is_new = await self._open(request)
        await self._be_silent(twist)
        if twist.ending is Ending.UNKNOWN_DONE:
            raise fault(twist)
        if is_new and request.amount_kopecks == OUTCOME_UNKNOWN:
            raise OutcomeUnknown("the bank's answer was lost")
        return self._invoice(entry)

    async def find_invoice(self, operation: str) -> Invoice | None:
        """The invoice of this operation, or None. Raises: what the script says."""
        await self._answer_read(self._script.find)
        entry = await self._books.read(operation)
        return None if entry is None else self._invoice(entry)

    async def invoice_state(self, reference: str) -> InvoiceState:
        """The invoice by the clock of now. Raises: Refused when there is none; what the script says."""
        await self._answer_read(self._script.state)
        found = await self._books.read(self._invoice_of(reference))
        if found is None:
            raise Refused(f"{self.name} has no invoice {reference}", reason="not_found")
        entry = as_of(found, self._clock.now())
        return InvoiceState(reference=reference, status=entry.status, transfers=entry.transfers, failure=entry.failure)

    async def pretend(self, operation: str, pretence: Pretence) -> Sequence[Notice]:
        """Change the books, and return the notices that go out: one, none when silent, two when doubled.

        An invoice that was paid stays paid: any further wish changes nothing, but for a second transfer with `again`.
        Without a failure reason FAILED means `declined_by_bank`. Money is accepted in every state, however late.

        Raises: Refused when there is no such invoice; ValueError for what no bank reports (OPEN, no money as money).
        """
        if pretence.status is InvoiceStatus.OPEN:
            raise ValueError("an invoice does not become open again")
        if pretence.amount_kopecks is not None and pretence.amount_kopecks <= 0:
            raise ValueError("a transfer is of more than nothing")
        now = self._clock.now()
        if await self._books.change(operation, lambda entry: pretended(as_of(entry, now), pretence, now)) is None:
            raise Refused(f"{self.name} has no invoice of {operation}", reason="not_found")
        if pretence.silent:
            return ()
        return (Notice(operation=operation),) * (2 if pretence.doubled else 1)

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back, or answer how the refund of this operation stands.

        Raises: as the port has it; `operation` is the reason for an operation that began with another invoice;
        OutcomeUnknown also when the storage lost its answer; whatever the script says.
        """
        self._must_refund()
        twist = next_twist(self._script.refund)
        if twist.ending not in (Ending.NORMAL, Ending.UNKNOWN_DONE):
            await self._be_silent(twist)
            raise fault(twist)
        refund = await self._refund(request)
        await self._be_silent(twist)
        if twist.ending is Ending.UNKNOWN_DONE:
            raise fault(twist)
        return self._refund_state(refund)

    async def find_refund(self, operation: str) -> RefundState | None:
        """The refund of this operation by the clock of now, or None. Raises: NotSupported; what the script says."""
        self._must_refund()
        await self._answer_read(self._script.find_refund)
        refund = await self._find_refund(operation)
        return None if refund is None else self._refund_state(refund)

    async def pretend_refund(
        self, operation: str, status: RefundStatus, failure: str | None = None
    ) -> Sequence[Notice]:
        """Change the books, and return the one notice that goes out.

        A refund in processing may be done, fail (`declined_by_bank` without a reason) or be held in processing; one
        that is done may be reversed. Any other wish changes nothing.

        Raises: Refused when there is no such refund.
        """
        page = await self._refund_pages.read(operation)
        now = self._clock.now()
        entry = None
        if page is not None:
            entry = await self._books.change(
                page.invoice, lambda entry: refund_pretended(as_of(entry, now), operation, status, failure)
            )
        if entry is None or entry.refund(operation) is None:
            raise Refused(f"{self.name} has no refund of {operation}", reason="not_found")
        return (Notice(operation=operation),)

    def _must_refund(self) -> None:
        if not self._capabilities.refunds:
            raise NotSupported(f"{self.name} sends no money back")

    async def _find_refund(self, operation: str) -> RefundEntry | None:
        page = await self._refund_pages.read(operation)
        found = None if page is None else await self._books.read(page.invoice)
        return None if found is None else as_of(found, self._clock.now()).refund(operation)

    async def _refund(self, request: RefundRequest) -> RefundEntry:
        """The refund of the operation, made now where there is none. Raises: Refused, OutcomeUnknown, Unavailable."""
        present = await self._find_refund(request.operation)
        if present is not None:
            return present
        invoice, now = self._invoice_of(request.reference), self._clock.now()
        found = await self._books.read(invoice)
        if found is None:
            raise Refused(f"{self.name} has no invoice {request.reference}", reason="not_found")
        # What is refused anyway leaves no page behind. The invoice is written last, and judged again then.
        refunded(as_of(found, now), request, now, self._refunds_hold)
        try:
            page, _ = await self._refund_pages.start(request.operation, RefundPage(invoice=invoice))
            if page.invoice != invoice:
                raise Refused(f"{request.operation} began with another invoice", reason="operation")
            entry = await self._books.change(
                invoice, lambda entry: refunded(as_of(entry, now), request, now, self._refunds_hold)
            )
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's books did not answer") from fault
        made = None if entry is None else entry.refund(request.operation)
        if made is None:
            raise Refused(f"{self.name} has no invoice {request.reference}", reason="not_found")
        return made

    async def _open(self, request: InvoiceRequest) -> tuple[InvoiceEntry, bool]:
        """The entry of the operation, and whether this call made it."""
        entry = InvoiceEntry(
            operation=request.operation,
            amount_kopecks=request.amount_kopecks,
            purpose=request.purpose,
            payload=self._payload(request.amount_kopecks),
            created_at=self._clock.now(),
            expires_at=request.expires_at,
        )
        try:
            return await self._books.start(request.operation, entry)
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's books did not answer") from fault

    async def _answer_read(self, twists: deque[Twist]) -> None:
        """Let the script have its say in a read."""
        twist = next_twist(twists)
        await self._be_silent(twist)
        if twist.ending is not Ending.NORMAL:
            raise fault(twist, is_read=True)

    async def _be_silent(self, twist: Twist) -> None:
        if twist.silence > 0:
            await self._clock.sleep(twist.silence)

    def _invoice_of(self, reference: str) -> str:
        """The operation of the invoice of this reference, if there is such an invoice."""
        return reference.removeprefix(self._books.page_id(""))

    def _payload(self, kopecks: int) -> str:
        """Of the shape that NSPK gives a dynamic QR, with an id and a bank that cannot exist."""
        chance = self._ids.uuid().hex[-16:].upper()
        text = f"{self._link_base}/AD00SIMULATED000{chance}?type=02&bank=999999999999&sum={kopecks}&cur=RUB"
        return f"{text}&crc={binascii.crc_hqx(text.encode(), 0xFFFF):04X}"

    def _invoice(self, entry: InvoiceEntry) -> Invoice:
        return Invoice(
            reference=self._books.page_id(entry.operation),
            payload=entry.payload,
            link=entry.payload,
            check_after=REACTION.total_seconds() if entry.acts_alone else None,
        )

    def _refund_state(self, refund: RefundEntry) -> RefundState:
        wait = None if refund.done_at is None else refund.done_at - self._clock.now()
        return RefundState(
            status=refund.status,
            failure=refund.failure,
            check_after=None if wait is None else max(wait.total_seconds(), 0.0),
        )
