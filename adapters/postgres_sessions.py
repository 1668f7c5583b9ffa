"""Connections to Postgres for the storage and the registry. All connections are opened here.

A statement after connecting applies the session's settings. A pooler (PgBouncer) would refuse them as startup
parameters, or drop them silently.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any
from urllib.parse import quote

import asyncpg

from ..ports.database_urls import PostgresUrl, read_postgres_url
from ..ports.faults import NotConfigured
from .postgres_away import away
from .postgres_pooled import Greet, pooled_connection

ANSWERS_WITHIN = 5.0
"""Seconds for one query on a dedicated connection."""


async def connect(
    url: str,
    settings: Mapping[str, str] | None = None,
    *,
    within: float = ANSWERS_WITHIN,
    command_timeout: float | None = None,
    statements: int = 100,
    session: bool = True,
) -> Any:
    """Open a connection and apply `settings` to its session. `statements`: size of the cache of prepared statements.
    Without `session` it changes no setting, because a pooler may give the session to others.

    Raises: NotConfigured for an invalid URL; errors of asyncpg; OSError; TimeoutError.
    """
    read = _read(url)
    connection = await asyncpg.connect(
        _dsn(read),
        timeout=_limit(read, within),  # pyright: ignore[reportArgumentType] (inferred from the default of 60)
        command_timeout=command_timeout,
        statement_cache_size=statements,
    )
    try:
        if session:
            await connection.execute(_setting(_named(read, settings or {})), timeout=within)
    except BaseException:
        connection.terminate()
        raise
    return connection


_DURABLE = """
SELECT set_config('synchronous_commit',
CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, {})
"""
"""Make every finished commit durable, on this server and on any synchronous standbys, whatever the server's default.
The stronger setting `remote_apply` stays."""

_MARK = "cambist.session"
"""A setting that nothing else uses. It shows whether two connections share a session."""


@asynccontextmanager
async def asking(
    url: str, settings: Mapping[str, str] | None = None, *, command_timeout: float | None = ANSWERS_WITHIN
) -> AsyncIterator[Any]:
    """Open a connection for a few queries, and close it at the end. It prepares no statements, so it works through a
    pooler in any mode. Raises: NotConfigured; Unavailable, also for errors of Postgres inside the block."""
    try:
        connection = await connect(url, settings, command_timeout=command_timeout, statements=0)
        try:
            yield connection
        finally:
            await connection.close(timeout=ANSWERS_WITHIN)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as fault:
        raise away(fault) from fault


async def is_shared(connection: Any, url: str) -> bool:
    """Report whether another connection may get the same session, as with a pooler in transaction mode.

    Raises: Unavailable.
    """
    # If the numbers are equal, no pooler is in between: a pooler reports a number of its own.
    if await connection.fetchval("SELECT pg_backend_pid()") == connection.get_server_pid():
        return False
    mark = token_hex(8)
    await connection.execute(f"SELECT set_config('{_MARK}', '{mark}', false)")
    async with asking(url) as second:
        return bool(await second.fetchval(f"SELECT current_setting('{_MARK}', true)") == mark)


async def create_pool(
    url: str,
    settings: Mapping[str, str],
    *,
    within: float,
    then: Greet,
    pooled: bool,
    **given: Any,
) -> Any:
    """Create a pool of such connections. `then` is called with each new connection, within `within` seconds. With
    `pooled`, connections share sessions: `then` is called for each session that none of us used before.
    `given`: arguments of asyncpg.

    Raises: the same as `connect`.
    """
    read = _read(url)
    named = _named(read, settings)

    async def greet(connection: Any) -> str | None:
        async with asyncio.timeout(within):
            return await then(connection)

    async def begin(connection: Any) -> None:
        async with asyncio.timeout(within):
            await connection.execute(_setting(named))
            await then(connection)

    if pooled:
        given |= {"connection_class": pooled_connection(named, _setting, greet), "statement_cache_size": 0}
    else:
        given |= {"init": begin}
    return await asyncpg.create_pool(_dsn(read), timeout=_limit(read, within), **given)


def _setting(settings: Mapping[str, str], local: bool = False) -> str:
    """Return the statement that applies the settings to a session, or to a transaction. It is simple text, so that it
    takes one round trip."""
    only = "true" if local else "false"
    return ", ".join(
        (_DURABLE.format(only), *(f"set_config({_text(n)}, {_text(v)}, {only})" for n, v in settings.items()))
    )


def _text(value: str) -> str:
    """Return an SQL literal that is safe whatever the server's handling of backslashes."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def _read(url: str) -> PostgresUrl:
    try:
        return read_postgres_url(url)
    except ValueError as error:
        raise NotConfigured(f"the database's URL {error}") from None


def _limit(read: PostgresUrl, within: float) -> float:
    return within if read.connect_timeout is None else min(within, read.connect_timeout)


def _named(read: PostgresUrl, settings: Mapping[str, str]) -> Mapping[str, str]:
    """Add the session's name to the settings. The URL may choose it unless the settings contain one."""
    return {"application_name": read.application_name or "cambist", **settings}


def _dsn(read: PostgresUrl) -> str:
    """Replace `sslrootcert=system`, libpq's value for the machine's trusted certificates, because the driver needs a
    file."""
    if read.parameters.get("sslrootcert") != "system":
        return read.dsn
    paths = ssl.get_default_verify_paths()
    return read.dsn.replace("sslrootcert=system", f"sslrootcert={quote(paths.cafile or paths.openssl_cafile, safe='')}")
