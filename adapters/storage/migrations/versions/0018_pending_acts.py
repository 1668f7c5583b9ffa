"""Operators' acts that wait for a second operator."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "pending_acts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("use_case", TEXT, nullable=False),
        sa.Column("act", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=True),
        sa.Column("mode", TEXT, nullable=True),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("operator", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("decided_by", TEXT, nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("slot", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pending_acts_id"),
    )
    op.create_index("pending_acts_slot", "pending_acts", ["slot"], unique=True)
    op.create_index("pending_acts_status_expires_at_id_ix", "pending_acts", ["status", "expires_at", "id"])
    op.create_index("pending_acts_status_created_at_id_ix", "pending_acts", ["status", "created_at", "id"])
