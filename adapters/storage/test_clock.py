"""The storage as it is seen from a test clock (ports/clock.py: TestClock): the one place where a test time meets the
storage's own.

Use cases speak of their test time only. A job is kept with both: the `moment` at which it is due in its test time, and
`due`, what that is by the storage's clock, so that claiming asks nothing but that. Outside of all test clocks records
are as they are stored.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from ...ports.clock import TestClock, TestTimeClock
from ...ports.faults import Unavailable
from ...ports.forwarding import ForwardingShelf, ForwardingStorage
from ...ports.jobs import Job
from ...ports.storage import R, Shelf, Storage, Unit

ASIDE = timedelta(seconds=30)
"""How far from now the jobs of a test clock are kept from workers while its clock is being advanced."""


_PATIENCE = 10.0
"""Seconds that somebody waits for his turn: those before him may be waiting for a database that does not answer."""


class _Turn:
    """One at a time, in the order of coming. It is its own context manager, for all who wait."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._whose: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> None:
        """Raises: Unavailable after some seconds; RuntimeError for who has the turn already and would wait for ever."""
        if self._whose is asyncio.current_task():
            raise RuntimeError("who has the turn asks for it again")
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._lock.acquire()
        except TimeoutError:
            raise Unavailable("too many units change the same records") from None
        self._whose = asyncio.current_task()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._whose = None
        self._lock.release()


class TestClockStorage(ForwardingStorage):
    """A Storage (ports/storage.py) over another one, seen from whatever test clock is in force. Workers claim
    outside of all test time, and enter each job's own; leases are the storage's time."""

    def __init__(self, storage: Storage, clock: TestTimeClock) -> None:
        super().__init__(storage)
        self._clock = clock
        self._turn = _Turn()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """As the port Queueing has it, for this process."""
        return self._turn

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """A unit whose jobs are, at each use, those of the test clock in force."""
        return _Unit(self.inner.unit(), self._clock)

    async def get(self, kind: type[R], record_id: str, /) -> R | None:
        """The record; a job as it is by the test clock in force."""
        if kind is Job:
            return cast("R | None", await self._job(record_id))
        return await self.inner.get(kind, record_id)

    async def _job(self, record_id: str) -> Job | None:
        async with self.unit() as unit:
            return await unit[Job].get(record_id)

    async def now(self) -> datetime:
        """The storage's clock, and the test clock's offset."""
        test_clock = self._clock.test_clock
        now = await self.inner.now()
        return now if test_clock is None else now + test_clock.offset


class _Unit(msgspec.Struct, eq=False):
    """Every request passes here: a struct, and what only hands on (`commit`) is no coroutine of its own."""

    _opening: AbstractAsyncContextManager[Unit]
    _clock: TestTimeClock
    _unit: Unit = msgspec.UNSET  # type: ignore[assignment]  # until it is entered

    async def __aenter__(self) -> Self:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opening.__aexit__(kind, fault, trace)

    def __getitem__(self, kind: type[R], /) -> Shelf[R]:
        if kind is Job and (test_clock := self._clock.test_clock) is not None:
            jobs: Shelf[Job] = _JobsInTestTime(self._unit[Job], test_clock, self._clock)
            return cast("Shelf[R]", jobs)
        return self._unit[kind]

    def commit(self) -> Coroutine[Any, Any, None]:
        return self._unit.commit()


class _JobsInTestTime(ForwardingShelf[Job], eq=False):
    """The jobs, each that is of this test clock as it is there. What is written here is of this test clock; jobs that
    were read and are of none, or of another, are left alone."""

    _test_clock: TestClock
    _clock: TestTimeClock

    async def get(self, record_id: str, /) -> Job | None:
        job = await self.inner.get(record_id)
        return None if job is None else self._seen(job)

    async def find(self, **asked: Any) -> list[Job]:
        return [self._seen(job) for job in await self.inner.find(**asked)]

    async def page(self, number: int, size: int, /, **asked: Any) -> list[Job]:
        return [self._seen(job) for job in await self.inner.page(number, size, **asked)]

    def add(self, record: Job, /) -> Job:
        mine = self._of_here(record)
        self.inner.add(self._kept(mine))
        return msgspec.structs.replace(mine, moment=mine.due)

    def save(self, record: Job, /) -> Job:
        # Its very first version may be saved unread, by whoever wrote it.
        mine = self._of_here(record) if record.world is None and record.version == 0 else record
        return self._seen(self.inner.save(self._kept(mine)))

    def change(self, record: Job, /, **changes: Any) -> Job:
        return self.save(msgspec.structs.replace(record, **changes))

    def accrue(self, *records: Job) -> None:
        self.inner.accrue(*(self._kept(self._of_here(record)) for record in records))

    def _of_here(self, job: Job) -> Job:
        return msgspec.structs.replace(job, world=self._test_clock.id)

    def _seen(self, job: Job) -> Job:
        """As it is in the test clock."""
        if job.world != self._test_clock.id:
            return job
        due = job.due + self._test_clock.offset if job.moment is None else job.moment
        lease = None if job.leased_until is None else job.leased_until + self._test_clock.offset
        return msgspec.structs.replace(job, due=due, leased_until=lease)

    def _kept(self, job: Job) -> Job:
        """As it is stored."""
        if job.world != self._test_clock.id:
            return job
        due = job.due - self._test_clock.offset
        if self._test_clock.is_advancing:
            due = max(due, self._clock.real() + ASIDE)
        lease = None if job.leased_until is None else job.leased_until - self._test_clock.offset
        return msgspec.structs.replace(job, due=due, moment=job.due, leased_until=lease)
