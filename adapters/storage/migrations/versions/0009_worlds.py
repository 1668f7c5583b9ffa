"""Test accounts have a time of their own: their clock, and the jobs that are due by it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

OBJECTS = ("payments", "refunds", "subscriptions", "exchanges", "withdrawals", "suspense", "clients")
"""Whose ids jobs have as their argument."""


def upgrade() -> None:
    """Add the columns, and say of the jobs of test mode whose they are: no clock was moved yet."""
    # SQLite alone cannot say where a column goes, so its tables are written anew.
    anew = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("accounts", recreate="always" if anew else "never") as accounts:
        accounts.add_column(
            sa.Column("clock", sa.Text(), nullable=True), insert_after="previous_secret_until" if anew else None
        )
    with op.batch_alter_table(
        "jobs", recreate="always" if anew else "never", table_kwargs={"sqlite_with_rowid": False}
    ) as jobs:
        jobs.add_column(sa.Column("world", TEXT, nullable=True), insert_after="asked" if anew else None)
        jobs.add_column(sa.Column("moment", sa.BigInteger(), nullable=True), insert_after="world" if anew else None)
    some = sa.text("world IS NOT NULL")
    op.create_index(
        "jobs_world_moment_id_ix", "jobs", ["world", "moment", "id"], postgresql_where=some, sqlite_where=some
    )
    _stamp()


def _stamp() -> None:
    for name in OBJECTS:
        mine = f"SELECT account_id FROM {name} WHERE {name}.id = jobs.argument AND {name}.mode = 'test'"  # noqa: S608
        op.execute(f"UPDATE jobs SET world = ({mine}), moment = due WHERE EXISTS ({mine})")  # noqa: S608 - names of ours
    # What sends to a receiver is named for its account and mode.
    op.execute(
        "UPDATE jobs SET world = substr(argument, 1, length(argument) - 5), moment = due"
        " WHERE kind IN ('webhook.deliver', 'webhook.timer') AND argument LIKE '%\\:test'"
    )
