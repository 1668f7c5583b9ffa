"""Records of a simulated bank: invoices with their refunds, and the effects of time and of simulated events on them.

An invoice and its refunds share one record, so concurrent refunds cannot send the same money back twice. Bindings and
charges use such records too, because they are refunded in the same way; mandate_events.py describes how they change.
"""

from datetime import datetime, timedelta

import msgspec

from ....ports.bank import InvoiceStatus, RefundRequest, RefundStatus, Transfer
from ....ports.bank_simulator import Simulation
from ....ports.faults import Refused
from .mandate_pages import BindingPart, ChargePart

INSUFFICIENT_FUNDS = 404_01
DECLINED = 404_02
ANOTHER_AMOUNT = 404_03
OUTCOME_UNKNOWN = 404_04
LINK_LATER = 404_05
"""Invoice amounts in kopecks that trigger a behaviour without a call (docs/sandbox.md "Amounts that act by themselves";
refunds have none). The invoice of 404.04 exists, but its answer is lost. A binding whose first charge is 404.05 gets
its link only after a simulated event."""
ACTING = frozenset((INSUFFICIENT_FUNDS, DECLINED, ANOTHER_AMOUNT, OUTCOME_UNKNOWN))
"""Invoice amounts that must be sent to the bank at once, so that it can act by itself."""

REACTION = timedelta(seconds=1)
"""Time from the creation of such an invoice until the payer or the bank acts."""
_SHORT_BY = 100
"""Kopecks by which the payer of a 404.03 invoice pays too little."""


class RefundEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One refund, stored in the record of its invoice."""

    operation: str
    amount_kopecks: int
    transfer: str | None
    created_at: datetime
    done_at: datetime | None
    """When the refund completes by itself; None: only after a simulated event."""
    status: RefundStatus = RefundStatus.PROCESSING
    failure: str | None = None

    @property
    def keeps_money(self) -> bool:
        """Report whether the refund has sent its money back or may still do so."""
        return self.status in (RefundStatus.PROCESSING, RefundStatus.DONE)


class InvoiceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice, binding or charge of the bank, stored as the body of a note."""

    operation: str
    amount_kopecks: int
    """0 for a binding without a first charge."""
    purpose: str
    payload: str
    created_at: datetime
    expires_at: datetime
    """Meaningless for a charge, which waits for no payer."""
    status: InvoiceStatus = InvoiceStatus.OPEN
    transfers: tuple[Transfer, ...] = ()
    failure: str | None = None
    refunds: tuple[RefundEntry, ...] = ()
    binding: BindingPart | None = None
    charge: ChargePart | None = None

    def __repr__(self) -> str:
        # Transfers contain payers' names.
        return f"<{self.status} invoice of {self.operation}>"

    @property
    def is_invoice(self) -> bool:
        """Report whether the record is neither a binding nor a charge."""
        return self.binding is None and self.charge is None

    @property
    def actions_alone(self) -> bool:
        """Report whether the amount makes something happen without a call."""
        return self.amount_kopecks in (INSUFFICIENT_FUNDS, DECLINED, ANOTHER_AMOUNT)

    def refund(self, operation: str) -> RefundEntry | None:
        """Return the refund of this operation, or None."""
        return next((refund for refund in self.refunds if refund.operation == operation), None)


class RefundPage(msgspec.Struct, frozen=True, kw_only=True):
    """Index entry of a refund. It is written before the refund itself, so its invoice may have no such refund."""

    invoice: str
    """Operation of the invoice."""
    reference: str
    """The invoice's reference as the caller passed it."""


def as_of(entry: InvoiceEntry, now: datetime) -> InvoiceEntry:
    """Apply the passage of time to an invoice: acting amounts after a second, expiry, refunds."""
    entry = refunds_as_of(entry, now)
    acted_at = entry.created_at + REACTION
    if entry.status is InvoiceStatus.OPEN and now >= acted_at:
        if entry.amount_kopecks == INSUFFICIENT_FUNDS:
            return _failed(entry, "insufficient_funds")
        if entry.amount_kopecks == DECLINED:
            return _failed(entry, "declined_by_bank")
        if entry.amount_kopecks == ANOTHER_AMOUNT:
            return paid(entry, entry.amount_kopecks - _SHORT_BY, acted_at, None)
    if entry.status in (InvoiceStatus.OPEN, InvoiceStatus.PROCESSING) and now >= entry.expires_at:
        return msgspec.structs.replace(entry, status=InvoiceStatus.EXPIRED)
    return entry


def refunds_as_of(entry: InvoiceEntry, now: datetime) -> InvoiceEntry:
    """Apply the passage of time to the refunds of a record."""
    if not entry.refunds:
        return entry
    return msgspec.structs.replace(entry, refunds=tuple(_refund_as_of(refund, now) for refund in entry.refunds))


def simulated(entry: InvoiceEntry, simulation: Simulation, now: datetime) -> InvoiceEntry:
    """Apply a simulated event to the invoice. Received money leaves only when it is taken back."""
    if simulation.taken_back:
        gone = tuple(msgspec.structs.replace(transfer, taken_back=True) for transfer in entry.transfers)
        return msgspec.structs.replace(entry, transfers=gone)
    if simulation.status is InvoiceStatus.PAID and (simulation.again or not entry.transfers):
        return paid(entry, simulation.amount_kopecks or entry.amount_kopecks, now, simulation.payer_name)
    if entry.transfers:
        return entry
    if simulation.status is InvoiceStatus.FAILED:
        return _failed(entry, simulation.failure or "declined_by_bank")
    return msgspec.structs.replace(entry, status=simulation.status, failure=None)


def refunded(entry: InvoiceEntry, request: RefundRequest, now: datetime, hold: timedelta | None) -> InvoiceEntry:
    """Add this refund to the invoice; it completes by itself after `hold`. Return the invoice unchanged if it already
    has a refund of this operation.

    Raises: Refused not_paid, not_found (no such transfer), amount.
    """
    if entry.refund(request.operation) is not None:
        return entry
    if not entry.transfers:
        raise Refused(f"the invoice of {entry.operation} is not paid", reason="not_paid")
    if request.amount_kopecks <= 0:
        raise Refused("a refund is of more than nothing", reason="amount")
    named = [transfer for transfer in entry.transfers if request.transfer in (None, transfer.id)]
    if not named:
        raise Refused(f"the invoice of {entry.operation} has no such transfer", reason="not_found")
    gone = [refund for refund in entry.refunds if refund.keeps_money]
    left = _came(entry.transfers) - _sent(gone)
    if request.transfer is not None:
        left = min(left, _came(named) - _sent([refund for refund in gone if refund.transfer == request.transfer]))
    if request.amount_kopecks > left:
        raise Refused(f"the invoice of {entry.operation} has less left to send back", reason="amount")
    refund = RefundEntry(
        operation=request.operation,
        amount_kopecks=request.amount_kopecks,
        transfer=request.transfer,
        created_at=now,
        done_at=None if hold is None else now + hold,
    )
    return msgspec.structs.replace(entry, refunds=(*entry.refunds, _refund_as_of(refund, now)))


def refund_simulated(entry: InvoiceEntry, operation: str, status: RefundStatus, failure: str | None) -> InvoiceEntry:
    """Apply a simulated status to a refund. A change that the refund's state does not allow is ignored."""
    refunds = tuple(
        _told(refund, status, failure) if refund.operation == operation else refund for refund in entry.refunds
    )
    return msgspec.structs.replace(entry, refunds=refunds)


def _told(refund: RefundEntry, status: RefundStatus, failure: str | None) -> RefundEntry:
    """From PROCESSING a refund may be held, complete or fail; from DONE it may be reversed. All other changes are
    ignored."""
    before = RefundStatus.DONE if status is RefundStatus.REVERSED else RefundStatus.PROCESSING
    if refund.status is not before:
        return refund
    reason = (failure or "declined_by_bank") if status is RefundStatus.FAILED else None
    return msgspec.structs.replace(refund, status=status, failure=reason, done_at=None)


def _refund_as_of(refund: RefundEntry, now: datetime) -> RefundEntry:
    is_done = refund.status is RefundStatus.PROCESSING and refund.done_at is not None and now >= refund.done_at
    return msgspec.structs.replace(refund, status=RefundStatus.DONE, done_at=None) if is_done else refund


def _came(transfers: tuple[Transfer, ...] | list[Transfer]) -> int:
    return sum(transfer.amount_kopecks for transfer in transfers if not transfer.taken_back)


def _sent(refunds: list[RefundEntry]) -> int:
    return sum(refund.amount_kopecks for refund in refunds)


def _failed(entry: InvoiceEntry, failure: str) -> InvoiceEntry:
    return msgspec.structs.replace(entry, status=InvoiceStatus.FAILED, failure=failure)


def paid(entry: InvoiceEntry, kopecks: int, at: datetime, payer_name: str | None) -> InvoiceEntry:
    """Add one transfer. Its id is derived from its position, so repeated computations produce the same id."""
    transfer = Transfer(
        id=f"{entry.operation}/{len(entry.transfers) + 1}", amount_kopecks=kopecks, at=at, payer_name=payer_name
    )
    return msgspec.structs.replace(
        entry, status=InvoiceStatus.PAID, failure=None, transfers=(*entry.transfers, transfer)
    )
