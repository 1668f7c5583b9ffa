"""The delivery engine: the order of deliveries, side by side and after failures of every kind (docs/webhooks.md "When
you do not answer"; docs/decisions.md "Slow receivers")."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.delivery import AT_ONCE
from cambist.core.domain.webhooks.due_queue import BATCH
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import LEASE, run, run_due
from cambist.core.usecases.webhooks import endpoint_worker
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.core.usecases.webhooks.outbox import DELIVER, deliver_id
from cambist.core.usecases.webhooks.results import TIMER, commit
from cambist.frontends.compose import open_app
from cambist.frontends.settings import Settings
from cambist.frontends.worker.loop import LOOK, Worker
from cambist.ports.bundle import Ports
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.storage import Storage, Unit
from cambist.ports.vault import VaultError
from tests.apps import WEBHOOK_SECRET
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.event_factory import happen
from tests.quiesce import at_rest

GOOD = DeliveryResult(answer=Answer.RESPONDED, status=200)
SILENT = DeliveryResult(answer=Answer.TIMEOUT, note="no whole answer within 10 s")
BAD = DeliveryResult(answer=Answer.RESPONDED, status=500)
SECONDS_OF_SILENCE = 10.0


class Town:
    """A notifier between many receivers: each answers as told, at once or after the whole limit of 10 seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._start = clock.now()
        self.answers: dict[str, DeliveryResult] = defaultdict(lambda: GOOD)
        """By address."""
        self.webhooks: dict[str, list[tuple[float, str]]] = defaultdict(list)
        """By address: when each webhook left, in seconds, and its event."""
        self.under_way: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_in_all = 0
        self.pauses: dict[str, float] = {}
        """Seconds until an address answers, by the beginning of the address."""
        self.on_letter: Callable[[WebhookRequest], None] = lambda _: None

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        at = (self._clock.now() - self._start).total_seconds()
        self.webhooks[webhook.url].append((at, webhook.headers["X-Webhook-Id"]))
        self.under_way[webhook.url] += 1
        self.most[webhook.url] = max(self.most[webhook.url], self.under_way[webhook.url])
        self.most_in_all = max(self.most_in_all, self.under_way.total())
        self.on_letter(webhook)
        answer = self.answers[webhook.url]
        try:
            if answer.answer is Answer.TIMEOUT:
                await self._clock.sleep(SECONDS_OF_SILENCE)
            for beginning, seconds in self.pauses.items():
                if webhook.url.startswith(beginning):
                    await self._clock.sleep(seconds)
        finally:
            self.under_way[webhook.url] -= 1
        return answer

    async def close(self) -> None:
        """Nothing is open."""

    def times(self, url: str) -> list[float]:
        return [at for at, _ in self.webhooks[url]]

    def events(self, url: str) -> list[str]:
        return [event for _, event in self.webhooks[url]]


class Bench:
    """An app in memory with many merchants, under a virtual clock."""

    def __init__(self, ports: Ports, clock: VirtualClock, town: Town) -> None:
        self.ports = ports
        self.clock = clock
        self.town = town
        self.worker: Worker | None = None

    async def merchant(self, name: str, answer: DeliveryResult = GOOD) -> str:
        """A new account whose receiver answers so; its id."""
        made = await create_account(self.ports, name)
        self.town.answers[self.url(name)] = answer
        await set_settings(
            self.ports, made.account_id, {"webhook_url": self.url(name), "webhook_secret": WEBHOOK_SECRET}
        )
        await run_due(self.ports)
        return made.account_id

    @staticmethod
    def url(name: str) -> str:
        return f"https://{name}.example/hook"

    async def happen(self, account_id: str, count: int = 1, mode: Mode = Mode.TEST) -> list[str]:
        """So many events in one unit; their ids."""
        return await happen(self.ports, account_id, count, mode=mode)

    async def delivery(self, event_id: str) -> Delivery:
        async with self.ports.storage.unit() as unit:
            found = await unit[Delivery].get(event_id)
        assert found is not None
        return found

    async def statuses(self, account_id: str) -> Counter[str]:
        async with self.ports.storage.unit() as unit:
            found = await unit[Delivery].find(account_id=account_id, limit=100_000)
        return Counter(each.status.value for each in found)

    async def breaker(self, account_id: str, mode: Mode = Mode.TEST) -> Breaker:
        async with self.ports.storage.unit() as unit:
            found = await unit[Breaker].get(endpoint_id(account_id, mode))
        assert found is not None
        return found

    async def jobs(self) -> list[Job]:
        async with self.ports.storage.unit() as unit:
            return [job for job in await unit[Job].find() if job.kind in (DELIVER, TIMER)]

    async def attempts(self) -> list[Attempt]:
        async with self.ports.storage.unit() as unit:
            return await unit[Attempt].find(limit=100_000)

    async def work(self, seconds: float = 0) -> None:
        """Without a worker: let the time pass and do every job at its time, one after the other."""
        end = self.clock.now() + timedelta(seconds=seconds)
        while True:
            await run_due(self.ports)
            due = await self.ports.storage.next_due()
            if due is None or due > end:
                break
            await self.clock.advance_to(max(due, self.clock.now()))
        await self.clock.advance_to(max(end, self.clock.now()))

    @asynccontextmanager
    async def working(self, **bounds: Any) -> AsyncIterator[Worker]:
        """With a worker as `cambist serve` runs it."""
        worker = Worker(self.ports, **bounds)
        task = asyncio.create_task(worker.work())
        await self.clock.advance(0)
        try:
            yield worker
        finally:
            worker.stop()
            while not task.done():
                await self.clock.advance(1)
            await task


@asynccontextmanager
async def open_bench() -> AsyncIterator[Bench]:
    clock = VirtualClock(settle=at_rest)
    town = Town(clock)
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_app(settings, clock=clock, ids=SeededIds(), notifier=town) as app:
        yield Bench(app.ports, clock, town)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as opened:
        yield opened


class TestSideBySide:
    """A bound per account and in all: one slow or dead receiver delays nobody else
    (docs/decisions.md "Slow receivers")."""

    async def test_ten_hanging_receivers_delay_nobody_and_each_gets_exactly_ten_letters(self, bench: Bench) -> None:
        """64 worker slots, 10 receivers that are silent for 10 seconds, 20 that are well: all events of those leave at
        the very moment, and again while the others hang."""
        dead = [await bench.merchant(f"dead{number}", SILENT) for number in range(10)]
        well = [await bench.merchant(f"well{number}") for number in range(20)]
        for account in dead:
            await bench.happen(account, 30)
        for account in well:
            await bench.happen(account, 5)
        town = bench.town
        async with bench.working(at_once=64):
            for number in range(20):
                assert town.times(bench.url(f"well{number}")) == [0.0] * 5
            for number in range(10):
                assert town.times(bench.url(f"dead{number}")) == [0.0] * 8, "eight at a time, and they hang"
            await bench.clock.advance(5)
            for account in well:
                await bench.happen(account, 5)
            await bench.clock.advance(0)
            for number in range(20):
                assert town.times(bench.url(f"well{number}")) == [0.0] * 5 + [5.0] * 5
            await bench.clock.advance(35)
            for number, account in enumerate(dead):
                assert town.times(bench.url(f"dead{number}")) == [0.0] * 8 + [10.0] * 2, "ten failures open its breaker"
                breaker = await bench.breaker(account)
                assert (breaker.failures, breaker.is_open) == (10, True)
            await bench.clock.advance(15)
            for number in range(10):
                assert town.times(bench.url(f"dead{number}"))[10:] == [50.0], "one probe, 30 s after it opened"
        for account in well:
            assert await bench.statuses(account) == {"delivered": 10}
        assert await bench.statuses(dead[0]) == {"pending": 30}

    async def test_slow_receivers_are_asked_eight_letters_at_a_time_and_nobody_else_waits(self, bench: Bench) -> None:
        slow = await bench.merchant("slow")
        bench.town.answers[bench.url("slow")] = DeliveryResult(
            answer=Answer.TIMEOUT, status=200
        )  # slow, but it answers
        await bench.happen(slow, 40)
        async with bench.working():
            await bench.clock.advance(49)
        assert bench.town.times(bench.url("slow")) == sorted([0.0, 10.0, 20.0, 30.0, 40.0] * 8)
        assert bench.town.most[bench.url("slow")] == 8
        assert await bench.statuses(slow) == {"delivered": 40}

    async def test_there_is_a_bound_in_all_which_many_receivers_share_in_turn(self, bench: Bench) -> None:
        """Twelve permits for ten receivers that answered well and now hang: each is served, none takes all; from then
        on, five of the permits are for slow ones."""
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        accounts = [await bench.merchant(f"m{number}") for number in range(10)]
        for account in accounts:
            await bench.happen(account)
        await bench.work()
        for number, account in enumerate(accounts):
            bench.town.answers[bench.url(f"m{number}")] = slow
            await bench.happen(account, 6)
        dispatcher = Dispatcher(bench.ports, at_once=12, per_receiver=3)
        jobs = await bench.ports.storage.claim(100, LEASE)
        running = [asyncio.create_task(dispatcher.run(job)) for job in jobs]
        await bench.clock.advance(0)
        assert bench.town.under_way.total() == 12
        assert all(1 <= bench.town.under_way[bench.url(f"m{number}")] <= 3 for number in range(10))
        await bench.clock.advance(15)
        assert bench.town.under_way.total() == 5
        await bench.clock.advance(95)
        assert all(task.done() for task in running)
        assert bench.town.most_in_all == 12
        assert [len(bench.town.webhooks[bench.url(f"m{number}")]) for number in range(10)] == [7] * 10

    async def test_one_slot_in_all_goes_round(self, bench: Bench) -> None:
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        for account in [await bench.merchant(f"m{number}", slow) for number in range(3)]:
            await bench.happen(account, 3)
        dispatcher = Dispatcher(bench.ports, at_once=1)
        running = [asyncio.create_task(dispatcher.run(job)) for job in await bench.ports.storage.claim(100, LEASE)]
        await bench.clock.advance(90)
        assert all(task.done() for task in running)
        assert bench.town.most_in_all == 1
        for number in range(3):
            times = bench.town.times(bench.url(f"m{number}"))
            assert len(times) == 3
            assert all(later - earlier <= 40 for earlier, later in pairwise(times)), "nobody waits for ever"

    async def test_an_event_that_comes_while_letters_hang_leaves_within_a_quarter_of_a_second(
        self, bench: Bench
    ) -> None:
        account = await bench.merchant("slow", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await bench.happen(account)
        async with bench.working():
            await bench.clock.advance(3)
            await bench.happen(account)
            await bench.clock.advance(LOOK)
            assert bench.town.times(bench.url("slow")) == [0.0, 3.0 + LOOK]

    async def test_jobs_of_other_kinds_do_not_hold_up_deliveries_nor_do_these_take_their_slots(
        self, bench: Bench
    ) -> None:
        """One slot for all other jobs; forty receivers hang; a timer's job is still done at once."""
        bad = await bench.merchant("bad", BAD)
        for account in [await bench.merchant(f"dead{number}", SILENT) for number in range(40)]:
            await bench.happen(account, 3)
        async with bench.working(at_once=1):
            assert bench.town.under_way.total() == 120
            await bench.happen(bad)
            await bench.clock.advance(1)
            assert bench.town.times(bench.url("bad")) == [0.0, 1.0], "its timer rang"


class TestOrder:
    async def test_oldest_first(self, bench: Bench) -> None:
        account = await bench.merchant("m")
        ids = await bench.happen(account, 3 * BATCH + 7)
        await bench.work()
        assert bench.town.events(bench.url("m")) == ids

    async def test_behind_an_open_breaker_also_what_has_failed_before_leaves_in_order_of_age(
        self, bench: Bench
    ) -> None:
        """A success closes it, and waiting events go out oldest first (docs/webhooks.md "When you do not answer")."""
        account = await bench.merchant("m", BAD)
        ids = await bench.happen(account, 4)
        await bench.work(20)
        ids += await bench.happen(account, 300)
        await bench.work(5)
        assert (await bench.breaker(account)).is_open
        bench.town.webhooks.clear()
        bench.town.answers[bench.url("m")] = GOOD
        await bench.work(30)
        assert bench.town.events(bench.url("m")) == ids
        assert await bench.statuses(account) == {"delivered": 304}

    async def test_behind_an_open_breaker_who_asks_between_claim_and_look_does_not_keep_the_worker_busy(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would commit on and on until the probe, because nothing due is read, with which the job is read anew."""
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 4)
        await bench.work(20)
        await bench.happen(account, 30)
        await bench.work(5)
        assert (await bench.breaker(account)).is_open
        await bench.happen(account)
        [job] = await bench.ports.storage.claim(10, LEASE, kind=DELIVER)
        await bench.happen(account)
        commits: list[bool] = []

        async def counted(*given: Any) -> Any:
            assert len(commits) < 10, "it commits on and on"
            breaker, left = await commit(*given)
            commits.append(left)
            return breaker, left

        monkeypatch.setattr(endpoint_worker, "commit", counted)
        await Dispatcher(bench.ports).run(job)
        assert commits == [False, True]

    async def test_one_event_that_is_always_refused_never_blocks_another(self, bench: Bench) -> None:
        """Others are taken while its ladder lasts, so that it opens no breaker: it goes on by the slow ladder."""
        account = await bench.merchant("m")
        url = bench.url("m")
        [bad] = await bench.happen(account)

        def answer(webhook: WebhookRequest) -> None:
            bench.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == bad else GOOD

        bench.town.on_letter = answer
        for _ in range(6):
            await bench.work(100)
            [good] = await bench.happen(account)
            await bench.work()
            assert (await bench.delivery(good)).status is DeliveryStatus.DELIVERED
        assert ((await bench.delivery(bad)).attempts, (await bench.breaker(account)).is_open) == (10, False)
        await bench.work(2 * 86_400)
        assert (await bench.delivery(bad)).status is DeliveryStatus.FAILED
        assert bench.town.events(url).count(bad) == 14

    async def test_one_bad_event_does_not_keep_the_breaker_open(self, bench: Bench) -> None:
        """Probes take the waiting events in turn."""
        account = await bench.merchant("m", BAD)
        ids = await bench.happen(account, 5)
        await bench.work(20)
        url = bench.url("m")

        def answer(webhook: WebhookRequest) -> None:
            bench.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == ids[0] else GOOD

        bench.town.on_letter = answer
        bench.town.webhooks.clear()
        await bench.work(90)
        assert bench.town.events(url)[:2] == ids[:2]
        assert [(await bench.delivery(each)).status.value for each in ids] == ["pending"] + ["delivered"] * 4


class TestBreaker:
    async def test_an_outage_of_minutes_loses_nothing_of_a_merchant_with_one_payment(self, bench: Bench) -> None:
        """Its event waits with the breaker and goes out with the first probe that succeeds
        (docs/webhooks.md "When you do not answer")."""
        account = await bench.merchant("m", BAD)
        [event] = await bench.happen(account)
        await bench.work(540)
        assert (await bench.breaker(account)).is_open
        assert await bench.statuses(account) == {"pending": 1}
        bench.town.answers[bench.url("m")] = GOOD
        await bench.work(2)
        delivery = await bench.delivery(event)
        assert (delivery.status, delivery.attempts, delivery.probes) == (DeliveryStatus.DELIVERED, 10, 1)
        assert bench.town.times(bench.url("m"))[-2:] == [511.0, 541.0]
        assert not (await bench.breaker(account)).is_open
        assert await bench.jobs() == []

    async def test_a_merchant_with_one_payment_is_probed_for_seven_days_and_then_given_up(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        [event] = await bench.happen(account)
        await bench.work(7 * 86_400 - 3600)
        assert await bench.statuses(account) == {"pending": 1}
        await bench.work(2 * 3600)
        delivery = await bench.delivery(event)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 10)
        assert await bench.jobs() == []

    async def test_it_is_walked_exactly(self, bench: Bench) -> None:
        """10 failures from 3 events, then probes after 30 s, 1, 2, 5, 10, 30, 60 min and every 60 min."""
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 3)
        await bench.work(86_400)
        times = bench.town.times(bench.url("m"))
        assert times[:10] == [0.0] * 3 + [1.0] * 3 + [3.0] * 3 + [7.0]
        pauses = [later - earlier for earlier, later in pairwise(times[9:])]
        assert pauses[:9] == [30, 60, 120, 300, 600, 1800, 3600, 3600, 3600]
        assert set(pauses[9:]) == {3600}
        attempts = await bench.attempts()
        assert Counter(each.probe for each in attempts) == {False: 10, True: len(times) - 10}

    async def test_probes_are_rows_and_no_attempts(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        ids = await bench.happen(account, 3)
        await bench.work(40)
        async with bench.ports.storage.unit() as unit:
            rows = await unit[Attempt].find(event_id=ids[0], order="sent_at")
        delivery = await bench.delivery(ids[0])
        assert [(row.number, row.probe, row.status) for row in rows] == [
            (1, False, 500),
            (2, False, 500),
            (3, False, 500),
            (4, False, 500),
            (5, True, 500),
        ]
        assert (delivery.attempts, delivery.probes) == (4, 1)

    async def test_after_seven_days_events_behind_it_are_failed(self, bench: Bench) -> None:
        """An event older than 7 days is `failed`, and can still be sent again (docs/webhooks.md "When you do not
        answer")."""
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 30)
        await bench.work(7 * 86_400 - 3600)
        assert await bench.statuses(account) == {"pending": 30}
        await bench.work(2 * 3600)
        assert await bench.statuses(account) == {"failed": 30}
        webhooks = len(bench.town.webhooks[bench.url("m")])
        await bench.work(86_400)
        assert len(bench.town.webhooks[bench.url("m")]) == webhooks, "with nothing to send nothing is probed"
        assert await bench.jobs() == []

    async def test_what_comes_after_a_long_silence_is_the_probe_itself(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 12)
        await bench.work(8 * 86_400)
        assert (await bench.breaker(account)).is_open
        bench.town.answers[bench.url("m")] = GOOD
        before = len(bench.town.webhooks[bench.url("m")])
        [late] = await bench.happen(account)
        await bench.work()
        assert bench.town.events(bench.url("m"))[before:] == [late]
        assert not (await bench.breaker(account)).is_open
        assert (await bench.delivery(late)).attempts == 0

    @pytest.mark.parametrize(
        "wish", [{"webhook_url": "https://new.example/hook"}, {"webhook_secret": "another-secret-of-the-tests"}]
    )
    async def test_another_address_or_secret_closes_it_and_all_leave_at_once(
        self, bench: Bench, wish: dict[str, str]
    ) -> None:
        account = await bench.merchant("m", BAD)
        ids = await bench.happen(account, 20)
        await bench.work(1000)
        assert (await bench.breaker(account)).is_open
        bench.town.webhooks.clear()
        bench.town.answers[bench.url("m")] = GOOD
        await set_settings(bench.ports, account, wish)
        await bench.work()
        assert bench.town.events(wish.get("webhook_url", bench.url("m"))) == ids
        assert not (await bench.breaker(account)).is_open

    async def test_settings_that_are_none_of_its_business_leave_it(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 12)
        await bench.work(20)
        await set_settings(bench.ports, account, {"webhook_url": bench.url("m"), "acceptance": "false"})
        assert (await bench.breaker(account)).is_open

    async def test_a_blocked_address_keeps_events_waiting_until_it_is_corrected(self, bench: Bench) -> None:
        account = await bench.merchant("m", DeliveryResult(answer=Answer.BLOCKED, note="https only"))
        ids = await bench.happen(account, 5)
        await bench.work(3 * 86_400)
        assert await bench.statuses(account) == {"pending": 5}
        await set_settings(bench.ports, account, {"webhook_url": bench.url("good")})
        await bench.work()
        assert bench.town.events(bench.url("good")) == ids

    async def test_modes_have_breakers_of_their_own(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 12, Mode.TEST)
        await bench.work(20)
        bench.town.answers[bench.url("m")] = GOOD
        [live] = await bench.happen(account, 1, Mode.LIVE)
        await bench.work()
        assert (await bench.delivery(live)).status is DeliveryStatus.DELIVERED
        assert (await bench.breaker(account, Mode.TEST)).is_open


class TestHolding:
    async def test_pending_events_are_held_when_the_address_goes_and_leave_when_it_is_back(self, bench: Bench) -> None:
        account = await bench.merchant("m", BAD)
        await bench.happen(account, 2)
        await bench.work(5)
        await set_settings(bench.ports, account, {"webhook_url": ""})
        await bench.work(3600)
        assert await bench.statuses(account) == {"held": 2}
        webhooks = len(bench.town.webhooks[bench.url("m")])
        bench.town.answers[bench.url("m")] = GOOD
        await set_settings(bench.ports, account, {"webhook_url": bench.url("m")})
        await bench.work()
        assert await bench.statuses(account) == {"delivered": 2}
        assert len(bench.town.webhooks[bench.url("m")]) == webhooks + 2

    async def test_a_run_hears_of_it_within_a_second(self, bench: Bench) -> None:
        account = await bench.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await bench.happen(account, 20)
        async with bench.working():
            await set_settings(bench.ports, account, {"webhook_url": ""})
            await bench.clock.advance(30)
            assert len(bench.town.webhooks[bench.url("m")]) == 8
            assert await bench.statuses(account) == {"held": 12, "delivered": 8}

    async def test_an_address_that_comes_back_as_a_run_ends_leaves_nothing_behind(self, bench: Bench) -> None:
        """The run found no address, but holds no events, because there is one again: pending events still have their
        job."""
        account = await bench.merchant("m")
        await bench.happen(account)
        wish = {"webhook_url": bench.url("m")}

        async def back() -> None:
            await set_settings(bench.ports, account, wish)

        await set_settings(bench.ports, account, {"webhook_url": ""})
        [job] = await bench.ports.storage.claim(10, LEASE, kind=DELIVER)
        meddled = msgspec.structs.replace(bench.ports, storage=Meddling(bench.ports.storage, {2: back}))
        await Dispatcher(meddled).run(job)
        await bench.work(10)
        assert await bench.statuses(account) == {"delivered": 1}


class Meddling(ForwardingStorage):
    """A storage in which something happens before the n-th unit."""

    def __init__(self, storage: Storage, meanwhile: dict[int, Callable[[], Awaitable[None]]]) -> None:
        super().__init__(storage)
        self._meanwhile = meanwhile
        self._units = 0

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        self._units += 1
        if self._units in self._meanwhile:
            await self._meanwhile[self._units]()
        async with self.inner.unit() as unit:
            yield unit


class TestCrashes:
    """Nothing is lost by kill -9 at any await (ARCHITECTURE.md "Units and jobs")."""

    async def test_the_job_goes_in_the_unit_that_enters_the_last_attempt(self, bench: Bench) -> None:
        account = await bench.merchant("m")
        await bench.happen(account, 3)
        assert [job.id for job in await bench.jobs()] == [deliver_id(endpoint_id(account, Mode.TEST))]
        await bench.work()
        assert await bench.jobs() == []

    async def test_a_worker_that_dies_in_the_middle_leaves_the_rest_to_the_next(self, bench: Bench) -> None:
        account = await bench.merchant("m", SILENT)
        ids = await bench.happen(account, 20)
        [job] = await bench.ports.storage.claim(10, LEASE)
        running = asyncio.create_task(run(bench.ports, job))
        await bench.clock.advance(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await bench.statuses(account) == {"pending": 20}
        bench.town.answers[bench.url("m")] = GOOD
        await bench.clock.advance(LEASE)
        await bench.work()
        assert await bench.statuses(account) == {"delivered": 20}
        assert set(bench.town.events(bench.url("m"))) == set(ids)

    async def test_a_retry_is_remembered_in_the_unit_that_enters_the_failure(self, bench: Bench) -> None:
        """A process that dies between two attempts has left a timer."""
        account = await bench.merchant("m", BAD)
        await bench.happen(account)
        await run_due(bench.ports)
        [timer] = await bench.jobs()
        assert (timer.kind, timer.due) == (TIMER, bench.clock.now() + timedelta(seconds=1))

    async def test_a_long_run_keeps_its_lease(self, bench: Bench) -> None:
        """A minute of slow webhooks, many times the lease: no other worker gets the job, and at its end it goes though
        its lease was renewed."""
        account = await bench.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        ids = await bench.happen(account, 8 * 6)
        async with bench.working():
            for _ in range(20):
                await bench.clock.advance(3)
                assert await bench.ports.storage.claim(10, LEASE, kind=DELIVER) == []
        assert bench.town.events(bench.url("m")) == ids
        assert await bench.jobs() == []

    async def test_two_workers_share_receivers_and_send_nothing_twice(self, bench: Bench) -> None:
        accounts = [await bench.merchant(f"m{number}") for number in range(6)]
        async with bench.working(), bench.working():
            for _ in range(5):
                for account in accounts:
                    await bench.happen(account, 10)
                await bench.clock.advance(1)
        for number in range(6):
            events = bench.town.events(bench.url(f"m{number}"))
            assert len(events) == len(set(events)) == 50

    async def test_who_lost_the_lease_stops_and_enters_what_it_sent(self, bench: Bench) -> None:
        account = await bench.merchant("m", SILENT)
        await bench.happen(account, 30)
        [job] = await bench.ports.storage.claim(10, 5.0)
        dispatcher = Dispatcher(bench.ports)
        slow = asyncio.create_task(dispatcher.run(job))
        await bench.clock.advance(6)
        [again] = await bench.ports.storage.claim(10, LEASE)
        bench.town.answers[bench.url("m")] = GOOD
        await run(bench.ports, again)
        assert await bench.statuses(account) == {"delivered": 30}
        dispatcher.look()
        await bench.clock.advance(60)
        await slow
        assert await bench.statuses(account) == {"delivered": 30}
        counted = Counter(each.event_id for each in await bench.attempts())
        assert sorted(counted.values()) == [1] * 22 + [2] * 8
        for event_id, made in counted.items():
            assert (await bench.delivery(event_id)).attempts == made

    async def test_events_that_come_at_any_moment_of_a_run_are_sent(self, bench: Bench) -> None:
        """However the last look of a run and the commit of an event fall together, the event leaves."""
        account = await bench.merchant("m")
        made: list[str] = []
        left = 40

        async def one_more() -> None:
            made.extend(await bench.happen(account))

        pending: set[asyncio.Task[None]] = set()

        def on_letter(_: WebhookRequest) -> None:
            nonlocal left
            if left:
                left -= 1
                pending.add(asyncio.create_task(one_more()))

        bench.town.on_letter = on_letter
        made += await bench.happen(account)
        await bench.work()
        await asyncio.gather(*pending)
        await bench.work()
        assert sorted(bench.town.events(bench.url("m"))) == sorted(made)
        assert len(made) == 41
        assert await bench.jobs() == []

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    async def test_a_crash_at_any_commit_of_a_bad_day_loses_nothing(self, after: bool) -> None:
        """Failures, a breaker that opens, probes, a drain: killed at every commit in turn, each time all is delivered,
        every webhook that was entered has its row, and no job is left."""
        at = 0
        while True:
            at += 1
            fuse = CrashPoint(at, after=after)
            async with open_bench() as bench:
                await bad_day(bench, fuse)
            if fuse.commits < at:
                break
        assert at > 12, "the story has too few commits to show anything"

    async def test_sigterm_finishes_letters_under_way_and_begins_no_other(self, bench: Bench) -> None:
        account = await bench.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await bench.happen(account, 20)
        async with bench.working() as worker:
            worker.stop()
            await bench.clock.advance(30)
        assert await bench.statuses(account) == {"delivered": 8, "pending": 12}
        [job] = await bench.jobs()
        assert job.leased_until is None, "the next worker need not wait for a lease to end"
        bench.town.answers[bench.url("m")] = GOOD
        await bench.work()
        assert await bench.statuses(account) == {"delivered": 20}


async def bad_day(bench: Bench, fuse: CrashPoint) -> None:
    account = await bench.merchant("m", BAD)
    await bench.happen(account, 3)
    whole = bench.ports
    bench.ports = msgspec.structs.replace(whole, storage=CrashingStorage(whole.storage, fuse))
    with contextlib.suppress(Killed):
        await bench.work(120)
    bench.ports = whole
    await bench.clock.advance(LEASE)
    await bench.work(120)
    bench.town.answers[bench.url("m")] = GOOD
    await bench.work(600)
    rows = Counter(attempt.event_id for attempt in await bench.attempts())
    async with bench.ports.storage.unit() as unit:
        deliveries = await unit[Delivery].find(account_id=account)
    assert [each.status for each in deliveries] == [DeliveryStatus.DELIVERED] * 3, fuse.at
    assert {each.id: each.attempts + each.probes for each in deliveries} == rows, fuse.at
    assert not (await bench.breaker(account)).is_open
    assert await bench.jobs() == []


class TestFaults:
    async def test_a_secret_that_does_not_open_is_a_fault_that_loses_nothing(self, bench: Bench) -> None:
        account = await bench.merchant("m")
        await bench.happen(account, 3)
        broken = msgspec.structs.replace(bench.ports, vault=LostKeys(bench.ports.vault))
        [job] = await bench.ports.storage.claim(10, LEASE)
        await run(broken, job)
        assert await bench.statuses(account) == {"pending": 3}
        assert bench.town.webhooks == {}
        await bench.work(1)
        assert await bench.statuses(account) == {"delivered": 3}

    async def test_a_notifier_that_raises_loses_nothing(self, bench: Bench) -> None:
        account = await bench.merchant("m")
        ids = await bench.happen(account, 3)
        [job] = await bench.ports.storage.claim(10, LEASE)
        failing = msgspec.structs.replace(bench.ports, notifier=Exploding())
        await run(failing, job)
        await bench.work(1)
        assert bench.town.events(bench.url("m")) == ids


class LostKeys:
    """A vault that opens events and no webhook secret."""

    def __init__(self, vault: Any) -> None:
        self._vault = vault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vault, name)

    def unseal(self, sealed: bytes, place: str) -> bytes:
        if place.startswith("events.body:"):
            opened: bytes = self._vault.unseal(sealed, place)
            return opened
        raise VaultError("no key")


class Exploding:
    """A notifier that breaks its promise never to raise."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        raise RuntimeError("closed")

    async def close(self) -> None: ...


class TestClocks:
    async def test_an_event_from_a_machine_whose_clock_is_ahead_is_not_overlooked(self, bench: Bench) -> None:
        """It asks a job that stands already, whose run looks by the storage's clock."""
        account = await bench.merchant("m")
        await bench.happen(account)
        ahead = VirtualClock(bench.clock.now() + timedelta(hours=1))
        [event] = await happen(msgspec.structs.replace(bench.ports, clock=ahead), account)
        assert (await bench.delivery(event)).due == AT_ONCE
        await bench.work()
        assert (await bench.delivery(event)).status is DeliveryStatus.DELIVERED

    async def test_a_retry_that_a_clock_set_back_hides_is_found_again(self, bench: Bench) -> None:
        """The timer rang, and then the storage's clock went back: the look finds nothing, so the timer is set anew."""
        account = await bench.merchant("m", BAD)
        [event] = await bench.happen(account)
        await run_due(bench.ports)
        due = (await bench.delivery(event)).due
        assert due is not None
        async with bench.ports.storage.unit() as unit:
            for timer in await unit[Job].find(kind=TIMER):
                unit[Job].remove(timer)
            job_id = deliver_id(endpoint_id(account, Mode.TEST))
            now = bench.clock.now()
            unit[Job].add(
                Job(id=job_id, kind=DELIVER, argument=endpoint_id(account, Mode.TEST), due=now, created_at=now)
            )
            await unit.commit()
        await run_due(bench.ports)
        [timer] = await bench.jobs()
        assert (timer.kind, timer.due) == (TIMER, due)
