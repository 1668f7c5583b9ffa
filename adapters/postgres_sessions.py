"""Connections to Postgres, for storage and registry: every one is made here.

Settings of a session are set by a statement after connecting. As startup parameters a pooler (PgBouncer) refuses them,
or drops them in silence.
"""

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

ANSWERS_WITHIN = 5.0
"""Seconds that one question on a connection of its own may take."""


async def connect(
    url: str,
    settings: Mapping[str, str] | None = None,
    *,
    within: float = ANSWERS_WITHIN,
    command_timeout: float | None = None,
    statements: int = 100,
) -> Any:
    """Open a connection and apply `settings` to its session. `statements`: how many stay prepared.

    Raises: NotConfigured for a URL that cannot be read; what asyncpg does; OSError; TimeoutError.
    """
    read = _read(url)
    connection = await asyncpg.connect(
        _dsn(read),
        timeout=_limit(read, within),  # pyright: ignore[reportArgumentType]  (a default of 60 is taken for its type)
        command_timeout=command_timeout,
        statement_cache_size=statements,
    )
    try:
        await connection.execute(_setting(_named(read, settings or {})), timeout=within)
    except BaseException:
        connection.terminate()
        raise
    return connection


_DURABLE = """
SELECT set_config('synchronous_commit',
CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
"""
"""A commit that returned is on disk, here and on the synchronous standbys if there are any, whatever the server's
default; the one stronger setting is left alone."""

_MARK = "cambist.session"
"""A setting that nobody has: what one session sets, another does not see."""


@asynccontextmanager
async def asking(
    url: str, settings: Mapping[str, str] | None = None, *, command_timeout: float | None = ANSWERS_WITHIN
) -> AsyncIterator[Any]:
    """A connection for some questions, closed at the end. It keeps no statement prepared, so that a pooler of any mode
    lets it through. Raises: NotConfigured; Unavailable, also for what Postgres answers inside.
    """
    try:
        connection = await connect(url, settings, command_timeout=command_timeout, statements=0)
        try:
            yield connection
        finally:
            await connection.close(timeout=ANSWERS_WITHIN)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as fault:
        raise away(fault) from fault


async def is_shared(connection: Any, url: str) -> bool:
    """Whether the session of this connection is given to another connection as well, as a pooler by transaction does.

    Raises: Unavailable.
    """
    # Before a pooler it is the server's own number that the connection was told.
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
    then: str = "",
    **given: Any,
) -> Any:
    """Make a pool of such connections. `then`: a further statement with which each begins; `given`: arguments of
    asyncpg.

    Raises: as `connect`.
    """
    read = _read(url)
    text = ";".join((_setting(_named(read, settings)), then))

    async def begin(connection: Any) -> None:
        await connection.execute(text, timeout=within)

    return await asyncpg.create_pool(_dsn(read), timeout=_limit(read, within), init=begin, **given)


def _setting(settings: Mapping[str, str]) -> str:
    """Return the statement that applies settings to a session. Simple text, so that it is one round trip."""
    return ", ".join((_DURABLE, *(f"set_config({_text(n)}, {_text(v)}, false)" for n, v in settings.items())))


def _text(value: str) -> str:
    """A literal of SQL, whatever the server takes a backslash for."""
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
    """The settings with the session's name, which the URL may choose where we have none that means something."""
    return {"application_name": read.application_name or "cambist", **settings}


def _dsn(read: PostgresUrl) -> str:
    """`sslrootcert=system` is libpq's word for the certificates that the machine trusts; the driver wants a file."""
    if read.parameters.get("sslrootcert") != "system":
        return read.dsn
    paths = ssl.get_default_verify_paths()
    return read.dsn.replace("sslrootcert=system", f"sslrootcert={quote(paths.cafile or paths.openssl_cafile, safe='')}")
