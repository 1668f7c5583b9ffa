"""Check of `cambist ledger verify`. The balances are proved from the journal, the journal and the audit log from their
hash chains, and the chains from exported heads (ARCHITECTURE.md "Money")."""

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Snapshot
from ...domain.chains import ChainHead, Head, told
from ...domain.ledger import (
    LEDGER,
    JournalEntry,
    LedgerAccount,
    balances_moved,
    entry_id,
    imbalance,
)
from ...domain.operators.audit import AUDIT
from ..common.chains import CHAINS
from .away import away_from
from .chain_check import BATCH, BadEntry, ChainCheck, RowUnreadable, chained_rows, loose_actions, loose_entries
from .checkpoint import Checkpoint, Scope, Sums, missing_heads
from .value_check import BadValue, bad_values


class BadBalance(msgspec.Struct, frozen=True, kw_only=True):
    """A running balance that is not the sum of its postings, in the smallest unit of its currency."""

    id: str
    kept: int
    counted: int


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the check."""

    entries: int
    unsealed: int
    """Number of entries that are not in the chain yet, from the last hour. Their sums are checked too."""
    first_bad_entry: BadEntry | None
    bad_balances: tuple[BadBalance, ...]
    actions: int
    """Number of rows in the audit log."""
    actions_unsealed: int
    first_bad_action: BadEntry | None
    differing: tuple[str, ...]
    """Differences between the chains and exported heads."""
    heads: tuple[Head, ...]
    """Ends of the chains."""
    sealed_at: datetime | None
    """Moment when the journal's last entries were chained."""
    bad_values: tuple[BadValue, ...]
    """Amounts and wallets in other rows that differ from the journal or from their tags."""
    proved_before: int = 0
    """Number of entries that an earlier verification proved, and this one did not read."""
    checkpoint: Checkpoint | None = None
    """The state that this verification proved; None if it found a fault, or ignored the tags."""

    @property
    def holds(self) -> bool:
        """Return whether the check found no fault."""
        faults = (self.bad_balances, self.differing, self.bad_values)
        return self.first_bad_entry is None and self.first_bad_action is None and not any(faults)

    @property
    def head(self) -> str:
        """Return the ends of the chains as one line, to be stored elsewhere and compared later."""
        return told(self.heads, self.sealed_at)

    @property
    def tagged_head(self) -> str | None:
        """Return the same line, or None if the chains have a fault."""
        return self.head if self.first_bad_entry is None and self.first_bad_action is None else None


Progress = Callable[[int], None]
"""Receives the number of checked entries."""


def nobody(_checked: int) -> None:
    """Ignore the progress."""


async def verify_ledger(
    ports: Ports,
    *,
    progress: Progress = nobody,
    against: Iterable[Head] = (),
    tags: bool = True,
    since: Checkpoint | None = None,
) -> LedgerReport:
    """Recompute all balances from the journal, and the chains of the journal and the audit log, as of one moment. It
    runs beside a working service.

    Memory use grows with the number of running balances, not of entries. `progress` receives the number of checked
    entries. The first bad entry is the first in the chain's order. The balances are always compared, except after an
    unreadable entry, where the check of the journal ends. `against`: exported heads that the chains must contain.
    `tags`: False ignores the vault's tags, and checks links and sums alone. `since`: an earlier verification's
    checkpoint. Then only the entries after it are read, the objects that they or the last RECENT days concern, and the
    rows of kinds that are few; memory use grows with these entries. If the chains do not contain it, every row is read.
    """
    told_before = tuple(against)
    async with ports.storage.snapshot() as seen:
        if since is not None and await missing_heads(seen, since, CHAINS):
            told_before, since = (*told_before, *(since.end_of(chain) for chain in CHAINS)), None
        ends = {} if since is None else {chain: since.end_of(chain) for chain in CHAINS}
        books = _Books(ChainCheck(ports.vault, LEDGER, told_before, tags=tags, since=ends.get(LEDGER)), progress, since)
        actions = ChainCheck(ports.vault, AUDIT, told_before, tags=tags, since=ends.get(AUDIT))
        head = await seen[ChainHead].get(LEDGER.head_id)
        await _walk_actions(seen, actions, ends.get(AUDIT))
        balances: tuple[BadBalance, ...] = ()
        values: list[BadValue] = []
        proved: dict[str, int] = {}
        listed: dict[str, tuple[int, Sums]] = {} if since is None else dict(since.movements)
        try:
            proved = await _walk(seen, books, head, ends.get(LEDGER))
        except RowUnreadable:
            books.chain.stops()
        else:
            balances = await _compared(seen, books)
            scope = Scope(since, frozenset(books.touched), frozenset(books.owners), await away_from(seen))
            values = await bad_values(seen, ports.vault, scope, books.counted, listed) if tags else []
    report = LedgerReport(
        entries=books.chain.rows,
        unsealed=books.chain.loose,
        first_bad_entry=books.chain.bad,
        bad_balances=balances,
        actions=actions.rows,
        actions_unsealed=actions.loose,
        first_bad_action=actions.bad,
        differing=(*books.chain.differing, *actions.differing),
        heads=(books.chain.head, actions.head),
        sealed_at=None if head is None else head.sealed_at,
        bad_values=tuple(values),
        proved_before=ends[LEDGER].number if ends else 0,
    )
    if not (report.holds and tags):
        return report
    now = ports.clock.real()
    checkpoint = Checkpoint(
        head=report.head,
        verified_at=now,
        complete_at=now if since is None else since.complete_at,
        balances={row_id: units for row_id, units in proved.items() if units},
        movements=listed,
    )
    return msgspec.structs.replace(report, checkpoint=checkpoint)


async def _walk(seen: Snapshot, books: "_Books", head: ChainHead | None, since: Head | None) -> dict[str, int]:
    """Check and sum the entries after `since`. Return the sums of all chained entries."""
    async for number, entry in chained_rows(seen, LEDGER, after=None if since is None else since.number):
        books.chain.note_chained(number, entry)
        books.count(entry)
    books.chain.ends(head)
    proved = dict(books.counted)
    async for entry in loose_entries(seen):
        books.chain.note_loose()
        books.count(entry)
    return proved


async def _walk_actions(seen: Snapshot, actions: ChainCheck, since: Head | None) -> None:
    try:
        async for number, row in chained_rows(seen, AUDIT, after=None if since is None else since.number):
            actions.note_chained(number, row)
        actions.ends(await seen[ChainHead].get(AUDIT.head_id))
        async for _ in loose_actions(seen):
            actions.note_loose()
    except RowUnreadable:
        actions.stops()


class _Books:
    """Sums the entries of the journal, in the order of their chain, onto the balances of a checkpoint."""

    def __init__(self, chain: ChainCheck, progress: Progress, since: Checkpoint | None) -> None:
        self.chain = chain
        self.counted: dict[str, int] = {} if since is None else dict(since.balances)
        self.touched: set[str] = set()
        """Objects of the entries; empty without a checkpoint, because every object is read then."""
        self.owners: set[str] = set()
        """Accounts and modes of these entries."""
        self._since = since
        self._progress = progress

    def count(self, entry: JournalEntry) -> None:
        """Add the next entry, whose position in the chain is already checked."""
        if entry.id != entry_id(entry.kind, entry.object_id, entry.revision):
            self.chain.fault(entry.id, entry.number, "has another id than its kind, object and revision say")
        fault = imbalance(entry.postings)
        if fault is not None:
            self.chain.fault(entry.id, entry.number, fault)
        if self._since is not None:
            self.touched.add(entry.object_id)
            self.owners.add(f"{entry.account_id}:{entry.mode}")
        for moved in balances_moved(entry):
            self.counted[moved.id] = self.counted.get(moved.id, 0) + moved.balance
        if self.chain.rows % BATCH == 0:
            self._progress(self.chain.rows)


async def _compared(seen: Snapshot, books: _Books) -> tuple[BadBalance, ...]:
    kept: dict[str, int] = {}
    async for account in _accounts(seen):
        kept[account.id] = account.balance
    return tuple(
        BadBalance(id=row_id, kept=kept.get(row_id, 0), counted=books.counted.get(row_id, 0))
        for row_id in sorted(kept.keys() | books.counted.keys())
        if kept.get(row_id, 0) != books.counted.get(row_id, 0)
    )


async def _accounts(seen: Snapshot) -> AsyncIterator[LedgerAccount]:
    after, past = "", 0
    while batch := await seen[LedgerAccount].find(id=AtLeast(after), offset=past, limit=BATCH):
        for account in batch:
            yield account
        after, past = batch[-1].id, 1
