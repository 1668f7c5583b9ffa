"""What came for exchanges and went away again: sent back by operators, or taken back by the payer's bank."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Give transfers their ways back, and operators a list of what waits."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table(
        "exchange_transfers", recreate="always" if anew else "never", table_kwargs={"sqlite_with_rowid": False}
    ) as transfers:
        transfers.add_column(
            sa.Column("taken_back", sa.BigInteger(), nullable=False, server_default="0"),
            insert_after="rounded" if anew else None,
        )
        transfers.add_column(
            sa.Column("sent_back", sa.Text(), nullable=True), insert_after="resolved_at" if anew else None
        )
    with op.batch_alter_table(
        "exchange_transfers", recreate="always" if anew else "never", table_kwargs={"sqlite_with_rowid": False}
    ) as transfers:
        transfers.alter_column("taken_back", server_default=None)
    op.create_index(
        "exchange_transfers_resolved_at_reason_received_at_id_ix",
        "exchange_transfers",
        ["resolved_at", "reason", "received_at", "id"],
    )
