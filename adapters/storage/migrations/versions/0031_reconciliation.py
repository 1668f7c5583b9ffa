"""Reconciliation: comparisons of a day with banks' own lists, and the differences that they found."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0031"
down_revision = "0030"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "reconciliations",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("bank", TEXT, nullable=False),
        sa.Column("day", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("judged_until", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("failure", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="reconciliations_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("reconciliations_status_finished_at_id_ix", "reconciliations", ["status", "finished_at", "id"])
    op.create_index("reconciliations_started_at_id_ix", "reconciliations", ["started_at", "id"])
    op.create_table(
        "discrepancies",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("bank", TEXT, nullable=False),
        sa.Column("day", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("difference", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("moment", sa.BigInteger(), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.Column("operation", TEXT, nullable=True),
        sa.Column("entry", TEXT, nullable=True),
        sa.Column("of", TEXT, nullable=True),
        sa.Column("object_id", TEXT, nullable=True),
        sa.Column("account_id", TEXT, nullable=True),
        sa.Column("our_kopecks", sa.BigInteger(), nullable=True),
        sa.Column("their_kopecks", sa.BigInteger(), nullable=True),
        sa.Column("our_fee", sa.BigInteger(), nullable=True),
        sa.Column("their_fee", sa.BigInteger(), nullable=True),
        sa.Column("our_standing", TEXT, nullable=True),
        sa.Column("their_standing", TEXT, nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="discrepancies_id"),
    )
    op.create_index("discrepancies_closed_at_found_at_id_ix", "discrepancies", ["closed_at", "found_at", "id"])
    op.create_index("discrepancies_closed_at_bank_difference_ix", "discrepancies", ["closed_at", "bank", "difference"])
    op.create_index(
        "discrepancies_day_bank_owner_closed_at_id_ix", "discrepancies", ["day", "bank", "owner", "closed_at", "id"]
    )
