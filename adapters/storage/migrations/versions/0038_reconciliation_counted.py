"""How many operations of a day its bank had to have when it was compared: what ends later changes the number. Of
comparisons that were made before it stays null, and they are left as they are."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Add the column."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    kwargs = {"sqlite_with_rowid": False} if anew else {}
    with op.batch_alter_table("reconciliations", recreate=how, table_kwargs=kwargs) as rows:
        rows.add_column(sa.Column("counted", sa.BigInteger(), nullable=True), insert_after="found" if anew else None)
