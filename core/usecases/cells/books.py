"""The journal of an account that moves: its entries are booked again in the cell that it moves to, and stay in the cell
that it leaves, where one entry takes back all that they moved (docs/cells.md "The books")."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import msgspec

from ....ports.storage import AtLeast, Storage, Unit
from ...domain.accounts.accounts import Mode
from ...domain.chains import ChainHead
from ...domain.ledger import LEDGER, BalanceType, EntryKind, JournalEntry, entry_id, journal_entry
from ..common.units import retrying
from ..ledger.ledger import LEDGER_RULES, balance_types, post
from .cell import Cell
from .plan import AT_ONCE, present

MOVES = frozenset((EntryKind.MOVED_OUT, EntryKind.MOVED_IN))
"""Entries of one cell, which are not copied."""

Sums = dict[Mode, Counter[BalanceType]]


async def copy_entries(source: Cell, target: Cell, account_id: str, behind: int | None = None) -> int:
    """Book the account's entries in the target as far as they are missing there, and return their number. `behind`:
    skip entries that the chain contained at this number. Raises: Unavailable; Unreadable."""
    if behind is None:
        walk = source.storage.scan(JournalEntry, batch=AT_ONCE, account_id=account_id)
    else:
        walk = _since(source.storage, account_id, behind)
    written = 0
    async for batch in walk:
        written += await _book(target.storage, [entry for entry in batch if entry.kind not in MOVES])
    return written


async def last_number(storage: Storage) -> int:
    """Return the last number of the journal's chain."""
    head = await storage.get(ChainHead, LEDGER.head_id)
    return 0 if head is None else head.number


async def _since(storage: Storage, account_id: str, number: int) -> AsyncIterator[Sequence[JournalEntry]]:
    for later in (None, AtLeast(number + 1)):
        async for batch in storage.scan(JournalEntry, batch=AT_ONCE, account_id=account_id, number=later):
            yield batch


async def _book(storage: Storage, entries: Sequence[JournalEntry]) -> int:
    """Book missing entries, and bring the places of the others up to date. Return how many were missing."""

    async def work(unit: Unit) -> int:
        known = {entry.id: entry for entry in await present(storage, JournalEntry, [entry.id for entry in entries])}
        missing = [entry for entry in entries if entry.id not in known]
        post(unit, *(msgspec.structs.replace(entry, number=None, seal=None, version=0) for entry in missing))
        for entry in entries:
            there = known.get(entry.id)
            if there is not None and there.place != entry.place:
                unit[JournalEntry].change(there, place=entry.place)
        return len(missing)

    return await retrying(storage, work, again_on=("journal_id", *LEDGER_RULES)) if entries else 0


async def list_places(source: Cell, target: Cell, account_id: str) -> None:
    """Give the target's entries the places of the source's, where every entry has one by now."""
    for mode in Mode:
        while True:
            async with target.storage.unit() as unit:
                loose = await unit[JournalEntry].find(
                    number=None, place=None, account_id=account_id, mode=mode, order="at", limit=AT_ONCE
                )
            if not loose:
                break
            listed = await present(source.storage, JournalEntry, [entry.id for entry in loose])
            await _book(target.storage, [entry for entry in listed if entry.place is not None])


async def sums_in(storage: Storage, account_id: str) -> Sums:
    """Return what all entries of the account in a cell moved."""
    sums: Sums = {mode: Counter() for mode in Mode}
    async for batch in storage.scan(JournalEntry, batch=AT_ONCE, account_id=account_id):
        for entry in batch:
            for posting in entry.postings:
                sums[entry.mode][posting.balance_type] += posting.amount
    return sums


async def balance(cell: Cell, account_id: str, kind: EntryKind, by: Sums) -> None:
    """Book one entry for each mode in which `by` is not zero."""

    async def work(unit: Unit) -> None:
        for mode in Mode:
            postings = {each: amount for each, amount in by[mode].items() if amount}
            if not postings:
                continue
            name, revision = f"{account_id}/{mode}", 1
            while await unit[JournalEntry].get(entry_id(kind, name, revision)) is not None:
                revision += 1
            made = journal_entry(
                kind, name, account_id=account_id, mode=mode, at=cell.now(), postings=postings, revision=revision
            )
            post(unit, msgspec.structs.replace(made, place=0))

    await retrying(cell.storage, work, again_on=("journal_id", *LEDGER_RULES))


async def empty(cell: Cell, account_id: str) -> None:
    """Take back all that the account's entries moved in this cell. Doing it twice changes nothing."""
    sums = await sums_in(cell.storage, account_id)
    await balance(cell, account_id, EntryKind.MOVED_OUT, {mode: Counter(_negated(sums[mode])) for mode in Mode})


async def fill(source: Cell, target: Cell, account_id: str) -> None:
    """Reverse the entries of earlier departures from the target, so that its books of the account are the source's."""
    left = [entry_id(EntryKind.MOVED_OUT, f"{account_id}/{mode}") for mode in Mode]
    if not await present(target.storage, JournalEntry, left):
        return
    before, after = await sums_in(target.storage, account_id), await sums_in(source.storage, account_id)
    by: Sums = {
        mode: Counter({each: after[mode][each] - before[mode][each] for each in {*after[mode], *before[mode]}})
        for mode in Mode
    }
    await balance(target, account_id, EntryKind.MOVED_IN, by)


async def merchant_sums(cell: Cell, account_id: str) -> dict[Mode, dict[BalanceType, int]]:
    """Return the account's running balances that are not zero."""
    async with cell.storage.unit() as unit:
        found = {mode: await balance_types(unit, account_id, mode) for mode in Mode}
    return {mode: {each: units for each, units in sums.items() if units} for mode, sums in found.items()}


def _negated(sums: Counter[BalanceType]) -> dict[BalanceType, int]:
    return {each: -amount for each, amount in sums.items()}
