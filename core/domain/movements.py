"""Movements: the changes of a merchant's balance by the journal, in sequence, each with the balance after it
(docs/settlement.md "Movements").

Units write entries independently, so none can know the balance before its entry. A later step lists the entries: in the
order of their moments, each gets the next number of its account and mode. A movement never changes afterwards. It
contains the balance after it, and the number of movements of each sort up to it. So a page, a total and the number at a
moment need only a few reads, however many movements there are.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from . import ids
from .accounts.accounts import Mode
from .ledger import BalanceType, EntryKind, JournalEntry, entry_id
from .money import Rub, Usdt

BELIEVED = timedelta(hours=1)
"""Largest difference that is ignored when an entry's moment is earlier than the previous movement's: units do not
commit in the order of their moments, so the movement takes the previous one's moment. A larger difference means that a
clock was corrected."""


class Balance(StrEnum):
    """The parts of a balance, by the names of GET /balance."""

    AVAILABLE = "available"
    RESERVED = "reserved"
    PENDING = "pending"


class ObjectType(StrEnum):
    """Kinds of objects that can change a balance."""

    PAYMENT = "payment"
    REFUND = "refund"
    WITHDRAWAL = "withdrawal"
    EXCHANGE = "exchange"


_K, _O, _B = EntryKind, ObjectType, Balance

OBJECT_IDS: Mapping[str, ObjectType] = {
    ids.PAYMENT: _O.PAYMENT,
    ids.REFUND: _O.REFUND,
    ids.WITHDRAWAL: _O.WITHDRAWAL,
    ids.EXCHANGE: _O.EXCHANGE,
}
"""Keyed by the prefixes of ids."""

KINDS: Mapping[ObjectType, tuple[EntryKind, ...]] = {
    _O.PAYMENT: (_K.RECEIPT, _K.REVIEW_ACCEPTED, _K.SETTLEMENT, _K.SANDBOX_CLEARED),
    # A correction is settled under the id of its refund.
    _O.REFUND: (_K.REFUND_TAKEN, _K.REFUND_RETURNED, _K.REFUND_REVERSED, _K.SETTLEMENT, _K.SANDBOX_CLEARED),
    _O.WITHDRAWAL: (_K.PAYOUT_RESERVED, _K.PAYOUT_SENT, _K.PAYOUT_RELEASED, _K.SANDBOX_CLEARED),
    _O.EXCHANGE: (_K.EXCHANGE_COMPLETED, _K.EXCHANGE_FAILED, _K.SANDBOX_CLEARED),
}
"""The kinds of entries by which each object changes a balance."""

REVISIONS: Mapping[EntryKind, int] = {_K.PAYOUT_RESERVED: 2}
"""How often such an entry can be booked for one object, if more than once."""

# Never reuse a letter for another kind: stored rows contain them.
_LETTERS: Mapping[EntryKind, str] = {
    _K.RECEIPT: "r",
    _K.REVIEW_ACCEPTED: "v",
    _K.SETTLEMENT: "s",
    _K.REFUND_TAKEN: "t",
    _K.REFUND_RETURNED: "b",
    _K.REFUND_REVERSED: "c",
    _K.PAYOUT_RESERVED: "h",
    _K.PAYOUT_SENT: "o",
    _K.PAYOUT_RELEASED: "l",
    _K.EXCHANGE_COMPLETED: "e",
    _K.EXCHANGE_FAILED: "f",
    _K.SANDBOX_CLEARED: "z",
}
_KINDS: Mapping[str, EntryKind] = {letter: kind for kind, letter in _LETTERS.items()}
MOVEMENT_KINDS = tuple(_LETTERS)
"""The kinds of entries that can change a balance."""
_TYPE_LETTERS: Mapping[ObjectType, str] = {kind: kind[0] for kind in ObjectType}
_AVAILABLE, _RESERVED, _PENDING = 1, 2, 4
_BITS: Mapping[Balance, int] = {_B.AVAILABLE: _AVAILABLE, _B.RESERVED: _RESERVED, _B.PENDING: _PENDING}
_RANK: Mapping[EntryKind, int] = {kind: number for number, kind in enumerate(EntryKind)}


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a merchant's balance by one journal entry. Written once."""

    id: str
    """Account, mode and number (`movement_id`): a range of ids is the list."""
    number: int
    """Position in the list of its account and mode, from 1."""
    kind: EntryKind
    object_id: str
    revision: int
    at: datetime
    """The moment of the entry, or that of the previous movement if it is later (BELIEVED)."""
    available: Usdt
    reserved: Usdt
    pending: Rub
    """Change of each part."""
    available_after: Usdt
    reserved_after: Usdt
    pending_after: Rub
    counts: dict[str, int]
    """Number of movements of each sort up to and including this one (`sort_of`)."""
    version: int = 0

    @property
    def object_type(self) -> ObjectType:
        """Kind of the object."""
        return object_type(self.object_id)

    @property
    def entry_id(self) -> str:
        """Id of the journal entry."""
        return entry_id(self.kind, self.object_id, self.revision)


class Sorts(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of movements; None: any."""

    kind: EntryKind | None = None
    object_type: ObjectType | None = None
    balance: Balance | None = None

    @property
    def all(self) -> bool:
        """Whether it selects every movement."""
        return self == _EVERY

    def takes(self, sort: str) -> bool:
        """Return whether it selects movements of this sort."""
        letter, of, bits = tuple(sort)
        return (
            (self.kind is None or _LETTERS.get(self.kind) == letter)
            and (self.object_type is None or _TYPE_LETTERS[self.object_type] == of)
            and (self.balance is None or bool(int(bits) & _BITS[self.balance]))
        )

    def count(self, movement: Movement | None) -> int:
        """Return the number of selected movements up to this one; None: zero."""
        if movement is None:
            return 0
        if self.all:
            return movement.number
        return sum(count for sort, count in movement.counts.items() if self.takes(sort))


_EVERY = Sorts()


def object_type(object_id: str) -> ObjectType:
    """Return the kind of an object from the prefix of its id. Raises: ValueError for objects that change no balance."""
    for prefix, kind in OBJECT_IDS.items():
        if object_id.startswith(prefix):
            return kind
    raise ValueError(f"{object_id} is nothing that moves a balance")


def sort_of(movement: Movement) -> str:
    """Return the sort by which movements are counted: the event, the kind of object, and the changed parts of the
    balance, one character each."""
    bits = (
        _AVAILABLE * bool(movement.available.units)
        | _RESERVED * bool(movement.reserved.units)
        | _PENDING * bool(movement.pending.kopecks)
    )
    return f"{_LETTERS[movement.kind]}{_TYPE_LETTERS[movement.object_type]}{bits}"


def kind_counts(before: Movement | None, last: Movement | None) -> dict[EntryKind, int]:
    """Return the number of movements of each kind after `before`, up to and including `last`, in the order of the
    kinds; kinds without any are left out."""
    counts = dict.fromkeys(_LETTERS, 0)
    for sign, edge in ((-1, before), (1, last)):
        for sort, count in ({} if edge is None else edge.counts).items():
            counts[_KINDS[sort[0]]] += sign * count
    return {kind: count for kind, count in counts.items() if count}


def movement_id(account_id: str, mode: Mode, number: int) -> str:
    """Return the id of a movement. Numbers have twelve digits, so that ids sort by number."""
    return f"{account_id}:{mode}:{number:012}"


def movement_ids(account_id: str, mode: Mode, low: int = 1, high: int | None = None) -> tuple[str, str]:
    """Return the range of ids of the movements from number `low` up to, but excluding, `high`; None: up to the last."""
    end = f"{account_id}:{mode};" if high is None else movement_id(account_id, mode, high)
    return movement_id(account_id, mode, low), end


def entry_ids(object_id: str) -> list[str]:
    """Return the ids of all entries by which an object can have changed the balance. Raises: ValueError as
    `object_type`."""
    return [
        entry_id(kind, object_id, revision)
        for kind in KINDS[object_type(object_id)]
        for revision in range(1, REVISIONS.get(kind, 1) + 1)
    ]


def in_order(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """Sort entries for the list: by moment, and at the same moment incoming money before outgoing."""
    return sorted(entries, key=lambda entry: (entry.at, _RANK[entry.kind], entry.id))


def movement_of(entry: JournalEntry, before: Movement | None) -> Movement | None:
    """Return the movement of an entry after the previous one (None: it is the first); None if the entry changes no
    balance.

    The code is plain for speed: many thousands are made at once. Raises: ValueError for a kind, or an object, that
    changes no balance.
    """
    available = reserved = pending = 0
    for posting in entry.postings:
        if posting.balance_type is BalanceType.AVAILABLE:
            available += posting.amount
        elif posting.balance_type is BalanceType.RESERVED:
            reserved += posting.amount
        elif posting.balance_type is BalanceType.PENDING:
            pending += posting.amount
    bits = _AVAILABLE * bool(available) | _RESERVED * bool(reserved) | _PENDING * bool(pending)
    if not bits:
        return None
    letter = _LETTERS.get(entry.kind)
    if letter is None:
        raise ValueError(f"{entry.id} is of a kind that moves no balance")
    sort = f"{letter}{_TYPE_LETTERS[object_type(entry.object_id)]}{bits}"
    if before is None:
        number, at, counts = 1, entry.at, {sort: 1}
        available_after, reserved_after, pending_after = available, reserved, pending
    else:
        number, at = before.number + 1, _not_before(entry.at, before.at)
        counts = before.counts | {sort: before.counts.get(sort, 0) + 1}
        available_after = before.available_after.units + available
        reserved_after = before.reserved_after.units + reserved
        pending_after = before.pending_after.kopecks + pending
    return Movement(
        id=movement_id(entry.account_id, entry.mode, number),
        number=number,
        kind=entry.kind,
        object_id=entry.object_id,
        revision=entry.revision,
        at=at,
        available=Usdt(available),
        reserved=Usdt(reserved),
        pending=Rub(pending),
        available_after=Usdt(available_after),
        reserved_after=Usdt(reserved_after),
        pending_after=Rub(pending_after),
        counts=counts,
    )


def _not_before(at: datetime, before: datetime) -> datetime:
    return before if at < before <= at + BELIEVED else at
