"""Under which id its bank was asked to send money in suspense back. Of what is under way it stays null: its id follows
from the money's, as before. A program of an older revision that serves beside this one does not take up what has an id
here: the job that follows it is of another kind (`suspense.send`)."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0033"
down_revision = "0032"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("suspense", recreate=how) as suspense:
        suspense.add_column(sa.Column("operation", TEXT, nullable=True), insert_after="sending_since" if anew else None)
