"""Plan of a move: for each table, how an account's rows are found, and whether they move to the other cell. A test
fails for a table that is in no list here."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from ....ports.jobs import Job
from ....ports.notes import ProviderNote
from ....ports.storage import Between, OneOf, Storage
from ....ports.unreadable import UnreadableRow
from ...domain.accounts.accounts import Account, ApiKey, KeyUse, Mode
from ...domain.accounts.idempotency import IdempotencyKey, key_ids
from ...domain.accounts.limit_hits import LimitHits
from ...domain.accounts.request_log import FirstBatch, RequestBatch, RequestCount
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import Terminal
from ...domain.accounts.written_bytes import WrittenBytes
from ...domain.alarms import AlarmRecipient
from ...domain.cells import AccountMove, Departure
from ...domain.chains import ChainHead
from ...domain.exchanges.exchanges import DirectionSwitch, Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.exports.exports import Export, ExportChunk, chunk_range
from ...domain.gateways.gateways import Gateway, GatewayCount, own_id
from ...domain.installation import Installation
from ...domain.kyc.clients import Client
from ...domain.kyc.kyc import Upload
from ...domain.ledger import JournalEntry, LedgerAccount
from ...domain.list_counts import ListCount
from ...domain.movements import Movement
from ...domain.notifications import NotificationAddress
from ...domain.operators.audit import AuditEntry
from ...domain.operators.operators import Operator
from ...domain.operators.pending_actions import PendingAction
from ...domain.payer.logos import Logo
from ...domain.payments.outcomes import UnknownOutcome
from ...domain.payments.payment_links import LinkAnswers, LinkTotals, PaymentLink
from ...domain.payments.payments import Payment
from ...domain.payments.proofs import DeliveryProof
from ...domain.payments.suspense import Suspense
from ...domain.payments.tallies import Tally, Turnover
from ...domain.payments.unsettled import Unsettled
from ...domain.people.guesses import GuessCount
from ...domain.people.notifications import (
    Notification,
    NotificationPreferences,
    NotificationQueue,
    TelegramChat,
)
from ...domain.people.payment_notes import PaymentNotes
from ...domain.people.people import (
    Invitation,
    Letter,
    Membership,
    Passkey,
    ResetToken,
    Session,
    UsedChallenge,
    User,
)
from ...domain.people.views import SavedViews
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.reconciliation.bank_files import FileColumns
from ...domain.reconciliation.reconciliation import Discrepancy, Reconciliation
from ...domain.refunds.refunds import Refund
from ...domain.reports.proofs import DayHead
from ...domain.reports.reports import Report
from ...domain.settlement.rates import KnownRate
from ...domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem, item_ids
from ...domain.settlement.withdrawals import Withdrawal
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.breaker import Breaker
from ...domain.webhooks.delivery import attempt_id
from ...domain.webhooks.endpoints import WebhookEndpoint
from ...domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from ...domain.webhooks.feed import Feed, FeedEntry
from ...domain.webhooks.resends import ResendRun

AT_ONCE = 500
"""Rows that are read, compared and written together."""

_CHUNKS = 20
"""Chunks of registers that are moved together, since they are large."""

Batches = AsyncIterator[Sequence[Any]]


class Lot(Enum):
    """Fate of rows in the cell that an account leaves."""

    MOVED = "copied, then deleted"
    COPIED = "copied, and they stay"


class Found(msgspec.Struct):
    """Ids that a walk over an account has met so far. They lead to the rows of later tables."""

    account_id: str
    ids: dict[type[Any], list[str]] = {}
    """Ids of the rows of tables that have PARENTS among the tables after them."""
    attempts: list[str] = []
    """Ids that webhooks of the account's deliveries can have."""


Ways = Callable[[Storage, Found], Batches]


class Rows(msgspec.Struct, frozen=True):
    """A table whose rows follow their account."""

    record: type[Any]
    find: Ways
    lot: Lot = Lot.MOVED


def _own(record: type[Any]) -> Rows:
    """Find rows by their field `account_id`."""

    def find(storage: Storage, found: Found) -> Batches:
        return storage.scan(record, batch=AT_ONCE, account_id=found.account_id)

    return Rows(record, find)


def _named(record: type[Any], name: Callable[[str], str] = lambda account_id: account_id) -> Rows:
    """Find rows by the beginning of their ids, which is the account's id or contains it."""

    def find(storage: Storage, found: Found) -> Batches:
        low = name(found.account_id)
        return storage.scan(record, batch=AT_ONCE, id=Between(low, f"{low};"))

    return Rows(record, find)


def _beside(record: type[Any], parent: type[Any]) -> Rows:
    """Find rows that have the ids of another table's rows."""

    def find(storage: Storage, found: Found) -> Batches:
        return _of_ids(storage, record, found.ids.get(parent, ()))

    return Rows(record, find)


async def _of_ids(storage: Storage, record: type[Any], ids: Sequence[str]) -> Batches:
    for start in range(0, len(ids), AT_ONCE):
        yield await present(storage, record, ids[start : start + AT_ONCE])


async def present(storage: Storage, record: type[Any], ids: Iterable[str]) -> list[Any]:
    """Return the existing rows with these ids, at most AT_ONCE of them, in the order of ids."""
    wanted = tuple(ids)
    if not wanted:
        return []
    async with storage.unit() as unit:
        return await unit[record].find(id=OneOf(wanted), limit=len(wanted))


async def _items(storage: Storage, found: Found) -> Batches:
    for settlement_id in found.ids.get(Settlement, ()):
        async for batch in storage.scan(SettlementItem, batch=AT_ONCE, id=Between(*item_ids(settlement_id))):
            yield batch


async def _chunks(storage: Storage, found: Found) -> Batches:
    for report_id in found.ids.get(Report, ()):
        async for batch in storage.scan(ExportChunk, batch=_CHUNKS, id=Between(*chunk_range(report_id))):
            yield batch


def _attempts(storage: Storage, found: Found) -> Batches:
    return _of_ids(storage, Attempt, found.attempts)


async def _batches(storage: Storage, found: Found) -> Batches:
    for mode in Mode:
        low = f"{mode}:{found.account_id}:"
        async for batch in storage.scan(SettlementBatch, batch=AT_ONCE, id=Between(low, f"{mode}:{found.account_id};")):
            yield batch


async def _keys(storage: Storage, found: Found) -> Batches:
    for mode in Mode:
        async for batch in storage.scan(IdempotencyKey, batch=AT_ONCE, id=Between(*key_ids(found.account_id, mode))):
            yield batch


def _gateways(storage: Storage, found: Found) -> Batches:
    low = own_id(found.account_id, "")
    return storage.scan(Gateway, batch=AT_ONCE, id=Between(low, f"{found.account_id}0"))


ROWS: tuple[Rows, ...] = (
    _own(Shop),
    _own(Terminal),
    _own(Logo),
    _own(WebhookEndpoint),
    _own(PaymentLink),
    _own(Subscription),
    _own(Client),
    _own(Payment),
    _named(Unsettled),
    _own(Refund),
    _own(FiscalReceipt),
    _own(Exchange),
    _own(ExchangeTransfer),
    _own(Withdrawal),
    _own(Suspense),
    _own(Settlement),
    _own(Correction),
    _own(UnknownOutcome),
    _own(PendingAction),
    _own(Upload),
    _own(Event),
    _own(Delivery),
    _own(EndpointDelivery),
    _own(FeedEntry),
    _own(ResendRun),
    _own(Invitation),
    _own(PaymentNotes),
    _own(Report),
    _beside(LinkAnswers, Payment),
    _beside(LinkTotals, PaymentLink),
    _beside(DeliveryProof, Payment),
    Rows(SettlementItem, _items),
    Rows(ExportChunk, _chunks),
    Rows(SettlementBatch, _batches),
    Rows(Attempt, _attempts),
    Rows(Gateway, _gateways),
    _named(GatewayCount),
    _named(Breaker),
    _named(Tally),
    _named(Turnover),
    _named(ListCount),
    Rows(IdempotencyKey, _keys),
    _named(Feed),
    _named(RequestBatch),
    _named(FirstBatch),
    _named(RequestCount),
    _named(Membership),
    _named(SavedViews),
    _named(NotificationPreferences),
    _named(NotificationQueue),
    _named(Notification),
    Rows(Movement, _named(Movement).find, Lot.COPIED),
    Rows(AuditEntry, _own(AuditEntry).find, Lot.COPIED),
)
"""Tables in the order of the walk: a table comes after those whose ids lead to its rows."""

PARENTS = frozenset((PaymentLink, Payment, Settlement, Membership, Report))
"""Tables whose ids are remembered during the walk."""

BY_HAND: Mapping[type[Any], str] = {
    Account: "the last row that is copied: the account is where it is",
    ApiKey: "copied with the account",
    KeyUse: "copied with the keys",
    Job: "copied with the account, because the other cell's workers run it at once",
    JournalEntry: "copied without its number in the chain; it stays, as the chain here must not lose rows",
    LedgerAccount: "follows from the journal, in both cells",
    ProviderNote: "copied as far as it is about an object of the account; it stays, since an adapter may share it",
    User: "copied; deleted here unless the person has other accounts in this cell",
    Passkey: "follows the person",
    TelegramChat: "follows the person",
    Session: "deleted: a browser signs in again at the other cell",
    Departure: "written here, and deleted where an account comes back",
    AccountMove: "tells where the account went",
}
"""Tables that the move handles by itself, with what happens to their rows."""

STAYS: Mapping[type[Any], str] = {
    ChainHead: "each cell has its own chains",
    DirectionSwitch: "an operator's, for one cell",
    Export: "a file that is deleted after a day, with its chunks; people make it anew",
    DayHead: "the published heads of one cell",
    GuessCount: "guards the sign-in of one cell",
    UsedChallenge: "guards the sign-in of one cell",
    ResetToken: "a person's link; it ends by itself",
    Letter: "sent from the cell that wrote it, within hours",
    KnownRate: "each cell reads rates itself",
    LimitHits: "is no account's",
    WrittenBytes: "counts what was written in one cell",
    NotificationAddress: "is an adapter's, in one cell",
    AlarmRecipient: "the other cell finds the receiver's failure itself",
    Reconciliation: "compares one cell with its banks",
    Discrepancy: "as its reconciliation",
    FileColumns: "an operator's, for the files of one cell's banks",
    Operator: "operators of one cell",
    Installation: "is of the database",
    UnreadableRow: "an account with unreadable rows does not move",
}
"""Tables that an account leaves behind, with the reason."""


def note(found: Found, record: type[Any], rows: Sequence[Any]) -> None:
    """Remember what leads to rows of later tables."""
    if record in PARENTS:
        found.ids.setdefault(record, []).extend(row.id for row in rows)
    if record in (Delivery, EndpointDelivery):
        found.attempts.extend(
            attempt_id(row, number) for row in rows for number in range(1, row.attempts + row.probes + 1)
        )
