"""KYC: what is kept of a client's check, and places for documents."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

FILLED = ("updated_at", "checks", "level", "was_refused", "sequence")
"""Columns that rows which are there already need a value for."""


def upgrade() -> None:
    """Give clients the state of their check, and make the table of uploads."""
    _clients()
    op.create_table(
        "uploads",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("content_type", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.LargeBinary(), nullable=True),
        sa.Column("used_by", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="uploads_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("uploads_holder_id_ix", "uploads", ["holder", "id"])


def _clients() -> None:
    # SQLite alone cannot say where a column goes or drop a default, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("updated_at", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("checks", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("request", sa.LargeBinary(), nullable=True),
        sa.Column("form_url", TEXT, nullable=True),
        sa.Column("account_number", TEXT, nullable=True),
        sa.Column("level", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("passport_state", TEXT, nullable=True),
        sa.Column("address_state", TEXT, nullable=True),
        sa.Column("was_refused", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("sequence", sa.BigInteger(), nullable=False, server_default="0"),
    )
    with op.batch_alter_table("clients", recreate="always" if anew else "never") as clients:
        last = "blocked"
        for column in columns:
            clients.add_column(column, insert_after=last if anew else None)
            last = column.name
    op.execute("UPDATE clients SET updated_at = created_at")
    refused = sa.table("clients", sa.column("kyc", TEXT), sa.column("was_refused", sa.Boolean()))
    op.execute(refused.update().where(refused.c.kyc == "failed").values(was_refused=True))
    with op.batch_alter_table("clients", recreate="always" if anew else "never") as clients:
        for name in FILLED:
            clients.alter_column(name, server_default=None)
    op.create_index("clients_account_id_mode_created_at_id_ix", "clients", ["account_id", "mode", "created_at", "id"])
    op.create_index(
        "clients_account_id_mode_kyc_created_at_id_ix", "clients", ["account_id", "mode", "kyc", "created_at", "id"]
    )
