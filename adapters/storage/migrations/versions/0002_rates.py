"""The rate that was last believed, one row for each mode."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, empty: the first question fills it."""
    op.create_table(
        "known_rates",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("rate", TEXT, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("fetched_at", sa.BigInteger(), nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("candidate", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="known_rates_id"),
        sqlite_with_rowid=False,
    )
