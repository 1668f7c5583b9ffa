"""A machine's clock that is set by hours (core/usecases/clock_steps.py): nothing waits for longer than 10 s for it, and
nothing is done twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases import clock_steps
from cambist.core.usecases.clock_steps import STEP, ClockWatch, SetBack, found_set_back, put_right
from cambist.core.usecases.jobs import WORKER_LEASE
from cambist.core.usecases.ledger.ledger import EXTEND_CHAINS
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.settlement.settlement import DAILY
from cambist.core.usecases.webhooks.results import TIMER
from cambist.frontends.worker import clock
from cambist.frontends.worker.loop import Worker
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult
from cambist.ports.storage import Clocked
from tests.apps import TestApp
from tests.clock_kit import advance
from tests.invariants import everything
from tests.tables import table

HOUR = 3600.0
PROMPT = 10.0
"""Seconds by which a step may delay anything."""
NO = DeliveryResult(answer=Answer.RESPONDED, status=500)


@asynccontextmanager
async def working(app: TestApp) -> AsyncIterator[None]:
    worker = Worker(app.ports)
    task = asyncio.create_task(worker.work())
    await app.clock.advance(0)
    try:
        yield
    finally:
        worker.stop()
        while not task.done():
            await app.clock.advance(1)
        task.result()


async def pay(app: TestApp) -> str:
    payment = await app.created()
    await app.simulate(payment["id"], outcome="paid")
    return str(payment["id"])


def told(app: TestApp) -> Counter[str]:
    """How often each payment's event was taken."""
    return Counter(body["payment_id"] for body in app.postman.bodies)


async def job_of(app: TestApp, kind: str) -> Job:
    async with app.ports.storage.unit() as unit:
        [found] = [job for job in await unit[Job].find(limit=100) if job.kind == kind]
    return found


@pytest.mark.parametrize("steps", [(-3, 27), (27, -3), (24, -24), (-24, 24)])
async def test_simulated_payment_stands_as_answered(app: TestApp, steps: tuple[int, int]) -> None:
    """A payment that the clock made older than 6 hours before it was paid is answered `expired`, with its money in
    suspense. No other answer is followed by an expiry."""
    answered: dict[str, str] = {}

    async def simulated(payment_id: str) -> None:
        response = await app.simulate(payment_id, outcome="paid")
        assert response.status_code == 200
        answered[payment_id] = response.json()["status"]

    async with working(app):
        for step in steps:
            in_flight = [(await app.created())["id"] for _ in range(2)]
            await simulated((await app.created())["id"])
            app.clock.step(step * HOUR)
            await simulated(in_flight[0])
            await app.clock.advance(PROMPT)
            await simulated(in_flight[1])
            await simulated((await app.created())["id"])
        await app.clock.advance(HOUR)
    stand = {each: (await app.payment(each)).status.value.replace("settled", "paid") for each in answered}
    assert stand == answered
    late = [each for each, status in answered.items() if status == "expired"]
    assert len(late) == 2 * sum(step > 6 for step in steps)
    suspended = await everything(app.ports, Suspense)
    assert sorted(each.payment_id for each in suspended) == sorted(late)
    assert {each.reason for each in suspended} == {"too_late"}


@pytest.mark.parametrize("hours", [1, -1, 3, -3])
async def test_events_go_out_once_and_promptly_through_a_clock_step(app: TestApp, hours: int) -> None:
    paid = []
    async with working(app):
        for step in (hours, -hours):
            paid.append(await pay(app))
            app.clock.step(step * HOUR)
            paid.append(await pay(app))
            await app.clock.advance(PROMPT)
            assert told(app) == dict.fromkeys(paid, 1)
        paid.append(await pay(app))
        await app.clock.advance(PROMPT)
    assert told(app) == dict.fromkeys(paid, 1)


async def test_job_written_while_the_clock_was_ahead_is_done_at_once(app: TestApp) -> None:
    app.clock.step(3 * HOUR)
    paid = await pay(app)
    async with working(app):
        pass  # it has seen the clock ahead, and ends with the webhooks under way
    app.postman.webhooks.clear()
    later = await pay(app)
    app.clock.step(-3 * HOUR)
    async with working(app):
        await app.clock.advance(PROMPT)
    assert told(app)[later] == 1
    assert told(app)[paid] <= 1


@pytest.mark.parametrize("read", [False, True], ids=["before the read", "after the read"])
async def test_a_step_just_while_a_worker_begins_is_seen(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    """Stored times are compared when the worker starts, and a clock that is ahead finds none in the future (seed
    30597)."""
    app.clock.step(3 * HOUR)
    payment = await pay(app)

    async def found(ports: Ports) -> SetBack | None:
        before = await found_set_back(ports) if read else None
        app.clock.step(-3 * HOUR)
        return before if read else await found_set_back(ports)

    monkeypatch.setattr(clock, "found_set_back", found)
    async with working(app):
        await app.clock.advance(PROMPT)
    assert told(app) == {payment: 1}


async def test_webhook_waiting_for_its_next_attempt_goes_out_in_time(app: TestApp) -> None:
    async with working(app):
        app.clock.step(HOUR)
        app.postman.answers = [NO, NO]
        paid = await pay(app)
        await app.clock.advance(1.5)
        app.clock.step(-HOUR)
        await app.clock.advance(PROMPT)
    assert told(app)[paid] == 3, "two that were refused, and one that was taken"


async def test_a_breaker_that_opened_while_it_was_ahead_probes_at_its_time(app: TestApp) -> None:
    async with working(app):
        app.clock.step(HOUR)
        app.postman.answers = [NO] * 12
        for _ in range(4):
            await pay(app)
        await app.clock.advance(20)
        async with app.ports.storage.unit() as unit:
            breaker = await unit[Breaker].get(endpoint_id(app.account.account_id, Mode.TEST))
        assert breaker is not None
        assert breaker.is_open
        app.clock.step(-HOUR)
        app.postman.answers = []
        await app.clock.advance(30 + PROMPT)
        async with app.ports.storage.unit() as unit:
            left = await unit[Delivery].find(status=DeliveryStatus.PENDING, limit=10)
    assert left == []


async def test_the_work_of_a_worker_that_died_while_it_was_ahead_is_taken_up(app: TestApp) -> None:
    app.clock.step(HOUR)
    paid = await pay(app)
    assert await app.ports.storage.claim(10, 8.0)
    app.clock.step(-HOUR)
    async with working(app):
        await app.clock.advance(PROMPT)
    assert told(app) == {paid: 1}


@pytest.mark.parametrize("starts", ["before", "after"])
async def test_the_work_of_a_worker_that_dies_after_the_step_is_taken_up(app: TestApp, starts: str) -> None:
    """A worker that saw the step takes the jobs over, and so does a worker that starts later and finds no other future
    times."""

    async with AsyncExitStack() as stack:
        job = await later_job(app)
        if starts == "before":
            await stack.enter_async_context(working(app))
        app.clock.step(HOUR)
        claimed = await app.ports.storage.claim(10, WORKER_LEASE)
        assert job in [each.id for each in claimed]
        await app.clock.advance(1.5)
        app.clock.step(-HOUR)
        await app.ports.storage.renew(claimed, WORKER_LEASE)  # as its worker does when it sees the step
        if starts == "after":
            await stack.enter_async_context(working(app))
        await app.clock.advance(WORKER_LEASE + PROMPT)
        done = await app.ports.storage.get(Job, job)
    assert done is not None
    assert done.due > app.clock.now() + timedelta(hours=20), "it was done, and comes back in a day"


async def test_a_webhook_whose_timer_rang_before_the_step_has_another(app: TestApp) -> None:
    """The timer woke the receiver's job, whose worker died. By the clock that was set back the webhook is not due
    yet."""
    app.clock.step(HOUR)
    app.postman.answers = [NO]
    async with working(app):
        paid = await pay(app)
        await app.clock.advance(0.5)
        timer = await job_of(app, TIMER)
    async with app.ports.storage.unit() as unit:
        unit[Job].remove(timer)
        await unit.commit()
    seen = app.clock.now() - timedelta(seconds=10)
    app.clock.step(-HOUR)
    assert await put_right(app.ports, SetBack(by=seen - app.clock.now(), seen=seen)) > 0
    async with working(app):
        await app.clock.advance(30)
    assert told(app)[paid] == 2, "one that was refused, and one that was taken"


async def later_job(app: TestApp) -> str:
    """Add a job from before the step, due while the clock is ahead."""
    now = app.clock.now()
    job = Job(id="feed.tidy:later", kind="feed.tidy", argument="", due=now + timedelta(minutes=30), created_at=now)
    async with app.ports.storage.unit() as unit:
        unit[Job].add(job)
        await unit.commit()
    return job.id


async def test_test_clock_that_is_ahead_is_corrected_likewise(app: TestApp) -> None:
    await advance(app, timedelta(days=2))
    async with working(app):
        app.clock.step(HOUR)
        app.postman.answers = [NO]
        paid = await pay(app)
        await app.clock.advance(0.5)
        app.clock.step(-HOUR)
        later = await pay(app)
        await app.clock.advance(PROMPT)
    assert told(app)[paid] == 2, "one that was refused, and one that was taken"
    assert told(app)[later] == 1


async def test_standing_jobs_come_no_later_than_they_would_anew(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    async with working(app):
        app.clock.step(3 * HOUR)
        await app.clock.advance(5)
        app.clock.step(-3 * HOUR)
        await app.clock.advance(5)
        now = app.clock.now()
        assert (await job_of(app, EXTEND_CHAINS)).due <= now + timedelta(hours=1)
        assert (await job_of(app, DAILY)).due <= now + timedelta(days=1)


async def test_a_deadline_that_was_set_before_stays(app: TestApp) -> None:
    """Beyond whatever pause could have been set while the clock was ahead."""
    now = app.clock.now()
    due = now + timedelta(hours=6)
    job = Job(id="feed.tidy:later", kind="feed.tidy", argument="", due=due, created_at=now)
    async with app.ports.storage.unit() as unit:
        unit[Job].add(job)
        await unit.commit()
    async with working(app):
        app.clock.step(HOUR)
        await app.clock.advance(5)
        app.clock.step(-HOUR)
        await app.clock.advance(5)
        kept = await app.ports.storage.get(Job, job.id)
    assert kept is not None
    assert kept.due == due


async def test_failed_correction_of_a_step_is_retried(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    right = clock_steps.put_right
    tries = 0

    async def failing(*given: object) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("away")
        return await right(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(clock, "put_right", failing)
    async with working(app):
        app.clock.step(HOUR)
        await app.clock.advance(3)
        app.postman.answers = [NO]
        paid = await pay(app)
        await app.clock.advance(0.5)
        app.clock.step(-HOUR)
        await app.clock.advance(PROMPT)
    assert tries >= 3
    assert told(app)[paid] == 2


async def test_outcome_entered_late_by_the_fast_clock_is_corrected(app: TestApp) -> None:
    """An outcome is entered some time after it came."""
    async with working(app):
        app.clock.step(HOUR)
        paid = await pay(app)
        await app.clock.advance(1)
        ahead = app.clock.now()
        app.clock.step(-HOUR)
        await app.clock.advance(1.2)  # after a sweep: all is put right
        now = app.clock.now()
        late = Job(id="feed.tidy:late", kind="feed.tidy", argument="", due=ahead + timedelta(seconds=5), created_at=now)
        legitimate = msgspec.structs.replace(late, id="feed.tidy:kept", due=now + timedelta(minutes=50))
        async with app.ports.storage.unit() as unit:
            unit[Job].add(late)
            unit[Job].add(legitimate)
            await unit.commit()
        await app.clock.advance(PROMPT)
        due = {
            job: kept.due - now
            for job in ("feed.tidy:late", "feed.tidy:kept")
            if (kept := await app.ports.storage.get(Job, job)) is not None
        }
    assert due["feed.tidy:late"] >= timedelta(hours=20), "it was done, and comes back in a day"
    assert due["feed.tidy:kept"] == timedelta(minutes=50), "what was written since is left alone"
    assert told(app) == {paid: 1}


@table(("seconds", "seen"), [(HOUR, HOUR), (-HOUR, -HOUR), (1.9, 0), (-1.9, 0), (2, 2), (0, 0)])
async def test_step_is_recognised_by_its_size_and_passing_time_is_none(seconds: float, seen: float) -> None:
    clock = VirtualClock()
    watch = ClockWatch(clock)
    await clock.advance(100)
    clock.step(seconds)
    assert watch.look() == timedelta(seconds=seen)
    assert watch.look() == timedelta(0)


def test_two_waiting_steps_are_corrected_together() -> None:
    now = VirtualClock().now()
    first, second = SetBack(by=STEP, seen=now + 3 * STEP), SetBack(by=2 * STEP, seen=now)
    assert second.and_before(first) == SetBack(by=3 * STEP, seen=now + 3 * STEP)
    assert second.and_before(None) is second


async def test_a_storage_with_a_clock_of_its_own_is_left_alone(app: TestApp) -> None:
    class Elsewhere:
        """Says nothing of whose clock it goes by."""

    assert not isinstance(Elsewhere(), Clocked)
    assert isinstance(app.ports.storage, Clocked)
    assert app.ports.storage.by_own_clock


async def test_start_corrects_nothing_if_the_clock_was_never_ahead(app: TestApp) -> None:
    """Nor where a test account's own clock is."""
    await start_recurring_jobs(app.ports)
    await advance(app, timedelta(days=300))
    await pay(app)
    assert await found_set_back(app.ports) is None
