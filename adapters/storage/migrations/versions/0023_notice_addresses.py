"""The addresses that providers post their notices to."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "notice_addresses",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("former", sa.LargeBinary(), nullable=True),
        sa.Column("former_until", sa.BigInteger(), nullable=True),
        sa.Column("heard_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="notice_addresses_id"),
        sqlite_with_rowid=False,
    )
