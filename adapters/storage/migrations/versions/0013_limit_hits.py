"""How often each limit was hit, by minute."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "limit_hits",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("counter", TEXT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="limit_hits_id"),
        sqlite_with_rowid=False,
    )
