"""View of the storage at a test clock (ports/clock.py: TestClock; docs/sandbox.md "The clock"): the only module that
converts between test time and the storage's time.

At a test clock, use cases read and write only test times. A job is stored with two times: `moment`, when it is due
by its test clock, and `due`, the same by the storage's clock, which alone decides claims. Outside all test clocks,
records appear as they are stored.
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
from ...ports.forwarding import ForwardingRepository, ForwardingStorage
from ...ports.jobs import Job
from ...ports.storage import R, Repository, Storage, Unit

ASIDE = timedelta(seconds=30)
"""Delay of a job that is written while its test clock is advanced.

No worker claims it meanwhile, and if the advance is lost, the job is found after the delay.
"""

_PATIENCE = 10.0
"""Seconds that a task waits for the lock. The tasks before it may be waiting for a database that does not answer."""


class _Turn:
    """Fair lock, granted in the order of requests. It is its own context manager, shared by all waiting tasks."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._whose: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> None:
        """Wait for the lock.

        Raises: Unavailable after `_PATIENCE` seconds; RuntimeError in the task that holds the lock, which would
        deadlock.
        """
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
    """Storage (ports/storage.py) over another one, at the test clock that is entered when it is used.

    Workers claim outside all test clocks and then enter the clock of each job. Leases end by the storage's clock.
    """

    def __init__(self, storage: Storage, clock: TestTimeClock) -> None:
        super().__init__(storage)
        self._clock = clock
        self._turn = _Turn()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the fair lock of this process, as the port Queueing defines it."""
        return self._turn

    def unit(self) -> AbstractAsyncContextManager[Unit]:
        """Return a unit that converts jobs at each use to the test clock that is entered then."""
        return _Unit(self.inner.unit(), self._clock)

    def get(self, kind: type[R], record_id: str, /) -> Coroutine[Any, Any, R | None]:
        """Return the record; a job is converted to the test clock that is entered."""
        if kind is Job:
            return cast("Coroutine[Any, Any, R | None]", self._job(record_id))
        return self.inner.get(kind, record_id)

    async def _job(self, record_id: str) -> Job | None:
        async with self.unit() as unit:
            return await unit[Job].get(record_id)

    async def now(self) -> datetime:
        """Return the time of the storage's clock, plus the offset of the test clock that is entered."""
        test_clock = self._clock.test_clock
        now = await self.inner.now()
        return now if test_clock is None else now + test_clock.offset


class _Unit(msgspec.Struct, eq=False):
    """Unit that forwards everything but its jobs.

    It is a struct, and `commit` returns the inner coroutine, because every request pays for it.
    """

    _opening: AbstractAsyncContextManager[Unit]
    _clock: TestTimeClock
    _unit: Unit = msgspec.UNSET  # type: ignore[assignment]  # until it is entered

    async def __aenter__(self) -> Self:
        self._unit = await self._opening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, fault, trace)

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        if kind is Job and (test_clock := self._clock.test_clock) is not None:
            jobs: Repository[Job] = _JobsInTestTime(self._unit[Job], test_clock, self._clock)
            return cast("Repository[R]", jobs)
        return self._unit[kind]

    def commit(self, *, durable: bool = True) -> Coroutine[Any, Any, None]:
        return self._unit.commit(durable=durable)


class _JobsInTestTime(ForwardingRepository[Job], eq=False):
    """Repository of jobs at a test clock.

    It converts this clock's jobs and leaves all others unchanged. A new job belongs to this test clock.
    """

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
        # A use case may save a job that it just added, without a read: it has version 0, and no test clock yet.
        mine = self._of_here(record) if record.world is None and record.version == 0 else record
        return self._seen(self.inner.save(self._kept(mine)))

    def change(self, record: Job, /, **changes: Any) -> Job:
        return self.save(msgspec.structs.replace(record, **changes))

    def accrue(self, *records: Job) -> None:
        self.inner.accrue(*(self._kept(self._of_here(record)) for record in records))

    def _of_here(self, job: Job) -> Job:
        return msgspec.structs.replace(job, world=self._test_clock.id)

    def _seen(self, job: Job) -> Job:
        """Convert a stored job to this test clock's times."""
        if job.world != self._test_clock.id:
            return job
        due = job.due + self._test_clock.offset if job.moment is None else job.moment
        lease = None if job.leased_until is None else job.leased_until + self._test_clock.offset
        return msgspec.structs.replace(job, due=due, leased_until=lease)

    def _kept(self, job: Job) -> Job:
        """Convert a job to the times that are stored.

        While the clock is advanced, `due` is so far ahead that no worker claims the job (`ASIDE`).
        """
        if job.world != self._test_clock.id:
            return job
        due = job.due - self._test_clock.offset
        if self._test_clock.is_advancing:
            due = max(due, self._clock.real() + ASIDE)
        lease = None if job.leased_until is None else job.leased_until - self._test_clock.offset
        return msgspec.structs.replace(job, due=due, moment=job.due, leased_until=lease)
