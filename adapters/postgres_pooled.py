"""Connections through a pooler that gives each transaction another session of the server, as PgBouncer does in its
transaction mode.

Nothing of ours may stay in a session, so each statement is part of a transaction, which begins with the settings, and
no prepared statement has a name. This takes two more round trips for each statement.

A session that the pooler opens while our connection stays may belong to a server that has crashed or was promoted. So
we leave a mark in each session, and a transaction that does not find it greets the session first (`Greet`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import asyncpg

from ..ports.faults import NotConfigured

Greet = Callable[[Any], Awaitable[str | None]]
"""Called in a transaction on a session of an unknown server. It returns the server's location; None if it is hidden."""

_MARK = "cambist.location"
"""The setting that stays in a session: the location of the server that it was greeted at. Only we use it."""
_TRIES = 20
"""Sessions that a transaction greets at most before it gives up."""
_SWITCHES = {"default_transaction_read_only": "READ ONLY"}
"""Settings that would count from the next transaction on only, with what begins one instead."""
_FAULTS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


def pooled_connection(
    settings: Mapping[str, str], text: Callable[[Mapping[str, str], bool], str], greet: Greet
) -> type:
    """Return a class of connections for a pool of asyncpg. `text` returns the statement that applies settings, to the
    session or to the transaction alone."""
    mode = "".join(f" {_SWITCHES[name]}" for name, value in settings.items() if name in _SWITCHES and value == "on")
    local = text({name: value for name, value in settings.items() if name not in _SWITCHES}, True)
    known = ""

    class PooledConnection(asyncpg.Connection):  # type: ignore[misc] # untyped
        """A connection of which each transaction may be in another session."""

        planned: str | None = None
        """Words of a transaction that the next statement begins. Not earlier, because the check takes a snapshot."""

        async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
            async with self._within():
                return await super().fetch(query, *args, **options)

        async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
            async with self._within():
                return await super().fetchrow(query, *args, **options)

        async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
            async with self._within():
                return await super().fetchval(query, *args, **options)

        async def execute(self, query: str, *args: Any, **options: Any) -> Any:
            async with self._within():
                return await super().execute(query, *args, **options)

        def transaction(self, *, isolation: Any = None, readonly: bool = False, deferrable: bool = False) -> Any:
            words = _words(isolation) + (" READ ONLY" if readonly and not mode else "")
            return _Transaction(self, words + (" DEFERRABLE" if deferrable else ""))

        @asynccontextmanager
        async def _within(self) -> AsyncIterator[None]:
            if self.is_in_transaction():
                yield
            elif self.planned is None:
                async with _Transaction(self, ""), self._within():
                    yield
            else:
                words, self.planned = self.planned, None
                await self.begin(words)
                yield

        async def begin(self, words: str) -> None:
            """Begin a transaction in a session of a known server. Raises: NotConfigured; the driver's errors."""
            for _ in range(_TRIES):
                try:
                    await super().execute(f"BEGIN{words}{mode}; {local}; {_check(known)}")
                except asyncpg.DivisionByZeroError:
                    await self.end("ROLLBACK")
                    await self._greet()
                except BaseException:
                    await self.give_up()
                    raise
                else:
                    return
            raise NotConfigured(
                "the pooler before Postgres removes settings from its sessions: take server_reset_query_always out of "
                "pgbouncer.ini"
            )

        async def _greet(self) -> None:
            nonlocal known
            try:
                await super().execute(f"BEGIN{mode}; {local}")
                location = await greet(self)
                if location is None:
                    _refuse_hidden()
                await super().execute(f"SELECT set_config('{_MARK}', '{location}', false)")
                await self.end("COMMIT")
            except BaseException:
                await self.give_up()
                raise
            known = location

        async def end(self, how: str) -> None:
            """End the transaction. Raises: the driver's errors; among them one for a commit that the server refused."""
            if self.planned is not None:
                self.planned = None
                return
            done = await super().execute(how)
            if done != how:
                raise asyncpg.InFailedSQLTransactionError(f"{how} was answered by {done}")

        async def give_up(self) -> None:
            """Roll back, or close the connection if that fails."""
            self.planned = None
            if not self.is_closed() and self.is_in_transaction():
                try:
                    await self.end("ROLLBACK")
                except _FAULTS:
                    self.terminate()

    return PooledConnection


class _Transaction:
    """The part of asyncpg's transactions that the storage uses."""

    def __init__(self, connection: Any, words: str) -> None:
        self._connection = connection
        self._words = words

    async def start(self) -> None:
        self._connection.planned = self._words

    async def rollback(self) -> None:
        await self._connection.give_up()

    async def __aenter__(self) -> None:
        await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self.rollback()
            return
        try:
            await self._connection.end("COMMIT")
        except BaseException:
            await self.rollback()
            raise


def _words(isolation: str | None) -> str:
    return f" ISOLATION LEVEL {isolation.replace('_', ' ').upper()}" if isolation else ""


def _check(location: str) -> str:
    """Return a statement that fails in a session without the mark of this location."""
    return f"SELECT 1 / (coalesce(current_setting('{_MARK}', true), '-') = '{location}')::int"


def _refuse_hidden() -> NoReturn:
    raise NotConfigured(
        "behind a pooler by transaction, the server must show its control data, by which a failover is recognised: "
        "GRANT EXECUTE ON FUNCTION pg_control_system() to the role of CAMBIST_DATABASE_URL, or pool by session"
    )
