"""Comparison of every journal entry with its object: the object's account, mode and amount, and that it still exists
(value_check.py)."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ....ports.faults import Unreadable
from ....ports.storage import OneOf, Snapshot
from ...domain import ids
from ...domain.accounts.accounts import Mode
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.ledger import BalanceType, EntryKind, JournalEntry
from ...domain.payments.payments import Payment
from ...domain.payments.suspense import Suspense
from ...domain.refunds.refunds import Refund
from ...domain.settlement.withdrawals import Withdrawal
from .checkpoint import Scope

_K = EntryKind

Fault = tuple[str, str, str]
"""A record's id, the wrong field, and the reason."""


class _Of(NamedTuple):
    """Kind of object of an entry."""

    table: str
    record: type[Any]
    balance_type: BalanceType | None = None
    """Ledger account that the first entry moves by the whole amount of the record."""
    amount: Callable[[Any], int] = lambda _: 0


_PAYMENT = _Of("payments", Payment)
_REFUND = _Of("refunds", Refund)
_PAYOUT = _Of("withdrawals", Withdrawal)
_EXCHANGE = _Of("exchanges", Exchange)

_ABOUT: Mapping[EntryKind, _Of] = {
    _K.RECEIPT: _PAYMENT,
    _K.REVIEW: _PAYMENT,
    _K.REVIEW_ACCEPTED: _PAYMENT,
    _K.SETTLEMENT: _PAYMENT,
    _K.SUSPENSE: _Of("suspense", Suspense, BalanceType.SUSPENSE, lambda record: int(record.amount.kopecks)),
    _K.SUSPENSE_RETURNED: _Of("suspense", Suspense),
    _K.REFUND_TAKEN: _Of("refunds", Refund, BalanceType.REFUNDING, lambda record: int(record.amount.kopecks)),
    _K.REFUND_PAID: _REFUND,
    _K.REFUND_RETURNED: _REFUND,
    _K.REFUND_REVERSED: _REFUND,
    _K.PAYOUT_RESERVED: _PAYOUT,
    _K.PAYOUT_SENT: _PAYOUT,
    _K.PAYOUT_RELEASED: _PAYOUT,
    _K.EXCHANGE_RECEIVED: _Of("exchange_transfers", ExchangeTransfer),
    _K.EXCHANGE_GIVEN: _EXCHANGE,
    _K.EXCHANGE_COMPLETED: _EXCHANGE,
    _K.EXCHANGE_FAILED: _EXCHANGE,
}
"""Kinds whose object is a record of its own. The settlement of a correction is about its refund (`_about`)."""


async def object_faults(seen: Snapshot, scope: Scope) -> AsyncIterator[Fault]:
    """Find records that the journal contradicts, each field once for a stretch of entries. Raises: Unreadable for an
    entry."""
    async for batch in scope.entries(seen):
        for fault in await _of_batch(seen, batch):
            yield fault


async def _of_batch(seen: Snapshot, batch: Sequence[JournalEntry]) -> list[Fault]:
    about = [(entry, of) for entry in batch if (of := _about(entry)) is not None]
    found: dict[str, Any] = {}
    for record in {of.record for _, of in about}:
        wanted = tuple({entry.object_id for entry, of in about if of.record is record})
        rows = await seen[record].find(id=OneOf(wanted), limit=len(wanted), readable=True)
        found.update((row.id, row) for row in rows)
    faults: dict[tuple[str, str], Fault] = {}
    for entry, of in about:
        fault = await _fault(seen, entry, of, found.get(entry.object_id))
        if fault is not None:
            faults.setdefault(fault[:2], fault)
    return list(faults.values())


def _about(entry: JournalEntry) -> _Of | None:
    if entry.kind is EntryKind.SETTLEMENT and ids.is_prefixed(ids.REFUND, entry.object_id):
        return _REFUND
    return _ABOUT.get(entry.kind)


async def _fault(seen: Snapshot, entry: JournalEntry, of: _Of, record: Any) -> Fault | None:
    if record is None and entry.kind is EntryKind.SETTLEMENT and of is _REFUND:
        return None  # the refund's own entries name it
    if record is None:
        is_gone = await _is_gone(seen, entry, of)
        return (entry.object_id, f"{of.table}.id", f"is gone, but its {entry.kind} is booked") if is_gone else None
    if record.account_id != entry.account_id:
        booked = f"is {record.account_id}, but its {entry.kind} is booked for {entry.account_id}"
        return record.id, f"{of.table}.account_id", booked
    if record.mode is not entry.mode:
        return record.id, f"{of.table}.mode", f"is {record.mode}, but its {entry.kind} is booked in {entry.mode} mode"
    if of.balance_type is not None and entry.revision == 1:
        booked_units = sum(posting.amount for posting in entry.postings if posting.balance_type is of.balance_type)
        if booked_units != of.amount(record):
            return record.id, f"{of.table}.amount", f"is {of.amount(record)}, but {booked_units} are booked"
    return None


async def _is_gone(seen: Snapshot, entry: JournalEntry, of: _Of) -> bool:
    """Return whether a record is missing. Records of test mode may have been deleted (docs/sandbox.md "Forgetting"),
    and an unreadable record is not missing."""
    if entry.mode is not Mode.LIVE:
        return False
    try:
        return await seen[of.record].get(entry.object_id) is None
    except Unreadable:
        return False
