"""The ways to what operators leaf through and search over all accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

INDEXES = {
    "payments": (("status", "created_at", "id"),),
    "subscriptions": (("status", "created_at", "id"),),
    "clients": (("kyc", "created_at", "id"), ("blocked", "created_at", "id")),
    "exchanges": (("status", "created_at", "id"), ("direction", "created_at", "id")),
}
SPARSE = ("subscriptions", "exchanges")
"""Where an external id is rare."""


def upgrade() -> None:
    """Make the indexes."""
    for table, indexes in INDEXES.items():
        for fields in indexes:
            op.create_index("_".join((table, *fields, "ix")), table, list(fields))
    some = sa.text("external_id IS NOT NULL")
    for table in SPARSE:
        op.create_index(
            f"{table}_external_id_id_ix", table, ["external_id", "id"], postgresql_where=some, sqlite_where=some
        )
