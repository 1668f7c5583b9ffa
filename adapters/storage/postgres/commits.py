"""Commits on Postgres: each unit takes effect once, even if the connection breaks.

When a server dies or a connection breaks during a commit, its outcome is unknown. The unit is then written again on
another connection. That is safe, because its guards (the ids of new rows, the versions of changed rows) refuse a
unit that was committed before. If its rows then stand as it wrote them, the commit succeeded.
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
from .marks import CommitMark, Marks
from .pool import Connections
from .standby import CONFIRM

_TRIES = 20
"""Attempts for a unit that the server aborts in favour of another (a deadlock).

Each lost attempt means that another unit won. A queued unit can still lose to many new ones in a row.
"""
_QUEUE_LOCK = "SELECT pg_advisory_xact_lock(7161111, hashtext(current_schema()))"
"""Lock that aborted units take before they touch a row again.

Writes keep the order of the use case, so without the lock two units that met once would meet again and again.
"""

_LONG = 16
"""Number of writes above which the rows of a unit go as arrays.

Such units come from background work that writes hundreds of rows.
"""

_PATIENCE = 10.0
"""Seconds that a unit whose connection broke waits for the server to return.

A crashed Postgres takes about one second, and merchants' clients wait longer than this. New requests during the
outage fail at once, because units read first.
"""
_PAUSES = (0.02, 0.05, 0.1, 0.2)
"""Seconds between two attempts; the last value repeats."""

_BROKEN = (
    asyncpg.PostgresConnectionError,
    # asyncpg raises this when the server closed the connection between two statements of a transaction.
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)
"""Errors of a lost or closing connection.

A server that answers too slowly is not among them: it would be waited for twice.
"""
_NOT_THERE = (*_BROKEN, asyncpg.InterfaceError, asyncpg.CannotConnectNowError, OSError)

Fetch = Callable[[str, Sequence[Any]], Awaitable[Sequence[Any]]]


class _Clash(Exception):
    """A write broke a unique rule: `rule`, or one that comes before it in the catalogue."""

    def __init__(self, write: Write, rule: str) -> None:
        super().__init__(rule)
        self.write = write
        self.rule = rule


class Broken(Exception):
    """The connection is lost; `fault` says why. The outcome of the transaction is unknown."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Commits:
    """Writer of units on the connections of a pool, with `marks`. `fetch` runs a quick statement."""

    def __init__(self, pool: Connections, tables: Tables, bulk: Bulk, fetch: Fetch, marks: Marks) -> None:
        self._pool = pool
        self._marks = marks
        self._tables = tables
        self._bulk = bulk
        self._fetch = fetch

    async def carry_out(self, writes: Sequence[Write], *, durable: bool = True) -> None:
        """Make all writes of a unit or none.

        A unit that need not be `durable` does not wait for the disk if it is one statement. Raises: Stale,
        Conflict; the driver's faults. After a fault of a broken connection the outcome is unknown.
        """
        try:
            # Step 1: write the unit. Only if the connection breaks under it, step 2 finds out whether it was committed.
            await self._commit(writes, durable=durable)
        except Broken as broken:
            await self.recover(writes, broken)

    async def recover(self, writes: Sequence[Write], broken: Broken) -> None:
        """Commit a unit whose outcome is unknown, or find that it was committed.

        Raises: Stale, Conflict; the original fault when the outcome stays unknown.
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
        """Commit the unit now, or find that it was committed.

        Return False if another process's writes are there, perhaps over ours.
        """
        try:
            await self._commit(writes)
        except (Stale, Conflict):
            if not await self._stands(writes):
                return False
            # The server may have shown the commit before a standby had it.
            await self._fetch(CONFIRM, ())
        return True

    async def _stands(self, writes: Sequence[Write]) -> bool:
        """Return whether every row stands as these writes leave it. Sums are ignored, because other units change them.

        One transaction wrote all of the rows, so if they stand, it was committed.
        """
        for write in writes:
            if not isinstance(write, Add | Save | Remove):
                continue
            rows = await self._fetch(self._tables.statements(write.mapped).get, (write.id,))
            found = None if not rows else _without_sums(write, rows[0])
            if found != (None if isinstance(write, Remove) else _without_sums(write, write.row)):
                return False
        return True

    async def _commit(self, writes: Sequence[Write], *, durable: bool = True) -> None:
        """Run the transaction, again after a deadlock. Raises: Stale, Conflict; Broken; the driver's faults."""
        for tried in range(_TRIES):
            try:
                async with self.connection() as (connection, mark):
                    await self._transact(connection, mark, writes, queued=tried > 0, durable=durable)
            except _Clash as clash:
                raise await self._conflict(clash) from None
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                if tried == _TRIES - 1:
                    raise
            else:
                return

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[Any, CommitMark | None]]:
        """Lend a connection of the pool for one commit, and the commit's mark. Raises Broken when the connection
        breaks, or cannot be made."""
        try:
            connection = await self._pool.take()
        except TimeoutError:
            raise
        except _NOT_THERE as fault:
            raise Broken(fault) from fault
        mark = self._marks.of_commit()
        went_well = done = False
        try:
            yield connection, mark
            self._pool.require_replicated(connection)
            went_well = done = True
        except (_Clash, Stale):
            went_well = True
            raise
        except Exception as fault:
            if isinstance(fault, _BROKEN) or _is_gone(connection):
                raise Broken(fault) from fault
            raise
        finally:
            self._marks.end(mark, done=done, again=not _is_gone(connection))
            await (self._pool.give if went_well else self._pool.drop)(connection)

    async def _transact(
        self, connection: Any, mark: CommitMark | None, writes: Sequence[Write], *, queued: bool, durable: bool
    ) -> None:
        """Write a unit in one transaction, by the first of three ways that works.

        Raises: Stale, _Clash; the driver's faults.
        """
        if len(writes) > _LONG and not queued:
            # First way, for long units: rows as arrays. If a part is refused, go on with single statements in the
            # unit's order, which find out what was refused.
            with contextlib.suppress(*TAKEN_BACK, _Clash, Stale):
                await self._in_bulk(connection, mark, writes)
                return
        # Second way, for short units: all statements joined into one, which saves round trips.
        statements = self._tables.of_unit(writes)
        one = None if queued else joined(statements, durable=durable)
        if one is not None:
            text, parameters = one if mark is None or not durable else mark.added(*one)
            with contextlib.suppress(*TAKEN_BACK):
                await connection.fetchval(text, *parameters)
                return
        # Third way: the statements one after the other. A single statement is a transaction already, in one round trip
        # instead of three.
        async with connection.transaction() if len(statements) > 1 else contextlib.nullcontext():
            if queued:
                await connection.execute(_QUEUE_LOCK)
            for write, statement in _marked(statements, mark):
                await _write(connection, write, statement)

    async def _in_bulk(self, connection: Any, mark: CommitMark | None, writes: Sequence[Write]) -> None:
        """Write a long unit in few statements. Raises: as `_transact`, and TAKEN_BACK."""
        together, rest = parted(writes)
        statements = self._tables.of_unit(rest)
        async with connection.transaction() if statements else contextlib.nullcontext():
            if together:
                text, parameters = self._bulk.statement(together)
                if mark is not None:
                    text, parameters = mark.added(text, parameters)
                await connection.fetchval(text, *parameters)
            for write, statement in statements if together else _marked(statements, mark):
                await _write(connection, write, statement)

    async def _conflict(self, clash: _Clash) -> Conflict:
        """Return a conflict that names the first broken rule of the catalogue. Postgres may have named a later one."""
        for rule, statement in self._tables.statements(clash.write.mapped).clashes(clash.write):
            if rule == clash.rule or await self._fetch(*statement):
                return Conflict(rule)
        return Conflict(clash.rule)


def _is_guarded(writes: Sequence[Write]) -> bool:
    """Return whether these writes cannot take effect twice.

    Sums alone could. A removal alone would leave no trace that shows who made it.
    """
    return any(isinstance(write, Add | Save) for write in writes)


def _marked(
    statements: Sequence[tuple[Write, Statement]], mark: CommitMark | None
) -> Sequence[tuple[Write, Statement]]:
    """Return the statements of a transaction, the first one with the mark."""
    if mark is None or not statements:
        return statements
    (write, (text, parameters)), *rest = statements
    return [(write, mark.added(text, parameters)), *rest]


def _without_sums(write: Write, row: Sequence[Any]) -> list[Any]:
    return [value for index, value in enumerate(row) if index not in write.mapped.sums]


def _is_gone(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:  # the pool has already removed it
        return True


async def _write(connection: Any, write: Write, statement: Statement) -> None:
    """Run one write of a unit. Raises _Clash and Stale; both abort its transaction."""
    text, parameters = statement
    try:
        status = await connection.execute(text, *parameters)
    except asyncpg.UniqueViolationError as fault:
        raise _Clash(write, str(getattr(fault, "constraint_name", None))) from None
    if status.endswith(" 0"):
        raise Stale(f"{write.mapped.name} {write.id} changed since it was read, or is gone")
