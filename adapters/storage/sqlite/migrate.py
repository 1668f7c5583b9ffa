"""A SQLite file's schema: where it stands, and bringing it up. Two processes at once are safe: each takes BEGIN
IMMEDIATE before Alembic looks at the version, so the second finds nothing to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ..sql import revisions
from . import file as sqlite_file


def sqlite_current(path: Path) -> str | None:
    """The revision of a SQLite file; None when it was never migrated, or is not there."""
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
    """Bring a SQLite file to the head, making it first where there is none. Blocks."""
    found = sqlite_current(path)
    revisions.refuse_newer(found)
    if found == revisions.head():
        return
    sqlite_file.make(path)

    def connect() -> sqlite3.Connection:
        connection = sqlite_file.connect(path)
        # A table that is altered is copied and dropped; its references must not follow it.
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(f"PRAGMA busy_timeout={revisions.LOCK_SECONDS * 1000}")
        return connection

    engine = sa.create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        revisions.upgrade(connection)
        connection.commit()
