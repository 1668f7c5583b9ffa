"""Revisions of the schema: the one that this program needs, the check of the present one, and the migration."""

import logging
from pathlib import Path

import sqlalchemy as sa

from ....ports.faults import NotConfigured
from .schema import metadata

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
LOCK_SECONDS = 60
"""Seconds that a migrating process waits for another one."""
VERSION = "SELECT version_num FROM alembic_version"
_VERSIONS = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The table as Alembic creates it."""

BESIDE = "0001"
"""Oldest revision whose programs may run beside this one, on this program's schema.

A migration raises it to its own number if it breaks older programs (it drops a column or table, or adds a column
that may not be null), or if they would do harm. Postgres' schema stores the number, so that older programs can
check newer schemas.
"""

log = logging.getLogger("cambist.storage")


class SchemaMismatch(NotConfigured):
    """The database has another schema than this program needs."""


def head() -> str:
    """Return the revision that this program needs, from the names of the revision files."""
    return max(path.name for path in (_MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]


def require_head(found: str | None, beside: str | None = None) -> None:
    """Raise SchemaMismatch, with advice, if a database at revision `found` does not fit this program.

    The program may run on a newer schema if `beside`, the oldest revision that the schema allows, is not newer than
    the program.
    """
    if found is None:
        raise SchemaMismatch("the database has no schema yet: run `cambist migrate`")
    if found < head():
        raise SchemaMismatch(f"the schema is at {found}, this program needs {head()}: run `cambist migrate`")
    if found > head() and beside is not None and beside <= head():
        log.warning("the schema is at %s, this program knows it up to %s: it is to be updated soon", found, head())
        return
    refuse_newer(found)


def refuse_newer(found: str | None) -> None:
    """Raise SchemaMismatch if the database at revision `found` is newer than this program."""
    if found is not None and found > head():
        raise SchemaMismatch(
            f"the schema is at {found}, but this program knows only up to {head()}: update the program"
        )


def say_begins(found: str, size: int) -> None:
    """Log that a migration begins. It may take minutes, during which a service answers no probe."""
    log.info("bringing the schema from %s to %s, %d MB", found, head(), size // 1_000_000)


def upgrade(connection: sa.Connection) -> None:
    """Migrate the schema to `head()`, on a connection that holds the migration lock.

    A new database gets the final schema at once, which takes a tenth of the time of all steps. Any other takes the
    remaining steps.
    """
    if sa.inspect(connection).has_table(_VERSIONS.name):
        take_steps(connection)
        return
    metadata().create_all(connection, checkfirst=False)
    _VERSIONS.create(connection)
    connection.execute(_VERSIONS.insert().values(version_num=head()))


def take_steps(connection: sa.Connection) -> None:
    """Take the remaining steps to `head()`: all of them on a new database."""
    from alembic import command  # here: half a second, and rarely needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata()
    command.upgrade(config, "head")
