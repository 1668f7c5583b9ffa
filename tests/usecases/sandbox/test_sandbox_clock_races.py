"""The clock of a test account under races and crashes: nothing lost, nothing twice, the order kept
(docs/sandbox.md "The clock")."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.sandbox_clock import ClockWish
from cambist.core.domain.webhooks.delivery import LIFETIME
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.common.account_time import living_with
from cambist.core.usecases.jobs import do, run, run_due
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.clock import ADVANCE, AGAIN, IN_HAND, LEASE, TRIES, _Advance, advance, read_clock
from cambist.core.usecases.sandbox.clock_dues import STRAIGHTEN
from cambist.core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from cambist.core.usecases.sandbox.subscriptions import SubscriptionSimulation, simulate_subscription
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.storage import Unit
from tests.apps import TestApp, open_test_app
from tests.clock_kit import DAY, YEAR, ask, moment, record, standing
from tests.clock_kit import advance as advanced
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.subscription_app import bound
from tests.tables import table

T = TypeVar("T")
WISH = ClockWish(seconds=3600)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[TestApp, Caller, str]]:
    """An app with a payment that expires in 15 minutes."""
    async with open_test_app(database_url=url) as app:
        payment = await app.created()
        yield app, Caller(account=await record(app), mode=Mode.TEST, key_id="a-key"), payment["id"]


async def ticking(app: TestApp, work: Awaitable[T]) -> T:
    """Await `work` while time passes, a little at each turn, and slower than a database answers, so that no timeout
    ends before the work."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.001)
        await app.clock.advance(0.005)
    return await task


async def check(app: TestApp, payment_id: str) -> None:
    """The hour has passed as it would have without any problem."""
    shown = (await app.get(f"/payments/{payment_id}")).json()
    assert shown["status"] == "expired"
    [event] = await app.events(payment_id)
    # No worker runs the job between a crash and the end of the lease.
    late = moment(event["timestamp"]) - moment(shown["expires_at"])
    assert timedelta(0) <= late <= timedelta(seconds=LEASE + 2)
    assert {body["payment_id"] for body in app.postman.bodies} == {payment_id}
    [delivery] = await everything(app.ports, Delivery)
    assert delivery.delivered_at is not None
    present = await standing(app)
    assert not present["advancing"]
    assert present["now"] >= "2026-01-01T01:00:00.000Z"
    await app.work(120)
    kinds = {job.kind for job in await everything(app.ports, Job)}
    assert not kinds & {ADVANCE, STRAIGHTEN.kind}
    clock = (await record(app)).clock
    assert clock is not None
    for job in await everything(app.ports, Job):
        if job.world is not None:
            assert job.moment is not None
            assert job.due == job.moment - clock.ahead, job.id


@table("after", [False, True], ids=["before", "after"])
@table("at", range(1, 12))
async def test_an_advance_that_is_killed_at_any_commit_is_brought_to_its_end(at: int, after: bool) -> None:
    async with opened("memory://") as (app, caller, payment_id):
        fuse = CrashPoint(at, after=after)
        with suppress(Killed):
            await advance(fused(app.ports, fuse), caller, WISH, do)
        if fuse.commits == 1 and not after:
            assert (await record(app)).clock is None
            return
        # As after a kill -9, only the lease brings it back.
        await app.clock.advance(LEASE + 1)
        await run_due(app.ports)
        await check(app, payment_id)


@pytest.mark.parametrize(
    ("fails", "asked_for"), [(0, 0), (TRIES, None), (TRIES + 1, TRIES + 1)], ids=["never", "often", "too often"]
)
async def test_an_advance_goes_on_where_the_database_fails_now_and_then(
    monkeypatch: pytest.MonkeyPatch, fails: int, asked_for: int | None
) -> None:
    """The storage fails before each step, so the pauses after failures would repeat. If it is unavailable for longer,
    the job is rescheduled (seed 30645)."""
    step, failed, in_a_row = _Advance._step, 0, 0

    async def failing(self: _Advance, unit: Unit) -> Any:
        nonlocal failed, in_a_row
        if in_a_row < fails:
            failed, in_a_row = failed + 1, in_a_row + 1
            raise Unavailable("away")
        in_a_row = 0
        return await step(self, unit)

    async with opened("memory://") as (app, caller, payment_id):
        monkeypatch.setattr(_Advance, "_step", failing)
        asked = asyncio.ensure_future(advance(app.ports, caller, WISH, do))
        while not asked.done():
            await asyncio.sleep(0)
            await app.clock.advance(AGAIN / 2)
        if asked_for is not None:
            assert failed == asked_for
        if fails > TRIES:
            assert isinstance(asked.exception(), Unavailable)
            return
        await app.work(60)
        await check(app, payment_id)


async def test_two_advances_at_once_are_one(url: str) -> None:
    async with opened(url) as (app, _, payment_id):
        answers = await asyncio.gather(*(ask(app, timedelta(hours=1)) for _ in range(2)))
        done = [each for each in answers if each.status_code == 200]
        refused = [each.json()["error"]["code"] for each in answers if each.status_code != 200]
        assert len(done) + len(refused) == 2
        assert set(refused) <= {"INVALID_STATE"}
        assert len(done) >= 1
        assert moment((await standing(app))["now"]) == app.clock.now() + len(done) * timedelta(hours=1)
        await check(app, payment_id)


async def test_a_worker_at_the_same_time_leaves_the_jobs_to_the_advance(url: str) -> None:
    async with opened(url) as (app, caller, payment_id):

        async def works() -> None:
            while not task.done():
                await run_due(app.ports)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(advance(app.ports, caller, WISH, do))
        await ticking(app, works())
        await task
        await check(app, payment_id)


async def test_a_job_in_a_workers_hand_is_waited_for_and_counts_no_attempt(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(url) as (app, caller, payment_id):
        await app.clock.advance(900)
        [job] = await app.ports.storage.claim(1, 60, kind="payment.watch")
        clock, waits, go_on = app.ports.clock, asyncio.Event(), asyncio.Event()
        sleep = clock.sleep

        async def watched(seconds: float) -> None:
            """Let the advance poll only on request, and not between a job's run and its check."""
            if seconds == IN_HAND:
                waits.set()
                await go_on.wait()
            await sleep(seconds)

        monkeypatch.setattr(clock, "sleep", watched)
        task = asyncio.ensure_future(advance(app.ports, caller, WISH, do))
        await waits.wait()
        await run(app.ports, job)
        [kept] = [each for each in await everything(app.ports, Job) if each.id == job.id]
        assert (kept.attempts, kept.moment) == (0, job.moment)
        assert not task.done()
        go_on.set()
        await ticking(app, task)
        await check(app, payment_id)


async def test_progress_of_an_advance_is_visible_and_never_goes_back() -> None:
    async with open_test_app() as app:
        for number in range(5):
            await app.created({"external_id": str(number)})
            await app.clock.advance(60)
        seen: list[dict[str, Any]] = []

        class Curious:
            """A receiver that calls the service on each webhook."""

            async def send(self, webhook: WebhookRequest) -> DeliveryResult:
                present = await standing(app)
                body = msgspec.json.decode(webhook.body)
                found = (await app.get(f"/payments/{body['payment_id']}")).json()
                seen.append({**present, "told": body["timestamp"], "status": found["status"]})
                return DeliveryResult(answer=Answer.RESPONDED, status=200)

            async def close(self) -> None:
                """Do nothing: there are no connections."""

        ports = msgspec.structs.replace(app.ports, notifier=Curious())
        caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
        done = await advance(ports, caller, WISH, do)
        assert [each["advancing"] for each in seen] == [True] * 5
        assert [each["status"] for each in seen] == ["expired"] * 5
        assert all(each["now"] >= each["told"] for each in seen)
        assert [each["now"] for each in seen] == sorted(each["now"] for each in seen)
        assert [each["jobs_run"] for each in seen] == sorted({each["jobs_run"] for each in seen})
        assert [each["events_emitted"] for each in seen] == [1, 2, 3, 4, 5]
        assert done.target is None


async def test_payment_made_during_an_advance_is_processed_on_the_way(app: TestApp) -> None:
    """A receiver creates a payment when it gets the webhook of another's end."""
    first = await app.created()
    made: list[str] = []

    class Maker:
        async def send(self, webhook: WebhookRequest) -> DeliveryResult:
            if not made:
                made.append((await app.created())["id"])
            return DeliveryResult(answer=Answer.RESPONDED, status=200)

        async def close(self) -> None:
            """Do nothing: there are no connections."""

    ports = msgspec.structs.replace(app.ports, notifier=Maker())
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    await advance(ports, caller, WISH, do)
    [payment_id] = made
    shown = (await app.get(f"/payments/{payment_id}")).json()
    assert first["expires_at"] == shown["created_at"]
    assert shown["status"] == "expired"
    [event] = await app.events(payment_id)
    assert event["timestamp"] == shown["expires_at"]


async def test_unit_begun_before_an_advance_and_committed_after_loses_nothing(app: TestApp) -> None:
    """Its job was written by the former clock; the polls after the end correct it."""
    async with living_with(app.ports, app.account.account_id, Mode.TEST):
        await advanced(app, YEAR)
        late = Job(
            id=f"webhook.timer:{app.account.account_id}:test",
            kind="webhook.timer",
            argument=f"{app.account.account_id}:test",
            due=app.clock.now() + DAY,
            created_at=app.clock.now(),
        )
        async with app.ports.storage.unit() as unit:
            unit[Job].add(late)
            await unit.commit()
    [kept] = [each for each in await everything(app.ports, Job) if each.id == late.id]
    assert kept.due == app.clock.now() + DAY
    await app.work(3)
    assert late.id not in {each.id for each in await everything(app.ports, Job)}


async def test_payment_of_a_call_that_the_clock_overtook_expires_at_once(app: TestApp) -> None:
    """The call uses the time at which it began. Work that is due by its end runs at that later time."""
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    async with living_with(app.ports, app.account.account_id, Mode.TEST):
        await advanced(app, DAY)
        made = await create_payment(app.ports, caller, str(UUID(int=1)), lambda: PaymentOrder(amount_rub="100.00"))
    shown = (await app.get(f"/payments/{made.resource.id}")).json()
    assert (shown["status"], moment(shown["created_at"])) == ("pending", app.clock.now())
    await app.work(3)
    assert (await app.get(f"/payments/{made.resource.id}")).json()["status"] == "expired"
    [event] = await app.events(made.resource.id)
    late = app.clock.now() + DAY - moment(event["timestamp"])
    assert timedelta(0) <= late <= timedelta(seconds=3)


async def test_events_of_a_call_that_the_clock_overtook_stay_in_order(app: TestApp) -> None:
    """The call uses the time at which it began, and its events the time at which they are written. So they are not
    earlier than the object's last event, and receivers get them, however far the clock was moved."""
    payment, binding = await app.created(), await bound(app)
    began = app.clock.now()
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    async with living_with(app.ports, app.account.account_id, Mode.TEST):
        await advanced(app, 2 * LIFETIME)
        told = await simulate(app.ports, caller, payment["id"], PaymentSimulation(outcome="paid"))
        lost = SubscriptionSimulation(outcome="mandate_lost")
        await simulate_subscription(app.ports, caller, binding["id"], lambda: lost)
    await app.work(3)
    assert (told.status, told.paid_at) == ("paid", began)
    for object_id in (payment["id"], binding["id"]):
        bodies = await app.events(object_id)
        moments = [moment(body["timestamp"]) for body in bodies]
        assert moments == sorted(moments)
        assert moments[-1] == began + 2 * LIFETIME
    assert {delivery.status for delivery in await everything(app.ports, Delivery)} == {DeliveryStatus.DELIVERED}


class Slow:
    """A receiver that never answers, and takes long for it."""

    def __init__(self, app: TestApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds
        self.webhooks = 0

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.webhooks += 1
        await self.app.clock.sleep(self.seconds)
        return DeliveryResult(answer=Answer.TIMEOUT, status=None)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


async def test_dead_receiver_is_left_alone_after_one_unanswered_webhook(app: TestApp) -> None:
    await app.created()
    slow = Slow(app, 10)
    ports: Ports = msgspec.structs.replace(app.ports, notifier=slow)
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    done = await ticking_seconds(app, advance(ports, caller, ClockWish(seconds=30 * 86_400), do))
    assert done.target is None
    assert slow.webhooks == 1
    endpoints = [job for job in await everything(app.ports, Job) if job.kind.startswith("webhook.")]
    assert endpoints
    assert all(job.due <= app.clock.now() for job in endpoints)


async def ticking_seconds(app: TestApp, work: Awaitable[T]) -> T:
    task = asyncio.ensure_future(work)
    while not task.done():
        for _ in range(200):
            await asyncio.sleep(0)
        if not task.done():
            await app.clock.advance(0.5)
    return await task


async def test_a_caller_waits_twenty_seconds_at_most_and_a_worker_goes_on(app: TestApp) -> None:
    for _ in range(4):
        await app.created()
        await app.clock.advance(60)

    class Tired(Slow):
        async def send(self, webhook: WebhookRequest) -> DeliveryResult:
            await super().send(webhook)
            return DeliveryResult(answer=Answer.RESPONDED, status=200)

    ports: Ports = msgspec.structs.replace(app.ports, notifier=Tired(app, 9))
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    first = await ticking_seconds(app, advance(ports, caller, WISH, do))
    assert first.target is not None
    assert first.events_emitted == 3
    refused = await ask(app, timedelta(hours=1))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    await ticking_seconds(app, run_due(ports))
    last = await read_clock(ports, caller)
    assert (last.target, last.events_emitted) == (None, 4)
