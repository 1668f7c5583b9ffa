"""The double-entry ledger: every move of money is one journal entry whose postings sum to zero per currency, written
once and never changed (ARCHITECTURE.md "Money").

An entry concerns one merchant in one mode, so a posting names only its purse: that says whose it is, and in which
currency. What a purse received is above zero, what it gave is below. The purses of the outside (a bank, a chain) are
therefore below zero by what they brought in.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from zlib import crc32

import msgspec

from .accounts.accounts import Mode
from .chains import Chain


class Currency(StrEnum):
    """What a purse holds. Amounts are integers: kopecks, and units of 0.00000001 USDT."""

    RUB = "RUB"
    USDT = "USDT"


class Purse(StrEnum):
    """What money is for. The chart of accounts has one ledger account for each owner, mode and purse."""

    PENDING = "pending"
    """Accepted RUB that waits for settlement: `pending_rub` of GET /balance."""
    REVIEW = "review"
    """RUB of payments under review: it came, and is nobody's yet."""
    SUSPENSE = "suspense"
    """RUB that may move no payment and waits for an operator."""
    AVAILABLE = "available"
    """`available_usdt`."""
    RESERVED = "reserved"
    """`reserved_usdt`: taken for a payout under way."""
    PAID_OUT = "paid_out"
    """USDT that has left for the merchant's wallet."""
    REFUNDED_USDT = "refunded_usdt"
    """USDT that refunds after settlement took from the merchant, less what came back."""
    BANK = "bank"
    """The outside: below zero by the RUB that the banks hold for us."""
    REFUNDING = "refunding"
    """RUB that a bank was told to send back to a payer."""
    CONVERTED_RUB = "converted_rub"
    """RUB that the service took over in settlements."""
    CONVERTED_USDT = "converted_usdt"
    """Below zero by the USDT that it gave for them."""
    FEES = "fees"
    """The service's earnings in USDT."""
    ROUNDING = "rounding"
    """What rounding down leaves over, in USDT."""
    CHAIN = "chain"
    """The outside: below zero by the USDT that clients brought on chain, less what went back to them."""
    EXCHANGING_RUB = "exchanging_rub"
    """RUB that clients brought for exchanges under way."""
    EXCHANGING_USDT = "exchanging_usdt"
    """USDT that clients brought for exchanges under way."""
    SUSPENSE_USDT = "suspense_usdt"
    """USDT that may move no exchange and waits for an operator."""
    REMITTING = "remitting"
    """RUB that a bank was told to pay out to clients."""
    SENDING = "sending"
    """USDT that is being sent to clients on chain."""
    STOCK_RUB = "stock_rub"
    """The service's stock that exchanges are made from: what it took, less what it gave. May be below zero."""
    STOCK_USDT = "stock_usdt"
    """The same in USDT."""
    LOSSES_RUB = "losses_rub"
    """Below zero by the RUB that payers' banks took back once the service had given something for them."""


SERVICE = "service"
"""The owner of what is no merchant's."""

MERCHANT_PURSES = frozenset(
    (Purse.PENDING, Purse.REVIEW, Purse.SUSPENSE, Purse.AVAILABLE, Purse.RESERVED, Purse.PAID_OUT, Purse.REFUNDED_USDT)
) | frozenset((Purse.EXCHANGING_RUB, Purse.EXCHANGING_USDT, Purse.SUSPENSE_USDT))

_RUB_PURSES = frozenset(
    (Purse.PENDING, Purse.REVIEW, Purse.SUSPENSE, Purse.BANK, Purse.REFUNDING, Purse.CONVERTED_RUB)
) | frozenset((Purse.EXCHANGING_RUB, Purse.REMITTING, Purse.STOCK_RUB, Purse.LOSSES_RUB))

BALANCE_PURSES = frozenset((Purse.AVAILABLE, Purse.RESERVED, Purse.PENDING))
"""What merchants see of their purses, as their balance."""

_STRIPES: Mapping[Purse, int] = {Purse.PENDING: 4, Purse.BANK: 16}
"""Over how many rows a running balance is spread where every payment moves it: a database locks a row until its commit
is on disk, and one row would let only one payment at a time be paid. All others have one."""


def currency_of(purse: Purse) -> Currency:
    """What the purse holds."""
    return Currency.RUB if purse in _RUB_PURSES else Currency.USDT


class EntryKind(StrEnum):
    """What happened. Together with the object and the revision it makes an entry unique."""

    RECEIPT = "receipt"
    """A payer paid: bank -> pending."""
    REVIEW = "review"
    """Money came whose amount is not what was asked: bank -> review."""
    REVIEW_ACCEPTED = "review_accepted"
    """review -> pending."""
    SUSPENSE = "suspense"
    """Money that may move nothing: bank or review -> suspense."""
    SUSPENSE_RETURNED = "suspense_returned"
    """It was sent back: suspense -> bank."""
    SETTLEMENT = "settlement"
    """RUB became USDT: pending -> converted; converted -> available, fees, rounding."""
    REFUND_TAKEN = "refund_taken"
    """A refund goes to the bank: pending -> refunding; after settlement available -> refunded, and
    converted -> refunding."""
    REFUND_PAID = "refund_paid"
    """The payer has it: refunding -> bank."""
    REFUND_RETURNED = "refund_returned"
    """It failed: what was taken goes back."""
    REFUND_REVERSED = "refund_reversed"
    """It was paid and came back: bank instead of refunding gives it."""
    PAYOUT_RESERVED = "payout_reserved"
    """available -> reserved."""
    PAYOUT_SENT = "payout_sent"
    """Final on the chain: reserved -> paid out."""
    PAYOUT_RELEASED = "payout_released"
    """Failed or cancelled: reserved -> available."""
    EXCHANGE_RECEIVED = "exchange_received"
    """A client's money came: chain or bank -> exchanging, and what may not move the exchange -> suspense."""
    EXCHANGE_SUSPENDED = "exchange_suspended"
    """The exchange ended without it: exchanging -> suspense. Of a transfer: what had gone back came again."""
    EXCHANGE_TAKEN_BACK = "exchange_taken_back"
    """The payer's bank took a transfer back: exchanging, suspense -> bank; what something was given for already is the
    service's loss: losses -> bank."""
    EXCHANGE_RETURNED = "exchange_returned"
    """An operator sent money in suspense back: suspense -> chain or bank."""
    EXCHANGE_GIVEN = "exchange_given"
    """What the client is to get is on its way: stock -> remitting or sending."""
    EXCHANGE_DELIVERED = "exchange_delivered"
    """The client has it, or a part of it: remitting -> bank, sending -> chain."""
    EXCHANGE_COMPLETED = "exchange_completed"
    """What the client brought is the service's: exchanging -> stock, and what is left for the merchant -> available."""
    EXCHANGE_FAILED = "exchange_failed"
    """What did not go is back in stock, and what the client brought for it in suspense."""
    SANDBOX_CLEARED = "sandbox_cleared"
    """A test object is forgotten: all that its entries moved goes back the way it came
    (docs/sandbox.md "Forgetting")."""


class Posting(msgspec.Struct, frozen=True, array_like=True):
    """What one purse received (above zero) or gave (below), in the smallest part of its currency."""

    purse: Purse
    amount: int


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One move of money. Written in the unit that makes it true; only `number`, `seal` and `place` are set after that,
    once."""

    id: str
    """`entry_id(...)`: kind, object and revision, so that the same move cannot be booked twice."""
    kind: EntryKind
    object_id: str
    """What moved the money: a payment, a refund, a withdrawal, a suspense record."""
    revision: int
    account_id: str
    mode: Mode
    at: datetime
    postings: tuple[Posting, ...]
    number: int | None = None
    """Its place in the hash chain; null until it is chained."""
    seal: bytes | None = None
    """Its link in the chain, and the vault's tag (chains.py)."""
    place: int | None = None
    """Its number among the movements of its account and mode (movements.py); null until it is listed, zero where it
    moves no balance."""
    version: int = 0


class LedgerAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A running balance: the sum of all postings to one purse of one owner and mode; one stripe of it.

    `balance` is a sum that units add to without reading. Who takes money that must be there saves the row as well, so
    that of two who take at once one goes stale (usecases/ledger/ledger.py).
    """

    id: str
    owner: str
    mode: Mode
    purse: Purse
    balance: int = 0
    version: int = 0


class Unbalanced(ValueError):
    """Postings that do not sum to zero. A slip of the program: nothing of it may be committed."""


def entry_id(kind: EntryKind, object_id: str, revision: int = 1) -> str:
    """The id that makes an entry unique."""
    return f"{kind}:{object_id}:{revision}"


def journal_entry(
    kind: EntryKind,
    object_id: str,
    *,
    account_id: str,
    mode: Mode,
    at: datetime,
    postings: Mapping[Purse, int],
    revision: int = 1,
) -> JournalEntry:
    """A new entry. Postings of nothing are left out. Raises: Unbalanced."""
    kept = tuple(Posting(purse, amount) for purse, amount in postings.items() if amount)
    fault = imbalance(kept)
    if fault is not None:
        raise Unbalanced(f"{entry_id(kind, object_id, revision)}: {fault}")
    return JournalEntry(
        id=entry_id(kind, object_id, revision),
        kind=kind,
        object_id=object_id,
        revision=revision,
        account_id=account_id,
        mode=mode,
        at=at,
        postings=kept,
        place=None if moves_balance(kept) else 0,
    )


def imbalance(postings: Iterable[Posting]) -> str | None:
    """What is wrong with the sums of postings; None when each currency sums to zero and something is posted."""
    sums: dict[Currency, int] = {}
    for posting in postings:
        currency = currency_of(posting.purse)
        sums[currency] = sums.get(currency, 0) + posting.amount
    if not sums:
        return "nothing is posted"
    over = [f"{amount} {currency} too much" for currency, amount in sums.items() if amount]
    return ", ".join(over) or None


def moves_balance(postings: Iterable[Posting]) -> bool:
    """Whether postings change what the merchant sees as balance."""
    return any(posting.purse in BALANCE_PURSES for posting in postings)


def owner_of(purse: Purse, account_id: str) -> str:
    """Whose the purse is, in an entry that concerns this merchant."""
    return account_id if purse in MERCHANT_PURSES else SERVICE


def ledger_account_id(owner: str, mode: Mode, purse: Purse, stripe: int = 0) -> str:
    """The row of a running balance."""
    return f"{owner}:{mode}:{purse}:{stripe}"


def balances_moved(entry: JournalEntry) -> tuple[LedgerAccount, ...]:
    """What the entry adds to the running balances."""
    return tuple(_row(entry, posting) for posting in entry.postings)


def _row(entry: JournalEntry, posting: Posting) -> LedgerAccount:
    owner = owner_of(posting.purse, entry.account_id)
    stripe = crc32(entry.object_id.encode()) % _STRIPES.get(posting.purse, 1)
    return LedgerAccount(
        id=ledger_account_id(owner, entry.mode, posting.purse, stripe),
        owner=owner,
        mode=entry.mode,
        purse=posting.purse,
        balance=posting.amount,
    )


def balance_ids(owner: str, mode: Mode) -> tuple[str, str]:
    """The range of ids of all running balances of an owner and mode: one statement reads them, as of one moment."""
    return f"{owner}:{mode}:", f"{owner}:{mode};"


def _says(entry: JournalEntry, number: int) -> bytes:
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    said = (
        number,
        entry.kind,
        entry.object_id,
        entry.revision,
        entry.account_id,
        entry.mode,
        at,
        [(posting.purse, posting.amount) for posting in entry.postings],
    )
    return msgspec.json.encode(said)


LEDGER = Chain(name="ledger", head_id="head", rows=JournalEntry, says=_says)
"""The chain over the journal. An entry's id follows from what it says, so it is not said again."""
