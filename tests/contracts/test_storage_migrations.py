"""Migrations create exactly the tables of the catalogue, on both databases, also when several processes run them at
once."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage import migrate as migrations
from cambist.adapters.storage.migrate import current, migrate
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.sql import revisions
from cambist.adapters.storage.sql.revisions import BESIDE, SchemaMismatch, head
from cambist.adapters.storage.sql.schema import metadata
from cambist.adapters.storage.sql.tables import Tables
from cambist.adapters.storage.sqlite import migrate as sqlite_migrate
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.codec import Codec
from cambist.adapters.storage.table.criteria import query
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode
from cambist.core.domain.accounts.limit_hits import LimitHits
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.accounts.terminals import Terminal
from cambist.core.domain.exchanges.exchanges import Direction, Exchange, ExchangeStatus
from cambist.core.domain.exchanges.funds import SUSPENDED_FOR, ExchangeTransfer
from cambist.core.domain.exports.exports import Export, ExportChunk
from cambist.core.domain.gateways.gateways import Gateway
from cambist.core.domain.kyc.clients import IN_PROGRESS, Client, KycStatus
from cambist.core.domain.kyc.kyc import Upload
from cambist.core.domain.ledger import BalanceType, JournalEntry, LedgerAccount
from cambist.core.domain.list_counts import ListCount
from cambist.core.domain.money import Rub
from cambist.core.domain.movements import Movement
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.operators.pending_actions import ActionStatus, PendingAction
from cambist.core.domain.payments.outcomes import Operation, UnknownOutcome
from cambist.core.domain.payments.payment_links import PaymentLink
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.proofs import DeliveryProof, ProofStatus
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.payments.tallies import EVER, Tally, Turnover
from cambist.core.domain.payments.unsettled import Unsettled, unsettled_ids
from cambist.core.domain.people.notifications import Notification, TelegramChat
from cambist.core.domain.refunds.refunds import PendingReason, Refund, RefundStatus
from cambist.core.domain.reports.reports import Report, ReportKind
from cambist.core.domain.settlement.settlement import Correction, Settlement, SettlementBatch, SettlementItem
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus, EndpointDelivery, Event, EventType
from cambist.core.domain.webhooks.feed import FeedEntry
from cambist.core.domain.webhooks.resends import ResendRun
from cambist.ports.faults import NotConfigured, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import AtLeast, AtMost, Below, Between, OneOf
from tests.contracts.migration_kit import done_on, stepped
from tests.contracts.storage_kit import START
from tests.patience import HANGS
from tests.servers import database


def history() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent / "migrations"))
    return ScriptDirectory.from_config(config)


def differences(connection: sa.Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    with warnings.catch_warnings():
        # Postgres writes the expressions of computed columns in its own way; POSTGRES_SCHEMA compares them.
        warnings.filterwarnings("ignore", "Computed default on .* cannot be modified")
        return list(compare_metadata(context, metadata()))


def described(rows: Sequence[Sequence[Any]]) -> list[tuple[str, ...]]:
    """Definitions, without the difference of white space, and of the quotes that a table written anew gets."""
    return sorted(tuple(" ".join(str(value).replace('"', "").split()) for value in row) for row in rows)


AT_ONCE = 3
"""Number of migrating processes: one migrates, one waits, and one waits for the second."""
HOW = (
    "the migration steps and the catalogue differ: write a migration (adapters/storage/migrations/versions) that adds "
    "the columns in the order of the record's fields"
)

SQLITE_SCHEMA = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
POSTGRES_SCHEMA = """
    SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT table_name || '.' || column_name,
        concat_ws(
            ' ', data_type, character_maximum_length, collation_name, is_nullable, column_default, generation_expression
        )
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT c.relname, concat_ws(' ', c.relkind, c.reloptions, obj_description(c.oid))
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""
POSTGRES_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"


def test_the_history_is_one_line_and_head_is_read_off_its_file_names() -> None:
    assert history().get_heads() == [head()]
    assert history().get_bases() == ["0001"]


async def test_sqlite_migrations_make_the_schema_of_the_catalogue(tmp_path: Path) -> None:
    """Rows as well: a step may have put some into a table."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    assert await done_on(await stepped(f"sqlite:///{old}"), differences) == [], HOW
    assert await migrate(f"sqlite:///{new}") == head()
    found = []
    for path in (old, new):
        with closing(sqlite3.connect(path)) as connection:
            rows = [(line, "") for line in connection.iterdump() if line.startswith("INSERT")]
            found.append(described([*connection.execute(SQLITE_SCHEMA), *rows]))
    assert found[0] == found[1], HOW


def test_postgres_migrations_make_the_schema_of_the_catalogue(server: str, empty_postgres: str) -> None:
    assert asyncio.run(migrate(empty_postgres)) == head()
    with database(server) as old:
        assert asyncio.run(done_on(asyncio.run(stepped(old)), differences)) == [], HOW
        asyncio.run(done_on(old, say_beside))
        by_steps, at_once = [asyncio.run(done_on(url, described_schema)) for url in (old, empty_postgres)]
    assert by_steps == at_once, HOW


def say_beside(connection: sa.Connection) -> None:
    """As `migrate` does at the end, whatever it did before."""
    connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS 'beside {BESIDE}'")


def described_schema(connection: sa.Connection) -> list[tuple[str, ...]]:
    found = [tuple(row) for row in connection.exec_driver_sql(POSTGRES_SCHEMA)]
    for name in connection.exec_driver_sql(POSTGRES_TABLES).scalars().all():
        found += [
            (f"rows of {name}", row) for row in connection.exec_driver_sql(f"SELECT t::text FROM {name} t").scalars()
        ]
    return described(found)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_that_migrate_at_once_all_succeed(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """`serve`, `worker` and the command line may start together on a new database."""
    url = f"sqlite:///{tmp_path / 'a' / 'new.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("empty_postgres")
    script = "import asyncio, sys; from cambist.adapters.storage.migrate import migrate; "
    script += "print(asyncio.run(migrate(sys.argv[1])))"
    running = [
        subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(AT_ONCE)
    ]
    ends = [process.communicate(timeout=HANGS) for process in running]
    assert [(process.returncode, out.strip()) for process, (out, _) in zip(running, ends, strict=True)] == [
        (0, head())
    ] * AT_ONCE, ends
    assert asyncio.run(current(url)) == head()


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "at head"])
async def test_a_database_that_is_new_or_at_head_does_without_alembic(tmp_path: Path, is_new: bool) -> None:
    """Start-up time: half a second of imports."""
    if not is_new:
        await migrate(f"sqlite:///{tmp_path / 'a.db'}")
    script = (
        "import asyncio, sys; from cambist.adapters.storage.sqlite.sqlite import SqliteStorage; "
        "from cambist.adapters.clock import SystemClock\n"
        "async def main():\n"
        "    storage = await SqliteStorage.open(sys.argv[1], SystemClock())\n"
        "    await storage.check()\n"
        "    await storage.close()\n"
        "asyncio.run(main()); print('alembic' in sys.modules, 'asyncpg' in sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(tmp_path / "a.db")), stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.split() == [b"False", b"False"]


async def test_current_is_none_before_the_first_migration(tmp_path: Path, empty_postgres: str) -> None:
    assert await current(f"sqlite:///{tmp_path / 'none.db'}") is None
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "empty.db").touch()
    assert await current(f"sqlite:///{tmp_path / 'empty.db'}") is None
    assert await current(empty_postgres) is None


async def test_a_url_of_another_kind_is_refused() -> None:
    for url in ("mysql://localhost/x", "sqlite://", "sqlite:///", "app.db", ""):
        with pytest.raises(NotConfigured):
            await current(url)
        with pytest.raises(NotConfigured):
            await migrate(url)


async def test_a_storage_does_not_open_on_a_schema_that_does_not_fit(tmp_path: Path, empty_postgres: str) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(SchemaMismatch, match="no schema yet"):
        await SqliteStorage.open(path, VirtualClock(), migrate=False)
    with pytest.raises(SchemaMismatch, match="cambist migrate"):
        await PostgresStorage.open(empty_postgres)
    await migrate(f"sqlite:///{path}")
    await migrate(empty_postgres)
    for version, words in (("0000", "cambist migrate"), ("9999", "update the program")):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
        server = await asyncpg.connect(empty_postgres)
        await server.execute("UPDATE alembic_version SET version_num = $1", version)
        await server.execute("COMMENT ON TABLE alembic_version IS NULL")
        await server.close()
        with pytest.raises(SchemaMismatch, match=words):
            await SqliteStorage.open(path, VirtualClock(), migrate=False)
        with pytest.raises(SchemaMismatch, match=words):
            await PostgresStorage.open(empty_postgres)
    for url in (f"sqlite:///{path}", empty_postgres):
        with pytest.raises(SchemaMismatch, match="update the program"):
            await migrate(url)


@pytest.mark.parametrize(("beside", "opens"), [(head(), True), ("0001", True), ("9998", False)])
async def test_a_newer_schema_says_whether_this_program_may_work_on_it(
    empty_postgres: str, beside: str, opens: bool
) -> None:
    """In a rolling upgrade one of the older processes may have to start again (docs/versioning.md "The database")."""
    await migrate(empty_postgres)
    server = await asyncpg.connect(empty_postgres)
    assert await server.fetchval("SELECT obj_description('alembic_version'::regclass)") == f"beside {BESIDE}"
    await server.execute("UPDATE alembic_version SET version_num = '9999'")
    await server.execute(f"COMMENT ON TABLE alembic_version IS 'beside {beside}'")
    await server.close()
    if opens:
        await (await PostgresStorage.open(empty_postgres)).close()
    else:
        with pytest.raises(SchemaMismatch, match="update the program"):
            await PostgresStorage.open(empty_postgres)
    with pytest.raises(SchemaMismatch, match="update the program"):
        await migrate(empty_postgres)


def test_the_oldest_program_beside_this_one_is_one_that_there_was() -> None:
    assert BESIDE in {revision.revision for revision in history().walk_revisions()}


def test_the_catalogue_can_be_stored_and_named() -> None:
    """Names fit Postgres (63 bytes) and are used once; no field is named as an argument of a read."""
    names = [
        *(table.name for table in CATALOGUE),
        *(f"{table.name}_id" for table in CATALOGUE),
        *(str(index.name) for table in metadata().tables.values() for index in table.indexes),
    ]
    assert len(names) == len(set(names))
    assert all(len(name) <= 63 for name in names)
    for table in CATALOGUE:
        assert issubclass(table.kind, msgspec.Struct)
        assert not {"order", "limit", "offset", "by", "batch"} & set(Codec(table.kind).names)


def test_indexes_are_created_in_the_order_of_the_catalogue() -> None:
    """Otherwise Postgres names either rule of a row that breaks two."""
    for table in CATALOGUE:
        made = [str(index.name) for index in metadata().tables[table.name].indexes]
        rules = [rule.name for rule in table.uniques]
        assert made[: len(rules)] == rules
        assert len(made) == len(set(made)) >= len(rules) + len(table.indexes)


OWNER: dict[str, Any] = {"account_id": "a", "mode": Mode.TEST}
DUE = {"id": Between(*unsettled_ids("a", Mode.TEST, None, START)), "paid_at": Below(START)}
"""Criteria of a settlement."""

FINDS: tuple[tuple[type[Any], str, dict[str, Any]], ...] = (
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "created_at": AtLeast(START)}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "shop_id": "s"}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "status": PaymentStatus.PAID}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "external_id": "x"}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "subscription_id": "x"}),
    (Payment, "-created_at", {"account_id": "a", "mode": Mode.TEST, "link_id": "x"}),
    (PaymentLink, "-created_at", {"account_id": "a", "mode": Mode.TEST, "created_at": Between(START, START)}),
    (PaymentLink, "-created_at", {"account_id": "a", "mode": Mode.TEST, "external_id": "x"}),
    *(
        (Payment, order, {**OWNER, **named, **more, "created_at": Between(START, START)})
        for order in ("created_at", "-created_at")
        for named in ({"payer_contact": "***1234"}, {"payer_email_digest": b"x"}, {"status": PaymentStatus.PAID}, {})
        for more in ({}, {"shop_id": "s", "payment_method": "sbp", "amount": Rub(1)})
    ),
    *(
        (kind, order, {**OWNER, **named, "created_at": START, "id": beyond})
        for kind, status in (
            (Refund, RefundStatus.PENDING),
            (Subscription, SubscriptionStatus.ACTIVE),
            (Exchange, ExchangeStatus.PARTIAL),
        )
        for order, beyond in (("-id", Below("p")), ("id", AtLeast("p")))
        for named in ({"external_id": "x"}, {"status": status}, {})
    ),
    *(
        (Payment, order, {**OWNER, **named, "created_at": START, "id": beyond})
        for order, beyond in (("-id", Below("p")), ("id", AtLeast("p")))
        for named in ({"payer_contact": "***1234"}, {"payer_email_digest": b"x"}, {})
    ),
    (Payment, "created_at", {"account_id": "a", "mode": Mode.TEST, "created_at": Between(START, START)}),
    (Payment, "-id", {**OWNER, "created_at": START, "id": Below("p")}),
    (Payment, "-id", {**OWNER, "status": PaymentStatus.PAID, "created_at": START, "id": Below("p")}),
    (Refund, "-id", {**OWNER, "created_at": START, "id": Below("r")}),
    (Tally, "id", {"id": Between("a:test:ever:", "a:test:ever;")}),
    (Turnover, "id", {"id": Between("a:test:0", "a:test:;")}),
    (ApiKey, "id", {"account_id": "a", "mode": Mode.TEST, "ends_at": None}),
    (Shop, "id", {"account_id": "a"}),
    (Terminal, "created_at", {"account_id": "a"}),
    (Terminal, "created_at", {"account_id": "a", "payment_method": "sbp", "enabled": True}),
    (Delivery, "id", {"account_id": "a", "mode": Mode.TEST, "status": DeliveryStatus.HELD, "due": None}),
    (EndpointDelivery, "id", {"endpoint_id": "e", "status": DeliveryStatus.HELD, "due": None}),
    (Delivery, "due", {"account_id": "a", "mode": Mode.TEST, "status": DeliveryStatus.PENDING, "due": AtMost(START)}),
    (Delivery, "due", {"account_id": "a", "mode": Mode.TEST, "status": DeliveryStatus.PENDING, "due": AtLeast(START)}),
    (Delivery, "-id", {"account_id": "a", "mode": Mode.TEST, "status": DeliveryStatus.FAILED, "due": None}),
    (Delivery, "id", {"id": AtLeast("evt_1!")}),
    (Attempt, "id", {"id": Between("evt_1:", "evt_1;")}),
    (Event, "id", {"object_id": "pay_1"}),
    (Event, "created_at", {"account_id": "a", "mode": Mode.TEST}),
    (Event, "-created_at", {"account_id": "a", "mode": Mode.TEST, "created_at": Between(START, START)}),
    (Event, "-created_at", {"account_id": "a", "mode": Mode.TEST, "type": EventType.PAYMENT_STATUS_CHANGED}),
    (Event, "-created_at", {**OWNER, "type": EventType.GATEWAY_STATUS_CHANGED, "object_id": "simulator-test"}),
    (Event, "created_at", {**OWNER, "type": EventType.REFUND_FAILED, "created_at": Between(START, START)}),
    (ResendRun, "-created_at", OWNER),
    (ResendRun, "id", {"slot": "a:test"}),
    (Export, "-created_at", {"owner_id": "u", **OWNER}),
    (Export, "id", {"slot": OneOf(("a:0", "a:1"))}),
    (Export, "expires_at", {"expires_at": Below(START)}),
    (ExportChunk, "id", {"id": Between("exp_1:", "exp_1;")}),
    (Report, "-created_at", OWNER),
    (Report, "-first_day", {**OWNER, "kind": ReportKind.DAY}),
    (Report, "first_day", {"kind": ReportKind.DAY}),
    (Report, "id", {"kind": ReportKind.DAY, "first_day": "2026-11-21"}),
    (Report, "expires_at", {"expires_at": Below(START)}),
    (ListCount, "id", {"id": Between("acc_1:events:2026-01-01", "acc_1:events:2026-01-30;")}),
    (DeliveryProof, "id", {"claim": "TRC20:a"}),
    (PendingAction, "id", {"slot": "approve_refund:ref_1"}),
    (PendingAction, "expires_at", {"status": ActionStatus.WAITING, "expires_at": AtLeast(START)}),
    (PendingAction, "-created_at", {"status": ActionStatus.CONFIRMED}),
    (FeedEntry, "id", {"account_id": "a", "position": None}),
    (FeedEntry, "position", {"account_id": "a", "position": Between(3, 9)}),
    (FeedEntry, "id", {"id": AtLeast("")}),
    (Gateway, "id", {"id": OneOf(("simulator-test", "a/simulator-test"))}),
    (Account, "id", {"id": AtLeast("acc_!")}),
    (Notification, "at", {"recipient": "acc_1:usr_1:email"}),
    (TelegramChat, "id", {"code_digest": "d"}),
    (TelegramChat, "code_digest", {"code_digest": AtLeast("")}),
    (Refund, "id", {"payment_id": "pay_1"}),
    (Refund, "-created_at", {"account_id": "a", "mode": Mode.TEST}),
    (Refund, "-created_at", {"account_id": "a", "mode": Mode.TEST, "payment_id": "pay_1"}),
    (Refund, "-created_at", {"account_id": "a", "mode": Mode.TEST, "shop_id": "s", "external_id": "x"}),
    *(
        (kind, "-created_at", {**found, "created_at": span})
        for kind in (Refund, Subscription, Exchange)
        for found in (OWNER, {**OWNER, "external_id": "x"})
        for span in (Between(START, START), AtLeast(START), Below(START))
    ),
    (Refund, "-created_at", {**OWNER, "status": RefundStatus.PENDING, "created_at": Between(START, START)}),
    (Subscription, "-created_at", {**OWNER, "status": SubscriptionStatus.ACTIVE, "created_at": Between(START, START)}),
    (Exchange, "-created_at", {**OWNER, "status": ExchangeStatus.PENDING, "created_at": Between(START, START)}),
    *((kind, "-created_at", {**OWNER, "created_at": Between(START, START)}) for kind in (Withdrawal, Client)),
    (Settlement, "-started_at", {**OWNER, "started_at": Between(START, START)}),
    (Refund, "-created_at", {"account_id": "a", "mode": Mode.TEST, "status": RefundStatus.PENDING}),
    (
        Refund,
        "created_at",
        {
            "account_id": "a",
            "mode": Mode.TEST,
            "status": RefundStatus.PENDING,
            "pending_reason": PendingReason.INSUFFICIENT_BALANCE,
        },
    ),
    (Suspense, "received_at", {"resolved_at": None}),
    (Suspense, "received_at", {"resolved_at": None, "account_id": "a"}),
    (Client, "id", {"phone_digest": b"x"}),
    (Client, "created_at", {"blocked": True, "kyc": KycStatus.VERIFIED, "level": 0, "updated_at": AtLeast(START)}),
    (ExchangeTransfer, "received_at", {"resolved_at": None, "reason": OneOf(SUSPENDED_FOR), **OWNER}),
    (Client, "-created_at", {"account_id": "a", "mode": Mode.TEST}),
    (Client, "-created_at", {"account_id": "a", "mode": Mode.TEST, "blocked": True}),
    (Client, "-created_at", {"account_id": "a", "mode": Mode.TEST, "blocked": False, "kyc": KycStatus.VERIFIED}),
    (Client, "-created_at", {"account_id": "a", "mode": Mode.TEST, "blocked": False, "kyc": OneOf(IN_PROGRESS)}),
    (Upload, "id", {"holder": b"x"}),
    (Job, "due", {"due": AtMost(START)}),
    (Job, "created_at", {"id": Between("receipt.sale:", "receipt.sale;"), "created_at": AtMost(START)}),
    # Operators' queries over all accounts.
    (Tally, "id", {"period": EVER, "status": PaymentStatus.AMOUNT_MISMATCH}),
    (Turnover, "id", {"day": "2026-11-21"}),
    (LimitHits, "id", {"id": AtLeast("2026-11-21")}),
    (LimitHits, "id", {"id": Below("2026-11-21T00:00")}),
    (LedgerAccount, "id", {"balance_type": BalanceType.PENDING}),
    (Payment, "-id", {"id": Below("pay_1"), "mode": Mode.TEST}),
    *(
        (kind, order, {"status": status, "created_at": Between(START, START)})
        for kind, status in ((Payment, PaymentStatus.PAID), (Refund, RefundStatus.PENDING))
        for order in ("created_at", "-created_at")
    ),
    (Payment, "-created_at", {**OWNER, "shop_id": "s", "created_at": Between(START, START)}),
    (Payment, "-id", {"account_id": "a", "mode": Mode.TEST, "created_at": START, "id": Below("pay_1")}),
    (Payment, "-created_at", {**OWNER, "status": PaymentStatus.PAID, "created_at": Below(START)}),
    (Payment, "-created_at", {"status": PaymentStatus.PAID, "mode": Mode.TEST, "created_at": Below(START)}),
    (Payment, "-id", {"status": PaymentStatus.PAID, "created_at": START, "id": Below("pay_1")}),
    (Payment, "-created_at", {"status": PaymentStatus.PAID, "created_at": Between(START, START), "amount": Rub(1)}),
    (Payment, "-id", {"id": Between("pay_1"), "payer_contact": "***1234"}),
    (Subscription, "-created_at", {"status": SubscriptionStatus.ACTIVE, "created_at": Below(START)}),
    (Subscription, "id", {"external_id": "x"}),
    (Exchange, "-created_at", {"status": ExchangeStatus.PARTIAL, "created_at": Below(START)}),
    (Exchange, "created_at", {"direction": Direction.RUB_TO_USDT, "created_at": AtLeast(START)}),
    (Exchange, "id", {"external_id": "x"}),
    *((kind, "-created_at", {"external_id": "x"}) for kind in (Payment, Refund, Subscription, Exchange)),
    *((kind, "external_id", {"external_id": Between("x", "y")}) for kind in (Payment, Refund, Subscription, Exchange)),
    (Exchange, "id", {"tx_hash": "x"}),
    (ExchangeTransfer, "id", {"came_by": "x"}),
    (ExchangeTransfer, "id", {"went_by": "x"}),
    (SettlementBatch, "-started_at", {"started_at": Below(START), "mode": Mode.TEST}),
    (SettlementBatch, "-id", {"started_at": START, "id": Below("b")}),
    (Client, "-created_at", {"blocked": False, "kyc": KycStatus.FAILED, "created_at": Below(START)}),
    (Client, "-created_at", {"blocked": True, "created_at": Below(START)}),
    (Payment, "created_at", {"status": PaymentStatus.AMOUNT_MISMATCH}),
    (UnknownOutcome, "created_at", {"operation": Operation.CHARGE, "created_at": Between(START, START)}),
    (UnknownOutcome, "id", {"operation": Operation.BIND, "mode": Mode.LIVE, "created_at": AtLeast(START)}),
    (UnknownOutcome, "id", {"id": AtLeast("pay_1!")}),
    (Suspense, "-resolved_at", {"resolved_at": AtLeast(START)}),
    (ExchangeTransfer, "-resolved_at", {"resolved_at": AtLeast(START)}),
    (ExchangeTransfer, "received_at", {"resolved_at": None, "reason": OneOf(SUSPENDED_FOR)}),
    (Event, "-created_at", {**OWNER, "type": EventType.REFUND_FAILED, "created_at": Below(START)}),
    (Delivery, "due", {**OWNER, "status": DeliveryStatus.PENDING, "due": START, "id": AtLeast("evt_1!")}),
    (Refund, "created_at", {"status": RefundStatus.PENDING, "pending_reason": PendingReason.AWAITING_APPROVAL}),
    (Refund, "created_at", {"status": RefundStatus.PROCESSING, "created_at": AtMost(START)}),
    (Withdrawal, "created_at", {"status": WithdrawalStatus.FAILED, "created_at": AtLeast(START)}),
    (Withdrawal, "id", {"tx_hash": "x"}),
    (DeliveryProof, "status_at", {"status": ProofStatus.IN_REVIEW, "status_at": AtMost(START)}),
    (DeliveryProof, "id", {"tx_hash": "x"}),
    (Breaker, "next_probe_at", {"next_probe_at": AtLeast(START)}),
    (Breaker, "-last_failure_at", {"last_failure_at": AtLeast(START)}),
    (AuditEntry, "id", {"object_id": "pay_1"}),
    (AuditEntry, "-id", {"operator": "olga"}),
    (AuditEntry, "-id", {"action": "refund.approve", "id": Between("aud_1", "aud_2")}),
    (Refund, "contradicted_at", {"contradicted_at": AtLeast(START), "contradiction_seen": False}),
    *((JournalEntry, order, {"number": None, "account_id": AtLeast("")}) for order in ("account_id", "-at")),
    (JournalEntry, "-at", {"number": None, "account_id": AtLeast(""), "at": START, "id": Below("receipt:")}),
    (JournalEntry, "at", {"number": None, **OWNER, "at": AtLeast(START)}),
    (JournalEntry, "number", {"number": AtLeast(-(2**63))}),
    (JournalEntry, "at", {"number": None, "place": None, **OWNER, "at": AtLeast(START)}),
    (AuditEntry, "id", {"number": None, "id": AtLeast("aud_")}),
    (Movement, "id", {"id": Between("a:test:000000000001", "a:test;")}),
    (Movement, "-id", {"id": Between("a:test:000000000001", "a:test;")}),
    (Movement, "id", {"id": OneOf(("a:test:000000000001", "a:test:000000000002"))}),
    (LedgerAccount, "id", {"id": Between("a:test:", "a:test;")}),
    (LedgerAccount, "id", {"id": AtLeast("")}),
    (Unsettled, "id", DUE),
    (Unsettled, "created_at", {"created_at": Below(START), "paid_at": Below(START)}),
    (Correction, "id", {**OWNER, "settlement_id": None, "since": Below(START), "shop_id": OneOf(("s", "t"))}),
    (Settlement, "id", {"batch_id": "b", "account_id": "a"}),
    (Settlement, "-started_at", OWNER),
    (SettlementItem, "id", {"id": Between("stl_1:", "stl_1;")}),
)


CONTACT = {"id", "payer_contact"}
"""Fields of the operators' search for last digits of a phone, over all accounts."""


def plan_of(connection: sa.Connection, kind: type[Any], order: str, criteria: dict[str, Any], offset: int) -> list[str]:
    """The steps in which SQLite does a find."""
    kept = keep(CATALOGUE)[kind]
    asked = query(kept.codec, criteria, order, 20, offset)
    text, values = Tables.shared(CATALOGUE, connection.dialect).found(kept, asked)
    return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", tuple(values))]


def test_a_settlement_walks_what_is_paid_and_not_all_that_ever_was(tmp_path: Path) -> None:
    """Every payment `paid` before the cutoff, however many were settled on the days before
    (docs/settlement.md "When")."""
    path = tmp_path / "a.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        [step] = plan_of(connection, Unsettled, "id", DUE, 0)
    engine.dispose()
    assert "PRIMARY KEY (id>? AND id<?)" in step


@pytest.mark.parametrize("offset", [0, 40])
def test_every_find_of_a_use_case_has_its_index(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "a.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        for kind, order, criteria in FINDS:
            plan = plan_of(connection, kind, order, criteria, offset)
            assert not [step for step in plan if step.startswith("SCAN")], (kind, criteria, plan)
            # An object has few events, a payment has few refunds, an external id has few objects, and one payment in
            # ten thousand has the same last digits.
            few = {"object_id", "payment_id"} & set(criteria) or set(criteria) in ({"external_id"}, CONTACT)
            listed = kind in (Subscription, Exchange, Withdrawal, Settlement) and order.startswith("-")
            if (listed or kind in (Payment, Event, Delivery, Refund)) and not few and not offset:
                assert len(plan) == 1, f"a page is sorted anew: {plan}"
    engine.dispose()


@pytest.fixture
def behind(tmp_path: Path, migrated_file: Path) -> Path:
    """A SQLite file whose schema says that it is older."""
    path = tmp_path / "behind.db"
    shutil.copy(migrated_file, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    return path


def _breaks_off(connection: sa.Connection) -> None:
    """Fill the file, then clean up as Alembic does, which fails as well."""
    try:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
        connection.exec_driver_sql("CREATE TABLE copies AS SELECT randomblob(100000) AS content")
    finally:
        connection.exec_driver_sql("DROP TABLE _alembic_tmp_payments")


async def test_migration_that_finds_the_disk_full_says_so(behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "upgrade", _breaks_off)
    with pytest.raises(Unavailable, match="database or disk is full") as refused:
        await migrate(f"sqlite:///{behind}")
    assert "alembic" not in str(refused.value)
    with pytest.raises(Unavailable, match="database or disk is full"):
        await SqliteStorage.open(behind, VirtualClock())
    assert await current(f"sqlite:///{behind}") == "0000"


async def test_migration_without_room_is_not_begun(behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = behind.stat().st_size
    monkeypatch.setattr(sqlite_migrate, "free_bytes", lambda _: int(size * 0.7))
    with pytest.raises(Unavailable, match=r"from 0000 to [0-9]{4} needs .* MB at .* are free: make room"):
        await migrate(f"sqlite:///{behind}")
    assert await current(f"sqlite:///{behind}") == "0000"


async def test_migration_logs_what_it_brings_up(
    behind: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(revisions, "upgrade", lambda _: None)
    with caplog.at_level("INFO", "cambist.storage"):
        await migrate(f"sqlite:///{behind}")
    assert f"bringing the schema from 0000 to {head()}" in caplog.text
