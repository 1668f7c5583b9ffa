"""Listing of merchants' movements from the journal (docs/settlement.md "Movements"), and the hash chain of the journal.

An entry is changed once: it gets its place in the list and its number in the chain together. Each reader first lists
the entries booked since, and an hourly job lists them for all merchants.
"""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.storage import AtLeast, Between, Snapshot, Unit
from ...domain.accounts.accounts import Mode
from ...domain.ledger import LEDGER, JournalEntry
from ...domain.movements import Movement, in_order, movement_ids, movement_of
from ..common.chains import extension
from ..common.units import retrying
from .away import away_from

AT_ONCE = 1000
"""Entries per unit of work. Encoding them blocks the event loop for about 40 ms."""

_RACES = ("movements_id",)
"""Unique rule whose Conflict means that another unit listed the same entries first, so the work reads again."""

log = logging.getLogger("cambist.ledger")


async def list_fresh(
    ports: Ports, account_id: str, mode: Mode, *, since: datetime | None = None, most: int | None = None
) -> bool:
    """List and chain the account's new entries in a mode, in at most `most` units. Return whether all are listed.
    `since`: skip older entries.

    Raises: Unreadable for an entry. No later entry is listed then, because its sums would be wrong.
    """
    return (await _list(ports, account_id, mode, since, most))[0]


async def _list(
    ports: Ports, account_id: str, mode: Mode, since: datetime | None, most: int | None, *, away: bool = False
) -> tuple[bool, int]:
    """Return whether all entries are listed, and the number of chained ones. `away`: the account is in another cell,
    which gives its entries their places. Entries without a place wait outside of the chain."""

    async def work(unit: Unit) -> tuple[int, int]:
        # Read the waiting entries first, then the ends of the list and of the chain. A unit that lists the same entries
        # at the same time has either taken them away from the first read, or not extended the list at the second. Then
        # the commit of one unit is refused.
        fresh = await _waiting(unit, account_id, mode, since)
        if away:
            fresh = [entry for entry in fresh if entry.place is not None]
        if not fresh:
            return 0, 0
        last = await last_movement(unit, account_id, mode)
        chained = await extension(ports, unit, LEDGER)
        if chained is None:
            # Entries that are listed already wait for the chain until its head is repaired. Do not read them again.
            fresh = await fresh_entries(unit, account_id, mode, since)
        for entry in in_order(fresh):
            place = entry.place
            if place is None:
                movement = movement_of(entry, last)
                last, place = (last, 0) if movement is None else (unit[Movement].add(movement), movement.number)
            numbered = {} if chained is None else chained.add(entry)
            unit[JournalEntry].change(entry, place=place, **numbered)
        if chained is not None:
            chained.end(unit)
        return len(fresh), 0 if chained is None else len(fresh)

    units = count = 0
    while most is None or units < most:
        done, chained = await retrying(ports.storage, work, again_on=_RACES)
        count += chained
        # Leave entries that arrive meanwhile to the next run. Otherwise a busy service would never end this one.
        if done < AT_ONCE:
            return True, count
        units += 1
    return False, count


async def list_all(ports: Ports) -> int:
    """List and chain the new entries of every account. A failure for one account does not stop the others. Return the
    number of chained entries."""
    after, count = "", 0
    async with ports.storage.unit() as unit:
        away = await away_from(unit)
    while True:
        async with ports.storage.unit() as unit:
            found = await next_waiting(unit, after)
        if found is None:
            return count
        for mode in Mode:
            try:
                count += (await _list(ports, found, mode, None, None, away=found in away))[1]
            except Unavailable:
                raise
            except Exception:
                log.exception("the movements of %s are not listed", found)
        after = f"{found}!"


async def next_waiting(seen: Unit | Snapshot, after: str) -> str | None:
    """Return the first account from `after` on that has entries outside of the chain. Raises: Unreadable."""
    found = await seen[JournalEntry].find(number=None, account_id=AtLeast(after), order="account_id", limit=1)
    return found[0].account_id if found else None


async def _waiting(unit: Unit, account_id: str, mode: Mode, since: datetime | None) -> list[JournalEntry]:
    """Return entries that are not chained yet, at most AT_ONCE, oldest first."""
    return await unit[JournalEntry].find(
        number=None, account_id=account_id, mode=mode, at=Between(since), order="at", limit=AT_ONCE, quick=True
    )


async def fresh_entries(
    seen: Unit | Snapshot, account_id: str, mode: Mode, since: datetime | None
) -> list[JournalEntry]:
    """Return entries that are not listed yet, at most AT_ONCE, oldest first. Only entries outside of the chain can
    be."""
    return await seen[JournalEntry].find(
        number=None,
        place=None,
        account_id=account_id,
        mode=mode,
        at=Between(since),
        order="at",
        limit=AT_ONCE,
        quick=True,
    )


async def last_movement(seen: Unit, account_id: str, mode: Mode) -> Movement | None:
    """Return the last movement in the list, or None."""
    span = Between(*movement_ids(account_id, mode))
    found = await seen[Movement].find(id=span, order="-id", limit=1, quick=True)
    return found[0] if found else None
