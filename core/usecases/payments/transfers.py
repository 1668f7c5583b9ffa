"""Transfers that came for a payment, and their use (docs/payments.md "What came")."""

from ....ports.bundle import Ports
from ....ports.storage import OneOf
from ...domain.accounts.accounts import Caller
from ...domain.ledger import JournalEntry, entry_id
from ...domain.payments.suspense import Suspense
from ...domain.payments.transfers import ARRIVALS, ShownTransfer, transfers_of
from ..common.paging import Page
from .payments import get_payment

MOST = 100
"""Most unapplied transfers shown; payers do not make more for one QR by mistake."""


async def list_transfers(ports: Ports, caller: Caller, payment_id: str, number: int, size: int) -> Page[ShownTransfer]:
    """Return a page of the transfers that came for a payment, oldest first. Raises: Refusal PAYMENT_NOT_FOUND."""
    payment = await get_payment(ports, caller, payment_id)
    async with ports.storage.snapshot() as seen:
        wanted = tuple(entry_id(kind, payment.id) for kind in ARRIVALS)
        entries = await seen[JournalEntry].find(id=OneOf(wanted), limit=len(wanted), readable=True)
        unapplied = await seen[Suspense].find(payment_id=payment.id, order="received_at", limit=MOST, readable=True)
    found = transfers_of(payment, entries, unapplied)
    start = (number - 1) * size
    return Page(found[start : start + size], number, size, len(found))
