"""When a further webhook endpoint was switched off: none of those that there are. A program of an older revision that
serves beside this one sends there all the same."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Add the column."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    kwargs = {"sqlite_with_rowid": False} if anew else {}
    with op.batch_alter_table("webhook_endpoints", recreate=how, table_kwargs=kwargs) as endpoints:
        endpoints.add_column(
            sa.Column("disabled_at", sa.BigInteger(), nullable=True),
            insert_after="previous_secret_until" if anew else None,
        )
