"""Keys with fewer rights, and when each key was last used. Older programs refuse such keys (key_terms.py: marked)."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0034"
down_revision = "0033"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, and make the table."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    kwargs = {"sqlite_with_rowid": False} if anew else {}
    with op.batch_alter_table("api_keys", recreate=how, table_kwargs=kwargs) as keys:
        for name, kind, after in (
            ("name", TEXT, "ends_at"),
            ("rights", sa.Text(), "name"),
            ("addresses", sa.Text(), "rights"),
        ):
            keys.add_column(sa.Column(name, kind, nullable=True), insert_after=after if anew else None)
    op.create_table(
        "key_uses",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="key_uses_id"),
        sqlite_with_rowid=False,
    )
