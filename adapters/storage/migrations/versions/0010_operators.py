"""Attempts to send suspense back, refunds that were sent after they had failed, and the audit log by act and moment."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns, and the ways to what operators ask for."""
    # SQLite alone cannot say where a column goes, so its tables are written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("suspense", recreate=how) as suspense:
        suspense.add_column(
            sa.Column("attempt", sa.BigInteger(), nullable=False, server_default="1"),
            insert_after="resolved_at" if anew else None,
        )
    with op.batch_alter_table("suspense", recreate=how) as suspense:
        suspense.alter_column("attempt", server_default=None)
    with op.batch_alter_table("refunds", recreate=how) as refunds:
        refunds.add_column(
            sa.Column("contradicted_at", sa.BigInteger(), nullable=True),
            insert_after="taken_usdt" if anew else None,
        )
        refunds.add_column(
            sa.Column("contradiction_seen", sa.Boolean(), nullable=False, server_default=sa.false()),
            insert_after="contradicted_at" if anew else None,
        )
    with op.batch_alter_table("refunds", recreate=how) as refunds:
        refunds.alter_column("contradiction_seen", server_default=None)
    some = sa.text("contradicted_at IS NOT NULL")
    op.create_index(
        "refunds_contradicted_at_id_ix", "refunds", ["contradicted_at", "id"], postgresql_where=some, sqlite_where=some
    )
    op.create_index("audit_act_id_ix", "audit", ["act", "id"])
    op.create_index("audit_at_id_ix", "audit", ["at", "id"])
