"""The audit log is a hash chain, as the journal is, and the heads of both bear the vault's tag. None is written here:
an operator takes over what was sealed before (`cambist ledger adopt`), for a program cannot tell it from a forgery."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the columns, and the way along the audit log's chain."""
    # SQLite alone cannot say where a column goes, so its tables are written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("audit", recreate=how) as audit:
        audit.add_column(sa.Column("number", sa.BigInteger(), nullable=True), insert_after="after" if anew else None)
        audit.add_column(sa.Column("seal", sa.LargeBinary(), nullable=True), insert_after="number" if anew else None)
    with op.batch_alter_table("ledger_heads", recreate=how, table_kwargs={"sqlite_with_rowid": False}) as heads:
        heads.add_column(sa.Column("tag", sa.LargeBinary(), nullable=True), insert_after="seal" if anew else None)
        heads.add_column(sa.Column("sealed_at", sa.BigInteger(), nullable=True), insert_after="tag" if anew else None)
    op.create_index("audit_number_id_ix", "audit", ["number", "id"])
