"""Exchanges, what is sent back of them, and acts that wait for a second operator bear the vault's tag. None is written
here, as in the revision before."""

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the columns."""
    # SQLite alone cannot say where a column goes, so its tables are written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    narrow: dict[str, Any] = {"sqlite_with_rowid": False}
    for table, column, after, kwargs in (
        ("exchanges", "tag", "failure", {}),
        ("exchange_transfers", "return_tag", "went_by", narrow),
        ("pending_acts", "tag", "slot", {}),
    ):
        with op.batch_alter_table(table, recreate=how, table_kwargs=kwargs) as altered:
            altered.add_column(sa.Column(column, sa.LargeBinary(), nullable=True), insert_after=after if anew else None)
