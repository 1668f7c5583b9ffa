"""Catalogue of every record: its table, its unique rules, and an index for every find.

The schema, the statements, the memory storage and the names in Conflict all come from here. A new record is one
entry here (docs/contributing/record.md).
"""

from typing import Any

import msgspec

from ....core.domain.accounts.accounts import Account, ApiKey, KeyUse
from ....core.domain.accounts.idempotency import IdempotencyKey
from ....core.domain.accounts.limit_hits import LimitHits
from ....core.domain.accounts.request_log import FirstBatch, RequestBatch, RequestCount
from ....core.domain.accounts.shops import Shop
from ....core.domain.accounts.terminals import Terminal
from ....core.domain.accounts.written_bytes import WrittenBytes
from ....core.domain.alarms import AlarmRecipient
from ....core.domain.cells import AccountMove, Departure
from ....core.domain.chains import ChainHead
from ....core.domain.exchanges.exchanges import ACTIVE_RULE, DirectionSwitch, Exchange
from ....core.domain.exchanges.funds import ExchangeTransfer
from ....core.domain.exports.exports import Export, ExportChunk
from ....core.domain.gateways.gateways import Gateway, GatewayCount
from ....core.domain.installation import Installation
from ....core.domain.kyc.clients import Client
from ....core.domain.kyc.kyc import Upload
from ....core.domain.ledger import JournalEntry, LedgerAccount
from ....core.domain.list_counts import ListCount
from ....core.domain.movements import Movement
from ....core.domain.notifications import NotificationAddress
from ....core.domain.operators.audit import AuditEntry
from ....core.domain.operators.operators import Operator
from ....core.domain.operators.pending_actions import PendingAction
from ....core.domain.payer.logos import Logo
from ....core.domain.payments.outcomes import UnknownOutcome
from ....core.domain.payments.payment_links import LinkAnswers, LinkTotals, PaymentLink
from ....core.domain.payments.payments import USUAL_STATUSES, Payment
from ....core.domain.payments.proofs import DeliveryProof
from ....core.domain.payments.suspense import Suspense
from ....core.domain.payments.tallies import Tally, Turnover
from ....core.domain.payments.unsettled import Unsettled
from ....core.domain.people.guesses import GuessCount
from ....core.domain.people.notifications import (
    Notification,
    NotificationPreferences,
    NotificationQueue,
    TelegramChat,
)
from ....core.domain.people.payment_notes import PaymentNotes
from ....core.domain.people.people import (
    Invitation,
    Letter,
    Membership,
    Passkey,
    ResetToken,
    Session,
    UsedChallenge,
    User,
)
from ....core.domain.people.views import SavedViews
from ....core.domain.receipts.receipts import FiscalReceipt
from ....core.domain.reconciliation.bank_files import FileColumns
from ....core.domain.reconciliation.reconciliation import Discrepancy, Reconciliation
from ....core.domain.refunds.refunds import Refund
from ....core.domain.reports.proofs import DayHead
from ....core.domain.reports.reports import Report
from ....core.domain.settlement.rates import KnownRate
from ....core.domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from ....core.domain.settlement.withdrawals import Withdrawal
from ....core.domain.subscriptions.subscriptions import Subscription
from ....core.domain.webhooks.breaker import Breaker
from ....core.domain.webhooks.endpoints import WebhookEndpoint
from ....core.domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event, EventType
from ....core.domain.webhooks.feed import Feed, FeedEntry
from ....core.domain.webhooks.resends import ResendRun
from ....ports.jobs import Job
from ....ports.notes import ProviderNote
from ....ports.storage import Record
from ....ports.unreadable import UnreadableRow


class Unique(msgspec.Struct, frozen=True):
    """Rule that no two records have the same values in `fields`. A null in one of them makes no clash, as in SQL."""

    name: str
    """Value of Conflict.rule, and the name of the index in the databases."""
    fields: tuple[str, ...]
    where: tuple[tuple[str, Any], ...] = ()
    """The rule applies only to records with these values: `(("status", Status.ACTIVE),)`."""


class Rare(msgspec.Struct, frozen=True):
    """Field whose usual values no index contains, so that its indexes stay small, and rows that change from one usual
    value to another rewrite no index.

    The databases compute a column `rare_<field>`, which is null for the usual values. Queries for another value use it.
    """

    field: str
    usual: tuple[str, ...]
    indexes: tuple[tuple[str, ...], ...]
    """Fields of each index, in order."""

    @property
    def column(self) -> str:
        """Name of the computed column."""
        return f"rare_{self.field}"


class Table(msgspec.Struct, frozen=True):
    """Table of one record type. The primary key is `id`, and its rule is named `<table>_id`."""

    kind: type[Record]
    name: str
    uniques: tuple[Unique, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    """Fields of an index, in order; `-field` descends."""
    sparse: tuple[tuple[str, ...], ...] = ()
    """Fields of an index that leaves out rows whose first field is null, so that they cost nothing."""
    unset: tuple[tuple[str, ...], ...] = ()
    """Fields of an index that contains only rows whose first field is null, and not that field itself.

    It suits rows that wait for a value, and costs nothing once they have it.
    """
    rare: Rare | None = None
    sums: tuple[str, ...] = ()
    """Fields that only `increase` and `accrue` change.

    `save` does not write them: it has the values of an earlier read, and would undo every increase since.
    """
    fixed: tuple[str, ...] = ()
    """Fields that never change after `add`.

    No save writes them, so their indexes are not rewritten (SQLite would do that at every save). The memory storage
    raises an error if a use case changes one.
    """
    narrow: bool = False
    """Whether rows have only some hundred bytes.

    SQLite then stores them in the tree of the primary key itself, which saves one tree.
    """
    append_only: bool = False
    """Whether records are written once. To save or remove one is a bug."""
    set_later: tuple[str, ...] = ()
    """Fields of an append-only table that `change` may set."""
    fillfactor: int = 100
    """Percentage of each page that Postgres fills with new rows. The rest is room for later versions of these rows.

    Below 100 for tables whose rows every payment writes and soon changes; they are also vacuumed more often.
    """


CATALOGUE: tuple[Table, ...] = (
    Table(Account, "accounts"),
    Table(ApiKey, "api_keys", indexes=(("account_id",),), narrow=True),
    # Found by the key's own id. Every key in use changes its row once a minute, and no index contains those fields.
    Table(KeyUse, "key_uses", narrow=True),
    # All are found by ranges of ids in the primary key. Every request adds rows, so they have no other index.
    Table(RequestBatch, "request_batches"),
    Table(FirstBatch, "request_firsts", narrow=True),
    Table(RequestCount, "request_counts", sums=("count",), narrow=True),
    # The shops of an account are found through the index of the rule.
    Table(Shop, "shops", uniques=(Unique("shops_name", ("account_id", "name_folded")),)),
    # A few per account: the search for a method's oldest enabled terminal reads all of them.
    Table(Terminal, "terminals", indexes=(("account_id", "created_at", "id"),), narrow=True),
    Table(
        Payment,
        "payments",
        fillfactor=60,
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "shop_id", "created_at", "id"),
            # For operators, whose lists cover all accounts.
            ("created_at", "id"),
        ),
        # The moves of a payment that is paid and settled change no indexed column, so Postgres rewrites no index.
        rare=Rare(
            "status",
            USUAL_STATUSES,
            indexes=(("account_id", "mode", "status", "created_at", "id"), ("status", "created_at", "id")),
        ),
        # Most payments belong to no subscription, and many merchants set no external id and no contact of the payer.
        sparse=(
            ("external_id", "account_id", "mode", "created_at", "id"),
            ("subscription_id", "account_id", "mode", "created_at", "id"),
            ("link_id", "account_id", "mode", "created_at", "id"),
            ("payer_contact", "account_id", "mode", "created_at", "id"),
            ("payer_email_digest", "account_id", "mode", "created_at", "id"),
        ),
        fixed=(
            "account_id",
            "mode",
            "shop_id",
            "external_id",
            "subscription_id",
            "link_id",
            "payer_contact",
            "payer_email_digest",
            "created_at",
        ),
    ),
    # An account's are found by ranges of ids in the primary key. The index finds the oldest ones of all accounts.
    Table(Unsettled, "unsettled", indexes=(("created_at", "id"),), narrow=True),
    Table(
        PaymentLink,
        "payment_links",
        indexes=(("account_id", "mode", "created_at", "id"),),
        sparse=(("external_id", "account_id", "mode", "created_at", "id"),),
    ),
    Table(Logo, "logos"),
    Table(FileColumns, "file_columns"),
    Table(LinkTotals, "link_totals", sums=("payments", "amount"), narrow=True),
    Table(LinkAnswers, "link_answers"),
    # Few, and written by no unit of a successful payment, whereas an index on payments would be in all of them. The
    # mode comes last in the index, so that a count by mode reads no rows.
    Table(UnknownOutcome, "unknown_outcomes", indexes=(("operation", "created_at", "id", "mode"),), narrow=True),
    # Found by ranges of ids in the primary key, and by operators across all accounts. The indexed fields never change,
    # so a changed sum does not rewrite the index.
    Table(Tally, "tallies", fillfactor=80, indexes=(("period", "status", "account_id"),), sums=("count",), narrow=True),
    Table(Turnover, "turnover", fillfactor=80, indexes=(("day",),), sums=("payments", "amount"), narrow=True),
    Table(
        DeliveryProof,
        "delivery_proofs",
        uniques=(Unique("delivery_proofs_claim", ("claim",)),),
        indexes=(("status", "status_at", "id"), ("tx_hash",)),
        narrow=True,
    ),
    Table(
        Suspense,
        "suspense",
        indexes=(("resolved_at", "received_at", "id"), ("account_id", "resolved_at"), ("payment_id", "received_at")),
    ),
    # The second index finds entries that are not chained yet; those that are not listed are among them.
    Table(
        JournalEntry,
        "journal",
        fillfactor=80,
        sparse=(("number", "id"),),
        unset=(("number", "account_id", "mode", "at", "id"),),
    ),
    # Found by ranges of ids in the primary key.
    Table(Movement, "movements", narrow=True, append_only=True),
    # Found by ranges of ids in the primary key.
    Table(
        LedgerAccount, "ledger_accounts", fillfactor=80, indexes=(("balance_type",),), sums=("balance",), narrow=True
    ),
    Table(ChainHead, "ledger_heads", narrow=True),
    Table(
        SettlementBatch,
        "settlement_batches",
        indexes=(("started_at", "id"),),
        sums=("payments", "amount", "fee", "credit"),
        narrow=True,
    ),
    Table(
        Settlement,
        "settlements",
        uniques=(Unique("settlements_batch", ("batch_id", "account_id")),),
        indexes=(("account_id", "mode", "started_at", "id"),),
        sums=("payments", "items", "amount", "fee", "credit"),
        narrow=True,
    ),
    # Found by ranges of ids in the primary key.
    Table(SettlementItem, "settlement_items", narrow=True),
    Table(Correction, "corrections", indexes=(("account_id", "mode", "settlement_id", "id"),), narrow=True),
    # A payment has ten at most.
    Table(
        Refund,
        "refunds",
        indexes=(
            ("payment_id", "id"),
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            ("status", "created_at", "id"),
        ),
        sparse=(("contradicted_at", "id"), ("external_id", "account_id", "mode", "created_at", "id")),
    ),
    Table(
        FiscalReceipt,
        "receipts",
        indexes=(
            ("payment_id", "created_at", "id"),
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            ("status", "created_at", "id"),
        ),
        sparse=(("failed_at", "id"),),
    ),
    Table(
        Subscription,
        "subscriptions",
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            ("status", "created_at", "id"),
        ),
        sparse=(("external_id", "account_id", "mode", "created_at", "id"),),
    ),
    Table(
        Withdrawal,
        "withdrawals",
        indexes=(("account_id", "mode", "created_at", "id"), ("status", "created_at", "id"), ("tx_hash",)),
    ),
    # A client's status in lists comes from `kyc` and `blocked`. Few clients are blocked, so lists filter those rows.
    Table(
        Client,
        "clients",
        uniques=(Unique("clients_phone", ("phone_digest",)),),
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "kyc", "created_at", "id"),
            ("kyc", "created_at", "id"),
            ("blocked", "created_at", "id"),
        ),
    ),
    Table(
        Exchange,
        "exchanges",
        # A null makes no clash, so the rule does not apply to final exchanges.
        uniques=(Unique(ACTIVE_RULE, ("active_slot",)),),
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            ("status", "created_at", "id"),
            ("direction", "created_at", "id"),
        ),
        sparse=(("external_id", "account_id", "mode", "created_at", "id"), ("tx_hash", "id")),
    ),
    # The transfers of an exchange are found by ranges of ids in the primary key. The index finds transfers in suspense.
    Table(
        ExchangeTransfer,
        "exchange_transfers",
        indexes=(("resolved_at", "reason", "received_at", "id"),),
        sparse=(("came_by", "id"), ("went_by", "id")),
        narrow=True,
    ),
    Table(DirectionSwitch, "direction_switches", narrow=True),
    Table(Upload, "uploads", indexes=(("holder", "id"),), narrow=True),
    Table(IdempotencyKey, "idempotency_keys", narrow=True),
    Table(
        Event,
        "events",
        indexes=(("account_id", "mode", "created_at", "id"), ("object_id",)),
        # Nearly all events report the move of a payment.
        rare=Rare(
            "type",
            (EventType.PAYMENT_STATUS_CHANGED,),
            indexes=(("account_id", "mode", "type", "created_at", "id"),),
        ),
    ),
    # One index only, because every attempt changes it. Deliveries due at once come in the order of ids, which is that
    # of time.
    Table(Delivery, "deliveries", fillfactor=80, indexes=(("account_id", "mode", "status", "due", "id"),), narrow=True),
    # Deliveries to further endpoints. The second index lists everything ever sent to an endpoint, and never changes.
    Table(
        EndpointDelivery,
        "endpoint_deliveries",
        indexes=(("endpoint_id", "status", "due", "id"), ("endpoint_id", "id")),
        fixed=("account_id", "mode", "type", "created_at", "endpoint_id"),
        narrow=True,
    ),
    # A few per account.
    Table(WebhookEndpoint, "webhook_endpoints", indexes=(("account_id", "mode", "created_at", "id"),), narrow=True),
    # Found by ranges of ids in the primary key.
    Table(Attempt, "attempts", narrow=True),
    # Receivers that do not answer, for operators.
    Table(Breaker, "breakers", indexes=(("next_probe_at",), ("last_failure_at",)), narrow=True),
    # The index finds entries with a position, in order, and entries without one.
    Table(FeedEntry, "feed_entries", indexes=(("account_id", "position", "id"),), narrow=True),
    Table(Feed, "feeds", narrow=True),
    # Found by ranges of ids in the primary key.
    Table(ListCount, "list_counts", narrow=True),
    Table(Gateway, "gateways", narrow=True),
    Table(GatewayCount, "gateway_counts", narrow=True),
    # One for each adapter that receives provider notifications.
    Table(NotificationAddress, "notification_addresses", narrow=True),
    Table(KnownRate, "known_rates", narrow=True),
    # Found by ranges of ids in the primary key.
    Table(LimitHits, "limit_hits", sums=("count",), narrow=True),
    # Found by ranges of ids in the primary key.
    Table(WrittenBytes, "written_bytes", sums=("bytes",), narrow=True),
    Table(
        AuditEntry,
        "audit",
        indexes=(
            ("object_id", "id"),
            ("operator", "id"),
            ("action", "id"),
            ("at", "id"),
            ("number", "id"),
            ("account_id", "id"),
        ),
        append_only=True,
        set_later=("number", "seal"),
    ),
    # Some per account.
    Table(User, "users", uniques=(Unique("users_email", ("email_digest",)),), fixed=("created_at",), narrow=True),
    Table(Membership, "memberships", indexes=(("account_id", "id"), ("user_id", "id")), narrow=True),
    Table(
        Invitation,
        "invitations",
        uniques=(Unique("invitations_token", ("token_digest",)),),
        indexes=(("account_id", "created_at", "id"),),
        narrow=True,
    ),
    Table(Session, "sessions", indexes=(("user_id", "created_at", "id"), ("seen_at", "id")), narrow=True),
    Table(ResetToken, "reset_tokens", indexes=(("user_id", "id"),), narrow=True),
    Table(Passkey, "passkeys", indexes=(("user_id", "id"),), narrow=True),
    Table(UsedChallenge, "used_challenges", indexes=(("expires_at", "id"),), narrow=True),
    # Some per account. A null makes no clash: the rule applies only to running ones.
    Table(
        ResendRun,
        "resend_runs",
        uniques=(Unique("resend_runs_slot", ("slot",)),),
        indexes=(("account_id", "mode", "created_at", "id"),),
        narrow=True,
    ),
    Table(GuessCount, "guess_counts", narrow=True),
    Table(Letter, "letters", narrow=True),
    # One for each person in an account, of some kilobytes at most.
    Table(SavedViews, "saved_views"),
    # Found by the id of the payment. Pages of text, so the table is not narrow.
    Table(PaymentNotes, "payment_notes"),
    # A person has a few. A null makes no clash: the rule applies only to open exports.
    Table(
        Export,
        "exports",
        uniques=(Unique("exports_slot", ("slot",)),),
        indexes=(("owner_id", "account_id", "mode", "created_at", "id"), ("expires_at", "id")),
    ),
    # Found by their ids, and by ranges of ids in the primary key.
    Table(ExportChunk, "export_chunks"),
    # Some hundred for each year of an account and mode.
    Table(
        Report,
        "reports",
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "kind", "first_day", "id"),
            ("kind", "first_day", "id"),
        ),
        sparse=(("expires_at", "id"),),
    ),
    Table(DayHead, "day_heads", append_only=True),
    Table(NotificationPreferences, "notification_preferences", narrow=True),
    Table(Notification, "notifications", indexes=(("recipient", "at", "id"),), narrow=True),
    Table(NotificationQueue, "notification_queues", narrow=True),
    Table(TelegramChat, "telegram_chats", indexes=(("code_digest", "id"),), narrow=True),
    # Few actions wait for a second operator or person. The audit log also records the outcome of the others.
    Table(
        PendingAction,
        "pending_actions",
        # A null makes no clash: the rule applies only to waiting actions.
        uniques=(Unique("pending_actions_slot", ("slot",)),),
        indexes=(("status", "expires_at", "id"), ("status", "created_at", "id"), ("account_id", "status", "id")),
    ),
    # Few: one for each person who operates the installation.
    Table(
        Operator,
        "operators",
        uniques=(Unique("operators_name", ("name",)),),
        indexes=(("ended_at", "id"),),
        narrow=True,
    ),
    Table(
        Job,
        "jobs",
        fillfactor=80,
        indexes=(("due", "id"),),
        sparse=(("world", "moment", "id"),),
        sums=("asked",),
        narrow=True,
    ),
    Table(ProviderNote, "provider_notes"),
    Table(Installation, "installations", narrow=True),
    # A channel has one, and for some time so does a merchant whose receiver is dead. They hold pages of JSON, so the
    # table is not narrow.
    Table(AlarmRecipient, "alarm_recipients"),
    # A row for each bank, day and owner of credentials, found by ranges of ids in the primary key.
    Table(
        Reconciliation, "reconciliations", indexes=(("status", "finished_at", "id"), ("started_at", "id")), narrow=True
    ),
    Table(
        Discrepancy,
        "discrepancies",
        indexes=(
            ("closed_at", "found_at", "id"),
            ("closed_at", "bank", "difference"),
            ("day", "bank", "owner", "closed_at", "id"),
        ),
    ),
    # Few accounts move. The storage's fence reads the leaving ones (adapters/storage/fence.py).
    Table(AccountMove, "account_moves", indexes=(("stage", "id"),), narrow=True),
    Table(Departure, "departures", indexes=(("account_id", "id"),), narrow=True),
    # The storage itself writes these rows when it meets them (asides.py).
    Table(UnreadableRow, "unreadable_rows", indexes=(("found_at", "id"),), narrow=True),
)
