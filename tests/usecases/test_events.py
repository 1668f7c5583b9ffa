"""Sending events again, one or many, and keeping them (docs/webhooks.md "Looking, and sending again")."""

import contextlib
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus, Event, EventType
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.jobs import LEASE, run, run_due
from cambist.core.usecases.retention import KEPT, RETAIN, retain
from cambist.core.usecases.standing import start_standing
from cambist.core.usecases.webhooks.events import EventQuery, find_events, get_event
from cambist.core.usecases.webhooks.resends import RESEND, resend_event, resend_range
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult
from tests import event_factory
from tests.crash_points import CrashingStorage, CrashPoint, Killed
from tests.houses import TestHouse, open_test_house

BAD = DeliveryResult(answer=Answer.RESPONDED, status=500)
REFUSED = [DeliveryResult(answer=Answer.RESPONDED, status=400)] * 14
"""To the end of both ladders, within two days."""


async def happen(house: TestHouse, count: int = 1, *, mode: Mode = Mode.TEST, receives: bool = True) -> list[str]:
    """So many events that are sent at once; their ids. Each is of another moment."""
    ids = []
    for _ in range(count):
        ids += await event_factory.happen(house.ports, house.account.account_id, mode=mode, receives=receives)
        await house.clock.advance(1)
    return ids


async def happen_at_once(house: TestHouse, count: int) -> None:
    """So many of one moment."""
    await event_factory.happen(house.ports, house.account.account_id, count)


async def caller(house: TestHouse, mode: Mode = Mode.TEST) -> Caller:
    async with house.ports.storage.unit() as unit:
        account = await unit[Account].get(house.account.account_id)
    assert account is not None
    return Caller(account=account, mode=mode, key_id="svc_test_events")


async def deliveries(house: TestHouse) -> list[Delivery]:
    async with house.ports.storage.unit() as unit:
        return await unit[Delivery].find(limit=10_000)


def numbers(house: TestHouse, event_id: str) -> list[int]:
    """Return the X-Webhook-Attempt numbers of an event, in the order sent."""
    return [
        int(webhook.headers["X-Webhook-Attempt"])
        for webhook in house.postman.webhooks
        if webhook.headers["X-Webhook-Id"] == event_id
    ]


class TestResendOne:
    @pytest.mark.parametrize("answers", [[], REFUSED])
    async def test_it_goes_out_again_under_the_same_id_and_is_numbered_on(
        self, house: TestHouse, answers: list[DeliveryResult]
    ) -> None:
        """`X-Webhook-Id` is the same over retries and resends (docs/webhooks.md "What a receiver does")."""
        house.postman.answers.extend(answers)
        [event] = await happen(house)
        await house.work(2 * 86_400)
        made = max(1, len(answers))
        assert numbers(house, event) == list(range(1, made + 1))
        told = await resend_event(house.ports, await caller(house), event)
        assert (told.delivery.status, told.delivery.attempts) == (DeliveryStatus.PENDING, made)
        await house.work()
        assert numbers(house, event)[made:] == [made + 1]
        [delivery] = await deliveries(house)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, made + 1)
        assert len({webhook.body for webhook in house.postman.webhooks}) == 1

    async def test_a_pending_one_is_sent_at_once_and_has_a_whole_ladder_again(self, house: TestHouse) -> None:
        house.postman.answers.extend([BAD] * 100)
        [event] = await happen(house)
        await house.work(300)
        before = len(house.postman.webhooks)
        await resend_event(house.ports, await caller(house), event)
        await house.work()
        assert len(house.postman.webhooks) == before + 1
        await house.work(520)
        assert len(house.postman.webhooks) == before + 10

    async def test_a_resend_that_is_answered_badly_fails_anew(self, house: TestHouse) -> None:
        [event] = await happen(house)
        await house.work()
        house.postman.answers.extend(REFUSED)
        await resend_event(house.ports, await caller(house), event)
        await house.work(2 * 86_400)
        [delivery] = await deliveries(house)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 15)

    async def test_a_held_one_stays_held_until_there_is_a_receiver(self) -> None:
        async with open_test_house(receiver=False) as house:
            [event] = await happen(house, receives=False)
            told = await resend_event(house.ports, await caller(house), event)
            assert told.delivery.status is DeliveryStatus.HELD
            await house.work(60)
            assert house.postman.webhooks == []

    async def test_a_delivered_one_is_held_when_the_receiver_is_gone(self, house: TestHouse) -> None:
        [event] = await happen(house)
        await house.work()
        await set_settings(house.ports, house.account.account_id, {"webhook_url": ""})
        told = await resend_event(house.ports, None, event)
        assert told.delivery.status is DeliveryStatus.HELD

    async def test_only_the_owner_in_that_mode_and_the_operator_may(self, house: TestHouse) -> None:
        [event] = await happen(house)
        for who, event_id in (
            (await caller(house, Mode.LIVE), event),
            (await caller(house), "evt_00000000-0000-0000-0000-000000000000"),
            (await caller(house), "evt_\0"),
            (None, "no id"),
        ):
            with pytest.raises(Refusal) as refusal:
                await resend_event(house.ports, who, event_id)
            assert (refusal.value.code, refusal.value.status) == ("EVENT_NOT_FOUND", 404)
        await resend_event(house.ports, None, event)

    async def test_every_letter_of_all_ladders_is_shown(self, house: TestHouse) -> None:
        house.postman.answers.extend([BAD, BAD])
        [event] = await happen(house)
        await house.work(10)
        await resend_event(house.ports, None, event)
        await house.work()
        whole = await get_event(house.ports, await caller(house), event)
        assert [(each.number, each.status) for each in whole.attempts] == [(1, 500), (2, 500), (3, 200), (4, 200)]
        assert whole.told.last == whole.attempts[-1]


def span(house: TestHouse, **more: Any) -> EventQuery:
    """Return a query for all events."""
    until = house.clock.now() + timedelta(days=1)
    return EventQuery(since="2020-01-01T00:00:00Z", until=until.isoformat(), **more)


class TestResendRange:
    async def test_a_job_sends_all_of_a_range_again_some_at_a_time(self, house: TestHouse) -> None:
        """In bounded batches, by a durable job (docs/decisions.md "Sending again, keeping")."""
        ids = await happen(house, 250)
        await house.work()
        house.postman.webhooks.clear()
        assert await resend_range(house.ports, house.account.account_id, Mode.TEST, span(house)) == 250
        batches = 0
        while any(job.kind == RESEND for job in await jobs(house)):
            for job in await house.ports.storage.claim(1, LEASE):
                await run(house.ports, job)
                batches += job.kind == RESEND
        assert batches == 3
        await house.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in house.postman.webhooks] == ids
        assert {each.attempts for each in await deliveries(house)} == {2}

    async def test_from_is_with_it_to_is_without(self, house: TestHouse) -> None:
        ids = await happen(house, 5)
        await house.work()
        house.postman.webhooks.clear()
        async with house.ports.storage.unit() as unit:
            events = [await unit[Event].get(each) for each in ids]
        start, end = (events[place].created_at.isoformat() for place in (1, 3) if events[place])  # type: ignore[union-attr]  # they were just written
        asked = EventQuery(since=start, until=end)
        assert await resend_range(house.ports, house.account.account_id, Mode.TEST, asked) == 2
        await house.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in house.postman.webhooks] == ids[1:3]

    async def test_many_events_of_one_moment_are_each_sent_once(self, house: TestHouse) -> None:
        await happen_at_once(house, 230)
        await house.work(1)
        assert await resend_range(house.ports, house.account.account_id, Mode.TEST, span(house)) == 230
        await house.work()
        assert [each.attempts for each in await deliveries(house)] == [2] * 230

    async def test_only_those_of_the_status_the_type_and_the_mode(self, house: TestHouse) -> None:
        await happen(house, 2)
        await happen(house, 1, mode=Mode.LIVE)
        await house.work()
        house.postman.answers.extend(REFUSED)
        [failed] = await happen(house)
        await house.work(2 * 86_400)
        house.postman.webhooks.clear()
        account = house.account.account_id
        other = EventType.REFUND_FAILED.value
        assert await resend_range(house.ports, account, Mode.TEST, span(house, type=other)) == 0
        assert [job for job in await jobs(house) if job.kind == RESEND] == []
        assert await resend_range(house.ports, account, Mode.TEST, span(house, delivery_status="failed")) == 1
        await house.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in house.postman.webhooks] == [failed]

    async def test_events_that_come_after_the_call_are_not_sent_again(self, house: TestHouse) -> None:
        await happen(house, 2)
        await house.work()
        await resend_range(house.ports, house.account.account_id, Mode.TEST, span(house))
        await house.clock.advance(1)
        await happen(house, 1)
        await house.work()
        assert sorted(each.attempts for each in await deliveries(house)) == [1, 2, 2]

    @pytest.mark.parametrize(
        "asked",
        [
            EventQuery(since="2026-01-02T00:00:00Z", until="2026-01-01T00:00:00Z"),
            EventQuery(since="2026-01-01T00:00:00Z", until="2026-01-01T00:00:00Z"),
            EventQuery(since="2026-01-01T00:00:00Z"),
            EventQuery(since="yesterday", until="2026-01-01T00:00:00Z"),
            EventQuery(since="2026-01-01T00:00:00", until="2026-01-02T00:00:00Z"),
            EventQuery(since="2026-01-01T00:00:00Z", until="2026-01-02T00:00:00Z", type="payment"),
            EventQuery(since="2026-01-01T00:00:00Z", until="2026-01-02T00:00:00Z", delivery_status="lost"),
        ],
    )
    async def test_what_is_no_range_is_refused(self, house: TestHouse, asked: EventQuery) -> None:
        with pytest.raises(Refusal) as refusal:
            await resend_range(house.ports, house.account.account_id, Mode.TEST, asked)
        assert refusal.value.code == "VALIDATION_ERROR"

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("at", [1, 2, 3])
    async def test_a_crash_at_any_of_its_commits_sends_none_twice_and_forgets_none(
        self, house: TestHouse, at: int, after: bool
    ) -> None:
        await happen(house, 150)
        await house.work()
        await resend_range(house.ports, house.account.account_id, Mode.TEST, span(house))
        fused = msgspec.structs.replace(
            house.ports, storage=CrashingStorage(house.ports.storage, CrashPoint(at, after=after))
        )
        with contextlib.suppress(Killed):
            await run_due(fused)
        await house.clock.advance(LEASE)
        await house.work()
        again = [each.attempts for each in await deliveries(house)]
        assert len(again) == 150
        assert {each.status for each in await deliveries(house)} == {DeliveryStatus.DELIVERED}
        assert set(again) == {2}


async def jobs(house: TestHouse) -> list[Job]:
    async with house.ports.storage.unit() as unit:
        return await unit[Job].find()


class TestRetention:
    async def test_events_older_than_30_days_go_with_their_attempts_and_what_waits_stays(
        self, house: TestHouse
    ) -> None:
        """Events are kept for 30 days at least (docs/webhooks.md "Looking, and sending again")."""
        await start_standing(house.ports)
        house.postman.answers.extend([BAD, BAD])
        old = await happen(house, 130)
        await house.work(600)  # the looks for held events, after the receiver was set, are over
        held = await happen(house, receives=False)
        await house.work(KEPT.total_seconds() - 86_400)
        assert len(await deliveries(house)) == 131
        young = await happen(house, 3)
        await house.work(2 * 86_400)
        assert {each.id for each in await deliveries(house)} == {*held, *young}
        async with house.ports.storage.unit() as unit:
            assert {each.id for each in await unit[Event].find(limit=1000)} == {*held, *young}
            assert {each.event_id for each in await unit[Attempt].find(limit=1000)} == set(young)
        with pytest.raises(Refusal, match="No event"):
            await get_event(house.ports, await caller(house), old[0])

    async def test_it_goes_on_where_it_was_and_comes_back_every_day(self, house: TestHouse) -> None:
        await start_standing(house.ports)
        await start_standing(house.ports)
        [job] = [each for each in await jobs(house) if each.kind == RETAIN]
        await happen(house, 3)
        await house.work()
        await house.work(KEPT.total_seconds() + 86_400)
        assert await deliveries(house) == []
        [after] = [each for each in await jobs(house) if each.kind == RETAIN]
        assert (after.id, after.argument) == (job.id, "")
        assert house.clock.now() < after.due <= house.clock.now() + timedelta(days=1)

    async def test_a_portion_of_many_is_done_at_a_time(self, house: TestHouse, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cambist.core.usecases.retention._PORTION", 2)
        await happen(house, 1)
        await happen_at_once(house, 349)
        await house.work()
        await house.clock.advance(KEPT.total_seconds() + 1000)
        await start_standing(house.ports)
        [job] = [each for each in await house.ports.storage.claim(100, LEASE) if each.kind == RETAIN]
        await retain(house.ports, job)
        assert len(await deliveries(house)) == 150
        [job] = [each for each in await jobs(house) if each.kind == RETAIN]
        assert (bool(job.argument), job.due) == (True, house.clock.now())
        await house.work()
        assert await deliveries(house) == []


class TestFind:
    async def test_the_operator_sees_events_of_all_accounts_newest_first(self, house: TestHouse) -> None:
        ids = await happen(house, 3) + await happen(house, 2, mode=Mode.LIVE)
        await house.work()
        everything = await find_events(house.ports, EventQuery(), account_id=None, mode=None, limit=10)
        assert [each.event.id for each in everything] == ids[::-1]
        newest = await find_events(house.ports, EventQuery(), account_id=None, mode=None, limit=2)
        assert [each.event.id for each in newest] == ids[::-1][:2]
        live = await find_events(house.ports, EventQuery(), account_id=None, mode=Mode.LIVE, limit=10)
        assert [each.event.id for each in live] == ids[:2:-1]
        assert await find_events(house.ports, EventQuery(), account_id="acc_1", mode=None, limit=10) == []
        of_object = EventQuery(object_id="pay_1", delivery_status="delivered")
        found = await find_events(house.ports, of_object, account_id=None, mode=None, limit=10)
        assert [each.event.id for each in found] == ids[::-1]
