"""Refunds of the simulated bank. They complete by themselves or through simulated events."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.bank import Notification, RefundRequest, RefundState, RefundStatus, SentRefund
from ....ports.faults import NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.operation_log import OperationLog
from ...script import begin_read, begin_write, end_write
from .core import SimulatorCore
from .mandate_events import page_as_of
from .pages import RefundEntry, RefundPage, refund_simulated, refunded


class RefundCore(SimulatorCore):
    """Implement the refund methods of the ports Bank, ListingBank and BankSimulator."""

    _refund_pages: OperationLog[RefundPage]
    _refunds_hold: timedelta | None

    async def refund(self, request: RefundRequest) -> RefundState:
        """Send money back, or return the state of this operation's refund.

        Raises: the errors of the port; Refused `operation` when the operation began with another invoice;
        OutcomeUnknown also when the storage lost its answer; any error that the script sets.
        """
        self._must_refund()
        twist = await begin_write(self._clock, self._script.refund)
        refund = await self._refund(request)
        await end_write(self._clock, twist)
        return self._refund_state(refund)

    async def find_refund(self, operation: str) -> RefundState | None:
        """Return the refund of this operation at the current clock time, or None. Raises: NotSupported; errors that the
        script sets."""
        self._must_refund()
        await begin_read(self._clock, self._script.find_refund)
        refund = await self._find_refund(operation)
        return None if refund is None else self._refund_state(refund)

    async def refunds_since(self, moment: datetime) -> list[SentRefund]:
        """Return the refunds that were begun since this moment and have not failed. Remittances are not included. A
        bank without refunds returns an empty list. Raises: Unavailable; errors that the script sets."""
        await begin_read(self._clock, self._script.refunds_since)
        sent = []
        for operation, body in await self._refund_pages.since(moment):
            page = msgspec.json.decode(body, type=RefundPage)
            entry = await self._page(page.invoice)
            refund = None if entry is None else entry.refund(operation)
            # The index entry is written before its refund, and the refund may never have been written.
            if entry is not None and refund is not None and refund.status is not RefundStatus.FAILED:
                sent.append(
                    SentRefund(operation=operation, reference=page.reference, amount_kopecks=refund.amount_kopecks)
                )
        return sent

    async def simulate_refund(
        self, operation: str, status: RefundStatus, failure: str | None = None
    ) -> Sequence[Notification]:
        """Apply a simulated status to the refund, and return the one notification that the bank sends.

        A refund in processing can complete, fail (`declined_by_bank` by default) or be held in processing. A completed
        refund can be reversed. Any other change is ignored. Raises: Refused when the refund does not exist.
        """
        page = await self._refund_pages.read(operation)
        now = self._clock.now()
        entry = None
        if page is not None:
            entry = await self._pages.change(
                page.invoice, lambda entry: refund_simulated(page_as_of(entry, now), operation, status, failure)
            )
        if entry is None or entry.refund(operation) is None:
            raise self._missing(f"refund of {operation}")
        return (Notification(operation=operation),)

    def _must_refund(self) -> None:
        if not self._capabilities.refunds:
            raise NotSupported(f"{self.name} sends no money back")

    async def _find_refund(self, operation: str) -> RefundEntry | None:
        page = await self._refund_pages.read(operation)
        entry = None if page is None else await self._page(page.invoice)
        return None if entry is None else entry.refund(operation)

    async def _refund(self, request: RefundRequest) -> RefundEntry:
        """Return the refund of the operation, creating it if needed. Raises: Refused, OutcomeUnknown, Unavailable."""
        present = await self._find_refund(request.operation)
        if present is not None:
            return present
        self._check_receipt(request.receipt, request.amount_kopecks)
        invoice, now = self._operation(request.reference), self._clock.now()
        found = await self._invoice_page(request.reference)
        if found is None:
            raise self._missing(f"invoice {request.reference}")
        # Check first, so that a refused refund leaves no index entry. The invoice is written last, and that write
        # repeats the check.
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
