"""Checkpoints of the ledger: what a verification proved, so that the next one reads only what changed since
(docs/operations.md "The proof of the books")."""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.storage import Between, OneOf, R, Snapshot
from ....ports.vault import Vault, VaultError
from ...domain import ids
from ...domain.chains import Chain, Head, heads_in, link_in
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.ledger import LEDGER, EntryKind, JournalEntry
from ...domain.payments.payments import Payment
from ...domain.refunds.refunds import Refund
from ...domain.settlement.settlement import Settlement
from ...domain.settlement.withdrawals import Withdrawal
from .away import Away
from .chain_check import BATCH, chained_rows, loose_entries

RECENT = timedelta(days=7)
"""Age at the checkpoint up to which objects are read again: until then they may change without an entry."""

_AAD = "ledger.checkpoint"
_DATED: Mapping[type[Any], str] = {
    Payment: ids.PAYMENT,
    Refund: ids.REFUND,
    Withdrawal: ids.WITHDRAWAL,
    Exchange: ids.EXCHANGE,
    Settlement: ids.SETTLEMENT,
}
"""Kinds of which only new and touched rows are read, with the prefixes of their ids. All others are few."""

Sums = tuple[int, int, int]
"""Available, reserved and pending, in their smallest units."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The proved state of the books at one moment."""

    head: str
    """Ends of the chains (domain/chains.py: told)."""
    verified_at: datetime
    complete_at: datetime
    """When a verification last read every row."""
    balances: dict[str, int]
    """Sums of the chained entries by the ids of running balances; a missing one is zero."""
    movements: dict[str, tuple[int, Sums]]
    """Number of the last movement of each account and mode, and the balance after it."""

    def end_of(self, chain: Chain) -> Head:
        """Return the end of a chain. Raises: ValueError if the head does not name it."""
        for head in heads_in(self.head):
            if head.chain == chain.name:
                return head
        raise ValueError(f"the checkpoint has no head of the {chain.name}")


class _Tagged(msgspec.Struct, frozen=True, kw_only=True):
    checkpoint: Checkpoint
    tag: str


def write_checkpoint(vault: Vault, checkpoint: Checkpoint) -> bytes:
    """Return the checkpoint as JSON with the vault's tag."""
    tag = b64encode(vault.tag(_says(checkpoint), _AAD)).decode()
    return msgspec.json.format(msgspec.json.encode(_Tagged(checkpoint=checkpoint, tag=tag)), indent=1) + b"\n"


def read_checkpoint(vault: Vault, text: bytes) -> Checkpoint:
    """Return the checkpoint in this JSON.

    Raises: Refusal INVALID_STATE if it was altered, or another vault tagged it.
    """
    try:
        found = msgspec.json.decode(text, type=_Tagged)
        if vault.fits(b64decode(found.tag), _says(found.checkpoint), _AAD):
            return found.checkpoint
    except (msgspec.MsgspecError, ValueError, VaultError):
        pass
    raise Refusal("INVALID_STATE", "The checkpoint is not what this installation's vault tagged: verify without it")


def _says(checkpoint: Checkpoint) -> bytes:
    return msgspec.json.encode(checkpoint, order="deterministic")


class Scope(msgspec.Struct, frozen=True):
    """Rows that a verification reads: all, or those that changed since a checkpoint."""

    since: Checkpoint | None = None
    touched: frozenset[str] = frozenset()
    """Objects of the entries since the checkpoint."""
    owners: frozenset[str] = frozenset()
    """Accounts and modes of these entries, as the ids of running balances begin."""
    away: Away = msgspec.field(default_factory=dict)
    """Accounts of which neither entries nor objects are read."""

    async def entries(self, seen: Snapshot, kind: EntryKind | None = None) -> AsyncIterator[Sequence[JournalEntry]]:
        """Yield the journal's entries in batches, all or those of a kind. Raises: Unreadable, RowUnreadable."""
        async for batch in self._entries(seen, kind):
            if here := self._here(batch):
                yield here

    def _here(self, rows: Sequence[R]) -> Sequence[R]:
        return [row for row in rows if getattr(row, "account_id", None) not in self.away] if self.away else rows

    async def _entries(self, seen: Snapshot, kind: EntryKind | None) -> AsyncIterator[Sequence[JournalEntry]]:
        if self.since is None:
            low, high = ("", None) if kind is None else (f"{kind}:", f"{kind};")
            async for batch in _all(seen, JournalEntry, low, high):
                yield batch
            return
        batch = []
        async for _, entry in chained_rows(seen, LEDGER, after=self.since.end_of(LEDGER).number):
            batch.append(entry)
        async for entry in loose_entries(seen):
            batch.append(entry)
        batch = [entry for entry in batch if kind in (None, entry.kind)]
        for at in range(0, len(batch), BATCH):
            yield batch[at : at + BATCH]

    async def rows(self, seen: Snapshot, kind: type[R]) -> AsyncIterator[Sequence[R]]:
        """Yield the rows of a kind in batches, in the order of ids. Unreadable rows are skipped."""
        async for batch in self._rows(seen, kind):
            if here := self._here(batch):
                yield here

    async def _rows(self, seen: Snapshot, kind: type[R]) -> AsyncIterator[Sequence[R]]:
        prefix = _DATED.get(kind)
        if self.since is None or prefix is None:
            async for batch in _all(seen, kind, readable=True):
                yield batch
            return
        since = f"{prefix}{_time_in_ids(self.since.verified_at - RECENT)}"
        older = sorted(each for each in self.touched if each.startswith(prefix) and each < since)
        for at in range(0, len(older), BATCH):
            wanted = tuple(older[at : at + BATCH])
            if found := await seen[kind].find(id=OneOf(wanted), limit=len(wanted), readable=True):
                yield found
        async for batch in _all(seen, kind, since, readable=True):
            yield batch


def _time_in_ids(moment: datetime) -> str:
    """Return the beginning of the UUIDs of version 7 of this moment."""
    digits = f"{int(moment.timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}"


async def _all(
    seen: Snapshot, kind: type[R], low: str = "", high: str | None = None, *, readable: bool = False
) -> AsyncIterator[Sequence[R]]:
    after, past = low, 0
    while batch := await seen[kind].find(id=Between(after, high), offset=past, limit=BATCH, readable=readable):
        yield batch
        after, past = batch[-1].id, 1


async def missing_heads(seen: Snapshot, checkpoint: Checkpoint, chains: Iterable[Chain]) -> bool:
    """Return whether a chain does not contain the checkpoint: its history is another one."""
    for chain in chains:
        head = checkpoint.end_of(chain)
        found = await seen[chain.rows].find(number=head.number, limit=2) if head.number else []
        if head.number and [link_in(row.seal) for row in found] != [head.link]:
            return True
    return False
