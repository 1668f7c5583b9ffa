"""The simulated bank's refunds: done by themselves, or as somebody says."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ...ports.bank import Notice, RefundRequest, RefundState, RefundStatus, SentRefund
from ...ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ...ports.notebook import Notebook
from ..script import begin_read, begin_write, end_write
from .mandate_events import page_as_of
from .pages import RefundEntry, RefundPage, refund_pretended, refunded
from .simulator_core import SimulatorCore


class RefundCore(SimulatorCore):
    """Fills what the ports Bank, ListingBank and BankSimulator say of refunds."""

    _refund_pages: Notebook[RefundPage]
    _refunds_hold: timedelta | None

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back, or answer how the refund of this operation stands.

        Raises: as the port has it; `operation` is the reason for an operation that began with another invoice;
        OutcomeUnknown also when the storage lost its answer; whatever the script says.
        """
        self._must_refund()
        twist = await begin_write(self._clock, self._script.refund)
        refund = await self._refund(request)
        await end_write(self._clock, twist)
        return self._refund_state(refund)

    async def find_refund(self, operation: str) -> RefundState | None:
        """The refund of this operation by the clock of now, or None. Raises: NotSupported; what the script says."""
        self._must_refund()
        await begin_read(self._clock, self._script.find_refund)
        refund = await self._find_refund(operation)
        return None if refund is None else self._refund_state(refund)

    async def refunds_since(self, moment: datetime) -> list[SentRefund]:
        """The refunds that were begun since and have not failed; none where it refunds nothing. Remittances are none.
        Raises: Unavailable; what the script says."""
        await begin_read(self._clock, self._script.refunds_since)
        sent = []
        for operation, body in await self._refund_pages.since(moment):
            page = msgspec.json.decode(body, type=RefundPage)
            entry = await self._page(page.invoice)
            refund = None if entry is None else entry.refund(operation)
            # A page is written before its refund, which may never have come.
            if entry is not None and refund is not None and refund.status is not RefundStatus.FAILED:
                sent.append(
                    SentRefund(operation=operation, reference=page.reference, amount_kopecks=refund.amount_kopecks)
                )
        return sent

    async def pretend_refund(
        self, operation: str, status: RefundStatus, failure: str | None = None
    ) -> Sequence[Notice]:
        """Change the pages, and return the one notice that goes out.

        A refund in processing may be done, fail (`declined_by_bank` without a reason) or be held in processing; one
        that is done may be reversed. Any other wish changes nothing.

        Raises: Refused when there is no such refund.
        """
        page = await self._refund_pages.read(operation)
        now = self._clock.now()
        entry = None
        if page is not None:
            entry = await self._pages.change(
                page.invoice, lambda entry: refund_pretended(page_as_of(entry, now), operation, status, failure)
            )
        if entry is None or entry.refund(operation) is None:
            raise self._missing(f"refund of {operation}")
        return (Notice(operation=operation),)

    def _must_refund(self) -> None:
        if not self._capabilities.refunds:
            raise NotSupported(f"{self.name} sends no money back")

    async def _find_refund(self, operation: str) -> RefundEntry | None:
        page = await self._refund_pages.read(operation)
        entry = None if page is None else await self._page(page.invoice)
        return None if entry is None else entry.refund(operation)

    async def _refund(self, request: RefundRequest) -> RefundEntry:
        """The refund of the operation, made now where there is none. Raises: Refused, OutcomeUnknown, Unavailable."""
        present = await self._find_refund(request.operation)
        if present is not None:
            return present
        self._check_receipt(request.receipt, request.amount_kopecks)
        invoice, now = self._operation(request.reference), self._clock.now()
        found = await self._invoice_page(request.reference)
        if found is None:
            raise self._missing(f"invoice {request.reference}")
        # What is refused anyway leaves no page behind. The invoice is written last, and judged again then.
        refunded(found, request, now, self._refunds_hold)
        try:
            page, _ = await self._refund_pages.start(
                request.operation, RefundPage(invoice=invoice, reference=request.reference)
            )
            if page.invoice != invoice:
                raise Refused(f"{request.operation} began with another invoice", reason="operation")
            entry = await self._pages.change(
                invoice, lambda entry: refunded(page_as_of(entry, now), request, now, self._refunds_hold)
            )
        except Unavailable as fault:
            raise OutcomeUnknown("the bank's pages did not answer") from fault
        made = None if entry is None else entry.refund(request.operation)
        if made is None:
            raise self._missing(f"invoice {request.reference}")
        return made

    def _refund_state(self, refund: RefundEntry) -> RefundState:
        wait = None if refund.done_at is None else refund.done_at - self._clock.now()
        return RefundState(
            status=refund.status,
            failure=refund.failure,
            check_after=None if wait is None else max(wait.total_seconds(), 0.0),
        )
