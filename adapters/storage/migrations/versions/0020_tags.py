"""Payout wallets and payouts bear the vault's tag. None is written here: an operator takes over what stands
(`cambist ledger adopt`), for a program cannot tell it from a forgery."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the columns."""
    # SQLite alone cannot say where a column goes, so its tables are written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    for table, column, after in (
        ("accounts", "payout_wallet_tag", "previous_secret_until"),
        ("withdrawals", "tag", "failure"),
    ):
        with op.batch_alter_table(table, recreate=how) as altered:
            altered.add_column(sa.Column(column, sa.LargeBinary(), nullable=True), insert_after=after if anew else None)
