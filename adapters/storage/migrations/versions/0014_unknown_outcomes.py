"""Operations of unknown outcome beside their payments, and a row for each that there is."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and fill it."""
    op.create_table(
        "unknown_outcomes",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="unknown_outcomes_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "unknown_outcomes_operation_created_at_id_mode_ix",
        "unknown_outcomes",
        ["operation", "created_at", "id", "mode"],
    )
    op.execute(
        "INSERT INTO unknown_outcomes (id, account_id, mode, operation, created_at, version) "
        "SELECT id, account_id, mode, CASE WHEN subscription_id IS NULL THEN 'create_invoice' "
        "WHEN binding IS NULL THEN 'charge' ELSE 'bind' END, created_at, 0 FROM payments "
        "WHERE opening = 'unknown' AND bank_reference IS NULL AND status IN ('pending', 'expired')"
    )
