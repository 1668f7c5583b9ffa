"""Refunds, subscriptions and exchanges of a merchant are found by the id that he gave them, newest first."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

FIELDS = ["external_id", "account_id", "mode", "created_at", "id"]


def upgrade() -> None:
    """Make the indexes; the narrower ones of before are the beginning of these. Older programs find by them, too."""
    some = sa.text("external_id IS NOT NULL")
    for table in ("refunds", "subscriptions", "exchanges"):
        name = f"{table}_{'_'.join(FIELDS)}_ix"
        op.create_index(name, table, FIELDS, postgresql_where=some, sqlite_where=some)
    for table in ("subscriptions", "exchanges"):
        op.drop_index(f"{table}_external_id_id_ix", table)
