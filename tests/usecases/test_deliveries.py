"""The delivery engine: who is served when, side by side and after failures of every kind
(docs/webhooks.md "When you do not answer"; docs/decisions.md "Slow receivers")."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import SeededIds, VirtualClock
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.domain.webhooks.delivery import AT_ONCE
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import LEASE, run, run_due
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.core.usecases.webhooks.due import BATCH
from cambist.core.usecases.webhooks.outbox import DELIVER, deliver_id
from cambist.core.usecases.webhooks.results import TIMER
from cambist.frontends.compose import open_house
from cambist.frontends.settings import Settings
from cambist.frontends.worker.loop import LOOK, Worker
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.event_factory import happen
from tests.houses import WEBHOOK_SECRET
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
        """By the beginning of an address: seconds until it answers."""
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


class Place:
    """A house in memory with many merchants, under a virtual clock."""

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
async def open_place() -> AsyncIterator[Place]:
    clock = VirtualClock(settle=at_rest)
    town = Town(clock)
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_house(settings, clock=clock, ids=SeededIds(), notifier=town) as house:
        yield Place(house.ports, clock, town)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_place() as opened:
        yield opened


class TestSideBySide:
    """A bound per account and in all: one slow or dead receiver delays nobody else
    (docs/decisions.md "Slow receivers")."""

    async def test_ten_hanging_receivers_delay_nobody_and_each_gets_exactly_ten_letters(self, place: Place) -> None:
        """64 worker slots, 10 receivers that are silent for 10 seconds, 20 that are well: all events of those leave at
        the very moment, and again while the others hang."""
        dead = [await place.merchant(f"dead{number}", SILENT) for number in range(10)]
        well = [await place.merchant(f"well{number}") for number in range(20)]
        for account in dead:
            await place.happen(account, 30)
        for account in well:
            await place.happen(account, 5)
        town = place.town
        async with place.working(at_once=64):
            for number in range(20):
                assert town.times(place.url(f"well{number}")) == [0.0] * 5
            for number in range(10):
                assert town.times(place.url(f"dead{number}")) == [0.0] * 8, "eight at a time, and they hang"
            await place.clock.advance(5)
            for account in well:
                await place.happen(account, 5)
            await place.clock.advance(0)
            for number in range(20):
                assert town.times(place.url(f"well{number}")) == [0.0] * 5 + [5.0] * 5
            await place.clock.advance(35)
            for number, account in enumerate(dead):
                assert town.times(place.url(f"dead{number}")) == [0.0] * 8 + [10.0] * 2, "ten failures open its breaker"
                breaker = await place.breaker(account)
                assert (breaker.failures, breaker.is_open) == (10, True)
            await place.clock.advance(15)
            for number in range(10):
                assert town.times(place.url(f"dead{number}"))[10:] == [50.0], "one probe, 30 s after it opened"
        for account in well:
            assert await place.statuses(account) == {"delivered": 10}
        assert await place.statuses(dead[0]) == {"pending": 30}

    async def test_slow_receivers_are_asked_eight_letters_at_a_time_and_nobody_else_waits(self, place: Place) -> None:
        slow = await place.merchant("slow")
        place.town.answers[place.url("slow")] = DeliveryResult(
            answer=Answer.TIMEOUT, status=200
        )  # slow, but it answers
        await place.happen(slow, 40)
        async with place.working():
            await place.clock.advance(49)
        assert place.town.times(place.url("slow")) == sorted([0.0, 10.0, 20.0, 30.0, 40.0] * 8)
        assert place.town.most[place.url("slow")] == 8
        assert await place.statuses(slow) == {"delivered": 40}

    async def test_there_is_a_bound_in_all_which_many_receivers_share_in_turn(self, place: Place) -> None:
        """Twelve places for ten receivers that answered well and now hang: each is served, none takes all; from then
        on, five of the places are for slow ones."""
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        accounts = [await place.merchant(f"m{number}") for number in range(10)]
        for account in accounts:
            await place.happen(account)
        await place.work()
        for number, account in enumerate(accounts):
            place.town.answers[place.url(f"m{number}")] = slow
            await place.happen(account, 6)
        dispatcher = Dispatcher(place.ports, at_once=12, per_receiver=3)
        jobs = await place.ports.storage.claim(100, LEASE)
        running = [asyncio.create_task(dispatcher.run(job)) for job in jobs]
        await place.clock.advance(0)
        assert place.town.under_way.total() == 12
        assert all(1 <= place.town.under_way[place.url(f"m{number}")] <= 3 for number in range(10))
        await place.clock.advance(15)
        assert place.town.under_way.total() == 5
        await place.clock.advance(95)
        assert all(task.done() for task in running)
        assert place.town.most_in_all == 12
        assert [len(place.town.webhooks[place.url(f"m{number}")]) for number in range(10)] == [7] * 10

    async def test_one_slot_in_all_goes_round(self, place: Place) -> None:
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        for account in [await place.merchant(f"m{number}", slow) for number in range(3)]:
            await place.happen(account, 3)
        dispatcher = Dispatcher(place.ports, at_once=1)
        running = [asyncio.create_task(dispatcher.run(job)) for job in await place.ports.storage.claim(100, LEASE)]
        await place.clock.advance(90)
        assert all(task.done() for task in running)
        assert place.town.most_in_all == 1
        for number in range(3):
            times = place.town.times(place.url(f"m{number}"))
            assert len(times) == 3
            assert all(later - earlier <= 40 for earlier, later in pairwise(times)), "nobody waits for ever"

    async def test_an_event_that_comes_while_letters_hang_leaves_within_a_quarter_of_a_second(
        self, place: Place
    ) -> None:
        account = await place.merchant("slow", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await place.happen(account)
        async with place.working():
            await place.clock.advance(3)
            await place.happen(account)
            await place.clock.advance(LOOK)
            assert place.town.times(place.url("slow")) == [0.0, 3.0 + LOOK]

    async def test_jobs_of_other_kinds_do_not_hold_up_deliveries_nor_do_these_take_their_places(
        self, place: Place
    ) -> None:
        """One slot for all other jobs; forty receivers hang; a timer's job is still done at once."""
        bad = await place.merchant("bad", BAD)
        for account in [await place.merchant(f"dead{number}", SILENT) for number in range(40)]:
            await place.happen(account, 3)
        async with place.working(at_once=1):
            assert place.town.under_way.total() == 120
            await place.happen(bad)
            await place.clock.advance(1)
            assert place.town.times(place.url("bad")) == [0.0, 1.0], "its timer rang"


class TestOrder:
    async def test_oldest_first(self, place: Place) -> None:
        account = await place.merchant("m")
        ids = await place.happen(account, 3 * BATCH + 7)
        await place.work()
        assert place.town.events(place.url("m")) == ids

    async def test_behind_an_open_breaker_also_what_has_failed_before_leaves_in_order_of_age(
        self, place: Place
    ) -> None:
        """A success closes it, and what waits goes out oldest first (docs/webhooks.md "When you do not answer")."""
        account = await place.merchant("m", BAD)
        ids = await place.happen(account, 4)
        await place.work(20)
        ids += await place.happen(account, 300)
        await place.work(5)
        assert (await place.breaker(account)).is_open
        place.town.webhooks.clear()
        place.town.answers[place.url("m")] = GOOD
        await place.work(30)
        assert place.town.events(place.url("m")) == ids
        assert await place.statuses(account) == {"delivered": 304}

    async def test_one_event_that_is_always_refused_never_blocks_another(self, place: Place) -> None:
        """Others are taken while its ladder lasts, so that it opens no breaker: it goes on by the slow ladder."""
        account = await place.merchant("m")
        url = place.url("m")
        [bad] = await place.happen(account)

        def answer(webhook: WebhookRequest) -> None:
            place.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == bad else GOOD

        place.town.on_letter = answer
        for _ in range(6):
            await place.work(100)
            [good] = await place.happen(account)
            await place.work()
            assert (await place.delivery(good)).status is DeliveryStatus.DELIVERED
        assert ((await place.delivery(bad)).attempts, (await place.breaker(account)).is_open) == (10, False)
        await place.work(2 * 86_400)
        assert (await place.delivery(bad)).status is DeliveryStatus.FAILED
        assert place.town.events(url).count(bad) == 14

    async def test_one_bad_event_does_not_keep_the_breaker_open(self, place: Place) -> None:
        """Probes take the waiting events in turn."""
        account = await place.merchant("m", BAD)
        ids = await place.happen(account, 5)
        await place.work(20)
        url = place.url("m")

        def answer(webhook: WebhookRequest) -> None:
            place.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == ids[0] else GOOD

        place.town.on_letter = answer
        place.town.webhooks.clear()
        await place.work(90)
        assert place.town.events(url)[:2] == ids[:2]
        assert [(await place.delivery(each)).status.value for each in ids] == ["pending"] + ["delivered"] * 4


class TestBreaker:
    async def test_an_outage_of_minutes_loses_nothing_of_a_merchant_with_one_payment(self, place: Place) -> None:
        """Its event waits with the breaker and goes out with the first probe that succeeds
        (docs/webhooks.md "When you do not answer")."""
        account = await place.merchant("m", BAD)
        [event] = await place.happen(account)
        await place.work(540)
        assert (await place.breaker(account)).is_open
        assert await place.statuses(account) == {"pending": 1}
        place.town.answers[place.url("m")] = GOOD
        await place.work(2)
        delivery = await place.delivery(event)
        assert (delivery.status, delivery.attempts, delivery.probes) == (DeliveryStatus.DELIVERED, 10, 1)
        assert place.town.times(place.url("m"))[-2:] == [511.0, 541.0]
        assert not (await place.breaker(account)).is_open
        assert await place.jobs() == []

    async def test_a_merchant_with_one_payment_is_probed_for_seven_days_and_then_given_up(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        [event] = await place.happen(account)
        await place.work(7 * 86_400 - 3600)
        assert await place.statuses(account) == {"pending": 1}
        await place.work(2 * 3600)
        delivery = await place.delivery(event)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 10)
        assert await place.jobs() == []

    async def test_it_is_walked_exactly(self, place: Place) -> None:
        """10 failures from 3 events, then probes after 30 s, 1, 2, 5, 10, 30, 60 min and every 60 min."""
        account = await place.merchant("m", BAD)
        await place.happen(account, 3)
        await place.work(86_400)
        times = place.town.times(place.url("m"))
        assert times[:10] == [0.0] * 3 + [1.0] * 3 + [3.0] * 3 + [7.0]
        pauses = [later - earlier for earlier, later in pairwise(times[9:])]
        assert pauses[:9] == [30, 60, 120, 300, 600, 1800, 3600, 3600, 3600]
        assert set(pauses[9:]) == {3600}
        attempts = await place.attempts()
        assert Counter(each.probe for each in attempts) == {False: 10, True: len(times) - 10}

    async def test_probes_are_rows_and_no_attempts(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        ids = await place.happen(account, 3)
        await place.work(40)
        async with place.ports.storage.unit() as unit:
            rows = await unit[Attempt].find(event_id=ids[0], order="sent_at")
        delivery = await place.delivery(ids[0])
        assert [(row.number, row.probe, row.status) for row in rows] == [
            (1, False, 500),
            (2, False, 500),
            (3, False, 500),
            (4, False, 500),
            (5, True, 500),
        ]
        assert (delivery.attempts, delivery.probes) == (4, 1)

    async def test_after_seven_days_events_behind_it_are_failed(self, place: Place) -> None:
        """What is older than 7 days is `failed`, and can still be sent again
        (docs/webhooks.md "When you do not answer")."""
        account = await place.merchant("m", BAD)
        await place.happen(account, 30)
        await place.work(7 * 86_400 - 3600)
        assert await place.statuses(account) == {"pending": 30}
        await place.work(2 * 3600)
        assert await place.statuses(account) == {"failed": 30}
        webhooks = len(place.town.webhooks[place.url("m")])
        await place.work(86_400)
        assert len(place.town.webhooks[place.url("m")]) == webhooks, "with nothing to send nothing is probed"
        assert await place.jobs() == []

    async def test_what_comes_after_a_long_silence_is_the_probe_itself(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        await place.happen(account, 12)
        await place.work(8 * 86_400)
        assert (await place.breaker(account)).is_open
        place.town.answers[place.url("m")] = GOOD
        before = len(place.town.webhooks[place.url("m")])
        [late] = await place.happen(account)
        await place.work()
        assert place.town.events(place.url("m"))[before:] == [late]
        assert not (await place.breaker(account)).is_open
        assert (await place.delivery(late)).attempts == 0

    @pytest.mark.parametrize(
        "wish", [{"webhook_url": "https://new.example/hook"}, {"webhook_secret": "another-secret-of-the-tests"}]
    )
    async def test_another_address_or_secret_closes_it_and_all_leave_at_once(
        self, place: Place, wish: dict[str, str]
    ) -> None:
        account = await place.merchant("m", BAD)
        ids = await place.happen(account, 20)
        await place.work(1000)
        assert (await place.breaker(account)).is_open
        place.town.webhooks.clear()
        place.town.answers[place.url("m")] = GOOD
        await set_settings(place.ports, account, wish)
        await place.work()
        assert place.town.events(wish.get("webhook_url", place.url("m"))) == ids
        assert not (await place.breaker(account)).is_open

    async def test_settings_that_are_none_of_its_business_leave_it(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        await place.happen(account, 12)
        await place.work(20)
        await set_settings(place.ports, account, {"webhook_url": place.url("m"), "acceptance": "false"})
        assert (await place.breaker(account)).is_open

    async def test_a_blocked_address_keeps_events_waiting_until_it_is_corrected(self, place: Place) -> None:
        account = await place.merchant("m", DeliveryResult(answer=Answer.BLOCKED, note="https only"))
        ids = await place.happen(account, 5)
        await place.work(3 * 86_400)
        assert await place.statuses(account) == {"pending": 5}
        await set_settings(place.ports, account, {"webhook_url": place.url("good")})
        await place.work()
        assert place.town.events(place.url("good")) == ids

    async def test_modes_have_breakers_of_their_own(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        await place.happen(account, 12, Mode.TEST)
        await place.work(20)
        place.town.answers[place.url("m")] = GOOD
        [live] = await place.happen(account, 1, Mode.LIVE)
        await place.work()
        assert (await place.delivery(live)).status is DeliveryStatus.DELIVERED
        assert (await place.breaker(account, Mode.TEST)).is_open


class TestHolding:
    async def test_pending_events_are_held_when_the_address_goes_and_leave_when_it_is_back(self, place: Place) -> None:
        account = await place.merchant("m", BAD)
        await place.happen(account, 2)
        await place.work(5)
        await set_settings(place.ports, account, {"webhook_url": ""})
        await place.work(3600)
        assert await place.statuses(account) == {"held": 2}
        webhooks = len(place.town.webhooks[place.url("m")])
        place.town.answers[place.url("m")] = GOOD
        await set_settings(place.ports, account, {"webhook_url": place.url("m")})
        await place.work()
        assert await place.statuses(account) == {"delivered": 2}
        assert len(place.town.webhooks[place.url("m")]) == webhooks + 2

    async def test_a_run_hears_of_it_within_a_second(self, place: Place) -> None:
        account = await place.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await place.happen(account, 20)
        async with place.working():
            await set_settings(place.ports, account, {"webhook_url": ""})
            await place.clock.advance(30)
            assert len(place.town.webhooks[place.url("m")]) == 8
            assert await place.statuses(account) == {"held": 12, "delivered": 8}


class TestCrashes:
    """Nothing is lost by kill -9 at any await (ARCHITECTURE.md "Units and jobs")."""

    async def test_the_job_goes_in_the_unit_that_enters_the_last_attempt(self, place: Place) -> None:
        account = await place.merchant("m")
        await place.happen(account, 3)
        assert [job.id for job in await place.jobs()] == [deliver_id(endpoint_id(account, Mode.TEST))]
        await place.work()
        assert await place.jobs() == []

    async def test_a_worker_that_dies_in_the_middle_leaves_the_rest_to_the_next(self, place: Place) -> None:
        account = await place.merchant("m", SILENT)
        ids = await place.happen(account, 20)
        [job] = await place.ports.storage.claim(10, LEASE)
        running = asyncio.create_task(run(place.ports, job))
        await place.clock.advance(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await place.statuses(account) == {"pending": 20}
        place.town.answers[place.url("m")] = GOOD
        await place.clock.advance(LEASE)
        await place.work()
        assert await place.statuses(account) == {"delivered": 20}
        assert set(place.town.events(place.url("m"))) == set(ids)

    async def test_a_retry_is_remembered_in_the_unit_that_enters_the_failure(self, place: Place) -> None:
        """Whoever dies between two attempts has left a timer."""
        account = await place.merchant("m", BAD)
        await place.happen(account)
        await run_due(place.ports)
        [timer] = await place.jobs()
        assert (timer.kind, timer.due) == (TIMER, place.clock.now() + timedelta(seconds=1))

    async def test_a_long_run_keeps_its_lease(self, place: Place) -> None:
        """A minute of slow webhooks, many times the lease: no other worker gets the job, and at its end it goes though
        its lease was renewed."""
        account = await place.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        ids = await place.happen(account, 8 * 6)
        async with place.working():
            for _ in range(20):
                await place.clock.advance(3)
                assert await place.ports.storage.claim(10, LEASE, kind=DELIVER) == []
        assert place.town.events(place.url("m")) == ids
        assert await place.jobs() == []

    async def test_two_workers_share_receivers_and_send_nothing_twice(self, place: Place) -> None:
        accounts = [await place.merchant(f"m{number}") for number in range(6)]
        async with place.working(), place.working():
            for _ in range(5):
                for account in accounts:
                    await place.happen(account, 10)
                await place.clock.advance(1)
        for number in range(6):
            events = place.town.events(place.url(f"m{number}"))
            assert len(events) == len(set(events)) == 50

    async def test_who_lost_the_lease_stops_and_enters_what_it_sent(self, place: Place) -> None:
        account = await place.merchant("m", SILENT)
        await place.happen(account, 30)
        [job] = await place.ports.storage.claim(10, 5.0)
        dispatcher = Dispatcher(place.ports)
        slow = asyncio.create_task(dispatcher.run(job))
        await place.clock.advance(6)
        [again] = await place.ports.storage.claim(10, LEASE)
        place.town.answers[place.url("m")] = GOOD
        await run(place.ports, again)
        assert await place.statuses(account) == {"delivered": 30}
        dispatcher.look()
        await place.clock.advance(60)
        await slow
        assert await place.statuses(account) == {"delivered": 30}
        counted = Counter(each.event_id for each in await place.attempts())
        assert sorted(counted.values()) == [1] * 22 + [2] * 8
        for event_id, made in counted.items():
            assert (await place.delivery(event_id)).attempts == made

    async def test_events_that_come_at_any_moment_of_a_run_are_sent(self, place: Place) -> None:
        """However the last look of a run and the commit of an event fall together, the event leaves."""
        account = await place.merchant("m")
        made: list[str] = []
        left = 40

        async def one_more() -> None:
            made.extend(await place.happen(account))

        pending: set[asyncio.Task[None]] = set()

        def on_letter(_: WebhookRequest) -> None:
            nonlocal left
            if left:
                left -= 1
                pending.add(asyncio.create_task(one_more()))

        place.town.on_letter = on_letter
        made += await place.happen(account)
        await place.work()
        await asyncio.gather(*pending)
        await place.work()
        assert sorted(place.town.events(place.url("m"))) == sorted(made)
        assert len(made) == 41
        assert await place.jobs() == []

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    async def test_a_crash_at_any_commit_of_a_bad_day_loses_nothing(self, after: bool) -> None:
        """Failures, a breaker that opens, probes, a drain: killed at every commit in turn, each time all is delivered,
        every webhook that was entered has its row, and no job is left."""
        at = 0
        while True:
            at += 1
            fuse = CrashPoint(at, after=after)
            async with open_place() as place:
                await bad_day(place, fuse)
            if fuse.commits < at:
                break
        assert at > 12, "the story has too few commits to show anything"

    async def test_sigterm_finishes_letters_under_way_and_begins_no_other(self, place: Place) -> None:
        account = await place.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await place.happen(account, 20)
        async with place.working() as worker:
            worker.stop()
            await place.clock.advance(30)
        assert await place.statuses(account) == {"delivered": 8, "pending": 12}
        [job] = await place.jobs()
        assert job.leased_until is None, "the next worker need not wait for a lease to end"
        place.town.answers[place.url("m")] = GOOD
        await place.work()
        assert await place.statuses(account) == {"delivered": 20}


async def bad_day(place: Place, fuse: CrashPoint) -> None:
    account = await place.merchant("m", BAD)
    await place.happen(account, 3)
    whole = place.ports
    place.ports = msgspec.structs.replace(whole, storage=CrashingStorage(whole.storage, fuse))
    with contextlib.suppress(Killed):
        await place.work(120)
    place.ports = whole
    await place.clock.advance(LEASE)
    await place.work(120)
    place.town.answers[place.url("m")] = GOOD
    await place.work(600)
    rows = Counter(attempt.event_id for attempt in await place.attempts())
    async with place.ports.storage.unit() as unit:
        deliveries = await unit[Delivery].find(account_id=account)
    assert [each.status for each in deliveries] == [DeliveryStatus.DELIVERED] * 3, fuse.at
    assert {each.id: each.attempts + each.probes for each in deliveries} == rows, fuse.at
    assert not (await place.breaker(account)).is_open
    assert await place.jobs() == []


class TestFaults:
    async def test_a_secret_that_does_not_open_is_a_fault_that_loses_nothing(self, place: Place) -> None:
        account = await place.merchant("m")
        await place.happen(account, 3)
        broken = msgspec.structs.replace(place.ports, vault=LostKeys(place.ports.vault))
        [job] = await place.ports.storage.claim(10, LEASE)
        await run(broken, job)
        assert await place.statuses(account) == {"pending": 3}
        assert place.town.webhooks == {}
        await place.work(1)
        assert await place.statuses(account) == {"delivered": 3}

    async def test_a_notifier_that_raises_loses_nothing(self, place: Place) -> None:
        account = await place.merchant("m")
        ids = await place.happen(account, 3)
        [job] = await place.ports.storage.claim(10, LEASE)
        failing = msgspec.structs.replace(place.ports, notifier=Exploding())
        await run(failing, job)
        await place.work(1)
        assert place.town.events(place.url("m")) == ids


class LostKeys:
    """A vault that opens nothing."""

    def __init__(self, vault: Any) -> None:
        self._vault = vault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vault, name)

    def unseal(self, sealed: bytes, place: str) -> bytes:
        from cambist.ports.vault import VaultError

        raise VaultError("no key")


class Exploding:
    """A notifier that breaks its promise never to raise."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        raise RuntimeError("closed")

    async def close(self) -> None: ...


class TestClocks:
    async def test_an_event_from_a_machine_whose_clock_is_ahead_is_not_overlooked(self, place: Place) -> None:
        """It asks a job that stands already, whose run looks by the storage's clock."""
        account = await place.merchant("m")
        await place.happen(account)
        ahead = VirtualClock(place.clock.now() + timedelta(hours=1))
        [event] = await happen(msgspec.structs.replace(place.ports, clock=ahead), account)
        assert (await place.delivery(event)).due == AT_ONCE
        await place.work()
        assert (await place.delivery(event)).status is DeliveryStatus.DELIVERED

    async def test_a_retry_that_a_clock_set_back_hides_is_found_again(self, place: Place) -> None:
        """The timer rang, and then the storage's clock went back: the look finds nothing, so the timer is set anew."""
        account = await place.merchant("m", BAD)
        [event] = await place.happen(account)
        await run_due(place.ports)
        due = (await place.delivery(event)).due
        assert due is not None
        async with place.ports.storage.unit() as unit:
            for timer in await unit[Job].find(kind=TIMER):
                unit[Job].remove(timer)
            job_id = deliver_id(endpoint_id(account, Mode.TEST))
            now = place.clock.now()
            unit[Job].add(
                Job(id=job_id, kind=DELIVER, argument=endpoint_id(account, Mode.TEST), due=now, created_at=now)
            )
            await unit.commit()
        await run_due(place.ports)
        [timer] = await place.jobs()
        assert (timer.kind, timer.due) == (TIMER, due)
