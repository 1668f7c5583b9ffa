"""A cheap look at the ledger, for alarms: what `check.py` proves from the first entry on, this holds for the
newest ones and for the sums. It takes the same time however long the journal is."""

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unreadable
from ....ports.storage import AtLeast, Snapshot
from ...domain.ledger import (
    FIRST_SEAL,
    HEAD,
    Currency,
    JournalEntry,
    LedgerAccount,
    LedgerHead,
    Purse,
    currency_of,
    imbalance,
    seal_of,
)

NEWEST = 100
"""How many sealed entries are looked at."""

_UNREADABLE = (Unreadable, ValueError, TypeError, KeyError, msgspec.MsgspecError)


async def ledger_faults(ports: Ports) -> tuple[str, ...]:
    """What is wrong, in words for operators; empty when nothing is.

    The running balances of all owners together sum to zero in each currency, the newest sealed entries are what was
    sealed and sum to zero, and the chain ends where its head says.
    """
    async with ports.storage.snapshot() as seen:
        try:
            return (*await _sums(seen), *await _chain_end(seen))
        except _UNREADABLE:
            return ("a row of the ledger cannot be read",)


async def _sums(seen: Snapshot) -> list[str]:
    over: dict[Currency, int] = {}
    for purse, balance in (await seen[LedgerAccount].sums("balance", by="purse")).items():
        currency = currency_of(Purse(purse))
        over[currency] = over.get(currency, 0) + balance
    return [f"the balances in {currency} are {amount} off zero" for currency, amount in over.items() if amount]


async def _chain_end(seen: Snapshot) -> list[str]:
    head = await seen[LedgerHead].get(HEAD)
    number, seal = (0, FIRST_SEAL) if head is None else (head.number, head.seal)
    first = max(number - NEWEST, 1)
    found = await seen[JournalEntry].find(order="number", number=AtLeast(first), limit=NEWEST + 2)
    if [entry.number for entry in found] != list(range(first, number + 1)):
        return [f"the chain does not run from {first} to {number}, where its head says that it ends"]
    faults = []
    before = FIRST_SEAL if first == 1 else None
    for at, entry in enumerate(found, first):
        if before is not None and entry.seal != seal_of(entry, at, before):
            faults.append(f"entry {at} is not what was sealed")
        if imbalance(entry.postings) is not None:
            faults.append(f"entry {at} does not sum to zero")
        before = entry.seal or b""
    if found and found[-1].seal != seal:
        faults.append(f"the head's seal is not that of entry {number}")
    return faults
