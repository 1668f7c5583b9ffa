"""Listing a merchant's movements behind the journal (docs/settlement.md "Movements"): whoever reads them lists first
what was booked since, and an hourly job lists for all."""

import logging
from datetime import datetime

from ....ports.bundle import Ports
from ....ports.faults import Unavailable
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.ledger import JournalEntry
from ...domain.movements import Movement, in_order, movement_ids, movement_of
from ..units import retrying

AT_ONCE = 1000
"""Entries that one unit lists. Encoding them takes the event loop for some 40 ms."""

_RACES = ("movements_id",)
"""The unique rule whose Conflict means that another unit listed the very entries first: read again."""

log = logging.getLogger("cambist.ledger")


async def list_fresh(
    ports: Ports, account_id: str, mode: Mode, *, since: datetime | None = None, most: int | None = None
) -> bool:
    """List what was booked of an account and mode and is not listed yet, in `most` units at most; whether all of it is.
    `since`: but for what is older than this.

    Raises: Unreadable for an entry; nothing behind it is listed, because its sum would be wrong.
    """

    async def work(unit: Unit) -> int:
        # First what waits, then where the list ends: who lists the same at the same time has either taken it away from
        # the one, or not added it to the other yet, and then one of both loses the race.
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
    """The same of every account. What fails for one keeps no other waiting."""
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
    """What is not listed yet, AT_ONCE at most, the oldest first."""
    return await seen[JournalEntry].find(
        place=None, account_id=account_id, mode=mode, at=Between(since), order="at", limit=AT_ONCE, quick=True
    )


async def last_movement(seen: Unit, account_id: str, mode: Mode) -> Movement | None:
    """Where a list ends."""
    span = Between(*movement_ids(account_id, mode))
    found = await seen[Movement].find(id=span, order="-id", limit=1, quick=True)
    return found[0] if found else None
