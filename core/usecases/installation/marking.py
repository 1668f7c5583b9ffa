"""Marking a database, and recognising one that is a copy (domain/installation.py, ports/marks.py).

The mark moves now and then: a file or folder that is put back after it moved carries an older one. It is written beside
the database first, together with the one before, so that who dies between leaves two that fit.
"""

from datetime import datetime

from ....ports.clock import Clock, Ids
from ....ports.faults import Conflict, Stale, Unavailable
from ....ports.marks import Beside, Marks
from ....ports.storage import Storage, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.exchanges.exchanges import Exchange
from ...domain.installation import INSTALLATION, Because, Installation, held, let_go, marked, recognised
from ...domain.payments.payments import Payment
from ...domain.settlement.withdrawals import Withdrawal
from ..holding import RACES, read_installation
from ..units import retrying

EVERY = 60.0
"""Seconds between two marks of a database that is served: a copy that is put back sooner may not be told from it."""

LOOK = 5.0
"""Seconds between two looks whether it is still the one that it was."""

_LOOKS = 20
"""Another process that marks at the same time is through after one of them."""

_PAID_FOR = (Payment, Exchange, Withdrawal)


async def recognise(storage: Storage, beside: Beside, clock: Clock, ids: Ids) -> None:
    """Hold the database where it is a copy, and mark it where it has no mark yet.

    A copy that holds nothing of live mode has nothing that could be sent twice: it is taken for what it is.
    Raises: Unavailable.
    """
    installation, place, marks = await _look(storage, beside)
    fits = None if marks is None else marks.marks
    if not beside.keeps and installation is not None:
        fits = (installation.mark,)
    because = recognised(installation, place, fits, begun=marks is not None and marks.begun)
    if because is not None and await _has_live(storage):
        await _hold(storage, because, clock, ids)
    elif because is not None or installation is None:
        await mark_anew(storage, beside, clock, ids)


async def _look(storage: Storage, beside: Beside) -> tuple[Installation | None, str | None, Marks | None]:
    """Row and marks of one moment, though another process may be writing both."""
    before = await read_installation(storage)
    for _ in range(_LOOKS):
        place, marks = await beside.place(), await beside.read()
        after = await read_installation(storage)
        if before == after:
            return after, place, marks
        before = after
    raise Unavailable("the database is marked anew again and again: what else opens it?")


async def _has_live(storage: Storage) -> bool:
    """Whether there is anything of live mode that money may be sent for."""
    async for batch in storage.scan(Account):
        async with storage.unit() as unit:
            for account in batch:
                for kind in _PAID_FOR:
                    if await unit[kind].find(account_id=account.id, mode=Mode.LIVE, order="created_at", limit=1):
                        return True
    return False


async def _hold(storage: Storage, because: Because, clock: Clock, ids: Ids) -> None:
    async def work(unit: Unit) -> None:
        now = clock.now()
        present = await unit[Installation].get(INSTALLATION)
        if present is None:
            # Of when it is nothing is known.
            unit[Installation].add(held(_fresh(ids, now), because, now, None))
        elif not present.is_held:
            unit[Installation].save(held(present, because, now, present.marked_at))

    await retrying(storage, work, again_on=RACES)


def _fresh(ids: Ids, now: datetime) -> Installation:
    return Installation(mark=str(ids.uuid()), marked_at=now)


async def mark_anew(storage: Storage, beside: Beside, clock: Clock, ids: Ids, *, resuming: bool = False) -> None:
    """Give the database another mark and write down where it lies; nothing, where it is held. `resuming`: let go of it,
    in the same step.

    Raises: Unavailable.
    """
    for _ in range(_LOOKS):
        present = await read_installation(storage)
        if present is not None and present.is_held is not resuming:
            # Another process let it go, or holds it.
            return
        now = clock.now()
        after = marked(present or _fresh(ids, now), str(ids.uuid()), await beside.place(), now)
        former = () if present is None else (present.mark,)
        await beside.write(Marks(marks=(after.mark, *former), begun=present is None))
        if await _written(storage, present, let_go(after) if resuming else after):
            await beside.write(Marks(marks=(after.mark,)))
            return
    raise Unavailable("the database is marked anew again and again: what else opens it?")


async def _written(storage: Storage, before: Installation | None, after: Installation) -> bool:
    """Whether the row is as it should be; else another process was first."""
    async with storage.unit() as unit:
        _ = unit[Installation].add(after) if before is None else unit[Installation].save(after)
        try:
            await unit.commit()
        except (Stale, Conflict):
            return False
    return True
