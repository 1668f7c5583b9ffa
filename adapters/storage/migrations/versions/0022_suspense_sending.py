"""Since when the bank may have the present attempt to send money in suspense back. What is under way is marked: its job
ran, so the bank may have it. A program of an older revision that serves beside this one leaves no mark; what it sends
and does not live to hear of is sent again by the same operation, which moves no second money (ports/bank.py)."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the column, and fill it."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("suspense", recreate=how) as suspense:
        suspense.add_column(
            sa.Column("sending_since", sa.BigInteger(), nullable=True), insert_after="attempt" if anew else None
        )
    op.execute(
        "UPDATE suspense SET sending_since = (SELECT created_at FROM jobs "
        "WHERE jobs.id = 'suspense.return:' || suspense.id AND jobs.attempts > 0) "
        "WHERE resolved_at IS NULL AND reason NOT IN ('return_failed', 'return_reversed')"
    )
