"""The row in which a database knows itself, and whether it is held; none is written here: what was upgraded goes on."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "installations",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("mark", TEXT, nullable=False),
        sa.Column("marked_at", sa.BigInteger(), nullable=False),
        sa.Column("place", TEXT, nullable=True),
        sa.Column("held_since", sa.BigInteger(), nullable=True),
        sa.Column("held_because", TEXT, nullable=True),
        sa.Column("as_of", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="installations_id"),
        sqlite_with_rowid=False,
    )
