"""Receivers that hang delay no others, even if nearly all hang, or if they share a host."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import pytest

from cambist.core.domain.webhooks import limiter as slots_rules
from cambist.core.domain.webhooks.endpoint_state import EndpointState
from cambist.core.domain.webhooks.limiter import LATE
from cambist.core.domain.webhooks.limiter_pool import Trust
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.webhooks import dispatcher as deliveries
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.frontends.worker import loop
from cambist.frontends.worker.loop import POLL, Worker
from cambist.ports.notifier import Answer, DeliveryResult
from tests.usecases.webhooks import test_deliveries as deliveries_test
from tests.usecases.webhooks.test_deliveries import BAD, GOOD, SILENT, Harness, open_harness

SLOW = DeliveryResult(answer=Answer.TIMEOUT, status=200)
"""It answers well, in the last second that it has."""

PLACES = 40
"""Webhooks in flight at once in these tests: 16 for slow receivers, 8 reserved for proven ones."""


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    monkeypatch.setattr(deliveries_test, "Worker", partial(Worker, webhooks=PLACES))
    async with open_harness() as opened:
        yield opened


async def merchants(
    harness: Harness, count: int, answer: DeliveryResult, *, proven: bool = False, name: str = "m"
) -> list[str]:
    """Create accounts whose receivers answer so. `proven`: they have answered well before."""
    made = [await harness.merchant(f"{name}{number}") for number in range(count)]
    if proven:
        for account in made:
            await harness.happen(account)
        await harness.work()
    for number in range(count):
        harness.town.answers[harness.url(f"{name}{number}")] = answer
        harness.town.webhooks.pop(harness.url(f"{name}{number}"), None)
    return made


def under_way(harness: Harness, name: str) -> int:
    return sum(number for url, number in harness.town.under_way.items() if url.startswith(f"https://{name}"))


@pytest.mark.parametrize(("answer", "proven"), [(SILENT, False), (SLOW, True)], ids=["silent, new", "slow, proven"])
async def test_ten_receivers_get_every_webhook_at_once_while_fifty_hang(
    harness: Harness, answer: DeliveryResult, proven: bool
) -> None:
    """The fifty are more than there are permits. Each is found out by its first webhook; from then on they wait for one
    another alone."""
    hanging = await merchants(harness, 50, answer, proven=proven, name="hangs")
    well = await merchants(harness, 10, GOOD, proven=True, name="well")
    for account in hanging:
        await harness.happen(account, 4)
    async with harness.working():
        await harness.clock.advance(LATE + POLL)
        assert under_way(harness, "hangs") <= PLACES
        await harness.clock.advance(35)
        made = 0
        for _ in range(20):
            for account in well:
                await harness.happen(account, 2)
            made += 2
            await harness.clock.advance(0)
            assert {len(harness.town.webhooks[harness.url(f"well{number}")]) for number in range(10)} == {made}
            assert under_way(harness, "hangs") <= 16
            await harness.clock.advance(2)
        assert await harness.statuses(well[0]) == {"delivered": 41}
        harness.town.answers.clear()
        await harness.clock.advance(600)
    for account in hanging:
        assert await harness.statuses(account) == {"delivered": 5 if proven else 4}, "everybody's turn comes"


async def test_forty_hanging_new_receivers_leave_permits_to_proven_ones(
    harness: Harness,
) -> None:
    well = await merchants(harness, 8, GOOD, proven=True, name="well")
    for account in await merchants(harness, 40, SILENT, name="hangs"):
        await harness.happen(account, 2)
    async with harness.working():
        assert under_way(harness, "hangs") == 32
        for account in well:
            await harness.happen(account)
        await harness.clock.advance(0)
        assert [len(harness.town.webhooks[harness.url(f"well{number}")]) for number in range(8)] == [1] * 8


@pytest.mark.parametrize(
    ("change", "answer", "told"),
    [
        pytest.param({"webhook_secret": "other-secret-of-32-characters-aaaa"}, GOOD, 1, id="another secret"),
        pytest.param({"webhook_secret": "other-secret-of-32-characters-aaaa"}, BAD, 0, id="another secret, it failed"),
        pytest.param({"webhook_url": "https://moved.example/hook"}, GOOD, 0, id="another address"),
    ],
)
async def test_new_secret_leaves_a_receivers_trust_as_it_was(
    harness: Harness, change: dict[str, str], answer: DeliveryResult, told: int
) -> None:
    """Another address does not keep it: its receiver may hang (docs/decisions.md "Slow receivers"; seed 22068)."""
    [account] = await merchants(harness, 1, answer, proven=True, name="well")
    crowd = await merchants(harness, 40, SILENT, name="hangs")
    if answer is BAD:
        await harness.happen(account)
        await harness.work()
    for hanging in crowd:
        await harness.happen(hanging, 2)
    await harness.clock.advance(0.5)
    await set_settings(harness.ports, account, change)
    url = change.get("webhook_url", harness.url("well0"))
    harness.town.answers[url] = GOOD
    harness.town.webhooks.pop(url, None)
    async with harness.working():
        assert under_way(harness, "hangs") == 32
        await harness.happen(account)
        await harness.clock.advance(0)
        assert len(harness.town.webhooks.get(url, ())) == told


async def test_a_worker_that_begins_knows_from_the_record_who_hung(harness: Harness) -> None:
    hanging = await merchants(harness, 30, SILENT, proven=True, name="hangs")
    for account in hanging:
        await harness.happen(account, 2)
    async with harness.working():
        await harness.clock.advance(10)
    for account in hanging:
        await harness.happen(account, 2)
    async with harness.working():
        assert under_way(harness, "hangs") == 16


async def test_receiver_that_fails_at_once_is_not_slow(harness: Harness) -> None:
    bad = await merchants(harness, 5, BAD, name="bad")
    for account in await merchants(harness, 30, SILENT, proven=True, name="hangs"):
        await harness.happen(account, 4)
    async with harness.working():
        await harness.clock.advance(12)
        for account in bad:
            await harness.happen(account)
        await harness.clock.advance(7)
        for number in range(5):
            times = harness.town.times(harness.url(f"bad{number}"))
            assert [time - times[0] for time in times] == [0, 1, 3, 7]


async def test_receiver_stops_being_slow_with_its_first_timely_answer(
    harness: Harness,
) -> None:
    [account] = await merchants(harness, 1, SLOW, proven=True, name="was")
    await harness.happen(account, 1)
    async with harness.working() as worker:
        await harness.clock.advance(2)
        limiter = worker._dispatcher._limiter
        assert len(limiter._slow) == 1
        harness.town.answers[harness.url("was0")] = GOOD
        await harness.happen(account, 3)
        await harness.clock.advance(POLL)
        assert not limiter._slow
        await harness.clock.advance(10)


async def test_another_address_is_another_receiver_and_waits_for_no_slow_ones(harness: Harness) -> None:
    hanging = await merchants(harness, 30, SILENT, proven=True, name="hangs")
    for account in hanging:
        await harness.happen(account, 3)
    async with harness.working():
        await harness.clock.advance(12)
        moved = hanging[29]
        await set_settings(harness.ports, moved, {"webhook_url": "https://good.example/hook"})
        await harness.happen(moved)
        await harness.clock.advance(2)
        assert len(harness.town.webhooks["https://good.example/hook"]) >= 1


async def test_waiting_slow_receivers_do_not_use_up_a_workers_jobs(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred receivers sixteen are served, eight wait, and the others are rescheduled. So the healthy ones, whose
    events came last, are claimed. Every receiver is served in the end, and nothing is sent twice."""
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 8)
    monkeypatch.setattr(loop, "RECEIVERS", PLACES + 3 * 8)
    well = await merchants(harness, 10, GOOD, proven=True, name="well")
    hanging = await merchants(harness, 100, SLOW, name="hangs")
    for account in hanging:
        await harness.happen(account, 4)
    async with harness.working() as worker:
        await harness.clock.advance(LATE)
        assert len(worker._serving) <= 32 + 8, "those who never answered yet wait in the same way"
        await harness.clock.advance(60)
        for made in range(1, 21):
            for account in well:
                await harness.happen(account)
            await harness.clock.advance(0)
            assert {len(harness.town.webhooks[harness.url(f"well{number}")]) for number in range(10)} == {made}
            assert len(worker._serving) <= 16 + 8 + 10
            await harness.clock.advance(2.5)
        harness.town.answers.clear()
        await harness.clock.advance(700)
    for number, account in enumerate(hanging):
        assert await harness.statuses(account) == {"delivered": 4}
        assert len(harness.town.events(harness.url(f"hangs{number}"))) == 4
    assert await harness.jobs() == []


async def test_receiver_turned_away_is_rescheduled_without_a_failure(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 0)
    [account] = await merchants(harness, 1, GOOD, proven=True)
    await harness.happen(account)
    dispatcher = Dispatcher(harness.ports)
    monkeypatch.setattr(EndpointState, "trust", Trust.SLOW)
    [job] = await harness.ports.storage.claim(10, 60)
    await dispatcher.run(job)
    [left] = await harness.jobs()
    assert (left.id, left.leased_until, left.attempts) == (job.id, None, 0)
    away = (left.due - harness.clock.now()).total_seconds()
    assert 10 <= away <= 11
    assert await harness.statuses(account) == {"delivered": 1, "pending": 1}


async def test_slow_receivers_among_many_are_polled_every_two_seconds(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll reads the storage: with a thousand hanging receivers, four polls a second would leave no time for other
    work."""
    monkeypatch.setattr(deliveries, "_MANY", 2)
    polls: Counter[str] = Counter()
    look_around = EndpointState.look_around

    def counted(state: EndpointState) -> None:
        polls[state._host] += 1
        look_around(state)

    monkeypatch.setattr(EndpointState, "look_around", counted)
    hanging = await merchants(harness, 3, SLOW, name="hangs")
    [account] = await merchants(harness, 1, GOOD, proven=True, name="busy")
    harness.town.pauses[harness.url("busy0")] = 0.9
    for each in hanging:
        await harness.happen(each)
    await harness.happen(account, 80)
    async with harness.working():
        await harness.clock.advance(LATE)
        polls.clear()
        await harness.happen(hanging[0])
        await harness.clock.advance(8 * POLL)
        assert polls["hangs0.example:443"] == 1
        assert polls["busy0.example:443"] == 8
        assert len(harness.town.webhooks[harness.url("hangs0")]) == 2, "what came meanwhile has left"
        await harness.clock.advance(20)


async def on_one_host(harness: Harness, count: int, answer: DeliveryResult, name: str) -> list[str]:
    """Create merchants whose receivers are paths of one host."""
    made = []
    for number in range(count):
        account = await harness.merchant(f"{name}{number}")
        url = f"https://shared.example/{name}{number}"
        harness.town.answers[url] = answer
        await set_settings(harness.ports, account, {"webhook_url": url})
        made.append(account)
    return made


@pytest.mark.parametrize("answer", [SILENT, SLOW], ids=["silent", "200 after ten seconds"])
async def test_ten_that_hang_on_a_shared_host_do_not_delay_the_others_there(answer: DeliveryResult) -> None:
    """At most 64 webhooks are in flight to the host, even while all of them hang."""
    async with open_harness() as harness:
        hanging = await on_one_host(harness, 10, answer, "hangs")
        well = await on_one_host(harness, 30, GOOD, "well")
        for account in hanging:
            await harness.happen(account, 12)
        async with harness.working():
            for made in range(1, 31):
                for account in well:
                    await harness.happen(account)
                await harness.clock.advance(0)
                counts = {len(harness.town.webhooks[f"https://shared.example/well{number}"]) for number in range(30)}
                assert counts == {made}
                await harness.clock.advance(1)
            harness.town.answers.clear()
            await harness.clock.advance(100)
        assert harness.town.most_in_all <= 64
        for account in (*hanging, *well):
            assert set(await harness.statuses(account)) == {"delivered"}


async def test_hanging_host_stays_within_its_bound_and_delays_no_other_host() -> None:
    async with open_harness() as harness:
        [elsewhere] = await merchants(harness, 1, GOOD, name="well")
        for account in await on_one_host(harness, 100, SILENT, "hangs"):
            await harness.happen(account, 3)
        async with harness.working():
            assert harness.town.under_way.total() == 52, "a fifth of 64 is for those that are proven"
            await harness.happen(elsewhere)
            await harness.clock.advance(0)
            assert len(harness.town.webhooks[harness.url("well0")]) == 1
            await harness.clock.advance(65)
            assert harness.town.most_in_all == 53
            assert harness.town.under_way.total() == 26
            harness.town.answers.clear()
            await harness.clock.advance(60)


async def test_a_worker_that_is_cancelled_while_it_waits_leaves_no_permit_taken() -> None:
    async with open_harness() as harness:
        for account in await merchants(harness, 6, SILENT):
            await harness.happen(account, 3)
        dispatcher = Dispatcher(harness.ports, at_once=2)
        running = [asyncio.create_task(dispatcher.run(job)) for job in await harness.ports.storage.claim(100, 60)]
        await harness.clock.advance(1)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        limiter = dispatcher._limiter
        assert limiter._all.empty
        assert not limiter._hosts
        assert not limiter._asked


async def test_receivers_waiting_for_a_shared_host_do_not_use_up_the_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answers take just below a second, so none of its receivers counts as slow."""
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 8)
    monkeypatch.setattr(loop, "RECEIVERS", 90)
    async with open_harness() as harness:
        [elsewhere] = await merchants(harness, 1, GOOD, proven=True, name="well")
        there = await on_one_host(harness, 200, GOOD, "there")
        harness.town.pauses["https://shared.example/"] = 0.9
        for account in there:
            await harness.happen(account)
        async with harness.working():
            await harness.happen(elsewhere)
            await harness.clock.advance(0)
            assert len(harness.town.webhooks[harness.url("well0")]) == 1
            await harness.clock.advance(8)
            for account in there:
                assert await harness.statuses(account) == {"delivered": 1}
