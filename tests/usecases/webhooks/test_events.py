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
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.retention import KEPT, RETAIN, retain
from cambist.core.usecases.webhooks.events import EventQuery, find_events, get_event
from cambist.core.usecases.webhooks.resends import RESEND, resend_event, resend_range
from cambist.ports.jobs import Job
from cambist.ports.notifier import Answer, DeliveryResult
from tests import event_factory
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashingStorage, CrashPoint, Killed

BAD = DeliveryResult(answer=Answer.RESPONDED, status=500)
REFUSED = [DeliveryResult(answer=Answer.RESPONDED, status=400)] * 14
"""To the end of both backoffs, within two days."""


async def happen(app: TestApp, count: int = 1, *, mode: Mode = Mode.TEST, receives: bool = True) -> list[str]:
    """Add so many events that are sent at once, each at another moment, and return their ids."""
    ids = []
    for _ in range(count):
        ids += await event_factory.happen(app.ports, app.account.account_id, mode=mode, receives=receives)
        await app.clock.advance(1)
    return ids


async def happen_at_once(app: TestApp, count: int) -> None:
    """Add so many events of one moment."""
    await event_factory.happen(app.ports, app.account.account_id, count)


async def caller(app: TestApp, mode: Mode = Mode.TEST) -> Caller:
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    return Caller(account=account, mode=mode, key_id="svc_test_events")


async def deliveries(app: TestApp) -> list[Delivery]:
    async with app.ports.storage.unit() as unit:
        return await unit[Delivery].find(limit=10_000)


def numbers(app: TestApp, event_id: str) -> list[int]:
    """Return the X-Webhook-Attempt numbers of an event, in the order sent."""
    return [
        int(webhook.headers["X-Webhook-Attempt"])
        for webhook in app.postman.webhooks
        if webhook.headers["X-Webhook-Id"] == event_id
    ]


class TestResendOne:
    @pytest.mark.parametrize("answers", [[], REFUSED])
    async def test_resent_event_keeps_its_id_and_counts_attempts_on(
        self, app: TestApp, answers: list[DeliveryResult]
    ) -> None:
        """`X-Webhook-Id` is the same over retries and resends (docs/webhooks.md "What a receiver does")."""
        app.postman.answers.extend(answers)
        [event] = await happen(app)
        await app.work(2 * 86_400)
        made = max(1, len(answers))
        assert numbers(app, event) == list(range(1, made + 1))
        told = await resend_event(app.ports, await caller(app), event)
        assert (told.delivery.status, told.delivery.attempts) == (DeliveryStatus.PENDING, made)
        await app.work()
        assert numbers(app, event)[made:] == [made + 1]
        [delivery] = await deliveries(app)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, made + 1)
        assert len({webhook.body for webhook in app.postman.webhooks}) == 1

    async def test_a_pending_one_is_sent_at_once_and_has_a_whole_backoff_again(self, app: TestApp) -> None:
        app.postman.answers.extend([BAD] * 100)
        [event] = await happen(app)
        await app.work(300)
        before = len(app.postman.webhooks)
        await resend_event(app.ports, await caller(app), event)
        await app.work()
        assert len(app.postman.webhooks) == before + 1
        await app.work(520)
        assert len(app.postman.webhooks) == before + 10

    async def test_a_resend_that_is_answered_badly_fails_anew(self, app: TestApp) -> None:
        [event] = await happen(app)
        await app.work()
        app.postman.answers.extend(REFUSED)
        await resend_event(app.ports, await caller(app), event)
        await app.work(2 * 86_400)
        [delivery] = await deliveries(app)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, 15)

    async def test_a_held_one_stays_held_until_there_is_a_receiver(self) -> None:
        async with open_test_app(receiver=False) as app:
            [event] = await happen(app, receives=False)
            told = await resend_event(app.ports, await caller(app), event)
            assert told.delivery.status is DeliveryStatus.HELD
            await app.work(60)
            assert app.postman.webhooks == []

    async def test_a_delivered_one_is_held_when_the_receiver_is_gone(self, app: TestApp) -> None:
        [event] = await happen(app)
        await app.work()
        await set_settings(app.ports, app.account.account_id, {"webhook_url": ""})
        told = await resend_event(app.ports, None, event)
        assert told.delivery.status is DeliveryStatus.HELD

    async def test_only_the_owner_in_that_mode_and_the_operator_may(self, app: TestApp) -> None:
        [event] = await happen(app)
        for who, event_id in (
            (await caller(app, Mode.LIVE), event),
            (await caller(app), "evt_00000000-0000-0000-0000-000000000000"),
            (await caller(app), "evt_\0"),
            (None, "no id"),
        ):
            with pytest.raises(Refusal) as refusal:
                await resend_event(app.ports, who, event_id)
            assert (refusal.value.code, refusal.value.status) == ("EVENT_NOT_FOUND", 404)
        await resend_event(app.ports, None, event)

    async def test_every_attempt_of_all_backoffs_is_shown(self, app: TestApp) -> None:
        app.postman.answers.extend([BAD, BAD])
        [event] = await happen(app)
        await app.work(10)
        await resend_event(app.ports, None, event)
        await app.work()
        whole = await get_event(app.ports, await caller(app), event)
        assert [(each.number, each.status) for each in whole.attempts] == [(1, 500), (2, 500), (3, 200), (4, 200)]
        assert whole.told.last == whole.attempts[-1]


def span(app: TestApp, **more: Any) -> EventQuery:
    """Return a query for all events."""
    until = app.clock.now() + timedelta(days=1)
    return EventQuery(since="2020-01-01T00:00:00Z", until=until.isoformat(), **more)


class TestResendRange:
    async def test_a_job_sends_all_of_a_range_again_some_at_a_time(self, app: TestApp) -> None:
        """In bounded batches, by a durable job (docs/decisions.md "Sending again, keeping")."""
        ids = await happen(app, 250)
        await app.work()
        app.postman.webhooks.clear()
        assert await resend_range(app.ports, app.account.account_id, Mode.TEST, span(app)) == 250
        batches = 0
        while any(job.kind == RESEND for job in await jobs(app)):
            for job in await app.ports.storage.claim(1, LEASE):
                await run(app.ports, job)
                batches += job.kind == RESEND
        assert batches == 3
        await app.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks] == ids
        assert {each.attempts for each in await deliveries(app)} == {2}

    async def test_from_is_with_it_to_is_without(self, app: TestApp) -> None:
        ids = await happen(app, 5)
        await app.work()
        app.postman.webhooks.clear()
        async with app.ports.storage.unit() as unit:
            events = [await unit[Event].get(each) for each in ids]
        start, end = (events[place].created_at.isoformat() for place in (1, 3) if events[place])  # type: ignore[union-attr]  # they were just written
        asked = EventQuery(since=start, until=end)
        assert await resend_range(app.ports, app.account.account_id, Mode.TEST, asked) == 2
        await app.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks] == ids[1:3]

    async def test_many_events_of_one_moment_are_each_sent_once(self, app: TestApp) -> None:
        await happen_at_once(app, 230)
        await app.work(1)
        assert await resend_range(app.ports, app.account.account_id, Mode.TEST, span(app)) == 230
        await app.work()
        assert [each.attempts for each in await deliveries(app)] == [2] * 230

    async def test_only_those_of_the_status_the_type_and_the_mode(self, app: TestApp) -> None:
        await happen(app, 2)
        await happen(app, 1, mode=Mode.LIVE)
        await app.work()
        app.postman.answers.extend(REFUSED)
        [failed] = await happen(app)
        await app.work(2 * 86_400)
        app.postman.webhooks.clear()
        account = app.account.account_id
        other = EventType.REFUND_FAILED.value
        assert await resend_range(app.ports, account, Mode.TEST, span(app, type=other)) == 0
        assert [job for job in await jobs(app) if job.kind == RESEND] == []
        assert await resend_range(app.ports, account, Mode.TEST, span(app, delivery_status="failed")) == 1
        await app.work()
        assert [webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks] == [failed]

    async def test_events_that_come_after_the_call_are_not_sent_again(self, app: TestApp) -> None:
        await happen(app, 2)
        await app.work()
        await resend_range(app.ports, app.account.account_id, Mode.TEST, span(app))
        await app.clock.advance(1)
        await happen(app, 1)
        await app.work()
        assert sorted(each.attempts for each in await deliveries(app)) == [1, 2, 2]

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
    async def test_invalid_range_is_refused(self, app: TestApp, asked: EventQuery) -> None:
        with pytest.raises(Refusal) as refusal:
            await resend_range(app.ports, app.account.account_id, Mode.TEST, asked)
        assert refusal.value.code == "VALIDATION_ERROR"

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("at", [1, 2, 3])
    async def test_a_crash_at_any_of_its_commits_sends_none_twice_and_forgets_none(
        self, app: TestApp, at: int, after: bool
    ) -> None:
        await happen(app, 150)
        await app.work()
        await resend_range(app.ports, app.account.account_id, Mode.TEST, span(app))
        fused = msgspec.structs.replace(
            app.ports, storage=CrashingStorage(app.ports.storage, CrashPoint(at, after=after))
        )
        with contextlib.suppress(Killed):
            await run_due(fused)
        await app.clock.advance(LEASE)
        await app.work()
        again = [each.attempts for each in await deliveries(app)]
        assert len(again) == 150
        assert {each.status for each in await deliveries(app)} == {DeliveryStatus.DELIVERED}
        assert set(again) == {2}


async def jobs(app: TestApp) -> list[Job]:
    async with app.ports.storage.unit() as unit:
        return await unit[Job].find()


class TestRetention:
    async def test_events_over_30_days_old_are_deleted_unless_they_still_wait(self, app: TestApp) -> None:
        """Events are kept for 30 days at least (docs/webhooks.md "Looking, and sending again")."""
        await start_recurring_jobs(app.ports)
        app.postman.answers.extend([BAD, BAD])
        old = await happen(app, 130)
        await app.work(600)  # the searches for held events after the receiver was set are done
        held = await happen(app, receives=False)
        await app.work(KEPT.total_seconds() - 86_400)
        assert len(await deliveries(app)) == 131
        young = await happen(app, 3)
        await app.work(2 * 86_400)
        assert {each.id for each in await deliveries(app)} == {*held, *young}
        async with app.ports.storage.unit() as unit:
            assert {each.id for each in await unit[Event].find(limit=1000)} == {*held, *young}
            assert await unit[Attempt].find() == [], "the young ones were taken at once"
        with pytest.raises(Refusal, match="No event"):
            await get_event(app.ports, await caller(app), old[0])

    async def test_retention_continues_where_it_was_and_runs_every_day(self, app: TestApp) -> None:
        await start_recurring_jobs(app.ports)
        await start_recurring_jobs(app.ports)
        [job] = [each for each in await jobs(app) if each.kind == RETAIN]
        await happen(app, 3)
        await app.work()
        await app.work(KEPT.total_seconds() + 86_400)
        assert await deliveries(app) == []
        [after] = [each for each in await jobs(app) if each.kind == RETAIN]
        assert (after.id, after.argument) == (job.id, "")
        assert app.clock.now() < after.due <= app.clock.now() + timedelta(days=1)

    async def test_a_portion_of_many_is_done_at_a_time(self, app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cambist.core.usecases.retention._PORTION", 2)
        await happen(app, 1)
        await happen_at_once(app, 349)
        await app.work()
        await app.clock.advance(KEPT.total_seconds() + 1000)
        await start_recurring_jobs(app.ports)
        [job] = [each for each in await app.ports.storage.claim(100, LEASE) if each.kind == RETAIN]
        await retain(app.ports, job)
        assert len(await deliveries(app)) == 150
        [job] = [each for each in await jobs(app) if each.kind == RETAIN]
        assert (bool(job.argument), job.due) == (True, app.clock.now())
        await app.work()
        assert await deliveries(app) == []


class TestFind:
    async def test_the_operator_sees_events_of_all_accounts_newest_first(self, app: TestApp) -> None:
        ids = await happen(app, 3) + await happen(app, 2, mode=Mode.LIVE)
        await app.work()
        everything = await find_events(app.ports, EventQuery(), account_id=None, mode=None, limit=10)
        assert [each.event.id for each in everything] == ids[::-1]
        newest = await find_events(app.ports, EventQuery(), account_id=None, mode=None, limit=2)
        assert [each.event.id for each in newest] == ids[::-1][:2]
        live = await find_events(app.ports, EventQuery(), account_id=None, mode=Mode.LIVE, limit=10)
        assert [each.event.id for each in live] == ids[:2:-1]
        assert await find_events(app.ports, EventQuery(), account_id="acc_1", mode=None, limit=10) == []
        of_object = EventQuery(object_id="pay_1", delivery_status="delivered")
        found = await find_events(app.ports, of_object, account_id=None, mode=None, limit=10)
        assert [each.event.id for each in found] == ids[::-1]
