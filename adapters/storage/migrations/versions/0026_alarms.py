"""Who was told of which trouble; and the last backup that was noted."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0026"
down_revision = "0025"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and add the column."""
    op.create_table(
        "alarm_recipients",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("known", sa.Text(), nullable=False),
        sa.Column("sending", sa.Text(), nullable=True),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("fault", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="alarm_recipients_id"),
    )
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("installations", recreate=how, table_kwargs={"sqlite_with_rowid": False}) as altered:
        after = "as_of" if anew else None
        altered.add_column(sa.Column("backed_up_at", sa.BigInteger(), nullable=True), insert_after=after)
