"""Further webhook endpoints, their deliveries, and what accounts say of them.

Programs of before run on beside this one: they know of the first endpoint alone. What they write goes to it only, and
the jobs of further endpoints they put back for those that can do them (docs/decisions.md "Further endpoints").
"""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables, and add the column."""
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("event_types", sa.Text(), nullable=True),
        sa.Column("description", TEXT, nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("previous_secret", sa.LargeBinary(), nullable=True),
        sa.Column("previous_secret_until", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="webhook_endpoints_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "webhook_endpoints_account_id_mode_created_at_id_ix",
        "webhook_endpoints",
        ["account_id", "mode", "created_at", "id"],
    )
    op.create_table(
        "endpoint_deliveries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=True),
        sa.Column("give_up_at", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("probes", sa.BigInteger(), nullable=False),
        sa.Column("ladder_start", sa.BigInteger(), nullable=False),
        sa.Column("first_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("endpoint_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="endpoint_deliveries_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "endpoint_deliveries_endpoint_id_status_due_id_ix",
        "endpoint_deliveries",
        ["endpoint_id", "status", "due", "id"],
    )
    op.create_index("endpoint_deliveries_endpoint_id_id_ix", "endpoint_deliveries", ["endpoint_id", "id"])
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("accounts", recreate=how) as accounts:
        accounts.add_column(sa.Column("endpoints", sa.Text(), nullable=True), insert_after="clock" if anew else None)
