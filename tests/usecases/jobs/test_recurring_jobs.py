"""Recurring jobs (core/usecases/recurring_jobs.py): every worker creates the missing ones, each independently of the
others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import msgspec
import pytest

from cambist.core.usecases import recurring_jobs
from cambist.core.usecases.recurring_jobs import RECURRING_JOBS, missing_recurring_jobs, start_recurring_jobs
from cambist.core.usecases.settlement.settlement import DAILY
from cambist.frontends.worker.loop import RECURRING_POLL, Worker
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Unit
from tests.apps import TestApp
from tests.race_barriers import OtherCommit


class Locked:
    """A storage that refuses commits while another process holds it."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.locked = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self._storage.unit() as unit:

            async def commit() -> None:
                if self.locked:
                    raise Unavailable("database is locked")
                await unit.commit()

            yield OtherCommit(unit, commit)


def over(app: TestApp, storage: Any) -> Ports:
    return msgspec.structs.replace(app.ports, storage=storage)


@asynccontextmanager
async def working(app: TestApp, ports: Ports) -> AsyncIterator[None]:
    worker = Worker(ports)
    task = asyncio.create_task(worker.work())
    await app.clock.advance(0)
    try:
        yield
    finally:
        worker.stop()
        while not task.done():
            await app.clock.advance(1)
        task.result()


async def test_job_that_cannot_be_written_does_not_stop_the_others(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Ports) -> NoReturn:
        raise Unavailable("this one alone")

    first = next(iter(RECURRING_JOBS))
    monkeypatch.setattr(recurring_jobs, "RECURRING_JOBS", {**RECURRING_JOBS, first: refuse})
    with pytest.raises(Unavailable):
        await start_recurring_jobs(app.ports)
    assert await missing_recurring_jobs(app.ports) == (first,)


async def test_a_start_that_meets_a_locked_storage_ends_well_once_it_is_free(app: TestApp) -> None:
    storage = Locked(app.ports.storage)
    async with working(app, over(app, storage)):
        await app.clock.advance(300)
        assert set(await missing_recurring_jobs(app.ports)) == set(RECURRING_JOBS)
        storage.locked = False
        await app.clock.advance(RECURRING_POLL)
        assert await missing_recurring_jobs(app.ports) == ()


async def test_a_short_lock_delays_them_by_seconds(app: TestApp) -> None:
    storage = Locked(app.ports.storage)
    async with working(app, over(app, storage)):
        await app.clock.advance(10)
        storage.locked = False
        await app.clock.advance(10)
        assert await missing_recurring_jobs(app.ports) == ()


async def test_job_deleted_while_a_worker_works_comes_back(app: TestApp) -> None:
    async with working(app, app.ports):
        async with app.ports.storage.unit() as unit:
            daily = await unit[Job].get(DAILY)
            assert daily is not None
            unit[Job].remove(daily)
            await unit.commit()
        await app.clock.advance(RECURRING_POLL)
        assert await missing_recurring_jobs(app.ports) == ()
