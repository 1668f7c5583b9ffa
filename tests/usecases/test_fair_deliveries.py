"""Receivers that hang keep nobody else waiting: not when nearly all do, and not on a host that many share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.webhooks import dispatcher as deliveries
from cambist.core.usecases.webhooks import limiter as slots_rules
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from cambist.core.usecases.webhooks.endpoint_worker import Service
from cambist.core.usecases.webhooks.in_flight import InFlightBreaker
from cambist.core.usecases.webhooks.limiter import LATE
from cambist.core.usecases.webhooks.limiter_pool import Trust
from cambist.frontends.worker import loop
from cambist.frontends.worker.loop import LOOK, Worker
from cambist.ports.notifier import Answer, DeliveryResult
from tests.usecases import test_deliveries as deliveries_test
from tests.usecases.test_deliveries import BAD, GOOD, SILENT, Place, open_place

SLOW = DeliveryResult(answer=Answer.TIMEOUT, status=200)
"""It answers well, in the last second that it has."""

PLACES = 40
"""Webhooks under way at once, in these tests: 16 of them for slow receivers, 8 for none but proven ones."""


@pytest.fixture
async def place(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(deliveries_test, "Worker", partial(Worker, webhooks=PLACES))
    async with open_place() as opened:
        yield opened


async def merchants(
    place: Place, count: int, answer: DeliveryResult, *, proven: bool = False, name: str = "m"
) -> list[str]:
    """Accounts whose receivers answer so; `proven`: they have answered well before."""
    made = [await place.merchant(f"{name}{number}") for number in range(count)]
    if proven:
        for account in made:
            await place.happen(account)
        await place.work()
    for number in range(count):
        place.town.answers[place.url(f"{name}{number}")] = answer
        place.town.webhooks.pop(place.url(f"{name}{number}"), None)
    return made


def under_way(place: Place, name: str) -> int:
    return sum(number for url, number in place.town.under_way.items() if url.startswith(f"https://{name}"))


@pytest.mark.parametrize("answer", [SILENT, SLOW], ids=["silent", "200 after ten seconds"])
@pytest.mark.parametrize("proven", [False, True], ids=["new", "proven"])
async def test_when_fifty_of_sixty_hang_the_ten_get_every_letter_at_once(
    place: Place, answer: DeliveryResult, proven: bool
) -> None:
    """The fifty are more than there are places. Each is found out by its first webhook; from then on they wait for one
    another alone."""
    hanging = await merchants(place, 50, answer, proven=proven, name="hangs")
    well = await merchants(place, 10, GOOD, proven=True, name="well")
    for account in hanging:
        await place.happen(account, 4)
    async with place.working():
        await place.clock.advance(LATE + LOOK)
        assert under_way(place, "hangs") <= PLACES
        await place.clock.advance(35)
        made = 0
        for _ in range(40):
            for account in well:
                await place.happen(account, 2)
            made += 2
            await place.clock.advance(0)
            assert {len(place.town.webhooks[place.url(f"well{number}")]) for number in range(10)} == {made}
            assert under_way(place, "hangs") <= 16
            await place.clock.advance(2)
        assert await place.statuses(well[0]) == {"delivered": 81}
        place.town.answers.clear()
        await place.clock.advance(600)
    for account in hanging:
        assert await place.statuses(account) == {"delivered": 5 if proven else 4}, "everybody's turn comes"


async def test_forty_new_receivers_that_hang_at_their_first_letter_leave_places_to_those_who_answered(
    place: Place,
) -> None:
    well = await merchants(place, 8, GOOD, proven=True, name="well")
    for account in await merchants(place, 40, SILENT, name="hangs"):
        await place.happen(account, 2)
    async with place.working():
        assert under_way(place, "hangs") == 32
        for account in well:
            await place.happen(account)
        await place.clock.advance(0)
        assert [len(place.town.webhooks[place.url(f"well{number}")]) for number in range(8)] == [1] * 8


async def test_a_worker_that_begins_knows_from_the_record_who_hung(place: Place) -> None:
    hanging = await merchants(place, 30, SILENT, proven=True, name="hangs")
    for account in hanging:
        await place.happen(account, 2)
    async with place.working():
        await place.clock.advance(10)
    for account in hanging:
        await place.happen(account, 2)
    async with place.working():
        assert under_way(place, "hangs") == 16


async def test_who_answers_badly_but_at_once_is_no_slow_receiver(place: Place) -> None:
    bad = await merchants(place, 5, BAD, name="bad")
    for account in await merchants(place, 30, SILENT, proven=True, name="hangs"):
        await place.happen(account, 4)
    async with place.working():
        await place.clock.advance(12)
        for account in bad:
            await place.happen(account)
        await place.clock.advance(7)
        for number in range(5):
            times = place.town.times(place.url(f"bad{number}"))
            assert [time - times[0] for time in times] == [0, 1, 3, 7]


async def test_a_mended_receiver_is_slow_no_more_with_its_first_letter_that_is_answered_in_time(place: Place) -> None:
    [account] = await merchants(place, 1, SLOW, proven=True, name="was")
    await place.happen(account, 1)
    async with place.working() as worker:
        await place.clock.advance(2)
        limiter = worker._dispatcher._shared.limiter
        assert len(limiter._slow) == 1
        place.town.answers[place.url("was0")] = GOOD
        await place.happen(account, 3)
        await place.clock.advance(LOOK)
        assert not limiter._slow
        await place.clock.advance(10)


async def test_another_address_is_another_receiver_and_waits_for_no_slow_ones(place: Place) -> None:
    hanging = await merchants(place, 30, SILENT, proven=True, name="hangs")
    for account in hanging:
        await place.happen(account, 3)
    async with place.working():
        await place.clock.advance(12)
        moved = hanging[29]
        await set_settings(place.ports, moved, {"webhook_url": "https://good.example/hook"})
        await place.happen(moved)
        await place.clock.advance(2)
        assert len(place.town.webhooks["https://good.example/hook"]) >= 1


@pytest.mark.parametrize("answer", [SILENT, SLOW], ids=["silent", "200 after ten seconds"])
async def test_slow_receivers_that_wait_do_not_use_up_the_jobs_that_a_worker_may_hold(
    place: Place, answer: DeliveryResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred, sixteen are served, eight wait, and the others come back later; so healthy ones are claimed, who
    asked after all of them. Everybody's turn comes in the end, and nothing is sent twice."""
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 8)
    monkeypatch.setattr(loop, "RECEIVERS", PLACES + 3 * 8)
    well = await merchants(place, 10, GOOD, proven=True, name="well")
    hanging = await merchants(place, 100, answer, name="hangs")
    for account in hanging:
        await place.happen(account, 4)
    async with place.working() as worker:
        await place.clock.advance(LATE)
        assert len(worker._serving) <= 32 + 8, "those who never answered yet wait in the same way"
        await place.clock.advance(60)
        for made in range(1, 21):
            for account in well:
                await place.happen(account)
            await place.clock.advance(0)
            assert {len(place.town.webhooks[place.url(f"well{number}")]) for number in range(10)} == {made}
            assert len(worker._serving) <= 16 + 8 + 10
            await place.clock.advance(2.5)
        place.town.answers.clear()
        await place.clock.advance(700)
    for number, account in enumerate(hanging):
        assert await place.statuses(account) == {"delivered": 4}
        if answer is SLOW:
            assert len(place.town.events(place.url(f"hangs{number}"))) == 4
    assert await place.jobs() == []


async def test_a_receiver_that_is_turned_away_has_its_job_back_and_no_failure_counted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 0)
    [account] = await merchants(place, 1, GOOD, proven=True)
    await place.happen(account)
    dispatcher = Dispatcher(place.ports)
    monkeypatch.setattr(InFlightBreaker, "trust", lambda _, slow: Trust.SLOW)
    [job] = await place.ports.storage.claim(10, 60)
    await dispatcher.run(job)
    [left] = await place.jobs()
    assert (left.id, left.leased_until, left.attempts) == (job.id, None, 0)
    away = (left.due - place.clock.now()).total_seconds()
    assert 10 <= away <= 11
    assert await place.statuses(account) == {"delivered": 1, "pending": 1}


async def test_of_many_receivers_slow_ones_are_looked_at_every_two_seconds_and_the_others_as_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look reads: of a thousand that hang, four looks a second would leave no time for anything else."""
    monkeypatch.setattr(deliveries, "_MANY", 2)
    looks: Counter[str] = Counter()
    look_around = Service.look_around

    def counted(service: Service) -> None:
        looks[service._host] += 1
        look_around(service)

    monkeypatch.setattr(Service, "look_around", counted)
    hanging = await merchants(place, 3, SLOW, name="hangs")
    [account] = await merchants(place, 1, GOOD, proven=True, name="busy")
    place.town.pauses[place.url("busy0")] = 0.9
    for each in hanging:
        await place.happen(each)
    await place.happen(account, 80)
    async with place.working():
        await place.clock.advance(LATE)
        looks.clear()
        await place.happen(hanging[0])
        await place.clock.advance(8 * LOOK)
        assert looks["hangs0.example:443"] == 1
        assert looks["busy0.example:443"] == 8
        assert len(place.town.webhooks[place.url("hangs0")]) == 2, "what came meanwhile has left"
        await place.clock.advance(20)


async def on_one_host(place: Place, count: int, answer: DeliveryResult, name: str) -> list[str]:
    """Merchants whose receivers are pages of one host."""
    made = []
    for number in range(count):
        account = await place.merchant(f"{name}{number}")
        url = f"https://shared.example/{name}{number}"
        place.town.answers[url] = answer
        await set_settings(place.ports, account, {"webhook_url": url})
        made.append(account)
    return made


@pytest.mark.parametrize("answer", [SILENT, SLOW], ids=["silent", "200 after ten seconds"])
async def test_ten_that_hang_on_a_shared_host_do_not_delay_the_others_there(answer: DeliveryResult) -> None:
    """And no more webhooks than 64 are ever on their way to it, whatever hangs there."""
    async with open_place() as place:
        hanging = await on_one_host(place, 10, answer, "hangs")
        well = await on_one_host(place, 30, GOOD, "well")
        for account in hanging:
            await place.happen(account, 12)
        async with place.working():
            for made in range(1, 31):
                for account in well:
                    await place.happen(account)
                await place.clock.advance(0)
                counts = {len(place.town.webhooks[f"https://shared.example/well{number}"]) for number in range(30)}
                assert counts == {made}
                await place.clock.advance(1)
            place.town.answers.clear()
            await place.clock.advance(100)
        assert place.town.most_in_all <= 64
        for account in (*hanging, *well):
            assert set(await place.statuses(account)) == {"delivered"}


async def test_on_a_host_where_all_hang_no_more_than_its_bound_are_under_way_and_other_hosts_do_not_wait() -> None:
    async with open_place() as place:
        [elsewhere] = await merchants(place, 1, GOOD, name="well")
        for account in await on_one_host(place, 100, SILENT, "hangs"):
            await place.happen(account, 3)
        async with place.working():
            assert place.town.under_way.total() == 52, "a fifth of 64 is for those that are proven"
            await place.happen(elsewhere)
            await place.clock.advance(0)
            assert len(place.town.webhooks[place.url("well0")]) == 1
            await place.clock.advance(65)
            assert place.town.most_in_all == 53
            assert place.town.under_way.total() == 26
            place.town.answers.clear()
            await place.clock.advance(60)


async def test_a_service_that_is_cancelled_while_it_waits_leaves_no_place_taken() -> None:
    async with open_place() as place:
        for account in await merchants(place, 6, SILENT):
            await place.happen(account, 3)
        dispatcher = Dispatcher(place.ports, at_once=2)
        running = [asyncio.create_task(dispatcher.run(job)) for job in await place.ports.storage.claim(100, 60)]
        await place.clock.advance(1)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        limiter = dispatcher._shared.limiter
        assert limiter._all.empty
        assert not limiter._hosts
        assert not limiter._asked


async def test_who_waits_for_a_host_that_many_use_does_not_use_up_the_jobs_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answers take just below a second, so nobody there is slow."""
    monkeypatch.setattr(slots_rules, "MOST_WAIT", 8)
    monkeypatch.setattr(loop, "RECEIVERS", 90)
    async with open_place() as place:
        [elsewhere] = await merchants(place, 1, GOOD, proven=True, name="well")
        there = await on_one_host(place, 200, GOOD, "there")
        place.town.pauses["https://shared.example/"] = 0.9
        for account in there:
            await place.happen(account)
        async with place.working():
            await place.happen(elsewhere)
            await place.clock.advance(0)
            assert len(place.town.webhooks[place.url("well0")]) == 1
            await place.clock.advance(8)
            for account in there:
                assert await place.statuses(account) == {"delivered": 1}
