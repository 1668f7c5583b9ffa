"""How many events about each gateway each account was told. Accounts of before were told numbers of one sequence for
all: they go on where it stood, lest they were told the last. Those to come begin with 1.

A program of an older revision that serves beside this one tells by the sequence of before: whoever tells next here
finds that event, and goes on from it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036"
down_revision = "0035"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and fill it."""
    op.create_table(
        "gateway_counts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("told", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="gateway_counts_id"),
        sqlite_with_rowid=False,
    )
    # A number was the sum of what all were told and of what the account simulated (`<account>/<gateway>`).
    op.execute(
        "INSERT INTO gateway_counts (id, told, version) "
        "SELECT a.id || '/' || g.id, g.sequence + coalesce(own.sequence, 0), 0 "
        "FROM accounts a CROSS JOIN gateways g LEFT JOIN gateways own ON own.id = a.id || '/' || g.id "
        "WHERE g.id NOT LIKE '%/%' AND g.sequence + coalesce(own.sequence, 0) > 0"
    )
    op.execute(
        "INSERT INTO gateway_counts (id, told, version) "
        "SELECT own.id, own.sequence, 0 FROM gateways own WHERE own.id LIKE '%/%' AND own.sequence > 0 "
        "AND NOT EXISTS (SELECT 1 FROM gateway_counts c WHERE c.id = own.id)"
    )
