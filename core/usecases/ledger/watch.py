"""Cheap check of the ledger for alarms. It checks the sums and the newest entries, where `check.py` checks all. Its
time does not grow with the journal."""

from typing import Any

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Below, OneOf, Snapshot
from ...domain.chains import FIRST_LINK, Chain, ChainHead, link_in
from ...domain.ledger import BalanceType, Currency, JournalEntry, LedgerAccount, currency_of, imbalance
from ...domain.payments.tallies import EVER, Tally
from ..common.chains import CHAINS, head_fault
from .chain_check import NO_ROW

NEWEST = 100
"""Number of chained entries that are checked."""
_NEVER_OWE = (BalanceType.RESERVED, BalanceType.PAID_OUT, BalanceType.SUSPENSE)
"""Ledger accounts that may not go below zero and are stored in single rows."""


async def ledger_faults(ports: Ports) -> tuple[str, ...]:
    """Return the faults as text for operators. Empty if there are no faults.

    The check requires that the running balances of all owners sum to zero in each currency, and that no balance is
    negative that must not be. The newest chained entries and audit rows must be as chained, and entries must sum to
    zero. Each chain must end where its head says, and the vault must have tagged the head.
    """
    async with ports.storage.snapshot() as seen:
        try:
            ends = [await _chain_end(ports, seen, chain) for chain in CHAINS]
            return (*await _sums(seen), *await _below_zero(seen), *(fault for faults in ends for fault in faults))
        except NO_ROW:
            return ("a row of the ledger cannot be read",)


async def _sums(seen: Snapshot) -> list[str]:
    over: dict[Currency, int] = {}
    for balance_type, balance in (await seen[LedgerAccount].sums("balance", by="balance_type")).items():
        currency = currency_of(BalanceType(balance_type))
        over[currency] = over.get(currency, 0) + balance
    return [f"the balances in {currency} are {amount} off zero" for currency, amount in over.items() if amount]


async def _below_zero(seen: Snapshot) -> list[str]:
    """Check reserves of payouts and counts of payments."""
    balance_types = await seen[LedgerAccount].total(balance_type=OneOf(_NEVER_OWE), balance=Below(0))
    counts = await seen[Tally].total(period=EVER, count=Below(0))
    found = ((balance_types, "reserves"), (counts, "counts of payments"))
    return [f"{count} {what} are below zero" for count, what in found if count]


async def _chain_end(ports: Ports, seen: Snapshot, chain: Chain) -> list[str]:
    head = await seen[ChainHead].get(chain.head_id)
    if head is None and not await seen[chain.rows].find(limit=1):
        return []
    fault = head_fault(ports.vault, chain, head)
    if head is None or fault is not None:
        return [f"{chain.name}: {fault}"]
    first = max(head.number - NEWEST, 1)
    found: list[Any] = await seen[chain.rows].find(order="number", number=AtLeast(first), limit=NEWEST + 2)
    if [row.number for row in found] != list(range(first, head.number + 1)):
        return [f"{chain.name}: the chain does not run from {first} to {head.number}, where its head says that it ends"]
    faults = []
    before = FIRST_LINK if first == 1 else None
    for at, row in enumerate(found, first):
        if before is not None and link_in(row.seal) != chain.link(row, at, before):
            faults.append(f"{chain.name}: entry {at} is not what was chained")
        if isinstance(row, JournalEntry) and imbalance(row.postings) is not None:
            faults.append(f"{chain.name}: entry {at} does not sum to zero")
        before = link_in(row.seal)
    if found and before != head.seal:
        faults.append(f"{chain.name}: the head's seal is not that of entry {head.number}")
    return faults
