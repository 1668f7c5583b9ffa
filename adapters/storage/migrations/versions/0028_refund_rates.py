"""The rate at which a refund took USDT. Of those from before it is the rate of their payment's settlement, too."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0027"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column, and fill it."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("refunds", recreate=how) as refunds:
        refunds.add_column(sa.Column("rate_market", TEXT, nullable=True), insert_after="taken_usdt" if anew else None)
    op.execute(
        "UPDATE refunds SET rate_market = (SELECT settlements.rate_market FROM settlements JOIN payments "
        "ON payments.settlement_id = settlements.id WHERE payments.id = refunds.payment_id) "
        "WHERE taken_usdt IS NOT NULL"
    )
