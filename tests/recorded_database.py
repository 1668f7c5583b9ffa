"""A database with rows in nearly every table, as SQL text, so that later versions can be upgraded from it.

`python -m tests.recorded_database` (`nox -s record -- database`) writes it for SQLite and Postgres into
`tests/recorded/VERSION/`. A release does this once, and the files then stay as they are: before the release the schema
still changes without a migration, and a recorded database would be of a schema that nobody has.
"""

import asyncio
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from typing import Any

import asyncpg
import sqlalchemy as sa

import cambist
from cambist.adapters.storage.migrate import migrate
from cambist.frontends.settings.sources import read_vault
from tests.apps import open_test_app
from tests.cell_kit import fill
from tests.contracts.migration_kit import done_on
from tests.public_surface import RECORDED
from tests.servers import client_programs, database, postgres_server

VAULT = {"vault_key": "a1" * 32, "vault_pepper": "b2" * 32}
KINDS = ("sqlite", "postgres")

Rows = dict[str, list[dict[str, Any]]]


async def make(url: str) -> None:
    """Fill an empty database: a day of a merchant who uses nearly everything."""
    await migrate(url)
    async with open_test_app(database_url=url, vault=read_vault(*VAULT.values())) as app:
        await fill(app)
        await app.work(24 * 3600)


def dumped(url: str) -> str:
    """Return a database as SQL text."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as opened:
            return "\n".join(opened.iterdump())
    options = ("--inserts", "--no-owner", "--no-privileges")
    done = subprocess.run([client_programs(url) / "pg_dump", *options, url], check=True, capture_output=True, text=True)
    # psql's own commands are no SQL.
    return "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("\\"))


async def restore(url: str, text: str) -> None:
    """Write the dump into an empty database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as opened:
            opened.executescript(text)
        return
    server = await asyncpg.connect(url)
    await server.execute(text)
    await server.close()


async def rows_of(url: str) -> Rows:
    """Return the rows of all tables."""

    def read(connection: sa.Connection) -> Rows:
        found = sa.MetaData()
        found.reflect(connection)
        return {
            table.name: sorted(map(dict, connection.execute(sa.select(table)).mappings()), key=repr)
            for table in found.sorted_tables
        }

    return await done_on(url, read)


def record() -> None:
    """Write both files of this version."""
    folder = RECORDED / cambist.__version__
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, postgres_server() as server, database(server) as made:
        for kind, url in zip(KINDS, (f"sqlite:///{place}/shop.db", made), strict=True):
            asyncio.run(make(url))
            (folder / f"{kind}.sql").write_text(dumped(url), "utf-8")


if __name__ == "__main__":
    record()
