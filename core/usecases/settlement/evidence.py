"""Comparison of due payments and corrections with the signed journal. Money follows the entries, never a row beside
them (docs/settlement.md "When").

A payment or correction that differs is not settled, and does not stop any other. The settlement logs it, and an action
item shows it until it is fixed.
"""

from collections.abc import Iterable, Mapping, Sequence

from ....ports.storage import OneOf, Unit
from ...domain.accounts.accounts import Owned
from ...domain.ledger import BalanceType, EntryKind, JournalEntry, entry_id
from ...domain.payments.payments import Payment
from ...domain.settlement.settlement import Correction

_BACK = (EntryKind.REFUND_RETURNED, EntryKind.REFUND_REVERSED)

Entries = Mapping[str, JournalEntry]


async def payment_faults(unit: Unit, payments: Sequence[Payment]) -> dict[str, str]:
    """Return why these paid payments must not be settled, by id. Payments that agree with the journal are left out."""
    if not payments:
        return {}
    known = await _entries(unit, [entry_id(EntryKind.RECEIPT, payment.id) for payment in payments])
    reviewed = [payment.id for payment in payments if entry_id(EntryKind.RECEIPT, payment.id) not in known]
    known |= await _entries(unit, [entry_id(EntryKind.REVIEW_ACCEPTED, payment_id) for payment_id in reviewed])
    known |= await _entries(unit, [entry_id(EntryKind.SETTLEMENT, payment.id) for payment in payments])
    kinds = (EntryKind.RECEIPT, EntryKind.REVIEW_ACCEPTED)
    found = {}
    for payment in payments:
        came = 0 if payment.actual_amount is None else payment.actual_amount.kopecks
        fault = _fault(payment, came, kinds, known)
        if fault is not None:
            found[payment.id] = fault
    return found


async def correction_faults(unit: Unit, corrections: Sequence[Correction]) -> dict[str, str]:
    """Return why these corrections must not be settled, by id."""
    kinds = (*_BACK, EntryKind.SETTLEMENT)
    known = await _entries(unit, [entry_id(kind, each.id) for each in corrections for kind in kinds])
    faults = {each.id: _fault(each, each.amount.kopecks, _BACK, known) for each in corrections}
    return {record_id: fault for record_id, fault in faults.items() if fault is not None}


def _fault(record: Owned, kopecks: int, kinds: Iterable[EntryKind], known: Entries) -> str | None:
    """Compare account, mode and sum with the entries that brought the money."""
    if entry_id(EntryKind.SETTLEMENT, record.id) in known:
        return "the journal has its settlement already"
    booked = 0
    for kind in kinds:
        entry = known.get(entry_id(kind, record.id))
        if entry is None:
            continue
        if entry.account_id != record.account_id:
            return f"its {kind} is booked for account {entry.account_id}"
        if entry.mode is not record.mode:
            return f"its {kind} is booked in {entry.mode} mode"
        booked += sum(posting.amount for posting in entry.postings if posting.balance_type is BalanceType.PENDING)
    return None if booked == kopecks else f"its row says {kopecks} kopecks, the journal {booked}"


async def _entries(unit: Unit, ids: Sequence[str]) -> dict[str, JournalEntry]:
    found = await unit[JournalEntry].find(id=OneOf(tuple(ids)), limit=len(ids)) if ids else []
    return {entry.id: entry for entry in found}
