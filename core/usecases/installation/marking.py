"""Fingerprint of a database, and recognition of copies (domain/installation.py, ports/fingerprints.py).

The fingerprint changes from time to time, so a restored file or folder carries an older one. The process first writes
it beside the database, together with the previous one. If the process dies in between, one of the two still fits.
"""

from datetime import datetime, timedelta

from ....ports.clock import Clock, Ids
from ....ports.faults import Conflict, Stale, Unavailable
from ....ports.fingerprints import Beside, Fingerprints
from ....ports.storage import Storage, Unit
from ....ports.vault import Vault
from ....ports.witnesses import Witnessed
from ...domain.accounts.accounts import Account, Mode
from ...domain.exchanges.exchanges import Exchange
from ...domain.installation import INSTALLATION, Because, Installation, held, let_go, marked, recognised
from ...domain.payments.payments import Payment
from ...domain.settlement.withdrawals import Withdrawal
from ..common.encrypted import tag_hold
from ..common.quarantine import RACES, read_installation
from ..common.units import retrying

EVERY = 60.0
"""Seconds between two fingerprints of a running database. A copy that is restored sooner may go unnoticed."""

POLL = 5.0
"""Seconds between two checks that the database is still the same one."""

WITNESSED_FOR = timedelta(minutes=10)
"""Age of the newest marks up to which a process may have lived through the failover."""

_POLLS = 20
"""Maximum attempts. Another process that changes the fingerprint at the same time finishes within one of them."""

_PAID_FOR = (Payment, Exchange, Withdrawal)


async def recognise(
    storage: Storage, vault: Vault, beside: Beside, clock: Clock, ids: Ids, witnessed: Witnessed | None = None
) -> None:
    """Quarantine the database if it is a copy, and mark it if it has no fingerprint yet.

    A promoted server is left to the processes that lived through its failover (failovers.py), if there may be any:
    `witnessed` knows them. Raises: Unavailable.
    """
    installation, place, marks = await _look(storage, vault, beside)
    fits = None if marks is None else marks.marks
    if not beside.keeps and installation is not None:
        fits = (installation.mark,)
    because = recognised(installation, place, fits, begun=marks is not None and marks.begun)
    if because is not None:
        if witnessed is None or not await _may_be_witnessed(witnessed, installation, place):
            await quarantine_copy(storage, vault, beside, because, clock, ids)
    elif installation is None:
        await mark_anew(storage, vault, beside, clock, ids)


async def quarantine_copy(
    storage: Storage, vault: Vault, beside: Beside, because: Because, clock: Clock, ids: Ids
) -> None:
    """Quarantine a copy. Without live records it cannot send anything twice, so it gets a new fingerprint instead.
    Raises: Unavailable."""
    if await _has_live(storage):
        await _hold(storage, vault, because, clock, ids)
    else:
        await beside.accept()
        await mark_anew(storage, vault, beside, clock, ids, moving=True)


async def _may_be_witnessed(witnessed: Witnessed, installation: Installation | None, place: str | None) -> bool:
    """Return whether a process may live that saw the database before its server was promoted."""
    former = None if installation is None else installation.place
    if former is None or place is None or not witnessed.follows(former, place):
        return False
    now = await witnessed.now()
    return any(
        not mark.has_left and mark.since != place and now - mark.marked_at < WITNESSED_FOR
        for mark in await witnessed.witnesses()
    )


async def _look(
    storage: Storage, vault: Vault, beside: Beside
) -> tuple[Installation | None, str | None, Fingerprints | None]:
    """Return the row and the fingerprints of one moment, although another process may be writing both."""
    before = await read_installation(storage, vault)
    for _ in range(_POLLS):
        place, marks = await beside.place(), await beside.read()
        after = await read_installation(storage, vault)
        if before == after:
            return after, place, marks
        before = after
    raise Unavailable("the database is marked anew again and again: what else opens it?")


async def _has_live(storage: Storage) -> bool:
    """Return whether the database holds live records for which money may be sent."""
    async for batch in storage.scan(Account):
        async with storage.unit() as unit:
            for account in batch:
                for kind in _PAID_FOR:
                    if await unit[kind].find(account_id=account.id, mode=Mode.LIVE, order="created_at", limit=1):
                        return True
    return False


async def _hold(storage: Storage, vault: Vault, because: Because, clock: Clock, ids: Ids) -> None:
    async def work(unit: Unit) -> None:
        now = clock.now()
        present = await unit[Installation].get(INSTALLATION)
        if present is None:
            # The age of this database is unknown.
            unit[Installation].add(tag_hold(vault, held(_fresh(vault, ids, now), because, now, None)))
        elif not present.is_held:
            unit[Installation].save(tag_hold(vault, held(present, because, now, present.marked_at)))

    await retrying(storage, work, again_on=RACES)


def _fresh(vault: Vault, ids: Ids, now: datetime) -> Installation:
    return tag_hold(vault, Installation(mark=str(ids.uuid()), marked_at=now))


async def mark_anew(
    storage: Storage,
    vault: Vault,
    beside: Beside,
    clock: Clock,
    ids: Ids,
    *,
    resuming: bool = False,
    moving: bool = False,
) -> None:
    """Give the database a new fingerprint and record its location. Do nothing if it is quarantined, or lies elsewhere
    than recorded. `resuming`: end the quarantine in the same step. `moving`: record another location.

    Raises: Unavailable.
    """
    if resuming:
        await beside.accept()
    for _ in range(_POLLS):
        present = await read_installation(storage, vault)
        if present is not None and present.is_held is not resuming:
            # Another process has ended the quarantine, or started it.
            return
        now, place = clock.now(), await beside.place()
        is_elsewhere = present is not None and None not in (place, present.place) and place != present.place
        if is_elsewhere and not (resuming or moving):
            return
        after = marked(present or _fresh(vault, ids, now), str(ids.uuid()), place, now)
        former = () if present is None else (present.mark,)
        await beside.write(Fingerprints(marks=(after.mark, *former), begun=present is None))
        if await _written(storage, present, tag_hold(vault, let_go(after)) if resuming else after):
            await beside.write(Fingerprints(marks=(after.mark,)))
            return
    raise Unavailable("the database is marked anew again and again: what else opens it?")


async def _written(storage: Storage, before: Installation | None, after: Installation) -> bool:
    """Write the row. Return False if another process wrote it first."""
    async with storage.unit() as unit:
        _ = unit[Installation].add(after) if before is None else unit[Installation].save(after)
        try:
            await unit.commit()
        except (Stale, Conflict):
            return False
    return True
