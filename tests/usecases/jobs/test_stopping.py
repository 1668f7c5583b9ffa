"""A process ends within its grace period after SIGTERM, whatever hangs in it, and leaves its jobs to others."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.frontends.app.compose import open_app
from cambist.frontends.app.stopping import Stopping, closed_soon
from cambist.frontends.settings.settings import Settings
from cambist.frontends.worker import loop
from cambist.frontends.worker.loop import Worker
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job


class TestBudget:
    async def test_jobs_have_what_requests_left_but_for_the_closing(self) -> None:
        clock = VirtualClock()
        stopping = Stopping(clock, 10)
        stopping.begin()
        assert stopping.for_requests == pytest.approx(7)
        await clock.advance(3)
        stopping.begin(1)
        assert stopping.left_for_jobs() == pytest.approx(5), "told twice, the first time counts"
        await clock.advance(6)
        assert stopping.left_for_jobs() == 0

    async def test_time_left_for_jobs_begins_when_it_is_first_read(self) -> None:
        clock = VirtualClock()
        stopping = Stopping(clock, 10)
        await clock.advance(100)
        assert stopping.left_for_jobs() == pytest.approx(8)

    @pytest.mark.parametrize("status", [0, 1])
    def test_at_last_the_process_is_ended_with_the_status_it_was_to_end_with(
        self, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        ended, statuses = threading.Event(), list[int]()

        def at_last(status: int) -> None:
            statuses.append(status)
            ended.set()

        with caplog.at_level(logging.WARNING):
            Stopping(VirtualClock(), 0.01, at_last).begin(status)
            assert ended.wait(30)
        assert statuses == [status]
        assert "does not end" in caplog.text


class TestClosing:
    async def test_hanging_close_is_abandoned(self, caplog: pytest.LogCaptureFixture) -> None:
        async def hangs() -> None:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if let_go:
                        raise

        let_go: list[bool] = []
        with caplog.at_level(logging.WARNING):
            await closed_soon("the queue", hangs, within=0.001)
        assert "the queue could not be closed" in caplog.text
        let_go.append(True)

    async def test_error_of_a_close_is_raised(self) -> None:
        async def fails() -> None:
            raise Unavailable("gone")

        with pytest.raises(Unavailable):
            await closed_soon("the queue", fails)


class TestLeases:
    """The next worker can claim jobs immediately that were given up at the end."""

    @pytest.fixture
    async def ports(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
        async def hangs(_: Ports, job: Job) -> None:
            await asyncio.Event().wait()

        async def nothing(_: Ports) -> None:
            """Write no recurring jobs: only the jobs of the test run."""

        monkeypatch.setattr(loop, "HANDLERS", {"slow": hangs})
        monkeypatch.setattr(loop, "start_recurring_jobs", nothing)
        settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
        async with open_app(settings, clock=VirtualClock(), ids=SeededIds()) as app:
            now = app.ports.clock.now()
            async with app.ports.storage.unit() as unit:
                for number in range(3):
                    unit[Job].add(Job(id=f"slow:{number}", kind="slow", argument="", due=now, created_at=now))
                await unit.commit()
            yield app.ports

    @staticmethod
    async def begun(ports: Ports) -> tuple[Worker, "asyncio.Task[None]"]:
        worker = Worker(ports)
        working = asyncio.create_task(worker.work())
        clock = ports.clock
        while worker.under_way < 3:
            await clock.sleep(0)
        return worker, working

    async def test_leases_are_returned_on_leaving(self, ports: Ports) -> None:
        worker, working = await self.begun(ports)
        assert await ports.storage.claim(10, 8.0) == []
        worker.stop()
        working.cancel()
        await worker.leave()
        assert sorted([job.id for job in await ports.storage.claim(10, 8.0)]) == ["slow:0", "slow:1", "slow:2"]

    async def test_job_held_by_another_worker_stays_with_it(self, ports: Ports) -> None:
        worker, working = await self.begun(ports)
        async with ports.storage.unit() as unit:
            job = await unit[Job].get("slow:1")
            assert job is not None
            unit[Job].change(job, attempts=job.attempts + 1)
            await unit.commit()
        worker.stop()
        working.cancel()
        await worker.leave()
        assert sorted([job.id for job in await ports.storage.claim(10, 8.0)]) == ["slow:0", "slow:2"]
