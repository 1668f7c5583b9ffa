"""What a bank says of the money of a payment beside its amount: its fee, the payer's bank, the number in SBP."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    columns = (("provider_fee", sa.BigInteger()), ("payer_bank", TEXT), ("sbp_operation_id", TEXT))
    with op.batch_alter_table("payments", recreate=how) as payments:
        after = "transfer_id"
        for name, kind in columns:
            payments.add_column(sa.Column(name, kind, nullable=True), insert_after=after if anew else None)
            after = name
