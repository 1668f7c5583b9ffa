"""Booking: the one room that writes the journal and the running balances (ARCHITECTURE.md "Money")."""

from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import AtLeast, Between, Unit
from ...domain.accounts import Mode
from ...domain.ledger import (
    FIRST_SEAL,
    HEAD,
    JournalEntry,
    LedgerAccount,
    LedgerHead,
    Purse,
    balance_ids,
    balances_moved,
    ledger_account_id,
    seal_of,
)
from ...domain.money import Usdt
from ..schedule import come_back
from ..units import retrying

SEAL = "ledger.seal"

LEDGER_RULES = ("ledger_accounts_id",)
"""Unique rules whose Conflict means that another unit made a running balance first: read again."""

_SEALED_AT_ONCE = 1000
_EVERY = timedelta(hours=1)
_MANY = 100
"""More running balances than one owner has in one mode."""


def post(unit: Unit, *entries: JournalEntry) -> None:
    """Book entries in the caller's unit: the journal's rows, and what they add to the running balances.

    Commit raises Conflict `journal_id` when the same move was booked before.
    """
    moved: dict[str, LedgerAccount] = {}
    for entry in entries:
        unit[JournalEntry].add(entry)
        for row in balances_moved(entry):
            known = moved.get(row.id)
            if known is not None:
                row = msgspec.structs.replace(known, balance=known.balance + row.balance)
            moved[row.id] = row
    unit[LedgerAccount].accrue(*moved.values())


async def may_take(unit: Unit, account_id: str, mode: Mode, amount: Usdt, *, overdraft: Usdt) -> bool:
    """Whether the available USDT of a merchant allow taking `amount`, going `overdraft` below zero at most.

    When they do, the running balance is saved too: of two units that take at once one goes stale and asks again. So
    the caller books what it takes in this unit, and passes LEDGER_RULES to `retrying`.
    """
    row_id = ledger_account_id(account_id, mode, Purse.AVAILABLE)
    row = await unit[LedgerAccount].get(row_id)
    balance = 0 if row is None else row.balance
    if balance - amount.units < -overdraft.units:
        return False
    if row is None:
        unit[LedgerAccount].add(LedgerAccount(id=row_id, owner=account_id, mode=mode, purse=Purse.AVAILABLE))
    else:
        unit[LedgerAccount].save(row)
    return True


async def purses(unit: Unit, owner: str, mode: Mode) -> dict[Purse, int]:
    """All running balances of an owner, in one statement and so as of one moment; a purse never moved is left out."""
    low, high = balance_ids(owner, mode)
    found: dict[Purse, int] = {}
    for row in await unit[LedgerAccount].find(id=Between(low, high), limit=_MANY, quick=True):
        found[row.purse] = found.get(row.purse, 0) + row.balance
    return found


def first_sealing(ports: Ports) -> Job:
    """The standing job that seals new entries every hour."""
    now = ports.clock.now()
    return Job(id=SEAL, kind=SEAL, argument="", due=now + _EVERY, created_at=now)


async def seal(ports: Ports, job: Job) -> None:
    """Put every entry that is not sealed yet into the hash chain, and come back in an hour."""
    await seal_all(ports)
    await come_back(ports, job, ports.clock.now() + _EVERY, anew=True)


async def seal_all(ports: Ports) -> int:
    """Seal what is committed by now and not sealed yet; how many that were."""
    behind = ""

    async def work(unit: Unit) -> tuple[int, str]:
        head = await unit[LedgerHead].get(HEAD)
        number, last = (0, FIRST_SEAL) if head is None else (head.number, head.seal)
        # Each look goes on where the one before ended: a database may walk over what was sealed just now, and over a
        # million of such that takes longer than all the sealing.
        fresh = await unit[JournalEntry].find(number=None, id=AtLeast(behind), order="id", limit=_SEALED_AT_ONCE)
        for entry in fresh:
            number += 1
            last = seal_of(entry, number, last)
            unit[JournalEntry].change(entry, number=number, seal=last)
        if fresh and head is None:
            unit[LedgerHead].add(LedgerHead(id=HEAD, number=number, seal=last))
        elif fresh and head is not None:
            unit[LedgerHead].save(msgspec.structs.replace(head, number=number, seal=last))
        return len(fresh), f"{fresh[-1].id}!" if fresh else behind

    done = 0
    while True:
        count, behind = await retrying(ports.storage, work, again_on=("ledger_heads_id",))
        done += count
        # What comes in meanwhile is left to the next sealing, or a busy service would never end this one.
        if count < _SEALED_AT_ONCE:
            return done
