"""Listing of merchants' movements from the journal (docs/settlement.md "Movements"). Each reader first lists the
entries booked since, and an hourly job lists them for all merchants."""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.ledger import JournalEntry
from ...domain.movements import Movement, in_order, movement_ids, movement_of
from ..common.units import retrying

AT_ONCE = 1000
"""Entries per unit of work. Encoding them blocks the event loop for about 40 ms."""

_RACES = ("movements_id",)
"""Unique rule whose Conflict means that another unit listed the same entries first, so the work reads again."""

log = logging.getLogger("cambist.ledger")


async def list_fresh(
    ports: Ports, account_id: str, mode: Mode, *, since: datetime | None = None, most: int | None = None
) -> bool:
    """List the account's entries in a mode that are not listed yet, in at most `most` units. Return whether all are
    listed. `since`: skip older entries.

    Raises: Unreadable for an entry. No later entry is listed then, because its sums would be wrong.
    """

    async def work(unit: Unit) -> int:
        # Read the waiting entries first, then the end of the list. A unit that lists the same entries at the same time
        # has either taken them away from the first read, or not extended the list at the second. Then one of the two
        # loses the race.
        fresh = await fresh_entries(unit, account_id, mode, since)
        last = await last_movement(unit, account_id, mode) if fresh else None
        for entry in in_order(fresh):
            movement = movement_of(entry, last)
            if movement is not None:
                last = unit[Movement].add(movement)
            unit[JournalEntry].change(entry, place=0 if movement is None else movement.number)
        return len(fresh)

    units = 0
    while most is None or units < most:
        if await retrying(ports.storage, work, again_on=_RACES) < AT_ONCE:
            return True
        units += 1
    return False


async def list_all(ports: Ports) -> None:
    """List the missing movements of every account. A failure for one account does not stop the others."""
    async for accounts in ports.storage.scan(Account, readable=True):
        for account in accounts:
            for mode in Mode:
                try:
                    await list_fresh(ports, account.id, mode)
                except Unavailable:
                    raise
                except Exception:
                    log.exception("the movements of %s are not listed", account.id)


async def fresh_entries(seen: Unit, account_id: str, mode: Mode, since: datetime | None) -> list[JournalEntry]:
    """Return entries that are not listed yet, at most AT_ONCE, oldest first."""
    return await seen[JournalEntry].find(
        place=None, account_id=account_id, mode=mode, at=Between(since), order="at", limit=AT_ONCE, quick=True
    )


async def last_movement(seen: Unit, account_id: str, mode: Mode) -> Movement | None:
    """Return the last movement in the list, or None."""
    span = Between(*movement_ids(account_id, mode))
    found = await seen[Movement].find(id=span, order="-id", limit=1, quick=True)
    return found[0] if found else None
