"""Of payments: the markup they were accepted at, what their receipts say, what a bank says of their money beside its
amount (its fee, the payer's bank, the number in SBP), and where the bank's link leads, if not to SBP. In one step:
SQLite writes the table anew."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0023"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# Each after the column before it.
COLUMNS = (
    ("method_id", "markup", TEXT),
    ("payer_name", "receipt", sa.Text()),
    ("bank_link", "link_kind", TEXT),
    ("transfer_id", "provider_fee", sa.BigInteger()),
    ("provider_fee", "payer_bank", TEXT),
    ("payer_bank", "sbp_operation_id", TEXT),
)


def upgrade() -> None:
    """Add the columns."""
    # SQLite alone cannot say where a column goes, so its table is written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    how: Literal["always", "never"] = "always" if anew else "never"
    with op.batch_alter_table("payments", recreate=how) as payments:
        for after, name, kind in COLUMNS:
            payments.add_column(sa.Column(name, kind, nullable=True), insert_after=after if anew else None)
