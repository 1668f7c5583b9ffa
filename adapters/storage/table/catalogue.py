"""The one place that declares every record: its table, its unique rules, and an index for every find.

Schema, statements, the memory storage and the names in Conflict all come from here. A new record is one entry here
and one migration; a test holds the two against each other.
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
from ....core.domain.chains import ChainHead
from ....core.domain.exchanges.exchanges import ACTIVE_RULE, DirectionSwitch, Exchange
from ....core.domain.exchanges.funds import ExchangeTransfer
from ....core.domain.gateways.gateways import Gateway, GatewayCount
from ....core.domain.installation import Installation
from ....core.domain.kyc.clients import Client
from ....core.domain.kyc.kyc import Upload
from ....core.domain.ledger import JournalEntry, LedgerAccount
from ....core.domain.list_counts import ListCount
from ....core.domain.movements import Movement
from ....core.domain.notices import NoticeAddress
from ....core.domain.operators.audit import AuditEntry
from ....core.domain.operators.operators import Operator
from ....core.domain.operators.pending_acts import PendingAct
from ....core.domain.payments.outcomes import UnknownOutcome
from ....core.domain.payments.payments import Payment
from ....core.domain.payments.proofs import DeliveryProof
from ....core.domain.payments.suspense import Suspense
from ....core.domain.payments.tallies import Tally, Turnover
from ....core.domain.reconciliation.reconciliation import Discrepancy, Reconciliation
from ....core.domain.refunds.refunds import Refund
from ....core.domain.settlement.rates import KnownRate
from ....core.domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from ....core.domain.settlement.withdrawals import Withdrawal
from ....core.domain.subscriptions.subscriptions import Subscription
from ....core.domain.webhooks.breaker import Breaker
from ....core.domain.webhooks.endpoints import WebhookEndpoint
from ....core.domain.webhooks.events import Attempt, Delivery, EndpointDelivery, Event
from ....core.domain.webhooks.feed import Feed, FeedEntry
from ....ports.jobs import Job
from ....ports.notes import ProviderNote
from ....ports.storage import Record
from ....ports.unreadable import UnreadableRow


class Unique(msgspec.Struct, frozen=True):
    """No two records have the same values in `fields`. A null in one of them makes no clash, as in SQL."""

    name: str
    """What Conflict.rule says; it is the name of the index in the databases, too."""
    fields: tuple[str, ...]
    where: tuple[tuple[str, Any], ...] = ()
    """Only records with these values are under the rule: `(("status", Status.ACTIVE),)`."""


class Table(msgspec.Struct, frozen=True):
    """Where the records of one type are kept. The primary key is `id`, and its rule is named `<table>_id`."""

    kind: type[Record]
    name: str
    uniques: tuple[Unique, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    """Fields of an index, in order; `-field` descends."""
    sparse: tuple[tuple[str, ...], ...] = ()
    """Fields of an index that leaves out the rows whose first field is null, which cost nothing then."""
    unset: tuple[tuple[str, ...], ...] = ()
    """Fields of an index over the rows alone whose first field is null, which it does not hold itself: over what waits
    for something, and costs nothing once it has it."""
    sums: tuple[str, ...] = ()
    """Fields that only `increase` and `accrue` move. `save` leaves them as they stand: it carries what they were when
    the record was read, and would take back every increase since."""
    fixed: tuple[str, ...] = ()
    """Fields that stay as they were added: no save writes them, so that the indexes over them are left alone (SQLite
    would write each anew at every save). Which fields a use case may not change is held against it in memory."""
    narrow: bool = False
    """Rows of some hundred bytes: SQLite keeps them in the tree of the primary key itself, one tree less to write."""
    append_only: bool = False
    """Records are written once: whoever would save or remove one makes a slip."""
    set_later: tuple[str, ...] = ()
    """Of an append-only table: fields that `change` may set, and no others."""


CATALOGUE: tuple[Table, ...] = (
    Table(Account, "accounts"),
    Table(ApiKey, "api_keys", indexes=(("account_id",),), narrow=True),
    # By a key's own id; every key in use moves one a minute, and no index over them.
    Table(KeyUse, "key_uses", narrow=True),
    # All are found by ranges of ids, which the primary key follows: what every request adds pays for no other index.
    Table(RequestBatch, "request_batches"),
    Table(FirstBatch, "request_firsts", narrow=True),
    Table(RequestCount, "request_counts", sums=("count",), narrow=True),
    # Finding the shops of an account walks the rule's own index.
    Table(Shop, "shops", uniques=(Unique("shops_name", ("account_id", "name_folded")),)),
    # A few per account: the find of a method's oldest enabled one walks them all.
    Table(Terminal, "terminals", indexes=(("account_id", "created_at", "id"),), narrow=True),
    Table(
        Payment,
        "payments",
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "shop_id", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            # For operators, who ask over all accounts.
            ("status", "created_at", "id"),
        ),
        # Most payments belong to no subscription, and many merchants give no id of theirs.
        sparse=(
            ("external_id", "account_id", "mode", "created_at", "id"),
            ("subscription_id", "account_id", "mode", "created_at", "id"),
        ),
        fixed=("account_id", "mode", "shop_id", "external_id", "subscription_id", "created_at"),
    ),
    # Few, and in no unit of a payment that goes well: an index over payments would be in all of them. The mode is last
    # in the index, so that who counts by it looks at no row.
    Table(UnknownOutcome, "unknown_outcomes", indexes=(("operation", "created_at", "id", "mode"),), narrow=True),
    # Found by ranges of ids, which the primary key follows, and by operators over all accounts. What an index of
    # these holds never changes, so that moving the sums costs no more for it.
    Table(Tally, "tallies", indexes=(("period", "status", "account_id"),), sums=("count",), narrow=True),
    Table(Turnover, "turnover", indexes=(("day",),), sums=("payments", "amount"), narrow=True),
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
    # The second finds what is not listed yet of a merchant's movements.
    Table(JournalEntry, "journal", indexes=(("number", "id"),), unset=(("place", "account_id", "mode", "at", "id"),)),
    # Found by ranges of ids, which the primary key follows.
    Table(Movement, "movements", narrow=True, append_only=True),
    # Found by ranges of ids, which the primary key follows.
    Table(LedgerAccount, "ledger_accounts", indexes=(("purse",),), sums=("balance",), narrow=True),
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
    # Found by ranges of ids, which the primary key follows.
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
    # Statuses of lists are told by `kyc` and `blocked`; few are blocked, so that is looked at on the way.
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
        # A null is no clash, so exchanges that are final are under no rule.
        uniques=(Unique(ACTIVE_RULE, ("active_slot",)),),
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "status", "created_at", "id"),
            ("status", "created_at", "id"),
            ("direction", "created_at", "id"),
        ),
        sparse=(("external_id", "account_id", "mode", "created_at", "id"), ("tx_hash", "id")),
    ),
    # Of an exchange found by ranges of ids, which the primary key follows; the index finds what waits in suspense.
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
        indexes=(
            ("account_id", "mode", "created_at", "id"),
            ("account_id", "mode", "type", "created_at", "id"),
            ("object_id",),
        ),
    ),
    # One index only, since every attempt moves it. What is due at once comes in the order of ids, that of time.
    Table(Delivery, "deliveries", indexes=(("account_id", "mode", "status", "due", "id"),), narrow=True),
    # Of further endpoints. The second index lists what ever went to one, and nothing moves it.
    Table(
        EndpointDelivery,
        "endpoint_deliveries",
        indexes=(("endpoint_id", "status", "due", "id"), ("endpoint_id", "id")),
        fixed=("account_id", "mode", "type", "created_at", "endpoint_id"),
        narrow=True,
    ),
    # A few per account.
    Table(WebhookEndpoint, "webhook_endpoints", indexes=(("account_id", "mode", "created_at", "id"),), narrow=True),
    # Found by ranges of ids, which the primary key follows.
    Table(Attempt, "attempts", narrow=True),
    # Receivers that do not answer, for operators.
    Table(Breaker, "breakers", indexes=(("next_probe_at",), ("last_failure_at",)), narrow=True),
    # The index finds both what has a position, in order, and what has none yet.
    Table(FeedEntry, "feed_entries", indexes=(("account_id", "position", "id"),), narrow=True),
    Table(Feed, "feeds", narrow=True),
    # Found by ranges of ids, which the primary key follows.
    Table(ListCount, "list_counts", narrow=True),
    Table(Gateway, "gateways", narrow=True),
    Table(GatewayCount, "gateway_counts", narrow=True),
    # One for each adapter that hears its provider.
    Table(NoticeAddress, "notice_addresses", narrow=True),
    Table(KnownRate, "known_rates", narrow=True),
    # Found by ranges of ids, which the primary key follows.
    Table(LimitHits, "limit_hits", sums=("count",), narrow=True),
    # Found by ranges of ids, which the primary key follows.
    Table(WrittenBytes, "written_bytes", sums=("bytes",), narrow=True),
    Table(
        AuditEntry,
        "audit",
        indexes=(("object_id", "id"), ("operator", "id"), ("act", "id"), ("at", "id"), ("number", "id")),
        append_only=True,
        set_later=("number", "seal"),
    ),
    # Operators' acts that wait for a second one are few; what became of the others is in the audit log, too.
    Table(
        PendingAct,
        "pending_acts",
        # A null is no clash: only what waits is under the rule.
        uniques=(Unique("pending_acts_slot", ("slot",)),),
        indexes=(("status", "expires_at", "id"), ("status", "created_at", "id")),
    ),
    # Few: one for each person who operates the installation.
    Table(
        Operator,
        "operators",
        uniques=(Unique("operators_name", ("name",)),),
        indexes=(("ended_at", "id"),),
        narrow=True,
    ),
    Table(Job, "jobs", indexes=(("due", "id"),), sparse=(("world", "moment", "id"),), sums=("asked",), narrow=True),
    Table(ProviderNote, "provider_notes"),
    Table(Installation, "installations", narrow=True),
    # A channel has one, and for a while a merchant whose receiver is dead. Pages of JSON: not narrow.
    Table(AlarmRecipient, "alarm_recipients"),
    # A row for each bank, day and owner of credentials: found by ranges of ids, which the primary key follows.
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
    # Written by the storage itself, which meets them (asides.py).
    Table(UnreadableRow, "unreadable_rows", indexes=(("found_at", "id"),), narrow=True),
)
