"""Subscriptions, and payments that bind a payer to one."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and let payments say that they bind a payer: none so far."""
    _subscriptions()
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("payments", recreate="always" if anew else "never") as payments:
        payments.add_column(sa.Column("binding", TEXT, nullable=True), insert_after="period_ref" if anew else None)


def _subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("scheme", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("cap_amount", sa.BigInteger(), nullable=False),
        sa.Column("interval", TEXT, nullable=False),
        sa.Column("interval_count", sa.BigInteger(), nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("binding_charge", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("cap_window", sa.BigInteger(), nullable=True),
        sa.Column("external_id", TEXT, nullable=True),
        sa.Column("client_ref", TEXT, nullable=True),
        sa.Column("phone_mask", TEXT, nullable=True),
        sa.Column("method_id", TEXT, nullable=True),
        sa.Column("success_url", TEXT, nullable=True),
        sa.Column("past_due", sa.Boolean(), nullable=False),
        sa.Column("rebind_required", sa.Boolean(), nullable=False),
        sa.Column("binding_url", TEXT, nullable=True),
        sa.Column("binding_url_pending", sa.Boolean(), nullable=False),
        sa.Column("binding", sa.Text(), nullable=True),
        sa.Column("first_payment_id", TEXT, nullable=True),
        sa.Column("mandate_bank", TEXT, nullable=True),
        sa.Column("mandate_reference", TEXT, nullable=True),
        sa.Column("mandate_token", sa.LargeBinary(), nullable=True),
        sa.Column("revoke_pending", sa.Boolean(), nullable=False),
        sa.Column("paused_at", sa.BigInteger(), nullable=True),
        sa.Column("anchor", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.Text(), nullable=True),
        sa.Column("current_period_start", sa.BigInteger(), nullable=True),
        sa.Column("current_period_end", sa.BigInteger(), nullable=True),
        sa.Column("key_id", TEXT, nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="subscriptions_id"),
    )
    op.create_index(
        "subscriptions_account_id_mode_created_at_id_ix", "subscriptions", ["account_id", "mode", "created_at", "id"]
    )
    op.create_index(
        "subscriptions_account_id_mode_status_created_at_id_ix",
        "subscriptions",
        ["account_id", "mode", "status", "created_at", "id"],
    )
