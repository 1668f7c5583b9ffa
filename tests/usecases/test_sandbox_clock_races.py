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
from cambist.core.usecases.jobs import do, run, run_due
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.clock import ADVANCE, AGAIN, IN_HAND, LEASE, TRIES, _Advance, advance, read_clock
from cambist.core.usecases.sandbox.clock_dues import STRAIGHTEN
from cambist.core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from cambist.core.usecases.sandbox.subscriptions import SubscriptionSimulation, simulate_subscription
from cambist.core.usecases.test_clock import living_with
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.storage import Unit
from tests.clock_kit import DAY, YEAR, ask, moment, record, standing
from tests.clock_kit import advance as advanced
from tests.crash_points import CrashPoint, Killed, fused
from tests.houses import TestHouse, open_test_house
from tests.invariants import everything
from tests.subscription_house import bound

T = TypeVar("T")
WISH = ClockWish(seconds=3600)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[TestHouse, Caller, str]]:
    """A house with a payment that expires in 15 minutes."""
    async with open_test_house(database_url=url) as house:
        payment = await house.created()
        yield house, Caller(account=await record(house), mode=Mode.TEST, key_id="a-key"), payment["id"]


async def ticking(house: TestHouse, work: Awaitable[T]) -> T:
    """Await `work` while time passes, a little at each turn, and slower than a database answers, so that no timeout
    ends before the work."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.001)
        await house.clock.advance(0.005)
    return await task


async def check(house: TestHouse, payment_id: str) -> None:
    """The hour has passed as it would have without any trouble."""
    shown = (await house.get(f"/payments/{payment_id}")).json()
    assert shown["status"] == "expired"
    [event] = await house.events(payment_id)
    # No worker runs the job between a crash and the end of the lease.
    late = moment(event["timestamp"]) - moment(shown["expires_at"])
    assert timedelta(0) <= late <= timedelta(seconds=LEASE + 2)
    assert {body["payment_id"] for body in house.postman.bodies} == {payment_id}
    [delivery] = await everything(house.ports, Delivery)
    assert delivery.delivered_at is not None
    present = await standing(house)
    assert not present["advancing"]
    assert present["now"] >= "2026-01-01T01:00:00.000Z"
    await house.work(120)
    kinds = {job.kind for job in await everything(house.ports, Job)}
    assert not kinds & {ADVANCE, STRAIGHTEN.kind}
    clock = (await record(house)).clock
    assert clock is not None
    for job in await everything(house.ports, Job):
        if job.world is not None:
            assert job.moment is not None
            assert job.due == job.moment - clock.ahead, job.id


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 12))
async def test_an_advance_that_is_killed_at_any_commit_is_brought_to_its_end(at: int, after: bool) -> None:
    async with opened("memory://") as (house, caller, payment_id):
        fuse = CrashPoint(at, after=after)
        with suppress(Killed):
            await advance(fused(house.ports, fuse), caller, WISH, do)
        if fuse.commits == 1 and not after:
            assert (await record(house)).clock is None
            return
        # As after a kill -9, only the lease brings it back.
        await house.clock.advance(LEASE + 1)
        await run_due(house.ports)
        await check(house, payment_id)


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

    async with opened("memory://") as (house, caller, payment_id):
        monkeypatch.setattr(_Advance, "_step", failing)
        asked = asyncio.ensure_future(advance(house.ports, caller, WISH, do))
        while not asked.done():
            await asyncio.sleep(0)
            await house.clock.advance(AGAIN / 2)
        if asked_for is not None:
            assert failed == asked_for
        if fails > TRIES:
            assert isinstance(asked.exception(), Unavailable)
            return
        await house.work(60)
        await check(house, payment_id)


async def test_two_advances_at_once_are_one(url: str) -> None:
    async with opened(url) as (house, _, payment_id):
        answers = await asyncio.gather(*(ask(house, timedelta(hours=1)) for _ in range(2)))
        done = [each for each in answers if each.status_code == 200]
        refused = [each.json()["error"]["code"] for each in answers if each.status_code != 200]
        assert len(done) + len(refused) == 2
        assert set(refused) <= {"INVALID_STATE"}
        assert len(done) >= 1
        assert moment((await standing(house))["now"]) == house.clock.now() + len(done) * timedelta(hours=1)
        await check(house, payment_id)


async def test_a_worker_at_the_same_time_leaves_the_jobs_to_the_advance(url: str) -> None:
    async with opened(url) as (house, caller, payment_id):

        async def works() -> None:
            while not task.done():
                await run_due(house.ports)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(advance(house.ports, caller, WISH, do))
        await ticking(house, works())
        await task
        await check(house, payment_id)


async def test_a_job_in_a_workers_hand_is_waited_for_and_counts_no_attempt(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(url) as (house, caller, payment_id):
        await house.clock.advance(900)
        [job] = await house.ports.storage.claim(1, 60, kind="payment.watch")
        clock, waits, go_on = house.ports.clock, asyncio.Event(), asyncio.Event()
        sleep = clock.sleep

        async def watched(seconds: float) -> None:
            """The advance looks again when it is told to, and not between the run of the job and the look at it."""
            if seconds == IN_HAND:
                waits.set()
                await go_on.wait()
            await sleep(seconds)

        monkeypatch.setattr(clock, "sleep", watched)
        task = asyncio.ensure_future(advance(house.ports, caller, WISH, do))
        await waits.wait()
        await run(house.ports, job)
        [kept] = [each for each in await everything(house.ports, Job) if each.id == job.id]
        assert (kept.attempts, kept.moment) == (0, job.moment)
        assert not task.done()
        go_on.set()
        await ticking(house, task)
        await check(house, payment_id)


async def test_who_asks_meanwhile_sees_how_far_it_is_and_time_never_goes_back() -> None:
    async with open_test_house() as house:
        for number in range(5):
            await house.created({"external_id": str(number)})
            await house.clock.advance(60)
        seen: list[dict[str, Any]] = []

        class Curious:
            """A receiver that asks the service whenever it is told of something."""

            async def send(self, webhook: WebhookRequest) -> DeliveryResult:
                present = await standing(house)
                body = msgspec.json.decode(webhook.body)
                found = (await house.get(f"/payments/{body['payment_id']}")).json()
                seen.append({**present, "told": body["timestamp"], "status": found["status"]})
                return DeliveryResult(answer=Answer.RESPONDED, status=200)

            async def close(self) -> None:
                """Nothing is open."""

        ports = msgspec.structs.replace(house.ports, notifier=Curious())
        caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
        done = await advance(ports, caller, WISH, do)
        assert [each["advancing"] for each in seen] == [True] * 5
        assert [each["status"] for each in seen] == ["expired"] * 5
        assert all(each["now"] >= each["told"] for each in seen)
        assert [each["now"] for each in seen] == sorted(each["now"] for each in seen)
        assert [each["jobs_run"] for each in seen] == sorted({each["jobs_run"] for each in seen})
        assert [each["events_emitted"] for each in seen] == [1, 2, 3, 4, 5]
        assert done.target is None


async def test_what_is_made_meanwhile_is_done_on_the_way(house: TestHouse) -> None:
    """A receiver that makes a payment when it hears of another's end."""
    first = await house.created()
    made: list[str] = []

    class Maker:
        async def send(self, webhook: WebhookRequest) -> DeliveryResult:
            if not made:
                made.append((await house.created())["id"])
            return DeliveryResult(answer=Answer.RESPONDED, status=200)

        async def close(self) -> None:
            """Nothing is open."""

    ports = msgspec.structs.replace(house.ports, notifier=Maker())
    caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
    await advance(ports, caller, WISH, do)
    [payment_id] = made
    shown = (await house.get(f"/payments/{payment_id}")).json()
    assert first["expires_at"] == shown["created_at"]
    assert shown["status"] == "expired"
    [event] = await house.events(payment_id)
    assert event["timestamp"] == shown["expires_at"]


async def test_a_unit_that_was_begun_before_an_advance_loses_nothing_when_it_comes_after(house: TestHouse) -> None:
    """Its job was written by the clock as it was: the looks after the end set it right."""
    async with living_with(house.ports, house.account.account_id, Mode.TEST):
        await advanced(house, YEAR)
        late = Job(
            id=f"webhook.timer:{house.account.account_id}:test",
            kind="webhook.timer",
            argument=f"{house.account.account_id}:test",
            due=house.clock.now() + DAY,
            created_at=house.clock.now(),
        )
        async with house.ports.storage.unit() as unit:
            unit[Job].add(late)
            await unit.commit()
    [kept] = [each for each in await everything(house.ports, Job) if each.id == late.id]
    assert kept.due == house.clock.now() + DAY
    await house.work(3)
    assert late.id not in {each.id for each in await everything(house.ports, Job)}


async def test_what_a_call_makes_that_the_clock_passed_over_happens_at_once(house: TestHouse) -> None:
    """The call uses the time at which it began. Work that is due by its end runs at that later time."""
    caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
    async with living_with(house.ports, house.account.account_id, Mode.TEST):
        await advanced(house, DAY)
        made = await create_payment(house.ports, caller, str(UUID(int=1)), lambda: PaymentOrder(amount_rub="100.00"))
    shown = (await house.get(f"/payments/{made.resource.id}")).json()
    assert (shown["status"], moment(shown["created_at"])) == ("pending", house.clock.now())
    await house.work(3)
    assert (await house.get(f"/payments/{made.resource.id}")).json()["status"] == "expired"
    [event] = await house.events(made.resource.id)
    late = house.clock.now() + DAY - moment(event["timestamp"])
    assert timedelta(0) <= late <= timedelta(seconds=3)


async def test_what_a_call_tells_that_the_clock_passed_over_is_told_after_what_was_told(house: TestHouse) -> None:
    """The call uses the time at which it began, and its events the time at which they are written. So they are not
    earlier than the object's last event, and receivers get them, however far the clock was moved."""
    payment, binding = await house.created(), await bound(house)
    began = house.clock.now()
    caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
    async with living_with(house.ports, house.account.account_id, Mode.TEST):
        await advanced(house, 2 * LIFETIME)
        told = await simulate(house.ports, caller, payment["id"], PaymentSimulation(outcome="paid"))
        lost = SubscriptionSimulation(outcome="mandate_lost")
        await simulate_subscription(house.ports, caller, binding["id"], lambda: lost)
    await house.work(3)
    assert (told.status, told.paid_at) == ("paid", began)
    for object_id in (payment["id"], binding["id"]):
        bodies = await house.events(object_id)
        moments = [moment(body["timestamp"]) for body in bodies]
        assert moments == sorted(moments)
        assert moments[-1] == began + 2 * LIFETIME
    assert {delivery.status for delivery in await everything(house.ports, Delivery)} == {DeliveryStatus.DELIVERED}


class Slow:
    """A receiver that answers nobody, and takes its time for it."""

    def __init__(self, house: TestHouse, seconds: float) -> None:
        self.house = house
        self.seconds = seconds
        self.webhooks = 0

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.webhooks += 1
        await self.house.clock.sleep(self.seconds)
        return DeliveryResult(answer=Answer.TIMEOUT, status=None)

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_dead_receiver_is_let_be_after_one_letter_that_nobody_answered(house: TestHouse) -> None:
    await house.created()
    slow = Slow(house, 10)
    ports: Ports = msgspec.structs.replace(house.ports, notifier=slow)
    caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
    done = await ticking_seconds(house, advance(ports, caller, ClockWish(seconds=30 * 86_400), do))
    assert done.target is None
    assert slow.webhooks == 1
    endpoints = [job for job in await everything(house.ports, Job) if job.kind.startswith("webhook.")]
    assert endpoints
    assert all(job.due <= house.clock.now() for job in endpoints)


async def ticking_seconds(house: TestHouse, work: Awaitable[T]) -> T:
    task = asyncio.ensure_future(work)
    while not task.done():
        for _ in range(200):
            await asyncio.sleep(0)
        if not task.done():
            await house.clock.advance(0.5)
    return await task


async def test_a_caller_waits_twenty_seconds_at_most_and_a_worker_goes_on(house: TestHouse) -> None:
    for _ in range(4):
        await house.created()
        await house.clock.advance(60)

    class Tired(Slow):
        async def send(self, webhook: WebhookRequest) -> DeliveryResult:
            await super().send(webhook)
            return DeliveryResult(answer=Answer.RESPONDED, status=200)

    ports: Ports = msgspec.structs.replace(house.ports, notifier=Tired(house, 9))
    caller = Caller(account=await record(house), mode=Mode.TEST, key_id="a-key")
    first = await ticking_seconds(house, advance(ports, caller, WISH, do))
    assert first.target is not None
    assert first.events_emitted == 3
    refused = await ask(house, timedelta(hours=1))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "INVALID_STATE")
    await ticking_seconds(house, run_due(ports))
    last = await read_clock(ports, caller)
    assert (last.target, last.events_emitted) == (None, 4)
