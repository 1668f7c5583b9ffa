"""Revisions of the schema: which one this program needs, whether one that is found fits it, and the steps to it."""

import logging
from pathlib import Path

import sqlalchemy as sa

from ....ports.faults import NotConfigured
from .schema import metadata

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
LOCK_SECONDS = 60
"""For which a process that migrates waits for another one that does."""
VERSION = "SELECT version_num FROM alembic_version"
_VERSIONS = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it."""

BESIDE = "0001"
"""The oldest revision whose programs may run beside this one, on this one's schema. A migration raises it to its own
number where it takes from older programs what they need (a column or table goes, a new column may not be null), or
where they would do harm. Postgres' schema itself says it, so that older programs, too, know it of newer schemas."""

log = logging.getLogger("cambist.storage")


class SchemaMismatch(NotConfigured):
    """The database's schema is not the one that this program works with."""


def head() -> str:
    """The revision that this program needs, read off the names of the revision files."""
    return max(path.name for path in (_MIGRATIONS / "versions").glob("[0-9]*.py")).partition("_")[0]


def require_head(found: str | None, beside: str | None = None) -> None:
    """Raises SchemaMismatch, with what to do, when a database at revision `found` does not fit this program. On a newer
    schema it may run if that says so: it is for programs from revision `beside` on."""
    if found is None:
        raise SchemaMismatch("the database has no schema yet: run `cambist migrate`")
    if found < head():
        raise SchemaMismatch(f"the schema is at {found}, this program needs {head()}: run `cambist migrate`")
    if found > head() and beside is not None and beside <= head():
        log.warning("the schema is at %s, this program knows it up to %s: it is to be updated soon", found, head())
        return
    refuse_newer(found)


def refuse_newer(found: str | None) -> None:
    """Raises SchemaMismatch when the database at revision `found` is newer than this program."""
    if found is not None and found > head():
        raise SchemaMismatch(
            f"the schema is at {found}, but this program knows only up to {head()}: update the program"
        )


def say_begins(found: str, size: int) -> None:
    """Log that a migration begins. It may take minutes, in which a service answers no probe."""
    log.info("bringing the schema from %s to %s, %d MB", found, head(), size // 1_000_000)


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to `head()`, on a connection that holds the lock of whoever migrates: a new database's at once,
    which takes a tenth of the time of all steps, any other by the steps that are left."""
    if sa.inspect(connection).has_table(_VERSIONS.name):
        take_steps(connection)
        return
    metadata().create_all(connection, checkfirst=False)
    _VERSIONS.create(connection)
    connection.execute(_VERSIONS.insert().values(version_num=head()))


def take_steps(connection: sa.Connection) -> None:
    """Take the steps that are left to `head()`, all of them on a new database."""
    from alembic import command  # here: half a second, and rarely needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata()
    command.upgrade(config, "head")
