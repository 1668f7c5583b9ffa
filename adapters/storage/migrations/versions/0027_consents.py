"""What the payer of a subscription agreed to. Of those from before nobody kept it: their cap stands for it."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Add the column."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("subscriptions", recreate=how) as subscriptions:
        subscriptions.add_column(
            sa.Column("consent", sa.BigInteger(), nullable=True), insert_after="cap_window" if anew else None
        )
