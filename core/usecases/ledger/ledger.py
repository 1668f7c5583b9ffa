"""Booking: the only module that writes the journal and the running balances (ARCHITECTURE.md "Money")."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Mode, Owned
from ...domain.ledger import (
    BalanceType,
    EntryKind,
    JournalEntry,
    LedgerAccount,
    balance_ids,
    balances_moved,
    journal_entry,
    ledger_account_id,
)
from ...domain.money import Usdt
from ..common.chains import extend_audit
from ..common.schedule import reschedule_at
from .listing import list_all

EXTEND_CHAINS = "ledger.seal"

LEDGER_RULES = ("ledger_accounts_id",)
"""Unique rules whose Conflict means that another unit created a running balance first, so the work reads again."""

_EVERY = timedelta(hours=1)
_MANY = 100
"""More running balances than one owner has in one mode."""


def post(unit: Unit, *entries: JournalEntry) -> None:
    """Book entries in the caller's unit: write the journal rows and add them to the running balances.

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


def book(
    ports: Ports, unit: Unit, kind: EntryKind, owned: Owned, postings: Mapping[BalanceType, int], *, revision: int = 1
) -> None:
    """Book one entry of an object now, in the caller's unit, as `post` does."""
    entry = journal_entry(
        kind,
        owned.id,
        account_id=owned.account_id,
        mode=owned.mode,
        at=ports.clock.now(),
        postings=postings,
        revision=revision,
    )
    post(unit, entry)


async def may_take(unit: Unit, account_id: str, mode: Mode, amount: Usdt, *, overdraft: Usdt) -> bool:
    """Return whether a merchant's available USDT allow taking `amount`, with `overdraft` as the limit below zero.

    If they do, save the running balance too. When two units take at the same time, one of them goes stale and checks
    again. So the caller must book the amount in this unit, and pass LEDGER_RULES to `retrying`.
    """
    row_id = ledger_account_id(account_id, mode, BalanceType.AVAILABLE)
    row = await unit[LedgerAccount].get(row_id)
    balance = 0 if row is None else row.balance
    if balance - amount.units < -overdraft.units:
        return False
    if row is None:
        unit[LedgerAccount].add(
            LedgerAccount(id=row_id, owner=account_id, mode=mode, balance_type=BalanceType.AVAILABLE)
        )
    else:
        unit[LedgerAccount].save(row)
    return True


async def balance_types(unit: Unit, owner: str, mode: Mode) -> dict[BalanceType, int]:
    """Return all running balances of an owner, read by one query and so as of one moment. Ledger accounts without
    movements are left out."""
    low, high = balance_ids(owner, mode)
    found: dict[BalanceType, int] = {}
    for row in await unit[LedgerAccount].find(id=Between(low, high), limit=_MANY, quick=True):
        found[row.balance_type] = found.get(row.balance_type, 0) + row.balance
    return found


def first_extension(ports: Ports) -> Job:
    """Return the recurring job that adds new entries to their chains and to merchants' movements, every hour."""
    now = ports.clock.now()
    return Job(id=EXTEND_CHAINS, kind=EXTEND_CHAINS, argument="", due=now + _EVERY, created_at=now)


async def extend_chains(ports: Ports, job: Job) -> None:
    """Run the job: chain every new journal entry and audit row, list merchants' missing movements, and reschedule in an
    hour."""
    await list_all(ports)
    await extend_audit(ports)
    await reschedule_at(ports, job, ports.clock.now() + _EVERY, anew=True)
