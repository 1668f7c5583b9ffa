"""Resends of a span of webhooks by a merchant's people (docs/dashboard.md "For developers")."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.roles import PersonRight, Role, grant
from cambist.core.domain.webhooks import resends as limits
from cambist.core.domain.webhooks.resends import RUNS_KEPT, ResendRun, RunState
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.people.resends import begin_resend, list_resends, stop_resend
from cambist.core.usecases.people.sessions import Actor
from cambist.core.usecases.webhooks.events import EventQuery
from cambist.core.usecases.webhooks.resends import RESEND, resend_batch
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.event_factory import happen
from tests.invariants import everything
from tests.people_kit import person
from tests.tables import table


def span(app: TestApp, **more: Any) -> EventQuery:
    until = app.clock.now() + timedelta(hours=1)
    return EventQuery(since="2025-12-31T00:00:00Z", until=until.isoformat(), **more)


async def run_of(app: TestApp, actor: Actor) -> ResendRun:
    return (await list_resends(app.ports, actor))[0]


async def step(app: TestApp) -> None:
    """Do one batch of the running resend."""
    [job] = [each for each in await everything(app.ports, Job) if each.kind == RESEND]
    await resend_batch(app.ports, job)


async def test_resend_reports_its_progress_and_its_end(app: TestApp) -> None:
    ids = await happen(app.ports, app.account.account_id, 230)
    await app.work()
    app.postman.webhooks.clear()
    developer = await person(app, Role.DEVELOPER)
    begun = await begin_resend(app.ports, developer, span(app))
    assert (begun.state, begun.sent, begun.total) == (RunState.RUNNING, 0, 230)
    await step(app)
    assert ((await run_of(app, developer)).sent, (await run_of(app, developer)).state) == (100, RunState.RUNNING)
    await run_due(app.ports)
    await app.work()
    ended = await run_of(app, developer)
    assert (ended.state, ended.sent, ended.slot) == (RunState.DONE, 230, None)
    assert [webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks] == ids
    [entry] = [each for each in await everything(app.ports, AuditEntry) if each.action == "webhook.resend_range"]
    assert (entry.object_id, entry.account_id) == (begun.id, app.account.account_id)
    assert "total=230" in entry.after


async def test_only_wanted_events_are_sent_and_an_empty_span_ends_at_once(app: TestApp) -> None:
    await happen(app.ports, app.account.account_id, 2)
    await app.work()
    developer = await person(app, Role.DEVELOPER)
    for asked in (span(app, type="refund.failed"), span(app, delivery_status="failed")):
        run = await begin_resend(app.ports, developer, asked)
        assert (run.state, run.total) == (RunState.DONE, 0)
    assert [each for each in await everything(app.ports, Job) if each.kind == RESEND] == []
    run = await begin_resend(app.ports, developer, span(app, delivery_status="delivered"))
    await app.work()
    assert (await run_of(app, developer)).sent == run.total == 2


async def test_one_resend_runs_at_a_time_also_of_two_at_once(app: TestApp) -> None:
    await happen(app.ports, app.account.account_id, 3)
    await app.work()
    developer, owner = await person(app, Role.DEVELOPER), await person(app, Role.OWNER)
    tries = [begin_resend(app.ports, each, span(app)) for each in (developer, owner)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert [each.code for each in results if isinstance(each, Refusal)] == ["RESEND_BUSY"]
    await app.work()
    await begin_resend(app.ports, owner, span(app))


async def test_form_sent_twice_is_one_resend(app: TestApp) -> None:
    await happen(app.ports, app.account.account_id, 3)
    developer = await person(app, Role.DEVELOPER)
    key = app.ports.ids.uuid()
    first, second = [await begin_resend(app.ports, developer, span(app), key=key) for _ in range(2)]
    assert first.id == second.id
    assert len(await list_resends(app.ports, developer)) == 1


async def test_too_many_events_are_refused_with_their_number(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    await happen(app.ports, app.account.account_id, 3)
    monkeypatch.setattr(limits, "RESEND_MOST", 2)
    developer = await person(app, Role.DEVELOPER)
    with pytest.raises(Refusal) as refused:
        await begin_resend(app.ports, developer, span(app))
    assert refused.value.code == "RESEND_TOO_LARGE"
    assert "3 events" in refused.value.message
    assert await list_resends(app.ports, developer) == []


async def test_stopped_resend_sends_nothing_more(app: TestApp) -> None:
    await happen(app.ports, app.account.account_id, 230)
    await app.work()
    app.postman.webhooks.clear()
    developer = await person(app, Role.DEVELOPER)
    begun = await begin_resend(app.ports, developer, span(app))
    await step(app)
    stopped = await stop_resend(app.ports, developer, begun.id)
    assert (stopped.state, stopped.sent) == (RunState.STOPPED, 100)
    await app.work()
    assert len(app.postman.webhooks) == 100
    assert [each for each in await everything(app.ports, Job) if each.kind == RESEND] == []
    with pytest.raises(Refusal) as again:
        await stop_resend(app.ports, developer, begun.id)
    assert again.value.code == "INVALID_STATE"


@table(
    ("since", "until"),
    [
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"),
        ("yesterday", "2026-01-01T00:00:00Z"),
        (":00+03:00", ":00+03:00"),
    ],
)
async def test_span_that_is_none_is_refused(app: TestApp, since: str, until: str) -> None:
    developer = await person(app, Role.DEVELOPER, email=f"{abs(hash(since + until))}@shop.example")
    with pytest.raises(Refusal) as refused:
        await begin_resend(app.ports, developer, EventQuery(since=since, until=until))
    assert refused.value.code == "VALIDATION_ERROR"


async def test_only_the_newest_resends_stay_listed(app: TestApp) -> None:
    developer = await person(app, Role.DEVELOPER)
    for _ in range(RUNS_KEPT + 3):
        await begin_resend(app.ports, developer, span(app))
        await app.clock.advance(1)
    assert len(await everything(app.ports, ResendRun)) == RUNS_KEPT


async def test_resends_of_another_account_or_mode_do_not_exist(app: TestApp) -> None:
    await happen(app.ports, app.account.account_id, 3)
    developer = await person(app, Role.DEVELOPER)
    key = app.ports.ids.uuid()
    begun = await begin_resend(app.ports, developer, span(app), key=key)
    app.account = await create_account(app.ports, "Other")
    stranger = await person(app, Role.OWNER)
    assert await list_resends(app.ports, stranger) == []
    with pytest.raises(Refusal) as reused:
        await begin_resend(app.ports, stranger, span(app), key=key)
    assert reused.value.code == "IDEMPOTENCY_KEY_REUSED"
    for unknown in (begun.id, "rsn_x", "../x"):
        with pytest.raises(Refusal) as missing:
            await stop_resend(app.ports, stranger, unknown)
        assert missing.value.code == "RESEND_NOT_FOUND"
    with pytest.raises(Refusal) as foreign:
        await begin_resend(app.ports, stranger, span(app), "we_01a21ea4-2c55-7c99-82bc-e03e87ee0495")
    assert foreign.value.code == "WEBHOOK_ENDPOINT_NOT_FOUND"


@table("role", list(Role))
async def test_role_resends_by_the_table(app: TestApp, role: Role) -> None:
    actor = await person(app, role)
    calls = (
        (PersonRight.WEBHOOKS, begin_resend(app.ports, actor, span(app))),
        (PersonRight.LOGS, list_resends(app.ports, actor)),
    )
    for right, call in calls:
        if grant(role, right, Mode.TEST) is not None:
            await call
            continue
        with pytest.raises(Refusal) as denied:
            await call
        assert denied.value.code == "PERSON_RIGHT_MISSING"
