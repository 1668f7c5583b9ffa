"""The schema of the first release, made from the catalogue.

Until 1.0 no database exists outside, so a change of the catalogue changes this step. The first revision after 1.0
replaces `create_all` with the tables as they were then.
"""

from alembic import context, op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table and index of the catalogue."""
    context.config.attributes["metadata"].create_all(op.get_bind(), checkfirst=False)
