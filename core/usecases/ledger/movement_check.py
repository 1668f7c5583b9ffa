"""Comparison of movements with the journal (value_check.py). It detects changed and deleted movements."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from ....ports.storage import Between, OneOf, Snapshot
from ...domain.accounts.accounts import Mode
from ...domain.cells import Stage
from ...domain.ledger import BALANCE_TYPES, BalanceType, JournalEntry
from ...domain.movements import Movement, movement_id, movement_ids, movement_of
from .chain_check import BATCH
from .checkpoint import Scope, Sums

Fault = tuple[str, str, str]
"""A row, its field, and the fault."""

_NOTHING = 0, 0, 0


async def movement_faults(
    seen: Snapshot, scope: Scope, counted: Mapping[str, int], listed: dict[str, tuple[int, Sums]]
) -> AsyncIterator[Fault]:
    """Find all differences. `counted`: sums of the journal's entries by the ids of running balances. `listed` has the
    last movement of each account and mode at the checkpoint, and receives the present ones.

    Memory use grows with the number of balances. An unreadable movement is skipped, so the next one is reported as
    differing. Raises: Unreadable for an entry.
    """
    last: dict[str, Movement] = {}
    balances = _balances(counted)
    for owner in [each for each in balances if each.partition(":")[0] in scope.away]:
        balance = balances.pop(owner)
        if scope.away[owner.partition(":")[0]] is Stage.LEFT and balance != _NOTHING:
            yield owner, "movements", f"are of an account that left, but the journal sums to {_told(balance)}"
    if scope.since is None:
        async for batch in _movements(seen, ""):
            here = [each for each in batch if each.id.partition(":")[0] not in scope.away]
            async for fault in _of_batch(seen, here, last):
                yield fault
    else:
        for owner, balance in list(balances.items()):
            number, sums = listed.get(owner, (0, _NOTHING))
            if sums == balance and owner not in scope.owners:
                del balances[owner]
                continue
            account_id, _, mode = owner.rpartition(":")
            owned = account_id, Mode(mode)
            if number:
                before = await seen[Movement].get(movement_id(*owned, number))
                if before is None or _after(before) != sums:
                    yield owner, "movements.available_after", f"of {number} is not what was verified before"
                if before is not None:
                    last[owner] = before
            async for batch in _movements(seen, *movement_ids(*owned, number + 1)):
                async for fault in _of_batch(seen, batch, last):
                    yield fault
    for owner, balance in balances.items():
        movement = last.pop(owner, None)
        after = _after(movement)
        listed[owner] = 0 if movement is None else movement.number, after
        waiting = await _waiting(seen, owner)
        sums = after[0] + waiting[0], after[1] + waiting[1], after[2] + waiting[2]
        if sums != balance:
            yield owner, "movements", f"sum to {_told(sums)}, but the journal to {_told(balance)}"
    for owner in last:
        yield owner, "movements", "are of no entries"


async def _movements(seen: Snapshot, low: str, high: str | None = None) -> AsyncIterator[list[Movement]]:
    after, past = low, 0
    while batch := await seen[Movement].find(id=Between(after, high), offset=past, limit=BATCH, readable=True):
        yield batch
        after, past = batch[-1].id, 1


async def _of_batch(seen: Snapshot, batch: Sequence[Movement], last: dict[str, Movement]) -> AsyncIterator[Fault]:
    """Compare movements with their entries and with those before them. `last` has the last one of each account."""
    wanted = OneOf(tuple({movement.entry_id for movement in batch}))
    found = await seen[JournalEntry].find(id=wanted, limit=len(wanted.values))
    entries = {entry.id: entry for entry in found}
    for movement in batch:
        owner = movement.id.rpartition(":")[0]
        reason = _fault(movement, entries.get(movement.entry_id), last.get(owner))
        if reason is not None:
            yield movement.id, *reason
        last[owner] = movement


def _fault(movement: Movement, entry: JournalEntry | None, before: Movement | None) -> tuple[str, str] | None:
    if entry is None:
        return "movements.object_id", "or kind or revision: the journal has no such entry"
    if entry.place != movement.number:
        return "movements.number", f"is {movement.number}, but its entry has the place {entry.place}"
    expected = _movement(entry, before)
    if expected is None:
        return "movements.number", "is of an entry that moves no balance"
    for field in Movement.__struct_fields__:
        if getattr(movement, field) != getattr(expected, field):
            return f"movements.{field}", "is not what its entry and the movement before it say"
    return None


def _movement(entry: JournalEntry, before: Movement | None) -> Movement | None:
    try:
        return movement_of(entry, before)
    except ValueError:
        return None  # The service books no such entry: the chain check reports it, and the sums differ


def _balances(counted: Mapping[str, int]) -> dict[str, Sums]:
    """Return the sums of every merchant and mode, by the common prefix of the ids of their movements."""
    found: dict[str, dict[str, int]] = {}
    for row_id, amount in counted.items():
        owner, balance_type, _stripe = row_id.rsplit(":", 2)
        if balance_type in BALANCE_TYPES:
            sums = found.setdefault(owner, dict.fromkeys(BALANCE_TYPES, 0))
            sums[BalanceType(balance_type)] += amount
    return {
        owner: (sums[BalanceType.AVAILABLE], sums[BalanceType.RESERVED], sums[BalanceType.PENDING])
        for owner, sums in found.items()
    }


async def _waiting(seen: Snapshot, owner: str) -> Sums:
    """Return the sums of entries that are not listed yet."""
    account_id, _, mode = owner.rpartition(":")
    sums, since, past = _NOTHING, None, 0
    while batch := await seen[JournalEntry].find(
        number=None,
        place=None,
        account_id=account_id,
        mode=Mode(mode),
        at=Between(since),
        order="at",
        offset=past,
        limit=BATCH,
    ):
        sums = _added(sums, batch)
        last = batch[-1].at
        same = sum(entry.at == last for entry in batch)
        past = past + same if last == since else same
        since = last
    return sums


def _added(sums: Sums, entries: Iterable[JournalEntry]) -> Sums:
    available, reserved, pending = sums
    for entry in entries:
        movement = _movement(entry, None)
        if movement is not None:
            available += movement.available.units
            reserved += movement.reserved.units
            pending += movement.pending.kopecks
    return available, reserved, pending


def _after(movement: Movement | None) -> Sums:
    if movement is None:
        return _NOTHING
    return movement.available_after.units, movement.reserved_after.units, movement.pending_after.kopecks


def _told(sums: Sums) -> str:
    available, reserved, pending = sums
    return f"{available} available, {reserved} reserved, {pending} pending"
