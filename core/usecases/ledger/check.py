"""`cambist ledger verify`: the balances are provable from the journal, and the journal from its hash chain
(ARCHITECTURE.md "Money")."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Unreadable
from ....ports.storage import AtLeast, Shelf, Snapshot
from ...domain.ledger import (
    FIRST_SEAL,
    HEAD,
    JournalEntry,
    LedgerAccount,
    LedgerHead,
    balances_moved,
    entry_id,
    imbalance,
    seal_of,
)

_BATCH = 1000
_NO_ENTRY = (Unreadable, ValueError, TypeError, KeyError, msgspec.MsgspecError)
"""How a storage says that a row holds what no record could."""
_LOWEST = -(2**63)
"""What no number is below: storages hold integers of 64 bits."""


class BadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The first entry that is not as it was written, or one that is missing."""

    number: int | None
    id: str | None
    reason: str


class BadBalance(msgspec.Struct, frozen=True, kw_only=True):
    """A running balance that is not the sum of its postings, in the smallest part of its currency."""

    id: str
    kept: int
    counted: int


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the check found."""

    entries: int
    unsealed: int
    """Entries of the last hour, which the chain does not hold yet; their sums are checked all the same."""
    first_bad_entry: BadEntry | None
    bad_balances: tuple[BadBalance, ...]

    @property
    def holds(self) -> bool:
        """Nothing is wrong."""
        return self.first_bad_entry is None and not self.bad_balances


def _nobody(_checked: int) -> None:
    """Nobody wants to know how far it is."""


async def verify_ledger(ports: Ports, *, progress: Callable[[int], None] = _nobody) -> LedgerReport:
    """Recompute everything from the journal, as of one moment, beside a working service.

    Memory grows with the number of running balances, not with that of entries. `progress` is told how many entries
    are checked. The first bad entry is by the chain's order. The balances are compared in any case but one: behind an
    entry that cannot even be read, nothing is checked.
    """
    check = _Check(progress)
    async with ports.storage.snapshot() as seen:
        try:
            await _walk(seen, check)
        except _Unreadable:
            check.stops()
            return LedgerReport(entries=check.entries, unsealed=check.loose, first_bad_entry=check.bad, bad_balances=())
        kept: dict[str, int] = {}
        async for account in _accounts(seen):
            kept[account.id] = account.balance
    balances = tuple(
        BadBalance(id=row_id, kept=kept.get(row_id, 0), counted=check.counted.get(row_id, 0))
        for row_id in sorted(kept.keys() | check.counted.keys())
        if kept.get(row_id, 0) != check.counted.get(row_id, 0)
    )
    return LedgerReport(entries=check.entries, unsealed=check.loose, first_bad_entry=check.bad, bad_balances=balances)


async def _walk(seen: Snapshot, check: "_Check") -> None:
    async for number, entry in _sealed(seen):
        check.sealed(number, entry)
    head = await seen[LedgerHead].get(HEAD)
    check.chain_ends(0 if head is None else head.number, FIRST_SEAL if head is None else head.seal)
    async for entry in _unsealed(seen):
        check.unsealed(entry)


class _Check:
    """Judges the entries of the journal, one after the other."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._number = 0
        self._ended = False
        self._seal = FIRST_SEAL
        self.entries = 0
        self.loose = 0
        self.bad: BadEntry | None = None
        self.counted: dict[str, int] = {}

    def sealed(self, number: int, entry: JournalEntry) -> None:
        """The next entry of the chain, by its number."""
        expected = self._number + 1
        if number < expected:
            self._fault(entry.id, number, "has a number that is not its own")
        else:
            if number > expected:
                self._fault(None, expected, "is missing from the chain")
            elif entry.seal != seal_of(entry, number, self._seal):
                self._fault(entry.id, number, "is not what was sealed")
            self._number, self._seal = number, entry.seal or b""
        self._count(entry)

    def chain_ends(self, number: int, seal: bytes) -> None:
        """What the head says of the last entry."""
        self._ended = True
        if (number, seal) != (self._number, self._seal):
            self._fault(None, self._number + 1, f"the chain should end at number {number}")

    def unsealed(self, entry: JournalEntry) -> None:
        """An entry that the chain does not hold yet."""
        self.loose += 1
        self._count(entry)

    def stops(self) -> None:
        """The next entry holds what no entry could."""
        self._fault(None, None if self._ended else self._number + 1, "cannot be read")

    def _count(self, entry: JournalEntry) -> None:
        if entry.id != entry_id(entry.kind, entry.object_id, entry.revision):
            self._fault(entry.id, entry.number, "has another id than its kind, object and revision say")
        fault = imbalance(entry.postings)
        if fault is not None:
            self._fault(entry.id, entry.number, fault)
        for moved in balances_moved(entry):
            self.counted[moved.id] = self.counted.get(moved.id, 0) + moved.balance
        self.entries += 1
        if self.entries % _BATCH == 0:
            self._progress(self.entries)

    def _fault(self, entry: str | None, number: int | None, reason: str) -> None:
        self.bad = self.bad or BadEntry(number=number, id=entry, reason=reason)


class _Unreadable(Exception):
    """A row that is no entry."""


async def _batch(shelf: Shelf[JournalEntry], offset: int, **asked: Any) -> list[JournalEntry]:
    """The next entries; before one that is none, those up to it. Raises: _Unreadable, when it is the first."""
    try:
        return await shelf.find(offset=offset, limit=_BATCH, **asked)
    except _NO_ENTRY:
        readable: list[JournalEntry] = []
        while True:
            try:
                readable += await shelf.find(offset=offset + len(readable), limit=1, **asked)
            except _NO_ENTRY:
                if not readable:
                    raise _Unreadable from None
                return readable


async def _sealed(seen: Snapshot) -> AsyncIterator[tuple[int, JournalEntry]]:
    """Whatever has a number, in its order: also a number that the chain never gave, or one that two have."""
    last, same = _LOWEST, 0
    while batch := await _batch(seen[JournalEntry], same, number=AtLeast(last), order="number"):
        for entry in batch:
            number = last if entry.number is None else entry.number
            last, same = number, same + 1 if number == last else 1
            yield number, entry


async def _unsealed(seen: Snapshot) -> AsyncIterator[JournalEntry]:
    after, past = "", 0
    while batch := await _batch(seen[JournalEntry], past, number=None, id=AtLeast(after)):
        for entry in batch:
            yield entry
        after, past = batch[-1].id, 1


async def _accounts(seen: Snapshot) -> AsyncIterator[LedgerAccount]:
    after, past = "", 0
    while batch := await seen[LedgerAccount].find(id=AtLeast(after), offset=past, limit=_BATCH):
        for account in batch:
            yield account
        after, past = batch[-1].id, 1
