"""The audit log, and the ways to what waits for operators."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

INDEXES = {
    "tallies": (("period", "status", "account_id"),),
    "turnover": (("day",),),
    "delivery_proofs": (("status", "status_at", "id"), ("tx_hash",)),
    "ledger_accounts": (("purse",),),
    "refunds": (("status", "created_at", "id"),),
    "withdrawals": (("status", "created_at", "id"), ("tx_hash",)),
    "breakers": (("next_probe_at",), ("last_failure_at",)),
    "audit": (("object_id", "id"), ("operator", "id")),
}


def upgrade() -> None:
    """Make the table and the indexes."""
    op.create_table(
        "audit",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("operator", TEXT, nullable=False),
        sa.Column("act", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=True),
        sa.Column("account_id", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("before", TEXT, nullable=False),
        sa.Column("after", TEXT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="audit_id"),
    )
    for table, indexes in INDEXES.items():
        for fields in indexes:
            op.create_index("_".join((table, *fields, "ix")), table, list(fields))
