"""Facts about a SQLite file that can be read before the storage opens it, to find out why it does not open."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ....ports.faults import Unavailable
from . import file as sqlite_file
from .migrate import sqlite_current


async def sqlite_facts(path: Path) -> tuple[str, str | None, Mapping[str, str]]:
    """Return SQLite's version, the schema's revision, and the file's settings. Raises: Unavailable."""

    def ask() -> tuple[str, str | None, Mapping[str, str]]:
        if not path.exists():
            raise Unavailable(f"there is no file {path}")
        revision = sqlite_current(path)
        with closing(sqlite_file.connect_to_read(path, wait=True)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        return sqlite3.sqlite_version, revision, {"journal_mode": str(mode)}

    try:
        return await asyncio.to_thread(ask)
    except (sqlite3.Error, OSError) as fault:
        raise Unavailable(f"{path} cannot be read: {fault}") from fault
