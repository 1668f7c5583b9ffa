"""Commits on Postgres: a unit's statements in one transaction, made once even where the connection breaks off.

When a server dies or a connection breaks under a commit, nobody knows whether it was made. The unit is then carried
out again on another connection. That is safe, because its guards (the ids of what it adds, the versions of what it
changes) refuse it where it was made already; then what it wrote stands as it wrote it, and the commit is a success.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from ....ports.faults import Conflict, Stale, Unavailable
from ..sql.statements import Statement
from ..sql.tables import Tables
from ..table.writes import Add, Remove, Save, Write
from .bulk import Bulk, parted
from .joined import TAKEN_BACK, joined
from .pool import Connections
from .standby import CONFIRM

_TRIES = 20
"""How often a unit is tried that the server breaks off in favour of another (a deadlock). Each lost try means that
another unit won; one that is queued can still lose to many new ones, one after the other."""
_QUEUE_LOCK = "SELECT pg_advisory_xact_lock(7161111)"
"""Units that were broken off wait for each other before they touch a row again: writes are made in the order that the
use case gave them, so two that met once would meet again and again."""

_LONG = 16
"""Writes of a unit beyond which its rows go as arrays: work in the background, by the hundred."""

_PATIENCE = 10.0
"""Seconds that a unit whose connection broke waits for the server to come back; a crashed Postgres takes one or so.
Merchants' clients wait longer. Whoever comes while it is away hears so at once, because units read first."""
_PAUSES = (0.02, 0.05, 0.1, 0.2)
"""Seconds between two attempts; the last one stays."""

_BROKEN = (
    asyncpg.PostgresConnectionError,
    # What asyncpg raises when the server's farewell came between two statements of a transaction.
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)
"""The connection is gone, or about to be. Not a server that does not answer in time: it would be waited for twice."""
_NOT_THERE = (*_BROKEN, asyncpg.InterfaceError, asyncpg.CannotConnectNowError, OSError)

Fetch = Callable[[str, Sequence[Any]], Awaitable[Sequence[Any]]]


class _Clash(Exception):
    """A write broke a unique rule, which is `rule` or one that the catalogue has before it."""

    def __init__(self, write: Write, rule: str) -> None:
        super().__init__(rule)
        self.write = write
        self.rule = rule


class Broken(Exception):
    """There is no connection any more; `fault` says why. Whether the transaction was committed is unknown."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Commits:
    """Carries out units on the connections of a pool. `fetch` runs a quick statement."""

    def __init__(self, pool: Connections, tables: Tables, bulk: Bulk, fetch: Fetch) -> None:
        self._pool = pool
        self._tables = tables
        self._bulk = bulk
        self._fetch = fetch

    async def carry_out(self, writes: Sequence[Write], *, durable: bool = True) -> None:
        """All writes of a unit or none. One that need not be `durable` waits for no disk where it is one statement.

        Raises: Stale, Conflict; the driver's faults. After those that mean a broken connection the outcome is unknown.
        """
        try:
            await self._commit(writes, durable=durable)
        except Broken as broken:
            await self.recover(writes, broken)

    async def recover(self, writes: Sequence[Write], broken: Broken) -> None:
        """A unit of which it is unknown whether it was committed: make it, or find it made.

        Raises: Stale, Conflict; what broke it where that stays unknown.
        """
        if not _is_guarded(writes):
            raise broken.fault from None
        await self._once_more(writes, broken)

    async def _once_more(self, writes: Sequence[Write], broken: Broken) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                pauses = list(_PAUSES)
                while True:
                    await asyncio.sleep(pauses.pop(0) if len(pauses) > 1 else pauses[0])
                    # The server may be gone, starting, or gone again.
                    with contextlib.suppress(Broken, Unavailable, TimeoutError):
                        if await self._is_made(writes):
                            return
                        break
        raise broken.fault

    async def _is_made(self, writes: Sequence[Write]) -> bool:
        """Make it now, or find it made. False: somebody else's writes are there, perhaps over ours."""
        try:
            await self._commit(writes)
        except (Stale, Conflict):
            if not await self._stands(writes):
                return False
            # The server may have shown it before a standby had it.
            await self._fetch(CONFIRM, ())
        return True

    async def _stands(self, writes: Sequence[Write]) -> bool:
        """Whether every row is as these writes leave it; sums apart, which others move. One transaction wrote all of
        them, so where they stand, it was committed."""
        for write in writes:
            if not isinstance(write, Add | Save | Remove):
                continue
            rows = await self._fetch(self._tables.statements(write.mapped).get, (write.id,))
            found = None if not rows else _without_sums(write, rows[0])
            if found != (None if isinstance(write, Remove) else _without_sums(write, write.row)):
                return False
        return True

    async def _commit(self, writes: Sequence[Write], *, durable: bool = True) -> None:
        """Raises: Stale, Conflict; Broken; the driver's faults."""
        for tried in range(_TRIES):
            try:
                async with self.connection() as connection:
                    await self._transact(connection, writes, queued=tried > 0, durable=durable)
            except _Clash as clash:
                raise await self._conflict(clash) from None
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                if tried == _TRIES - 1:
                    raise
            else:
                return

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """A connection of the pool. Raises Broken when it breaks, or cannot be made."""
        try:
            connection = await self._pool.take()
        except TimeoutError:
            raise
        except _NOT_THERE as fault:
            raise Broken(fault) from fault
        went_well = False
        try:
            yield connection
            went_well = True
        except (_Clash, Stale):
            went_well = True
            raise
        except Exception as fault:
            if isinstance(fault, _BROKEN) or _is_gone(connection):
                raise Broken(fault) from fault
            raise
        finally:
            await (self._pool.give if went_well else self._pool.drop)(connection)

    async def _transact(self, connection: Any, writes: Sequence[Write], *, queued: bool, durable: bool) -> None:
        """Raises: Stale, _Clash; the driver's faults."""
        if len(writes) > _LONG and not queued:
            # What is refused is found out by one after the other, in the order of the unit.
            with contextlib.suppress(*TAKEN_BACK, _Clash, Stale):
                await self._in_bulk(connection, writes)
                return
        statements = self._tables.of_unit(writes)
        one = None if queued else joined(statements, durable=durable)
        if one is not None:
            with contextlib.suppress(*TAKEN_BACK):
                await connection.fetchval(one[0], *one[1])
                return
        # A lone statement is a transaction already, in one round trip instead of three.
        async with connection.transaction() if len(statements) > 1 else contextlib.nullcontext():
            if queued:
                await connection.execute(_QUEUE_LOCK)
            for write, statement in statements:
                await _write(connection, write, statement)

    async def _in_bulk(self, connection: Any, writes: Sequence[Write]) -> None:
        """A long unit, in few statements. Raises: as `_transact`; TAKEN_BACK, too."""
        together, rest = parted(writes)
        statements = self._tables.of_unit(rest)
        async with connection.transaction() if statements else contextlib.nullcontext():
            if together:
                text, parameters = self._bulk.statement(together)
                await connection.fetchval(text, *parameters)
            for write, statement in statements:
                await _write(connection, write, statement)

    async def _conflict(self, clash: _Clash) -> Conflict:
        """The first broken rule of the catalogue; Postgres named any of them."""
        for rule, statement in self._tables.statements(clash.write.mapped).clashes(clash.write):
            if rule == clash.rule or await self._fetch(*statement):
                return Conflict(rule)
        return Conflict(clash.rule)


def _is_guarded(writes: Sequence[Write]) -> bool:
    """Whether these writes cannot take effect twice: sums alone could. A removal alone would leave nothing to tell
    ours by."""
    return any(isinstance(write, Add | Save) for write in writes)


def _without_sums(write: Write, row: Sequence[Any]) -> list[Any]:
    return [value for index, value in enumerate(row) if index not in write.mapped.sums]


def _is_gone(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:  # so gone that the pool has taken it out
        return True


async def _write(connection: Any, write: Write, statement: Statement) -> None:
    """One write of a unit. Raises _Clash and Stale; both break off its transaction."""
    text, parameters = statement
    try:
        status = await connection.execute(text, *parameters)
    except asyncpg.UniqueViolationError as fault:
        raise _Clash(write, str(getattr(fault, "constraint_name", None))) from None
    if status.endswith(" 0"):
        raise Stale(f"{write.mapped.name} {write.id} changed since it was read, or is gone")
