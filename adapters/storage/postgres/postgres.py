"""Storage in Postgres, for several processes on several machines.

Units, `get` and claims run on connections of their own pool. Longer reads use a second pool with read-only
connections, so that a slow list never delays the write of a payment.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, Self

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import asyncpg as sqlalchemy_asyncpg

from ....ports.clock import Clock
from ....ports.faults import Unavailable
from ....ports.jobs import Job
from ....ports.storage import R
from ....ports.unreadable import UnreadableRow
from ....ports.witnesses import Witness
from ...postgres_pooled import Greet
from ...postgres_sessions import asking, create_pool, is_shared
from ..sql.asides import taken_out_of_postgres
from ..sql.revisions import require_head
from ..sql.room import Room
from ..sql.schema import HEARTBEAT
from ..sql.sql import Ask, SqlStorage
from ..sql.statements import JobStatements, beat
from ..table.catalogue import CATALOGUE, Table
from ..table.codec import Row, microseconds, nearest_moment
from ..table.table_map import table_map_of
from ..table.unit import Reader, WakeUp, lease_microseconds, no_wake_up, wake_up_safely
from ..table.writes import Pending
from .bulk import Bulk
from .commits import Commits
from .faults import translated
from .gate import Gate
from .groups import Groups
from .lookups import HotReader
from .marks import Marks, follows, place_of
from .migrate import postgres_beside, postgres_current
from .pool import ACQUIRE_SECONDS, Connections
from .sessions import READS, UNITS, ask_by_itself, leave, require_own_session, require_utf8
from .stall import Stall
from .standby import CONFIRM, REASON, Standby, commit_apart, confirm, waiting_for_standby

_COMMAND_SECONDS = 15
_READ_SECONDS = 60
_STATEMENTS = 512
"""Prepared statements cached on each connection.

Units have some hundred forms, and Postgres plans an evicted one again.
"""
_DATABASE_NOW = sa.cast(sa.func.extract("epoch", sa.func.statement_timestamp()) * 1_000_000, sa.BigInteger)

_RENEWAL = """
WITH held AS (
    SELECT jobs.id FROM jobs
    JOIN unnest($1::text[], $2::bigint[]) AS ours (id, version)
    ON jobs.id = ours.id COLLATE "C" AND jobs.version = ours.version
    WHERE jobs.leased_until IS NOT NULL FOR UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs
SET leased_until = {now} + {span}::bigint
FROM held WHERE jobs.id = held.id
"""
_RENEW = _RENEWAL.format(now="(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", span="$3")
_RENEW_AT = _RENEWAL.format(now="$3::bigint", span="$4")


def _is_full(fault: BaseException | None) -> bool:
    return isinstance(fault, asyncpg.DiskFullError)


async def _is_shared(url: str) -> bool:
    """Return whether the URL that leads past the pooler leads to one, too. Raises: Unavailable."""
    async with asking(url) as connection:
        return await is_shared(connection, url)


class PostgresStorage(SqlStorage):
    """Storage (ports/storage.py) in Postgres.

    The database's clock decides leases and due times, so that a machine with a wrong clock neither stalls nor
    doubles work. With `clock` (tests, simulations), that clock decides.
    """

    def __init__(
        self,
        pool: Connections,
        reading: Connections,
        watches: Sequence[Stall | Standby],
        marks: Marks,
        clock: Clock | None,
        wake_up: WakeUp,
        catalogue: Sequence[Table],
        *,
        clock_apart: bool = False,
    ) -> None:
        super().__init__(sqlalchemy_asyncpg.dialect(), catalogue, wake_up)  # type: ignore[no-untyped-call]
        self._clock = clock
        self._clock_apart = clock_apart
        self._pool = pool
        self._long = reading
        self._watches = watches
        self._marks = marks
        self._room = Room(time.monotonic if clock is None else clock.monotonic, _is_full)
        self._hot = HotReader(self._tables, self._ask, self._fetch, self._met)
        bulk = Bulk()
        self._groups = Groups(Commits(self._pool, self._tables, bulk, self._fetch, marks), bulk)

    @property
    def _job_statements(self) -> JobStatements:
        return self._tables.jobs(self._jobs.name, None if self._clock_apart else _DATABASE_NOW)

    async def _moment(self) -> int | None:
        """Return the time by which jobs are claimed; None: the statement itself reads the database's clock."""
        return microseconds(await self.now()) if self._clock_apart else self._now()

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock | None = None,
        wake_up: WakeUp = no_wake_up,
        *,
        direct_url: str | None = None,
        connections: int = 10,
        catalogue: Sequence[Table] = CATALOGUE,
        custom_plans: bool = False,
        clock_apart: bool = False,
    ) -> Self:
        """Connect to `postgresql://…`. Units use at most `connections`, and longer reads as many again. With
        `direct_url`, `url` leads to a pooler by transaction, and `direct_url` past it. `custom_plans`: Postgres plans
        statements for their values; `clock_apart`: a statement of its own reads the clock that decides about jobs. Both
        are for Citus, which can do neither otherwise.

        Raises SchemaMismatch when the schema does not fit (it is not migrated here: several processes share it, and
        only `cambist migrate` changes it); NotConfigured for a database that cannot store every text, for a
        transaction pooler, and for a URL that cannot be parsed; Unavailable when the server does not answer.
        """
        marks = Marks()
        session_url, pooled = direct_url or url, direct_url is not None

        async def begin(connection: Any) -> str | None:
            # A new session may reach a server that has crashed, or another server, so reads on it must be confirmed.
            await confirm(connection)
            marks.location = await place_of(connection)
            return marks.location

        try:
            pool = await cls._units(url, connections, begin, pooled=pooled, custom_plans=custom_plans)
        except Unavailable as fault:
            if await waiting_for_standby(session_url):
                raise Unavailable(REASON) from fault
            raise
        try:
            with translated():
                async with pool.acquire() as connection:
                    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
                    found, beside = await postgres_current(connection), await postgres_beside(connection)
                    shared = await _is_shared(session_url) if pooled else await is_shared(connection, url)
            require_utf8(encoding)
            require_own_session(shared=shared)
            require_head(found, beside)
            # The pool makes its connections when they are first needed.
            with translated():
                reading = await create_pool(
                    url,
                    READS,
                    within=ACQUIRE_SECONDS,
                    then=begin,
                    pooled=pooled,
                    min_size=0,
                    max_size=connections,
                    command_timeout=_READ_SECONDS,
                    reset=leave,
                )
        except BaseException:
            pool.terminate()
            raise
        gate = Gate()
        units, reads = Connections(pool, gate), Connections(reading, gate, mapped=0)
        gate.pools = (units, reads)

        async def commit() -> None:
            await units.fetch(CONFIRM, ())

        stall = Stall(gate, lambda: ask_by_itself(url))
        standby = Standby(gate, commit, lambda: commit_apart(session_url), lambda: waiting_for_standby(session_url))
        stall.watch()
        standby.watch()
        return cls(units, reads, (stall, standby), marks, clock, wake_up, catalogue, clock_apart=clock_apart)

    @staticmethod
    async def _units(url: str, connections: int, begin: Greet, *, pooled: bool, custom_plans: bool) -> Any:
        """Make the pool for units. Raises: NotConfigured; Unavailable."""
        with translated():
            pool: Any = await create_pool(
                url,
                UNITS | ({"plan_cache_mode": "force_custom_plan"} if custom_plans else {}),
                within=ACQUIRE_SECONDS,
                then=begin,
                pooled=pooled,
                min_size=1,
                max_size=connections,
                command_timeout=_COMMAND_SECONDS,
                statement_cache_size=_STATEMENTS,
                reset=leave,
            )
        return pool

    @property
    def _reader(self) -> Reader:
        return self._hot

    async def _ask(self, text: str, parameters: Sequence[Any]) -> Sequence[Row]:
        self._refuse_when_closed()
        with translated():
            return await self._long.fetch(text, parameters)

    @asynccontextmanager
    async def _seen_at_once(self) -> AsyncIterator[Ask]:
        with translated():
            connection = await self._long.take()
        try:
            seen = connection.transaction(isolation="repeatable_read", readonly=True)
            with translated():
                await seen.start()

            async def ask(text: str, parameters: Sequence[Any]) -> Sequence[Row]:
                with translated():
                    rows: Sequence[Row] = await connection.fetch(text, *parameters)
                return rows

            try:
                yield ask
            finally:
                with translated():
                    await seen.rollback()
        finally:
            await self._long.drop(connection)

    async def recent(self, kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:
        """Return the record from a read at most `within` seconds old, or read it now."""
        known = self._recent.known(kind, record_id, within)
        if known is not None:
            return known[1]
        return await self._recent.read(table_map_of(self._table_maps, kind), record_id, self._hot.get)

    async def claim(
        self, limit: int, lease: float, *, kind: str | None = None, but_kind: str | None = None
    ) -> list[Job]:
        """Claim due jobs, and skip those that another worker is claiming."""
        span = lease_microseconds(lease)
        claim = self._job_statements.claim(
            limit=limit, lease=span, now=await self._moment(), kind=kind, but_kind=but_kind
        )
        if limit <= 0:
            return []
        return await self._claimed(await self._fetch(*claim))

    async def _take_out(self, row: Row, note: UnreadableRow) -> None:
        await self._fetch(*taken_out_of_postgres(self._jobs, row, note))

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Extend leases.

        Jobs that a unit is writing are skipped, because the two could deadlock. The next renewal includes them.
        """
        span = lease_microseconds(lease)
        if jobs:
            ours = [job.id for job in jobs], [job.version for job in jobs]
            now = await self._moment()
            await (self._fetch(_RENEW, (*ours, span)) if now is None else self._fetch(_RENEW_AT, (*ours, now, span)))

    async def next_due(self) -> datetime | None:
        """Return when the earliest job without a live lease is due."""
        rows = await self._fetch(*self._job_statements.next_due.with_values(now=await self._moment()))
        return nearest_moment(rows[0][0]) if rows else None

    async def now(self) -> datetime:
        """Return the time of the injected clock, or the database's time."""
        if self._clock is not None:
            return self._clock.now()
        found: datetime = (await self._fetch("SELECT clock_timestamp()"))[0][0]
        return found

    async def check(self) -> None:
        """Write and read the heartbeat, over both pools. A full disk is known from the last unit that failed on it."""
        self._room.check()
        now = microseconds(await self.now())
        await self._fetch(beat("$1"), (now,))
        await self._ask(f"SELECT beaten_at FROM {HEARTBEAT}", ())  # noqa: S608 - nothing from outside

    @property
    def process(self) -> str:
        """The id under which this process marks itself."""
        return self._marks.process

    def location(self) -> str | None:
        """Return the location that the newest connection reached, if this process found all of its commits there."""
        return self._marks.examined()

    def follows(self, former: str, present: str) -> bool:
        """Return whether `present` is a later timeline of the same database."""
        return follows(former, present)

    async def mark(self) -> Sequence[Witness]:
        """Mark this process, and return the marks of all processes."""
        return await self._marks.mark(self._fetch)

    async def witnesses(self) -> Sequence[Witness]:
        """Return the marks of all processes."""
        return await self._marks.witnesses(self._fetch)

    def begin_anew(self) -> None:
        """Continue under another id."""
        self._marks.begin_anew()

    async def close(self) -> None:
        """Let running units end, then disconnect."""
        if self._closed:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._notes.again(), _COMMAND_SECONDS)
        with suppress(TimeoutError, Unavailable):
            await asyncio.wait_for(self._leave(), _COMMAND_SECONDS)
        self._closed = True
        for watch in self._watches:
            await watch.end()
        try:
            # A hanging connection must not keep the process from ending.
            await asyncio.wait_for(self._end(), _COMMAND_SECONDS)
        except TimeoutError:
            self._pool.terminate()
            self._long.terminate()

    async def _leave(self) -> None:
        await self._groups.close()
        await self._marks.leave(self._fetch)

    async def _end(self) -> None:
        await self._groups.close()
        await self._woken_up_late()
        await self._pool.close()
        await self._long.close()
        self._recent.forget_all()

    def _now(self) -> int | None:
        """Return the present time for the statements; None leaves it to the database."""
        return None if self._clock is None else microseconds(self._clock.now())

    async def _fetch(self, statement: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """Return all rows of a quick statement, which is its own transaction. Raises Unavailable."""
        self._refuse_when_closed()
        with translated():
            return await self._pool.fetch(statement, parameters)

    async def _apply(self, pending: Pending) -> None:
        self._refuse_when_closed()
        try:
            with translated():
                late = partial(self._wrote_late, pending)
                await self._groups.carry_out(pending.all_writes(), late, durable=pending.durable)
        except Unavailable as fault:
            self._room.refused(fault)
            raise
        else:
            self._room.taken()
        finally:
            self._recent.forget(pending)
        await wake_up_safely(self._wake_up, pending.jobs)
