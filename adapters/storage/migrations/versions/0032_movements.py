"""A merchant's movements, and which entries of the journal are not listed among them yet: none of those that there are.
They are listed by the hourly job and by who asks first, not here, where a long journal would keep the service waiting.
So are those that a program of an older revision writes beside this one: it leaves the place null."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0031"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, add the column, and make the index over what waits."""
    op.create_table(
        "movements",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("pending", sa.BigInteger(), nullable=False),
        sa.Column("available_after", sa.BigInteger(), nullable=False),
        sa.Column("reserved_after", sa.BigInteger(), nullable=False),
        sa.Column("pending_after", sa.BigInteger(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="movements_id"),
        sqlite_with_rowid=False,
    )
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("journal", recreate=how) as journal:
        journal.add_column(sa.Column("place", sa.BigInteger(), nullable=True), insert_after="seal" if anew else None)
    none = sa.text("place IS NULL")
    op.create_index(
        "journal_place_account_id_mode_at_id_ix",
        "journal",
        ["account_id", "mode", "at", "id"],
        postgresql_where=none,
        sqlite_where=none,
    )
