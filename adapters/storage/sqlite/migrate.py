"""Schema of a SQLite file: read its revision and migrate it.

Two processes may migrate at once: each runs BEGIN IMMEDIATE before Alembic reads the version, so the second finds
nothing to do.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ....ports.faults import Unavailable
from ..sql import revisions
from ..sql.room import free_bytes
from . import file as sqlite_file

_NEEDED = 0.8
"""Free disk space that a migration needs, as a fraction of the file: it copies each table that it alters."""


def sqlite_current(path: Path) -> str | None:
    """Return the revision of a SQLite file; None if it was never migrated or does not exist."""
    if not path.exists():
        return None
    with closing(sqlite_file.connect_to_read(path, wait=True)) as connection:
        try:
            row = connection.execute(revisions.VERSION).fetchone()
        except sqlite3.OperationalError as fault:
            if "no such table" not in str(fault):
                raise
            return None
    return row[0] if row else None


def migrate_sqlite(path: Path) -> None:
    """Migrate a SQLite file to the head, and create it if it does not exist. Blocks.

    Raises: SchemaMismatch; Unavailable when the disk has too little room; sqlite3.Error.
    """
    found = sqlite_current(path)
    revisions.refuse_newer(found)
    if found == revisions.head():
        return
    if found is not None:
        _begin(path, found)
    sqlite_file.make(path)

    def connect() -> sqlite3.Connection:
        connection = sqlite_file.connect(path)
        # Alembic copies and drops a table that it alters. Foreign keys must not follow the dropped one.
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(f"PRAGMA busy_timeout={revisions.LOCK_SECONDS * 1000}")
        return connection

    engine = sa.create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            revisions.upgrade(connection)
        except (sqlite3.Error, DBAPIError) as fault:
            raise _first(fault) from None
        connection.commit()


def _begin(path: Path, found: str) -> None:
    """Log that the migration begins. Raises: Unavailable if the disk has too little room."""
    size = path.stat().st_size
    needed, free = int(size * _NEEDED), free_bytes(path)
    if free < needed:
        raise Unavailable(
            f"bringing the schema from {found} to {revisions.head()} needs {needed // 1_000_000} MB at {path.parent}, "
            f"and {free // 1_000_000} MB are free: make room, then start again. Nothing was changed"
        )
    revisions.say_begins(found, size)


def _first(fault: BaseException) -> BaseException:
    """Return SQLite's first error in a chain. Alembic cleans up after a fault, and the cleanup may fail as well."""
    first = fault
    present: BaseException | None = fault
    while present is not None:
        if isinstance(present, sqlite3.Error):
            first = present
        present = present.__cause__ or present.__context__
    return first
