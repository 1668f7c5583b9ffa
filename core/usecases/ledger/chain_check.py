"""Check of a hash chain, row by row in the order of its numbers (domain/chains.py): whether it is unchanged, and
whether it contains heads that were exported from the database."""

from collections.abc import AsyncIterator, Iterable
from hmac import compare_digest
from typing import Any

import msgspec

from ....ports.faults import Unreadable
from ....ports.storage import AtLeast, Between, Repository, Snapshot
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Mode
from ...domain.chains import FIRST_LINK, Chain, ChainHead, Head, link_in, tag_in
from ...domain.ledger import JournalEntry
from ...domain.operators.audit import AuditEntry
from ..common.chains import NO_HEAD, head_fault
from .listing import next_waiting

BATCH = 1000
NO_ROW = (Unreadable, ValueError, TypeError, KeyError, msgspec.MsgspecError)
"""Exceptions by which a storage reports a row with impossible content."""
_LOWEST = -(2**63)
"""Lowest possible number: storages hold integers of 64 bits."""


class BadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The first row that was changed or is missing."""

    number: int | None
    id: str | None
    reason: str


class RowUnreadable(Exception):
    """The next row of a chain has impossible content."""


class ChainCheck:
    """Checks the rows of a chain one after the other. `against`: exported heads that the chain must contain; heads of
    other chains are ignored. `tags`: False ignores the vault's tags, because their keys are lost. `since`: a head that
    was proved before, after which the check begins; exported heads before it are ignored."""

    def __init__(
        self, vault: Vault, chain: Chain, against: Iterable[Head] = (), *, tags: bool = True, since: Head | None = None
    ) -> None:
        self.chain = chain
        self.bad: BadEntry | None = None
        self.rows = 0 if since is None else since.number
        self.loose = 0
        self.differing: list[str] = []
        """Differences from the exported heads."""
        self._vault = vault
        self._tags = tags
        self._number = self.rows
        self._ended = False
        self._link = FIRST_LINK if since is None else since.link
        self._untagged_from: int | None = None
        self._is_headless = False
        self._told: dict[int, set[bytes]] = {}
        for head in against:
            if head.chain == chain.name and head.number >= self._number:
                self._told.setdefault(head.number, set()).add(head.link)
        self._hold(self._number, self._link)

    @property
    def head(self) -> Head:
        """Return the head for the rows read so far."""
        return Head(chain=self.chain.name, number=self._number, link=self._link)

    def note_chained(self, number: int, row: Any) -> None:
        """Check the next row of the chain, by its number."""
        self.rows += 1
        expected = self._number + 1
        if number < expected:
            self.fault(row.id, number, "has a number that is not its own")
            return
        if number > expected:
            self.fault(None, expected, "is missing from the chain")
        else:
            self._judge(number, row)
        # After a gap, continue from this row, so that a missing row is reported once.
        self._number, self._link = number, link_in(row.seal)
        self._hold(number, self._link)

    def _judge(self, number: int, row: Any) -> None:
        link, tag = link_in(row.seal), tag_in(row.seal)
        if not compare_digest(link, self.chain.link(row, number, self._link)):
            self.fault(row.id, number, "is not what was chained")
            return
        if not self._tags:
            return
        try:
            fits = self._vault.fits(tag, link, self.chain.row_aad(number))
        except VaultError:
            # The row's key was dropped. A later tag covers it.
            self._untagged_from = self._untagged_from or number
            return
        if not fits:
            since = "" if self._untagged_from is None else f", or one from number {self._untagged_from} on is not"
            self.fault(row.id, number, f"is not what the vault tagged{since}")
        self._untagged_from = None

    def ends(self, head: ChainHead | None) -> None:
        """Compare the head with the last row."""
        self._ended = True
        if head is not None and (head.number, head.seal) != (self._number, self._link):
            self.fault(None, self._number + 1, f"the chain should end at number {head.number}")
        elif (head is not None or self._number) and self._tags:
            self._judge_head(head)
        self._is_headless = head is None and self._tags
        for number in sorted(self._told):
            self.differing.append(f"{self._named(number)} has no place in it: the chain ends at {self._number}")

    def _judge_head(self, head: ChainHead | None) -> None:
        fault = head_fault(self._vault, self.chain, head)
        if fault is not None:
            self.fault(None, None, fault)

    def note_loose(self) -> None:
        """Count a row that is not in the chain yet."""
        self.rows += 1
        self.loose += 1
        if self._is_headless:
            self.fault(None, None, NO_HEAD)

    def stops(self) -> None:
        """Report that the next row has impossible content."""
        self.fault(None, None if self._ended else self._number + 1, "cannot be read")

    def fault(self, row_id: str | None, number: int | None, reason: str) -> None:
        """Record a fault. Only the first one is kept."""
        self.bad = self.bad or BadEntry(number=number, id=row_id, reason=reason)

    def _hold(self, number: int, link: bytes) -> None:
        told = self._told.pop(number, None)
        if told is not None and told != {link}:
            self.differing.append(
                f"{self._named(number)} is of another history: this one was written anew, or replaced"
            )

    def _named(self, number: int) -> str:
        return f"the head {self.chain.name}={number}"


async def _batch(repository: Repository[Any], offset: int, **asked: Any) -> list[Any]:
    """Return the next rows. Before an unreadable row, return the rows up to it. Raises: RowUnreadable when it is the
    first."""
    try:
        return await repository.find(offset=offset, limit=BATCH, **asked)
    except NO_ROW:
        readable: list[Any] = []
        while True:
            try:
                readable += await repository.find(offset=offset + len(readable), limit=1, **asked)
            except NO_ROW:
                if not readable:
                    raise RowUnreadable from None
                return readable


async def chained_rows(seen: Snapshot, chain: Chain, *, after: int | None = None) -> AsyncIterator[tuple[int, Any]]:
    """Yield all rows with a number, or those with a number above `after`, in its order, including wrong and duplicate
    numbers. Raises: RowUnreadable."""
    last, same = _LOWEST if after is None else after + 1, 0
    while batch := await _batch(seen[chain.rows], same, number=AtLeast(last), order="number"):
        for row in batch:
            number = last if row.number is None else row.number
            last, same = number, same + 1 if number == last else 1
            yield number, row


async def loose_actions(seen: Snapshot) -> AsyncIterator[AuditEntry]:
    """Yield rows of the audit log that are not in its chain yet. Raises: RowUnreadable."""
    after, past = "", 0
    while batch := await _batch(seen[AuditEntry], past, number=None, id=AtLeast(after)):
        for row in batch:
            yield row
        after, past = batch[-1].id, 1


async def loose_entries(seen: Snapshot) -> AsyncIterator[JournalEntry]:
    """Yield journal entries that are not in the chain yet, by accounts. Raises: RowUnreadable."""
    after = ""
    while True:
        try:
            owner = await next_waiting(seen, after)
        except NO_ROW:
            raise RowUnreadable from None
        if owner is None:
            return
        left = await seen[JournalEntry].total(number=None, account_id=owner)
        for mode in Mode:
            since, past = None, 0
            asked: dict[str, Any] = {"number": None, "account_id": owner, "mode": mode, "order": "at"}
            while batch := await _batch(seen[JournalEntry], past, **asked, at=Between(since)):
                for entry in batch:
                    left -= 1
                    yield entry
                last = batch[-1].at
                same = sum(entry.at == last for entry in batch)
                since, past = last, past + same if last == since else same
        if left:
            raise RowUnreadable  # an entry of no mode
        after = f"{owner}!"
