"""Money in suspense is found by its payment."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Make the index."""
    op.create_index("suspense_payment_id_received_at_ix", "suspense", ["payment_id", "received_at"])
