"""Full read of a Postgres database, to find damage in parts that no query has read yet.

It may run beside a working service.
"""

from collections.abc import Callable
from typing import Any

import asyncpg

from ...postgres_sessions import asking

Progress = Callable[[str], None]


async def postgres_damage(url: str, progress: Progress) -> tuple[list[str], str]:
    """Return the damage of this program's tables, and a line about the extent of the check.

    Every value of every row is read, and every index is checked if the extension `amcheck` is installed. Raises:
    Unavailable.
    """
    async with asking(url, command_timeout=None) as connection:
        return await _postgres_damage(connection, progress)


async def _postgres_damage(connection: Any, progress: Progress) -> tuple[list[str], str]:
    async def faults(name: str, question: str, *parameters: Any) -> list[str]:
        try:
            await connection.fetchval(question, *parameters)
        except (asyncpg.DataError, asyncpg.PostgresSystemError, asyncpg.InternalServerError) as fault:
            # Use only the error's main text: its detail may quote a row.
            return [f"{name}: {fault.args[0] if fault.args else type(fault).__name__}"]
        return []

    tables = await connection.fetch(
        "SELECT oid, relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    found = list[str]()
    for number, (oid, name) in enumerate(tables, start=1):
        progress(f"table {number} of {len(tables)}: {name}")
        quoted = await connection.fetchval("SELECT $1::oid::regclass::text", oid)
        # Reading rows as text also reads the values that Postgres stores apart from them (TOAST).
        found += await faults(name, f"SELECT count(t::text) FROM {quoted} AS t")  # noqa: S608 - its own name, quoted
    indexes = await connection.fetch(
        "SELECT i.indexrelid, c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
        "JOIN pg_am AS a ON a.oid = c.relam WHERE a.amname = 'btree' AND i.indisvalid AND i.indrelid = ANY($1::oid[])",
        [oid for oid, _ in tables],
    )
    has_amcheck = await connection.fetchval("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'")
    to_check: list[tuple[int, str]] = [*indexes] if has_amcheck else []
    for number, (oid, name) in enumerate(to_check, start=1):
        progress(f"index {number} of {len(indexes)}: {name}")
        found += await faults(name, "SELECT bt_index_check($1::oid, true)", oid)
    failures = await connection.fetchval(
        "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
    )
    if failures:
        found.append(f"Postgres counted {failures} pages whose checksum was wrong (pg_stat_database)")
    looked = f"all rows of {len(tables)} tables can be read"
    looked += (
        f", {len(indexes)} indexes are sound" if has_amcheck else "; no index was looked at (CREATE EXTENSION amcheck)"
    )
    return found, looked if failures is not None else f"{looked}; no data checksums: a changed bit is not seen"
