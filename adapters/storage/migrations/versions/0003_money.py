"""Money: the ledger, settlements, refunds and payouts."""

import json
from collections import Counter
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

BATCH = 1000
STRIPES = {"pending": 4, "bank": 16}
"""Over how many rows the running balance of a purse is spread; all others have one."""

PAYMENTS = sa.text("""
    SELECT id, account_id, mode, status AS why, actual_amount AS amount,
        COALESCE(paid_at, created_at) AS at
    FROM payments
    WHERE id > :after AND actual_amount > 0
        AND (status = 'paid' OR (status = 'amount_mismatch' AND transfer_id IS NOT NULL))
    ORDER BY id LIMIT :batch
""")
SUSPENSE = sa.text("""
    SELECT id, account_id, mode, 'suspense' AS why, amount, received_at AS at
    FROM suspense WHERE id > :after AND amount > 0 AND resolved_at IS NULL
    ORDER BY id LIMIT :batch
""")
BOOKED = {"paid": ("receipt", "pending"), "amount_mismatch": ("review", "review"), "suspense": ("suspense", "suspense")}
"""By what is there: the kind of its entry, and the purse that has the money."""


def upgrade() -> None:
    """Make the tables, give payments what refunds took out of them (nothing so far), and book the money that came
    before there were books."""
    _ledger()
    _settlement()
    _refunds()
    _payouts()
    _payments()
    _book_what_came()


def _book_what_came() -> None:
    """Without its receipt, a payment that is settled or refunded later would leave `pending` below zero for ever."""
    bind = op.get_bind()
    known = sa.MetaData()
    journal, accounts = (sa.Table(name, known, autoload_with=bind) for name in ("journal", "ledger_accounts"))
    balances: Counter[tuple[str, str, str, int]] = Counter()
    for found in (PAYMENTS, SUSPENSE):
        after = ""
        while rows := bind.execute(found, {"after": after, "batch": BATCH}).all():
            bind.execute(journal.insert(), [_entry(row, balances) for row in rows])
            after = rows[-1].id
    if balances:
        bind.execute(
            accounts.insert(),
            [
                {
                    "id": f"{owner}:{mode}:{purse}:{stripe}",
                    "owner": owner,
                    "mode": mode,
                    "purse": purse,
                    "balance": balance,
                    "version": 0,
                }
                for (owner, mode, purse, stripe), balance in balances.items()
            ],
        )


def _entry(row: sa.Row[Any], balances: Counter[tuple[str, str, str, int]]) -> dict[str, object]:
    kind, purse = BOOKED[row.why]
    for owner, moved, amount in (("service", "bank", -row.amount), (row.account_id, purse, row.amount)):
        stripe = crc32(row.id.encode()) % STRIPES.get(moved, 1)
        balances[owner, row.mode, moved, stripe] += amount
    return {
        "id": f"{kind}:{row.id}:1",
        "kind": kind,
        "object_id": row.id,
        "revision": 1,
        "account_id": row.account_id,
        "mode": row.mode,
        "at": row.at,
        "postings": json.dumps([["bank", -row.amount], [purse, row.amount]], separators=(",", ":")),
        "version": 0,
    }


def _payments() -> None:
    # SQLite alone cannot say where a column goes or drop a default, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    taken = sa.Column("refund_taken", sa.BigInteger(), nullable=False, server_default="0")
    statement = sa.Column("settlement_id", TEXT, nullable=True)
    with op.batch_alter_table("payments", recreate="always" if anew else "never") as payments:
        payments.add_column(taken, insert_after="refund_pending" if anew else None)
        payments.add_column(statement, insert_after="settled_at" if anew else None)
    # Only rows that are there already need the default.
    with op.batch_alter_table("payments", recreate="always" if anew else "never") as payments:
        payments.alter_column("refund_taken", server_default=None)


def _ledger() -> None:
    op.create_table(
        "journal",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("postings", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=True),
        sa.Column("seal", sa.LargeBinary(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="journal_id"),
    )
    op.create_index("journal_number_id_ix", "journal", ["number", "id"])
    op.create_table(
        "ledger_accounts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("purse", TEXT, nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="ledger_accounts_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ledger_heads",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seal", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="ledger_heads_id"),
        sqlite_with_rowid=False,
    )


def _settlement() -> None:
    op.create_table(
        "settlement_batches",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=True),
        sa.Column("cutoff", sa.BigInteger(), nullable=False),
        sa.Column("rate_market", TEXT, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("payments", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("credit", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="settlement_batches_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "settlements",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("batch_id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("cutoff", sa.BigInteger(), nullable=False),
        sa.Column("rate_market", TEXT, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("withdrawal_id", TEXT, nullable=True),
        sa.Column("payments", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("credit", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="settlements_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "settlements_account_id_mode_started_at_id_ix", "settlements", ["account_id", "mode", "started_at", "id"]
    )
    op.create_index("settlements_batch", "settlements", ["batch_id", "account_id"], unique=True)
    op.create_table(
        "settlement_items",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("settlement_id", TEXT, nullable=False),
        sa.Column("payment_id", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("markup", TEXT, nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("credit", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="settlement_items_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "corrections",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("payment_id", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("settlement_id", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="corrections_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "corrections_account_id_mode_settlement_id_id_ix", "corrections", ["account_id", "mode", "settlement_id", "id"]
    )


def _refunds() -> None:
    op.create_table(
        "refunds",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("payment_id", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("pending_reason", TEXT, nullable=True),
        sa.Column("external_id", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("failure_reason", TEXT, nullable=True),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("key_id", TEXT, nullable=True),
        sa.Column("approved_at", sa.BigInteger(), nullable=True),
        sa.Column("executing_since", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("taken_rub", sa.BigInteger(), nullable=True),
        sa.Column("taken_usdt", sa.BigInteger(), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="refunds_id"),
    )
    op.create_index("refunds_account_id_mode_created_at_id_ix", "refunds", ["account_id", "mode", "created_at", "id"])
    op.create_index(
        "refunds_account_id_mode_status_created_at_id_ix",
        "refunds",
        ["account_id", "mode", "status", "created_at", "id"],
    )
    op.create_index("refunds_payment_id_id_ix", "refunds", ["payment_id", "id"])


def _payouts() -> None:
    op.create_table(
        "withdrawals",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("wallet", TEXT, nullable=False),
        sa.Column("sender", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settlement_id", TEXT, nullable=True),
        sa.Column("tx_hash", TEXT, nullable=True),
        sa.Column("blob", sa.LargeBinary(), nullable=True),
        sa.Column("signed_until", sa.BigInteger(), nullable=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="withdrawals_id"),
    )
    op.create_index(
        "withdrawals_account_id_mode_created_at_id_ix", "withdrawals", ["account_id", "mode", "created_at", "id"]
    )
