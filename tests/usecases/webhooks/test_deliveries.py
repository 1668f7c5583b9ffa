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
from cambist.core.domain.webhooks.delivery import AT_ONCE, first_attempt
from cambist.core.domain.webhooks.due_queue import BATCH
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.jobs import LEASE, run, run_due
from cambist.core.usecases.webhooks import endpoint_worker
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.core.usecases.webhooks.outbox import DELIVER, deliver_id
from cambist.core.usecases.webhooks.results import TIMER, commit
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.worker.loop import POLL, Worker
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
from tests.tables import table

GOOD = DeliveryResult(answer=Answer.RESPONDED, status=200)
SILENT = DeliveryResult(answer=Answer.TIMEOUT, note="no whole answer within 10 s")
BAD = DeliveryResult(answer=Answer.RESPONDED, status=500)
SECONDS_OF_SILENCE = 10.0


class Town:
    """A notifier with many receivers. Each answers as scripted, at once or after the whole limit of 10 seconds."""

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
        """Do nothing: there are no connections."""

    def times(self, url: str) -> list[float]:
        return [at for at, _ in self.webhooks[url]]

    def events(self, url: str) -> list[str]:
        return [event for _, event in self.webhooks[url]]


class Harness:
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
        """Add so many events in one unit, and return their ids."""
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
            rows = await unit[Attempt].find(limit=100_000)
            return [*rows, *filter(None, map(first_attempt, await unit[Delivery].find(limit=100_000)))]

    async def work(self, seconds: float = 0) -> None:
        """Work without a worker: advance the clock, and run every job at its time, one after the other."""
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
        """Work with a worker as `cambist serve` runs it."""
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
async def open_harness() -> AsyncIterator[Harness]:
    clock = VirtualClock(settle=at_rest)
    town = Town(clock)
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_app(settings, clock=clock, ids=SeededIds(), notifier=town) as app:
        yield Harness(app.ports, clock, town)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with open_harness() as opened:
        yield opened


class TestSideBySide:
    """Limits per account and in total: one slow or dead receiver delays nobody else (docs/decisions.md "Slow
    receivers")."""

    async def test_ten_hanging_receivers_delay_nobody_and_get_ten_webhooks_each(self, harness: Harness) -> None:
        """64 worker slots, 10 receivers that are silent for 10 seconds, 20 that are well: all events of those leave at
        the very moment, and again while the others hang."""
        dead = [await harness.merchant(f"dead{number}", SILENT) for number in range(10)]
        well = [await harness.merchant(f"well{number}") for number in range(20)]
        for account in dead:
            await harness.happen(account, 30)
        for account in well:
            await harness.happen(account, 5)
        town = harness.town
        async with harness.working(at_once=64):
            for number in range(20):
                assert town.times(harness.url(f"well{number}")) == [0.0] * 5
            for number in range(10):
                assert town.times(harness.url(f"dead{number}")) == [0.0] * 8, "eight at a time, and they hang"
            await harness.clock.advance(5)
            for account in well:
                await harness.happen(account, 5)
            await harness.clock.advance(0)
            for number in range(20):
                assert town.times(harness.url(f"well{number}")) == [0.0] * 5 + [5.0] * 5
            await harness.clock.advance(35)
            for number, account in enumerate(dead):
                assert town.times(harness.url(f"dead{number}")) == [0.0] * 8 + [10.0] * 2, (
                    "ten failures open its breaker"
                )
                breaker = await harness.breaker(account)
                assert (breaker.failures, breaker.is_open) == (10, True)
            await harness.clock.advance(15)
            for number in range(10):
                assert town.times(harness.url(f"dead{number}"))[10:] == [50.0], "one probe, 30 s after it opened"
        for account in well:
            assert await harness.statuses(account) == {"delivered": 10}
        assert await harness.statuses(dead[0]) == {"pending": 30}

    async def test_slow_receiver_gets_eight_webhooks_at_a_time(self, harness: Harness) -> None:
        slow = await harness.merchant("slow")
        harness.town.answers[harness.url("slow")] = DeliveryResult(
            answer=Answer.TIMEOUT, status=200
        )  # slow, but it answers
        await harness.happen(slow, 40)
        async with harness.working():
            await harness.clock.advance(49)
        assert harness.town.times(harness.url("slow")) == sorted([0.0, 10.0, 20.0, 30.0, 40.0] * 8)
        assert harness.town.most[harness.url("slow")] == 8
        assert await harness.statuses(slow) == {"delivered": 40}

    async def test_there_is_a_bound_in_all_which_many_receivers_share_in_turn(self, harness: Harness) -> None:
        """Twelve permits for ten receivers that answered well and now hang: each is served, none takes all; from then
        on, five of the permits are for slow ones."""
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        accounts = [await harness.merchant(f"m{number}") for number in range(10)]
        for account in accounts:
            await harness.happen(account)
        await harness.work()
        for number, account in enumerate(accounts):
            harness.town.answers[harness.url(f"m{number}")] = slow
            await harness.happen(account, 6)
        dispatcher = Dispatcher(harness.ports, at_once=12, per_receiver=3)
        jobs = await harness.ports.storage.claim(100, LEASE)
        running = [asyncio.create_task(dispatcher.run(job)) for job in jobs]
        await harness.clock.advance(0)
        assert harness.town.under_way.total() == 12
        assert all(1 <= harness.town.under_way[harness.url(f"m{number}")] <= 3 for number in range(10))
        await harness.clock.advance(15)
        assert harness.town.under_way.total() == 5
        await harness.clock.advance(95)
        assert all(task.done() for task in running)
        assert harness.town.most_in_all == 12
        assert [len(harness.town.webhooks[harness.url(f"m{number}")]) for number in range(10)] == [7] * 10

    async def test_one_slot_in_all_goes_round(self, harness: Harness) -> None:
        slow = DeliveryResult(answer=Answer.TIMEOUT, status=200)
        for account in [await harness.merchant(f"m{number}", slow) for number in range(3)]:
            await harness.happen(account, 3)
        dispatcher = Dispatcher(harness.ports, at_once=1)
        running = [asyncio.create_task(dispatcher.run(job)) for job in await harness.ports.storage.claim(100, LEASE)]
        await harness.clock.advance(90)
        assert all(task.done() for task in running)
        assert harness.town.most_in_all == 1
        for number in range(3):
            times = harness.town.times(harness.url(f"m{number}"))
            assert len(times) == 3
            assert all(later - earlier <= 40 for earlier, later in pairwise(times)), "nobody waits for ever"

    async def test_new_event_leaves_within_a_poll_while_another_webhook_hangs(self, harness: Harness) -> None:
        account = await harness.merchant("slow", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await harness.happen(account)
        async with harness.working():
            await harness.clock.advance(3)
            await harness.happen(account)
            await harness.clock.advance(POLL)
            assert harness.town.times(harness.url("slow")) == [0.0, 3.0 + POLL]

    async def test_deliveries_and_jobs_of_other_kinds_do_not_share_slots(self, harness: Harness) -> None:
        """One slot for all other jobs; forty receivers hang; a timer's job is still done at once."""
        bad = await harness.merchant("bad", BAD)
        for account in [await harness.merchant(f"dead{number}", SILENT) for number in range(40)]:
            await harness.happen(account, 3)
        async with harness.working(at_once=1):
            assert harness.town.under_way.total() == 120
            await harness.happen(bad)
            await harness.clock.advance(1)
            assert harness.town.times(harness.url("bad")) == [0.0, 1.0], "its timer rang"


class TestOrder:
    async def test_oldest_first(self, harness: Harness) -> None:
        account = await harness.merchant("m")
        ids = await harness.happen(account, 3 * BATCH + 7)
        await harness.work()
        assert harness.town.events(harness.url("m")) == ids

    async def test_closed_breaker_releases_failed_and_new_webhooks_oldest_first(self, harness: Harness) -> None:
        """A success closes it, and waiting events go out oldest first (docs/webhooks.md "When you do not answer")."""
        account = await harness.merchant("m", BAD)
        ids = await harness.happen(account, 4)
        await harness.work(20)
        ids += await harness.happen(account, 300)
        await harness.work(5)
        assert (await harness.breaker(account)).is_open
        harness.town.webhooks.clear()
        harness.town.answers[harness.url("m")] = GOOD
        await harness.work(30)
        assert harness.town.events(harness.url("m")) == ids
        assert await harness.statuses(account) == {"delivered": 304}

    async def test_open_breaker_does_not_keep_the_worker_busy_after_a_late_request(
        self, harness: Harness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would commit repeatedly until the probe, because it reads no due deliveries, with which it would reread
        the job."""
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 4)
        await harness.work(20)
        await harness.happen(account, 30)
        await harness.work(5)
        assert (await harness.breaker(account)).is_open
        await harness.happen(account)
        [job] = await harness.ports.storage.claim(10, LEASE, kind=DELIVER)
        await harness.happen(account)
        commits: list[bool] = []

        async def counted(*given: Any) -> Any:
            assert len(commits) < 10, "it commits on and on"
            breaker, left = await commit(*given)
            commits.append(left)
            return breaker, left

        monkeypatch.setattr(endpoint_worker, "commit", counted)
        await Dispatcher(harness.ports).run(job)
        assert commits == [False, True]

    async def test_one_event_that_is_always_refused_never_blocks_another(self, harness: Harness) -> None:
        """Other events succeed during its backoff, so the breaker stays closed and the event continues by the slow
        backoff."""
        account = await harness.merchant("m")
        url = harness.url("m")
        [bad] = await harness.happen(account)

        def answer(webhook: WebhookRequest) -> None:
            harness.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == bad else GOOD

        harness.town.on_letter = answer
        for _ in range(6):
            await harness.work(100)
            [good] = await harness.happen(account)
            await harness.work()
            assert (await harness.delivery(good)).status is DeliveryStatus.DELIVERED
        assert ((await harness.delivery(bad)).attempts, (await harness.breaker(account)).is_open) == (10, False)
        await harness.work(2 * 86_400)
        assert (await harness.delivery(bad)).status is DeliveryStatus.FAILED
        assert harness.town.events(url).count(bad) == 14

    async def test_one_bad_event_does_not_keep_the_breaker_open(self, harness: Harness) -> None:
        """Probes take the waiting events in turn."""
        account = await harness.merchant("m", BAD)
        ids = await harness.happen(account, 5)
        await harness.work(20)
        url = harness.url("m")

        def answer(webhook: WebhookRequest) -> None:
            harness.town.answers[url] = BAD if webhook.headers["X-Webhook-Id"] == ids[0] else GOOD

        harness.town.on_letter = answer
        harness.town.webhooks.clear()
        await harness.work(90)
        assert harness.town.events(url)[:2] == ids[:2]
        assert [(await harness.delivery(each)).status.value for each in ids] == ["pending"] + ["delivered"] * 4


class TestBreaker:
    async def test_an_outage_of_minutes_loses_nothing_of_a_merchant_with_one_payment(self, harness: Harness) -> None:
        """Its event waits with the breaker and goes out with the first probe that succeeds
        (docs/webhooks.md "When you do not answer")."""
        account = await harness.merchant("m", BAD)
        [event] = await harness.happen(account)
        await harness.work(540)
        assert (await harness.breaker(account)).is_open
        assert await harness.statuses(account) == {"pending": 1}
        harness.town.answers[harness.url("m")] = GOOD
        await harness.work(2)
        delivery = await harness.delivery(event)
        assert (delivery.status, delivery.attempts, delivery.probes) == (DeliveryStatus.DELIVERED, 10, 1)
        assert harness.town.times(harness.url("m"))[-2:] == [511.0, 541.0]
        assert not (await harness.breaker(account)).is_open
        assert await harness.jobs() == []

    async def test_single_undelivered_event_is_probed_for_seven_days_then_failed(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        [event] = await harness.happen(account)
        await harness.work(7 * 86_400 - 3600)
        assert await harness.statuses(account) == {"pending": 1}
        await harness.work(2 * 3600)
        delivery = await harness.delivery(event)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 10)
        assert await harness.jobs() == []

    async def test_breaker_follows_its_schedule_exactly(self, harness: Harness) -> None:
        """10 failures from 3 events, then probes after 30 s, 1, 2, 5, 10, 30, 60 min and every 60 min."""
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 3)
        await harness.work(86_400)
        times = harness.town.times(harness.url("m"))
        assert times[:10] == [0.0] * 3 + [1.0] * 3 + [3.0] * 3 + [7.0]
        pauses = [later - earlier for earlier, later in pairwise(times[9:])]
        assert pauses[:9] == [30, 60, 120, 300, 600, 1800, 3600, 3600, 3600]
        assert set(pauses[9:]) == {3600}
        attempts = await harness.attempts()
        assert Counter(each.probe for each in attempts) == {False: 10, True: len(times) - 10}

    async def test_probes_are_rows_and_no_attempts(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        ids = await harness.happen(account, 3)
        await harness.work(40)
        async with harness.ports.storage.unit() as unit:
            rows = await unit[Attempt].find(event_id=ids[0], order="sent_at")
        delivery = await harness.delivery(ids[0])
        assert [(row.number, row.probe, row.status) for row in rows] == [
            (1, False, 500),
            (2, False, 500),
            (3, False, 500),
            (4, False, 500),
            (5, True, 500),
        ]
        assert (delivery.attempts, delivery.probes) == (4, 1)

    async def test_after_seven_days_events_behind_it_are_failed(self, harness: Harness) -> None:
        """An event older than 7 days is `failed`, and can still be sent again (docs/webhooks.md "When you do not
        answer")."""
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 30)
        await harness.work(7 * 86_400 - 3600)
        assert await harness.statuses(account) == {"pending": 30}
        await harness.work(2 * 3600)
        assert await harness.statuses(account) == {"failed": 30}
        webhooks = len(harness.town.webhooks[harness.url("m")])
        await harness.work(86_400)
        assert len(harness.town.webhooks[harness.url("m")]) == webhooks, "with nothing to send nothing is probed"
        assert await harness.jobs() == []

    async def test_first_event_after_a_long_silence_is_the_probe_itself(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 12)
        await harness.work(8 * 86_400)
        assert (await harness.breaker(account)).is_open
        harness.town.answers[harness.url("m")] = GOOD
        before = len(harness.town.webhooks[harness.url("m")])
        [late] = await harness.happen(account)
        await harness.work()
        assert harness.town.events(harness.url("m"))[before:] == [late]
        assert not (await harness.breaker(account)).is_open
        assert (await harness.delivery(late)).attempts == 0

    @pytest.mark.parametrize(
        "wish", [{"webhook_url": "https://new.example/hook"}, {"webhook_secret": "another-secret-of-the-tests"}]
    )
    async def test_another_address_or_secret_closes_it_and_all_leave_at_once(
        self, harness: Harness, wish: dict[str, str]
    ) -> None:
        account = await harness.merchant("m", BAD)
        ids = await harness.happen(account, 20)
        await harness.work(1000)
        assert (await harness.breaker(account)).is_open
        harness.town.webhooks.clear()
        harness.town.answers[harness.url("m")] = GOOD
        await set_settings(harness.ports, account, wish)
        await harness.work()
        assert harness.town.events(wish.get("webhook_url", harness.url("m"))) == ids
        assert not (await harness.breaker(account)).is_open

    async def test_settings_that_are_none_of_its_business_leave_it(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 12)
        await harness.work(20)
        await set_settings(harness.ports, account, {"webhook_url": harness.url("m"), "acceptance": "false"})
        assert (await harness.breaker(account)).is_open

    async def test_a_blocked_address_keeps_events_waiting_until_it_is_corrected(self, harness: Harness) -> None:
        account = await harness.merchant("m", DeliveryResult(answer=Answer.BLOCKED, note="https only"))
        ids = await harness.happen(account, 5)
        await harness.work(3 * 86_400)
        assert await harness.statuses(account) == {"pending": 5}
        await set_settings(harness.ports, account, {"webhook_url": harness.url("good")})
        await harness.work()
        assert harness.town.events(harness.url("good")) == ids

    async def test_modes_have_breakers_of_their_own(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 12, Mode.TEST)
        await harness.work(20)
        harness.town.answers[harness.url("m")] = GOOD
        [live] = await harness.happen(account, 1, Mode.LIVE)
        await harness.work()
        assert (await harness.delivery(live)).status is DeliveryStatus.DELIVERED
        assert (await harness.breaker(account, Mode.TEST)).is_open


class TestQuarantine:
    async def test_pending_events_are_held_while_the_address_is_removed(self, harness: Harness) -> None:
        account = await harness.merchant("m", BAD)
        await harness.happen(account, 2)
        await harness.work(5)
        await set_settings(harness.ports, account, {"webhook_url": ""})
        await harness.work(3600)
        assert await harness.statuses(account) == {"held": 2}
        webhooks = len(harness.town.webhooks[harness.url("m")])
        harness.town.answers[harness.url("m")] = GOOD
        await set_settings(harness.ports, account, {"webhook_url": harness.url("m")})
        await harness.work()
        assert await harness.statuses(account) == {"delivered": 2}
        assert len(harness.town.webhooks[harness.url("m")]) == webhooks + 2

    async def test_run_notices_the_change_within_a_second(self, harness: Harness) -> None:
        account = await harness.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await harness.happen(account, 20)
        async with harness.working():
            await set_settings(harness.ports, account, {"webhook_url": ""})
            await harness.clock.advance(30)
            assert len(harness.town.webhooks[harness.url("m")]) == 8
            assert await harness.statuses(account) == {"held": 12, "delivered": 8}

    async def test_an_address_that_comes_back_as_a_run_ends_leaves_nothing_behind(self, harness: Harness) -> None:
        """The run found no address, but holds no events, because there is one again: pending events still have their
        job."""
        account = await harness.merchant("m")
        await harness.happen(account)
        wish = {"webhook_url": harness.url("m")}

        async def back() -> None:
            await set_settings(harness.ports, account, wish)

        await set_settings(harness.ports, account, {"webhook_url": ""})
        [job] = await harness.ports.storage.claim(10, LEASE, kind=DELIVER)
        meddled = msgspec.structs.replace(harness.ports, storage=Meddling(harness.ports.storage, {2: back}))
        await Dispatcher(meddled).run(job)
        await harness.work(10)
        assert await harness.statuses(account) == {"delivered": 1}


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

    async def test_the_job_goes_in_the_unit_that_enters_the_last_attempt(self, harness: Harness) -> None:
        account = await harness.merchant("m")
        await harness.happen(account, 3)
        assert [job.id for job in await harness.jobs()] == [deliver_id(endpoint_id(account, Mode.TEST))]
        await harness.work()
        assert await harness.jobs() == []

    async def test_a_worker_that_dies_in_the_middle_leaves_the_rest_to_the_next(self, harness: Harness) -> None:
        account = await harness.merchant("m", SILENT)
        ids = await harness.happen(account, 20)
        [job] = await harness.ports.storage.claim(10, LEASE)
        running = asyncio.create_task(run(harness.ports, job))
        await harness.clock.advance(5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await harness.statuses(account) == {"pending": 20}
        harness.town.answers[harness.url("m")] = GOOD
        await harness.clock.advance(LEASE)
        await harness.work()
        assert await harness.statuses(account) == {"delivered": 20}
        assert set(harness.town.events(harness.url("m"))) == set(ids)

    async def test_a_retry_is_remembered_in_the_unit_that_enters_the_failure(self, harness: Harness) -> None:
        """A process that dies between two attempts has left a timer."""
        account = await harness.merchant("m", BAD)
        await harness.happen(account)
        await run_due(harness.ports)
        [timer] = await harness.jobs()
        assert (timer.kind, timer.due) == (TIMER, harness.clock.now() + timedelta(seconds=1))

    async def test_a_long_run_keeps_its_lease(self, harness: Harness) -> None:
        """A minute of slow webhooks, many times the lease: no other worker gets the job, and at its end it goes though
        its lease was renewed."""
        account = await harness.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        ids = await harness.happen(account, 8 * 6)
        async with harness.working():
            for _ in range(20):
                await harness.clock.advance(3)
                assert await harness.ports.storage.claim(10, LEASE, kind=DELIVER) == []
        assert harness.town.events(harness.url("m")) == ids
        assert await harness.jobs() == []

    async def test_two_workers_share_receivers_and_send_nothing_twice(self, harness: Harness) -> None:
        accounts = [await harness.merchant(f"m{number}") for number in range(6)]
        async with harness.working(), harness.working():
            for _ in range(5):
                for account in accounts:
                    await harness.happen(account, 10)
                await harness.clock.advance(1)
        for number in range(6):
            events = harness.town.events(harness.url(f"m{number}"))
            assert len(events) == len(set(events)) == 50

    async def test_worker_that_lost_the_lease_stops_and_records_what_it_sent(self, harness: Harness) -> None:
        account = await harness.merchant("m", SILENT)
        await harness.happen(account, 30)
        [job] = await harness.ports.storage.claim(10, 5.0)
        dispatcher = Dispatcher(harness.ports)
        slow = asyncio.create_task(dispatcher.run(job))
        await harness.clock.advance(6)
        [again] = await harness.ports.storage.claim(10, LEASE)
        harness.town.answers[harness.url("m")] = GOOD
        await run(harness.ports, again)
        assert await harness.statuses(account) == {"delivered": 30}
        dispatcher.look()
        await harness.clock.advance(60)
        await slow
        assert await harness.statuses(account) == {"delivered": 30}
        counted = Counter(each.event_id for each in await harness.attempts())
        assert sorted(counted.values()) == [1] * 22 + [2] * 8
        for event_id, made in counted.items():
            assert (await harness.delivery(event_id)).attempts == made

    async def test_events_that_come_at_any_moment_of_a_run_are_sent(self, harness: Harness) -> None:
        """Whatever the order of a run's last read and an event's commit, the event is sent."""
        account = await harness.merchant("m")
        made: list[str] = []
        left = 40

        async def one_more() -> None:
            made.extend(await harness.happen(account))

        pending: set[asyncio.Task[None]] = set()

        def on_letter(_: WebhookRequest) -> None:
            nonlocal left
            if left:
                left -= 1
                pending.add(asyncio.create_task(one_more()))

        harness.town.on_letter = on_letter
        made += await harness.happen(account)
        await harness.work()
        await asyncio.gather(*pending)
        await harness.work()
        assert sorted(harness.town.events(harness.url("m"))) == sorted(made)
        assert len(made) == 41
        assert await harness.jobs() == []

    @table("after", [False, True], ids=["before", "after"])
    async def test_a_crash_at_any_commit_of_a_bad_day_loses_nothing(self, after: bool) -> None:
        """Failures, a breaker that opens, probes, a drain: killed at every commit in turn, each time all is delivered,
        every webhook that was entered has its row, and no job is left."""
        at = 0
        while True:
            at += 1
            fuse = CrashPoint(at, after=after)
            async with open_harness() as harness:
                await bad_day(harness, fuse)
            if fuse.commits < at:
                break
        assert at > 12, "the story has too few commits to show anything"

    async def test_sigterm_finishes_webhooks_in_flight_and_begins_no_other(self, harness: Harness) -> None:
        account = await harness.merchant("m", DeliveryResult(answer=Answer.TIMEOUT, status=200))
        await harness.happen(account, 20)
        async with harness.working() as worker:
            worker.stop()
            await harness.clock.advance(30)
        assert await harness.statuses(account) == {"delivered": 8, "pending": 12}
        [job] = await harness.jobs()
        assert job.leased_until is None, "the next worker need not wait for a lease to end"
        harness.town.answers[harness.url("m")] = GOOD
        await harness.work()
        assert await harness.statuses(account) == {"delivered": 20}


async def bad_day(harness: Harness, fuse: CrashPoint) -> None:
    account = await harness.merchant("m", BAD)
    await harness.happen(account, 3)
    whole = harness.ports
    harness.ports = msgspec.structs.replace(whole, storage=CrashingStorage(whole.storage, fuse))
    with contextlib.suppress(Killed):
        await harness.work(120)
    harness.ports = whole
    await harness.clock.advance(LEASE)
    await harness.work(120)
    harness.town.answers[harness.url("m")] = GOOD
    await harness.work(600)
    rows = Counter(attempt.event_id for attempt in await harness.attempts())
    async with harness.ports.storage.unit() as unit:
        deliveries = await unit[Delivery].find(account_id=account)
    assert [each.status for each in deliveries] == [DeliveryStatus.DELIVERED] * 3, fuse.at
    assert {each.id: each.attempts + each.probes for each in deliveries} == rows, fuse.at
    assert not (await harness.breaker(account)).is_open
    assert await harness.jobs() == []


class TestFaults:
    async def test_a_secret_that_does_not_open_is_a_fault_that_loses_nothing(self, harness: Harness) -> None:
        account = await harness.merchant("m")
        await harness.happen(account, 3)
        broken = msgspec.structs.replace(harness.ports, vault=LostKeys(harness.ports.vault))
        [job] = await harness.ports.storage.claim(10, LEASE)
        await run(broken, job)
        assert await harness.statuses(account) == {"pending": 3}
        assert harness.town.webhooks == {}
        await harness.work(1)
        assert await harness.statuses(account) == {"delivered": 3}

    async def test_a_notifier_that_raises_loses_nothing(self, harness: Harness) -> None:
        account = await harness.merchant("m")
        ids = await harness.happen(account, 3)
        [job] = await harness.ports.storage.claim(10, LEASE)
        failing = msgspec.structs.replace(harness.ports, notifier=Exploding())
        await run(failing, job)
        await harness.work(1)
        assert harness.town.events(harness.url("m")) == ids


class LostKeys:
    """A vault that opens events and no webhook secret."""

    def __init__(self, vault: Any) -> None:
        self._vault = vault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vault, name)

    def decrypt(self, sealed: bytes, place: str) -> bytes:
        if place.startswith("events.body:"):
            opened: bytes = self._vault.decrypt(sealed, place)
            return opened
        raise VaultError("no key")


class Exploding:
    """A notifier that breaks its promise never to raise."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        raise RuntimeError("closed")

    async def close(self) -> None: ...


class TestClocks:
    async def test_an_event_from_a_machine_whose_clock_is_ahead_is_not_overlooked(self, harness: Harness) -> None:
        """The event requests a job that exists already, and its run uses the storage's clock."""
        account = await harness.merchant("m")
        await harness.happen(account)
        ahead = VirtualClock(harness.clock.now() + timedelta(hours=1))
        [event] = await happen(msgspec.structs.replace(harness.ports, clock=ahead), account)
        assert (await harness.delivery(event)).due == AT_ONCE
        await harness.work()
        assert (await harness.delivery(event)).status is DeliveryStatus.DELIVERED

    async def test_a_retry_that_a_clock_set_back_hides_is_found_again(self, harness: Harness) -> None:
        """The timer fired, and then the storage's clock was set back: the read finds nothing due, so the timer is set
        again."""
        account = await harness.merchant("m", BAD)
        [event] = await harness.happen(account)
        await run_due(harness.ports)
        due = (await harness.delivery(event)).due
        assert due is not None
        async with harness.ports.storage.unit() as unit:
            for timer in await unit[Job].find(kind=TIMER):
                unit[Job].remove(timer)
            job_id = deliver_id(endpoint_id(account, Mode.TEST))
            now = harness.clock.now()
            unit[Job].add(
                Job(id=job_id, kind=DELIVER, argument=endpoint_id(account, Mode.TEST), due=now, created_at=now)
            )
            await unit.commit()
        await run_due(harness.ports)
        [timer] = await harness.jobs()
        assert (timer.kind, timer.due) == (TIMER, due)
