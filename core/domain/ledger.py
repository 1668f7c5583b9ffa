"""The double-entry ledger: every movement of money is one journal entry whose postings sum to zero per currency,
written once and never changed (ARCHITECTURE.md "Money").

An entry concerns one merchant in one mode, so a posting names only its balance type, which determines the owner and the
currency. A received amount is above zero, a given one below. The ledger accounts of the outside (a bank, a chain) are
therefore negative by the amount that they brought in.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from zlib import crc32

import msgspec

from .accounts.accounts import Mode
from .chains import Chain


class Currency(StrEnum):
    """Currency of a ledger account. Amounts are integers: kopecks, and units of 0.00000001 USDT."""

    RUB = "RUB"
    USDT = "USDT"


class BalanceType(StrEnum):
    """Purpose of a ledger account. The chart of accounts has one for each owner, mode and balance type."""

    PENDING = "pending"
    """Accepted RUB that waits for settlement: `pending_rub` of GET /balance."""
    REVIEW = "review"
    """RUB of payments under review: received, but not assigned to anybody yet."""
    SUSPENSE = "suspense"
    """RUB that cannot be applied to a payment and waits for an operator."""
    AVAILABLE = "available"
    """`available_usdt`."""
    RESERVED = "reserved"
    """`reserved_usdt`: reserved for a payout in progress."""
    PAID_OUT = "paid_out"
    """USDT paid to the merchant's wallet."""
    REFUNDED_USDT = "refunded_usdt"
    """USDT that refunds after settlement took from the merchant, less the returned amounts."""
    BANK = "bank"
    """The outside: negative by the RUB that the banks hold for us."""
    REFUNDING = "refunding"
    """RUB that a bank was asked to return to a payer."""
    CONVERTED_RUB = "converted_rub"
    """RUB that the service acquired in settlements."""
    CONVERTED_USDT = "converted_usdt"
    """Negative by the USDT that it gave for them."""
    FEES = "fees"
    """The service's earnings in USDT."""
    ROUNDING = "rounding"
    """Rounding differences, in USDT."""
    CHAIN = "chain"
    """The outside: negative by the USDT that clients brought on chain, less the returned amounts."""
    EXCHANGING_RUB = "exchanging_rub"
    """RUB that clients brought for exchanges in progress."""
    EXCHANGING_USDT = "exchanging_usdt"
    """USDT that clients brought for exchanges in progress."""
    SUSPENSE_USDT = "suspense_usdt"
    """USDT that cannot be applied to an exchange and waits for an operator."""
    REMITTING = "remitting"
    """RUB that a bank was asked to pay out to clients."""
    SENDING = "sending"
    """USDT being sent to clients on chain."""
    STOCK_RUB = "stock_rub"
    """The service's stock for exchanges, in RUB: amounts received, less amounts given. May be below zero."""
    STOCK_USDT = "stock_usdt"
    """The service's stock for exchanges, in USDT."""
    LOSSES_RUB = "losses_rub"
    """Negative by the RUB that payers' banks took back after the service had given something for them."""


SERVICE = "service"
"""The owner of accounts that belong to no merchant."""

MERCHANT_BALANCE_TYPES = frozenset(
    (
        BalanceType.PENDING,
        BalanceType.REVIEW,
        BalanceType.SUSPENSE,
        BalanceType.AVAILABLE,
        BalanceType.RESERVED,
        BalanceType.PAID_OUT,
        BalanceType.REFUNDED_USDT,
    )
) | frozenset((BalanceType.EXCHANGING_RUB, BalanceType.EXCHANGING_USDT, BalanceType.SUSPENSE_USDT))

_RUB_BALANCE_TYPES = frozenset(
    (
        BalanceType.PENDING,
        BalanceType.REVIEW,
        BalanceType.SUSPENSE,
        BalanceType.BANK,
        BalanceType.REFUNDING,
        BalanceType.CONVERTED_RUB,
    )
) | frozenset((BalanceType.EXCHANGING_RUB, BalanceType.REMITTING, BalanceType.STOCK_RUB, BalanceType.LOSSES_RUB))

BALANCE_TYPES = frozenset((BalanceType.AVAILABLE, BalanceType.RESERVED, BalanceType.PENDING))
"""Ledger accounts that merchants see as their balance."""

_STRIPES: Mapping[BalanceType, int] = {BalanceType.PENDING: 4, BalanceType.BANK: 16}
"""Number of rows over which a running balance is spread if every payment changes it: a database locks a row until its
commit is on disk, so one row would admit only one payment at a time. All others have one row."""


def currency_of(balance_type: BalanceType) -> Currency:
    """Return the currency of the ledger account."""
    return Currency.RUB if balance_type in _RUB_BALANCE_TYPES else Currency.USDT


class EntryKind(StrEnum):
    """Kind of an entry. Together with the object and the revision it makes an entry unique."""

    RECEIPT = "receipt"
    """A payer paid: bank -> pending."""
    REVIEW = "review"
    """Money came with another amount than requested: bank -> review."""
    REVIEW_ACCEPTED = "review_accepted"
    """review -> pending."""
    SUSPENSE = "suspense"
    """Money that cannot be applied: bank or review -> suspense."""
    SUSPENSE_RETURNED = "suspense_returned"
    """It was returned: suspense -> bank."""
    SETTLEMENT = "settlement"
    """RUB became USDT: pending -> converted; converted -> available, fees, rounding."""
    REFUND_TAKEN = "refund_taken"
    """A refund goes to the bank: pending -> refunding; after settlement available -> refunded, and
    converted -> refunding."""
    REFUND_PAID = "refund_paid"
    """The payer has it: refunding -> bank."""
    REFUND_RETURNED = "refund_returned"
    """It failed: the taken amount is returned."""
    REFUND_REVERSED = "refund_reversed"
    """It was paid and came back: as for a failed one, with bank in place of refunding."""
    PAYOUT_RESERVED = "payout_reserved"
    """available -> reserved."""
    PAYOUT_SENT = "payout_sent"
    """Final on the chain: reserved -> paid out."""
    PAYOUT_RELEASED = "payout_released"
    """Failed or cancelled: reserved -> available."""
    EXCHANGE_RECEIVED = "exchange_received"
    """A client's money came: chain or bank -> exchanging, and the part that the exchange cannot use -> suspense."""
    EXCHANGE_SUSPENDED = "exchange_suspended"
    """The exchange ended without it: exchanging -> suspense. For a transfer: the returned money came back again."""
    EXCHANGE_TAKEN_BACK = "exchange_taken_back"
    """The payer's bank took a transfer back: exchanging, suspense -> bank; if something was already given for it, the
    service bears the loss: losses -> bank."""
    EXCHANGE_RETURNED = "exchange_returned"
    """An operator returned money in suspense: suspense -> chain or bank."""
    EXCHANGE_GIVEN = "exchange_given"
    """The client's payout is on its way: stock -> remitting or sending."""
    EXCHANGE_DELIVERED = "exchange_delivered"
    """The client has all or a part of it: remitting -> bank, sending -> chain."""
    EXCHANGE_COMPLETED = "exchange_completed"
    """The client's money belongs to the service: exchanging -> stock, and the merchant's share -> available."""
    EXCHANGE_FAILED = "exchange_failed"
    """The unsent amount returns to the stock, and the client's money for it to suspense."""
    SANDBOX_CLEARED = "sandbox_cleared"
    """A test object is deleted: everything that its entries moved is moved back (docs/sandbox.md "Forgetting")."""
    MOVED_OUT = "moved_out"
    """The account left this cell, and one entry reverses all of its entries (docs/cells.md "The books")."""
    MOVED_IN = "moved_in"
    """The account came back: the entry of its departure is reversed."""


class Posting(msgspec.Struct, frozen=True, array_like=True):
    """Amount that one ledger account received (above zero) or gave (below), in the smallest unit of its currency."""

    balance_type: BalanceType
    amount: int


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of money. Written in the unit that makes it true; only `number`, `seal` and `place` are set later,
    once."""

    id: str
    """`entry_id(...)`: kind, object and revision, so that the same movement cannot be booked twice."""
    kind: EntryKind
    object_id: str
    """Object that moved the money: a payment, a refund, a withdrawal, a suspense record."""
    revision: int
    account_id: str
    mode: Mode
    at: datetime
    postings: tuple[Posting, ...]
    number: int | None = None
    """Position in the hash chain; null until it is chained."""
    seal: bytes | None = None
    """Link of the chain, and the vault's tag (chains.py)."""
    place: int | None = None
    """Number among the movements of its account and mode (movements.py); null until it is listed, zero if it changes no
    balance."""
    version: int = 0


class LedgerAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A running balance: the sum of all postings to one balance type of one owner and mode; one stripe of it.

    Units add to `balance` without reading it. A unit that takes money which must be there also saves the row, so that
    one of two simultaneous takers goes stale (usecases/ledger/ledger.py).
    """

    id: str
    owner: str
    mode: Mode
    balance_type: BalanceType
    balance: int = 0
    version: int = 0


class Unbalanced(ValueError):
    """The postings do not sum to zero. This is a bug: nothing of the unit may be committed."""


def entry_id(kind: EntryKind, object_id: str, revision: int = 1) -> str:
    """Return the id that makes an entry unique."""
    return f"{kind}:{object_id}:{revision}"


def journal_entry(
    kind: EntryKind,
    object_id: str,
    *,
    account_id: str,
    mode: Mode,
    at: datetime,
    postings: Mapping[BalanceType, int],
    revision: int = 1,
) -> JournalEntry:
    """Return a new entry, without postings of zero. Raises: Unbalanced."""
    kept = tuple(Posting(balance_type, amount) for balance_type, amount in postings.items() if amount)
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
    """Return what is wrong with the sums of postings; None if each currency sums to zero and something is posted."""
    sums: dict[Currency, int] = {}
    for posting in postings:
        currency = currency_of(posting.balance_type)
        sums[currency] = sums.get(currency, 0) + posting.amount
    if not sums:
        return "nothing is posted"
    over = [f"{amount} {currency} too much" for currency, amount in sums.items() if amount]
    return ", ".join(over) or None


def moves_balance(postings: Iterable[Posting]) -> bool:
    """Return whether postings change a balance that the merchant sees."""
    return any(posting.balance_type in BALANCE_TYPES for posting in postings)


def owner_of(balance_type: BalanceType, account_id: str) -> str:
    """Return the owner of a ledger account in an entry about this merchant."""
    return account_id if balance_type in MERCHANT_BALANCE_TYPES else SERVICE


def ledger_account_id(owner: str, mode: Mode, balance_type: BalanceType, stripe: int = 0) -> str:
    """Return the id of the row of a running balance."""
    return f"{owner}:{mode}:{balance_type}:{stripe}"


def balances_moved(entry: JournalEntry) -> tuple[LedgerAccount, ...]:
    """Return the entry's increments of the running balances."""
    return tuple(_row(entry, posting) for posting in entry.postings)


def _row(entry: JournalEntry, posting: Posting) -> LedgerAccount:
    owner = owner_of(posting.balance_type, entry.account_id)
    stripe = crc32(entry.object_id.encode()) % _STRIPES.get(posting.balance_type, 1)
    return LedgerAccount(
        id=ledger_account_id(owner, entry.mode, posting.balance_type, stripe),
        owner=owner,
        mode=entry.mode,
        balance_type=posting.balance_type,
        balance=posting.amount,
    )


def balance_ids(owner: str, mode: Mode) -> tuple[str, str]:
    """Return the range of ids of all running balances of an owner and mode: one statement reads them, as of one
    moment."""
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
        [(posting.balance_type, posting.amount) for posting in entry.postings],
    )
    return msgspec.json.encode(said)


LEDGER = Chain(name="ledger", head_id="head", rows=JournalEntry, says=_says)
"""The hash chain of the journal. An entry's id follows from its content, so it is not included again."""
