"""Exchanges: what clients exchange, what they sent for it, and which direction is on."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    _exchanges()
    _transfers()


def _exchanges() -> None:
    op.create_table(
        "exchanges",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("direction", TEXT, nullable=False),
        sa.Column("amount_usdt", sa.BigInteger(), nullable=False),
        sa.Column("amount_rub", sa.BigInteger(), nullable=False),
        sa.Column("rate", TEXT, nullable=False),
        sa.Column("base_rate", TEXT, nullable=False),
        sa.Column("markup_percent", TEXT, nullable=False),
        sa.Column("client_phone", sa.LargeBinary(), nullable=False),
        sa.Column("phone_digest", sa.LargeBinary(), nullable=False),
        sa.Column("active_slot", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("client_id", TEXT, nullable=True),
        sa.Column("client_bank_id", TEXT, nullable=True),
        sa.Column("client_wallet", TEXT, nullable=True),
        sa.Column("external_id", TEXT, nullable=True),
        sa.Column("key_id", TEXT, nullable=True),
        sa.Column("watcher", TEXT, nullable=True),
        sa.Column("crypto_deposit_address", TEXT, nullable=True),
        sa.Column("bank", TEXT, nullable=True),
        sa.Column("invoice_reference", TEXT, nullable=True),
        sa.Column("invoice_payload", TEXT, nullable=True),
        sa.Column("amount_usdt_received", sa.BigInteger(), nullable=False),
        sa.Column("amount_rub_received", sa.BigInteger(), nullable=False),
        sa.Column("hold_until", sa.BigInteger(), nullable=True),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("sender", TEXT, nullable=True),
        sa.Column("tx_hash", TEXT, nullable=True),
        sa.Column("blob", sa.LargeBinary(), nullable=True),
        sa.Column("signed_until", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="exchanges_id"),
    )
    op.create_index("exchanges_active", "exchanges", ["active_slot"], unique=True)
    op.create_index(
        "exchanges_account_id_mode_status_created_at_id_ix",
        "exchanges",
        ["account_id", "mode", "status", "created_at", "id"],
    )
    op.create_index(
        "exchanges_account_id_mode_created_at_id_ix", "exchanges", ["account_id", "mode", "created_at", "id"]
    )


def _transfers() -> None:
    op.create_table(
        "exchange_transfers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("exchange_id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("currency", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("suspended", sa.BigInteger(), nullable=False),
        sa.Column("rounded", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("resolved_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="exchange_transfers_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "direction_switches",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="direction_switches_id"),
        sqlite_with_rowid=False,
    )
