"""Rows that were set aside because a program could not read them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "unreadable_rows",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("row_id", TEXT, nullable=False),
        sa.Column("why", TEXT, nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.Column("found_by", TEXT, nullable=False),
        sa.Column("held", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="unreadable_rows_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("unreadable_rows_found_at_id_ix", "unreadable_rows", ["found_at", "id"])
