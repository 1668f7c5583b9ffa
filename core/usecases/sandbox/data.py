"""DELETE /sandbox/data: delete an account's test objects (docs/sandbox.md "Forgetting").

A table defines for each kind of record how an account's rows in test mode are found. Rows are deleted in units of some
hundred rows. Each unit leaves the remaining data consistent, so a call may stop anywhere, and a second call continues.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.notes import ProviderNote
from ....ports.storage import Between, Unit
from ....ports.unreadable import UnreadableRow
from ...domain.accounts.accounts import Account, ApiKey, Caller, KeyUse, Mode
from ...domain.accounts.idempotency import IdempotencyKey, key_ids
from ...domain.accounts.limit_hits import LimitHits
from ...domain.accounts.request_log import FirstBatch, RequestBatch, RequestCount
from ...domain.accounts.shops import Shop
from ...domain.accounts.terminals import Terminal
from ...domain.accounts.written_bytes import WrittenBytes
from ...domain.alarms import AlarmRecipient
from ...domain.cells import AccountMove, Departure
from ...domain.chains import ChainHead
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import DirectionSwitch, Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.exports.exports import Export, ExportChunk
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
from ...domain.people.people import Invitation, Letter, Membership, Passkey, ResetToken, Session, UsedChallenge, User
from ...domain.people.views import SavedViews
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.reconciliation.bank_files import FileColumns
from ...domain.reconciliation.reconciliation import Discrepancy, Reconciliation
from ...domain.refunds.refunds import Refund
from ...domain.reports.proofs import DayHead
from ...domain.reports.reports import Report
from ...domain.settlement.rates import KnownRate
from ...domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from ...domain.settlement.withdrawals import Withdrawal
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.breaker import Breaker, endpoint_id
from ...domain.webhooks.endpoints import WebhookEndpoint
from ...domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from ...domain.webhooks.feed import Feed, FeedEntry
from ...domain.webhooks.resends import ResendRun
from ..common.units import retrying
from .forgetting import (
    forget_batches,
    forget_clients,
    forget_events,
    forget_exchanges,
    forget_links,
    forget_payments,
    forget_refunds,
    forget_settlements,
    forget_subscriptions,
    forget_suspense,
    forget_withdrawals,
)

AT_ONCE = 20_000
"""Records deleted in one call; the next call deletes the rest."""

RACES = ("journal_id",)
"""Conflict of two concurrent calls; the second finds the object deleted."""

_PAYMENTS = 50
"""Payments in one unit; each has refunds, lines, jobs and entries that are deleted with it."""
_FEW = 100

Forget = Callable[[Ports, Unit, Sequence[Any]], Awaitable[int]]
"""Deletes records in the caller's unit; returns how many were deleted."""
Rows = Callable[[str, Mode], dict[str, Any]]


class Kind(msgspec.Struct, frozen=True):
    """A kind of record to delete."""

    record: type[Any]
    name: str
    """Name in the answer."""
    rows: Rows
    """Returns the criteria for the rows of an account and mode."""
    forget: Forget
    order: str = "created_at"
    """A field with an index."""
    batch: int = _FEW


def _own(account_id: str, mode: Mode) -> dict[str, Any]:
    return {"account_id": account_id, "mode": mode}


def _named(account_id: str, mode: Mode) -> dict[str, Any]:
    """Return a range of ids that begin with the account and the mode."""
    return {"id": Between(f"{endpoint_id(account_id, mode)}:", f"{endpoint_id(account_id, mode)};")}


def _keys(account_id: str, mode: Mode) -> dict[str, Any]:
    return {"id": Between(*key_ids(account_id, mode))}


def _of_test_mode(account_id: str, _mode: Mode) -> dict[str, Any]:
    return {"account_id": account_id}


def _own_batches(account_id: str, mode: Mode) -> dict[str, Any]:
    return {"id": Between(f"{mode}:{account_id}:", f"{mode}:{account_id};")}


def _simulated(account_id: str, _mode: Mode) -> dict[str, Any]:
    # `0` is the character after the slash.
    return {"id": Between(own_id(account_id, ""), f"{account_id}0")}


def _breakers(account_id: str, mode: Mode) -> dict[str, Any]:
    """Return the range of the account's own endpoint and of further ones."""
    endpoint = endpoint_id(account_id, mode)
    return {"id": Between(endpoint, f"{endpoint}0")}


def _just(kind: type[Any]) -> Forget:
    async def forget(_ports: Ports, unit: Unit, found: Sequence[Any]) -> int:
        for record in found:
            unit[kind].remove(record)
        return len(found)

    return forget


async def _empty_tallies(_ports: Ports, unit: Unit, found: Sequence[Tally]) -> int:
    gone = [tally for tally in found if not tally.count]
    return await _just(Tally)(_ports, unit, gone)


async def _empty_turnover(_ports: Ports, unit: Unit, found: Sequence[Turnover]) -> int:
    gone = [turnover for turnover in found if not turnover.payments]
    return await _just(Turnover)(_ports, unit, gone)


FORGOTTEN: tuple[Kind, ...] = (
    # First, so that no repeated request returns an object that is half deleted.
    Kind(IdempotencyKey, "idempotency_keys", _keys, _just(IdempotencyKey), order="id"),
    # Before their payments, so that no further charge is made.
    Kind(Subscription, "subscriptions", _own, forget_subscriptions),
    # Before the payouts, so that a payout does not pay the balance that is being removed.
    Kind(Payment, "payments", _own, forget_payments, batch=_PAYMENTS),
    Kind(PaymentLink, "payment_links", _own, forget_links),
    # Objects that were created after their payment was deleted.
    Kind(Refund, "refunds", _own, forget_refunds),
    Kind(Suspense, "suspense", _own, forget_suspense, order="received_at"),
    Kind(Correction, "corrections", _own, _just(Correction), order="id"),
    Kind(Exchange, "exchanges", _own, forget_exchanges, batch=_PAYMENTS),
    Kind(Withdrawal, "withdrawals", _own, forget_withdrawals),
    Kind(Settlement, "settlements", _own, forget_settlements, order="started_at"),
    Kind(SettlementBatch, "settlement_batches", _own_batches, forget_batches, order="id"),
    Kind(Client, "clients", _own, forget_clients),
    Kind(Gateway, "gateways", _simulated, _just(Gateway), order="id"),
    # Last, because objects deleted earlier may still have written some.
    Kind(Event, "events", _own, forget_events),
    Kind(FeedEntry, "feed_entries", _of_test_mode, _just(FeedEntry), order="position"),
    Kind(Breaker, "breakers", _breakers, _just(Breaker), order="id"),
    Kind(Tally, "tallies", _named, _empty_tallies, order="id"),
    Kind(Turnover, "turnover", _named, _empty_turnover, order="id"),
)
"""Kinds in the order of deletion."""

GOES_WITH: Mapping[type[Any], type[Any]] = {
    DeliveryProof: Payment,
    FiscalReceipt: Payment,
    PaymentNotes: Payment,
    LinkAnswers: Payment,
    LinkTotals: PaymentLink,
    UnknownOutcome: Payment,
    Unsettled: Payment,
    SettlementItem: Payment,
    ExchangeTransfer: Exchange,
    Delivery: Event,
    EndpointDelivery: Event,
    Attempt: Event,
}
"""Records that are deleted in the same unit as another record."""

STAYS: Mapping[type[Any], str] = {
    Account: "settings stay, and so does the clock: what stays, or is made meanwhile, must not lie in its future",
    ApiKey: "keys stay",
    KeyUse: "keys stay",
    RequestBatch: "what was asked stays known for its thirty days",
    FirstBatch: "as the batches that follow it",
    RequestCount: "as the requests that it counts",
    Logo: "logos are the same in both modes",
    Shop: "shops are the same in both modes",
    AccountMove: "says in which cell the account is",
    Departure: "leads requests to the account's cell",
    WebhookEndpoint: "settings stay",
    Terminal: "terminals are the same in both modes",
    AuditEntry: "what operators did is never forgotten",
    Operator: "is no account's",
    User: "a person, of live mode and test mode alike",
    Membership: "a person's access to both modes",
    Invitation: "an invitation to both modes",
    Session: "a signed-in browser; it ends by itself",
    ResetToken: "a person's link; it ends by itself",
    Passkey: "a person's means to sign in",
    UsedChallenge: "guards the sign-in",
    ResendRun: "what a person started; it ends by itself, and the newest stay listed",
    GuessCount: "guards the sign-in",
    SavedViews: "a person's filters, in both modes",
    Letter: "a letter to a person, which is sent within hours",
    Export: "a file of a person, which is deleted after a day",
    ExportChunk: "as its export",
    DayHead: "is published, and no account's",
    Report: "what was reported stays, and movements do so too",
    NotificationPreferences: "a person's choices for both modes",
    Notification: "a notification of a person, which is sent within a day",
    NotificationQueue: "when a person was last notified, of live mode and test mode alike",
    TelegramChat: "a person's chat, of no account",
    PendingAction: "what operators asked for is never forgotten, and is of live mode, or of a wallet of both",
    JournalEntry: "never changed after: a counter-entry takes back what was moved",
    Movement: "as the journal: the counter-entry is a movement, too",
    LedgerAccount: "moved by the counter-entries, to zero",
    ChainHead: "the chains go on",
    ListCount: "is of live mode",
    GatewayCount: "a receiver that remembers the last number must not meet a lower one",
    Feed: "a cursor that somebody holds must not come to lie beyond the end",
    DirectionSwitch: "is no account's",
    WrittenBytes: "a day's bytes were written, whatever became of them",
    LimitHits: "is no account's: whose requests were refused is not kept",
    NotificationAddress: "is no account's: it is an adapter's",
    KnownRate: "is no account's, or belongs to the clock of one, which stays",
    Upload: "test mode grants none",
    Job: "those of an object go with it; all others end by themselves, or are no account's",
    Installation: "is no account's: it is of the database",
    AlarmRecipient: "is no account's, or of live mode: test mode alarms nobody",
    FileColumns: "is no account's: it is of a bank",
    Reconciliation: "is no account's, or of live mode: test mode is compared with nobody",
    Discrepancy: "is of live mode",
    UnreadableRow: "tells of what lies elsewhere, or of a job, which ends by itself",
    ProviderNote: "the memory of the banks: without the object it leads to nothing",
}
"""Records that are not deleted, with the reason."""


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a call."""

    removed: dict[str, int]
    """Number of deleted records by kind."""
    complete: bool
    """Whether nothing is left. If not, the call was at its limit, or a settlement was under way; another call
    continues.
    """


async def forget_test_data(ports: Ports, caller: Caller) -> Forgotten:
    """Delete the test objects of the caller's account that existed when the call began, at most AT_ONCE of them.

    A process that is working on an object finds it gone, and ends. Raises: Refusal NOT_FOUND in live mode.
    """
    if caller.mode is not Mode.TEST:
        raise Refusal("NOT_FOUND", "Endpoint not found")
    removed: dict[str, int] = {}
    complete, room = True, AT_ONCE
    for kind in FORGOTTEN:
        rows = kind.rows(caller.account_id, caller.mode)
        async with ports.storage.unit() as unit:
            there = await unit[kind.record].total(**rows)
        gone = await forget_some(ports, kind, rows, min(there, room))
        removed[kind.name] = gone
        room -= gone
        complete = complete and gone >= there
    return Forgotten(removed=removed, complete=complete)


async def forget_some(ports: Ports, kind: Kind, rows: Mapping[str, Any], most: int) -> int:
    """Delete at most `most` records of a kind, oldest first, and return how many were deleted. Records that must stay
    for now are skipped.
    """
    seen = gone = 0
    while seen < most:
        offset, limit = seen - gone, min(kind.batch, most - seen)

        async def work(unit: Unit, offset: int = offset, limit: int = limit) -> tuple[int, int]:
            found = await unit[kind.record].find(order=kind.order, offset=offset, limit=limit, **rows)
            return len(found), await kind.forget(ports, unit, found) if found else 0

        found, went = await retrying(ports.storage, work, again_on=RACES)
        if not found:
            break
        seen, gone = seen + found, gone + went
    return gone
