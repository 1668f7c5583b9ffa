"""Payments that belong to no subscription, or have no id of their merchant's, are in no index over these."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

FIELDS = ("external_id", "subscription_id")


def upgrade() -> None:
    """Make the indexes anew, without nulls."""
    for field in FIELDS:
        op.drop_index(f"payments_account_id_mode_{field}_created_at_id_ix", "payments")
        some = sa.text(f"{field} IS NOT NULL")
        op.create_index(
            f"payments_{field}_account_id_mode_created_at_id_ix",
            "payments",
            [field, "account_id", "mode", "created_at", "id"],
            postgresql_where=some,
            sqlite_where=some,
        )
