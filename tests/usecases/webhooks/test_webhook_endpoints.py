"""Further webhook endpoints on every storage: the limit under requests at once, and crashes at each commit
(docs/webhooks.md "Further endpoints")."""

import asyncio
import contextlib
from datetime import timedelta
from functools import partial
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks.breaker import Breaker
from cambist.core.domain.webhooks.delivery import after_attempt, sent_anew
from cambist.core.domain.webhooks.endpoints import MOST, EndpointKey, EndpointOrder, EndpointPatch, WebhookEndpoint
from cambist.core.domain.webhooks.events import Attempt, EndpointDelivery
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.common.paging import MomentFilter
from cambist.core.usecases.common.schedule import FollowUp
from cambist.core.usecases.jobs import LEASE, run_due
from cambist.core.usecases.webhooks.endpoints import (
    DROP,
    change_endpoint,
    create_endpoint,
    delete_endpoint,
    drop_rest,
    get_endpoint,
    list_all_endpoints,
    list_endpoints,
    rotate_secret,
    switch_endpoint,
)
from cambist.core.usecases.webhooks.outbox import DELIVER, RELEASE_TO, release_held_to
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from tests import event_factory
from tests.apps import WEBHOOK_URL, TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.domain.test_delivery import NOON, fresh, outcome
from tests.http.test_webhook_endpoints import AWAY, URL, by_address, made, paid, sent_to
from tests.invariants import everything


async def a_caller(ports: Ports) -> Caller:
    account = await create_account(ports, "Merchant")
    found = await ports.storage.get(Account, account.account_id)
    assert found is not None
    return Caller(account=found, mode=Mode.TEST, key_id=account.test.api_key)


def order() -> EndpointOrder:
    return EndpointOrder(url=URL)


async def test_simultaneous_creations_stay_within_the_endpoint_limit(url: str) -> None:
    """The account's version is the guard."""
    async with open_app(Settings(database_url=url)) as app:
        caller = await a_caller(app.ports)
        answers = await asyncio.gather(
            *(create_endpoint(app.ports, caller, str(uuid4()), order) for _ in range(8)), return_exceptions=True
        )
        refused = [each for each in answers if isinstance(each, Refusal)]
        assert [each.code for each in refused] == ["WEBHOOK_ENDPOINT_LIMIT"] * (8 - MOST + 1)
        listed = await list_endpoints(app.ports, caller, MomentFilter(), 1, 20)
        assert listed.total == len(listed.records) == MOST - 1
        account = await app.ports.storage.get(Account, caller.account_id)
        assert account is not None
        assert {ref.id for ref in account.further(Mode.TEST)} == {each.endpoint.id for each in listed.records}


async def test_a_life_of_an_endpoint(url: str) -> None:
    async with open_app(Settings(database_url=url)) as app:
        ports, caller = app.ports, await a_caller(app.ports)
        made = (await create_endpoint(ports, caller, str(uuid4()), order)).resource
        endpoint_id = made.endpoint.id
        [event] = await event_factory.happen(ports, caller.account_id)
        report = await get_endpoint(ports, caller, endpoint_id)
        assert (report.endpoint, report.backlog) == (made.endpoint, {"held": 0, "pending": 1, "failed": 0})
        [delivery] = await everything(ports, EndpointDelivery)
        assert (delivery.event_id, delivery.endpoint_id, delivery.id) == (event, endpoint_id, f"{event}/{endpoint_id}")
        changed = await change_endpoint(
            ports, caller, endpoint_id, lambda: EndpointPatch(url="https://new.example", description="new")
        )
        assert (changed.url, changed.description, changed.secret) == (
            "https://new.example",
            "new",
            made.endpoint.secret,
        )
        rotated = (await rotate_secret(ports, caller, endpoint_id)).endpoint
        assert rotated.previous_secret == made.endpoint.secret != rotated.secret
        await delete_endpoint(ports, caller, endpoint_id)
        await run_due(ports)
        assert await everything(ports, EndpointDelivery) == []
        assert await everything(ports, WebhookEndpoint) == []
        account = await ports.storage.get(Account, caller.account_id)
        assert account is not None
        assert account.endpoints is None


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_leaves_endpoint_and_account_in_agreement(app: TestApp, after: bool) -> None:
    ports = app.ports
    account = await ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id=app.account.test.api_key)
    key = str(uuid4())
    with pytest.raises(Killed):
        await create_endpoint(fused(ports, CrashPoint(1, after=after)), caller, key, order)
    await _agree(ports)
    made = await create_endpoint(ports, caller, key, order)
    assert (made.replayed, made.resource.secret is None) == (after, after)
    endpoint_id = made.resource.endpoint.id
    with pytest.raises(Killed):
        await delete_endpoint(fused(ports, CrashPoint(1, after=after)), caller, endpoint_id)
    await _agree(ports)
    if not after:
        await delete_endpoint(ports, caller, endpoint_id)
    assert await everything(ports, WebhookEndpoint) == []


async def _agree(ports: Ports) -> None:
    [account] = await everything(ports, Account)
    assert {ref.id for ref in account.endpoints or ()} == {each.id for each in await everything(ports, WebhookEndpoint)}


@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_that_dies_over_a_further_endpoint_loses_nothing(app: TestApp, after: bool) -> None:
    """Each commit of the way is the last one once."""
    endpoint_id = (await made(app))["id"]
    for at in range(1, 6):
        await paid(app)
        with contextlib.suppress(Killed):
            await run_due(fused(app.ports, CrashPoint(at, after=after)))
        await app.work(LEASE + 1)
        await app.work(5)
    deliveries = await everything(app.ports, EndpointDelivery)
    assert {each.status for each in deliveries} == {"delivered"}
    assert len({each.headers["X-Webhook-Id"] for each in sent_to(app, URL)}) == 5
    assert {each.endpoint_id for each in deliveries} == {endpoint_id}


async def test_deleting_while_a_webhook_is_under_way_leaves_nothing(app: TestApp) -> None:
    endpoint_id = (await made(app))["id"]
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id=app.account.test.api_key)
    plain = app.postman.send

    async def deleting(webhook: object) -> object:
        if getattr(webhook, "url", None) == URL:
            await delete_endpoint(app.ports, caller, endpoint_id)
        return await plain(webhook)  # type: ignore[arg-type]

    app.postman.send = deleting  # type: ignore[assignment]
    await paid(app)
    await app.work(200)
    assert len(sent_to(app, URL)) == 1
    assert [each.id for each in await everything(app.ports, Breaker) if endpoint_id in each.id] == []
    assert await everything(app.ports, EndpointDelivery) == []
    assert [each for each in await everything(app.ports, Attempt) if each.endpoint_id] == []
    assert [each.id for each in await everything(app.ports, Job) if endpoint_id in each.id] == []


async def test_a_job_that_a_program_of_before_put_back_is_done_by_this_one(app: TestApp) -> None:
    """It could not read the job's endpoint, and rescheduled it like any failed job (docs/decisions.md "Further
    endpoints")."""
    endpoint_id = (await made(app))["id"]
    await paid(app)
    async with app.ports.storage.unit() as unit:
        key = EndpointKey(app.account.account_id, Mode.TEST, endpoint_id)
        job = await unit[Job].get(f"{DELIVER}:{key.id}")
        assert job is not None
        later = app.clock.now() + timedelta(seconds=600)
        unit[Job].save(msgspec.structs.replace(job, due=later, attempts=5))
        await unit.commit()
    await app.work(30)
    assert sent_to(app, URL) == []
    await app.work(600)
    assert len(sent_to(app, URL)) == 1


async def owner(app: TestApp) -> Caller:
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.TEST, key_id=app.account.test.api_key)


async def tried(app: TestApp, job_id: str, attempts: int) -> Job:
    """Return the job as of its run with this number."""
    job = await app.ports.storage.get(Job, job_id)
    assert job is not None
    async with app.ports.storage.unit() as unit:
        job = unit[Job].save(msgspec.structs.replace(job, attempts=attempts))
        await unit.commit()
    return job


@pytest.mark.parametrize(("hours", "kept"), [(23.99, 0), (24, 1)])
async def test_oldest_secret_still_signs_after_two_changes_within_24_hours(
    app: TestApp, hours: float, kept: int
) -> None:
    """`hours` between them (docs/webhooks.md "Changing the secret")."""
    endpoint_id = (await made(app))["id"]
    asking = await owner(app)
    secrets = [(await get_endpoint(app.ports, asking, endpoint_id)).endpoint.secret]
    once = (await rotate_secret(app.ports, asking, endpoint_id)).endpoint
    assert once.previous_secret == secrets[0]
    secrets.append(once.secret)
    await app.clock.advance(3600 * hours)
    twice = (await rotate_secret(app.ports, asking, endpoint_id)).endpoint
    assert twice.previous_secret == secrets[kept]
    assert twice.previous_secret_until == app.ports.clock.real() + timedelta(hours=24)


async def test_a_new_secret_closes_the_breaker(app: TestApp) -> None:
    """Webhooks refused for their signature are tried again."""
    endpoint_id = (await made(app))["id"]
    asking = await owner(app)
    by_address(app, {URL: AWAY})
    for _ in range(3):
        await paid(app)
    await app.work(60)
    assert (await get_endpoint(app.ports, asking, endpoint_id)).breaker.is_open
    await rotate_secret(app.ports, asking, endpoint_id)
    assert not (await get_endpoint(app.ports, asking, endpoint_id)).breaker.is_open


@pytest.mark.parametrize(
    ("kind", "attempts", "seconds"),
    [(DROP, 1, 30), (DROP, 2, 90), (DROP, 3, None), (RELEASE_TO, 1, 10), (RELEASE_TO, 2, 110), (RELEASE_TO, 3, None)],
    ids=str,
)
async def test_release_and_drop_jobs_look_twice_more(
    app: TestApp, kind: FollowUp, attempts: int, seconds: float | None
) -> None:
    """A webhook may be in flight, and a unit may have read the account before."""
    endpoint_id = (await made(app))["id"]
    asking = await owner(app)
    if kind is DROP:
        await delete_endpoint(app.ports, asking, endpoint_id)
    else:
        for enabled in (False, True):
            await change_endpoint(app.ports, asking, endpoint_id, partial(EndpointPatch, enabled=enabled))
    job_id = kind.id_of(EndpointKey(asking.account_id, Mode.TEST, endpoint_id).id)
    job = await tried(app, job_id, attempts)
    await (drop_rest if kind is DROP else release_held_to)(app.ports, job)
    left = await app.ports.storage.get(Job, job_id)
    assert (left and left.due) == (None if seconds is None else app.clock.now() + timedelta(seconds=seconds))


async def test_endpoint_enabled_again_is_searched_from_the_start(app: TestApp) -> None:
    endpoint_id = (await made(app))["id"]
    asking = await owner(app)
    job_id = RELEASE_TO.id_of(EndpointKey(asking.account_id, Mode.TEST, endpoint_id).id)
    for _ in range(2):
        for enabled in (False, True):
            await change_endpoint(app.ports, asking, endpoint_id, partial(EndpointPatch, enabled=enabled))
        job = await app.ports.storage.get(Job, job_id)
        assert job is not None
        assert (job.attempts, job.due) == (0, app.clock.now())
        await tried(app, job_id, 2)
        await app.clock.advance(1)


async def test_an_operator_sees_and_switches_every_endpoint_of_an_account(app: TestApp) -> None:
    ours = [(await made(app, mode=mode))["id"] for mode in ("live", "test")]
    await switch_endpoint(app.ports, ours[1], enabled=False)
    shown = await list_all_endpoints(app.ports, app.account.account_id)
    assert {(each.key.mode, each.key.further, each.url, each.enabled) for each in shown} == {
        (Mode.LIVE, None, WEBHOOK_URL, True), (Mode.LIVE, ours[0], URL, True),
        (Mode.TEST, None, WEBHOOK_URL, True), (Mode.TEST, ours[1], URL, False),
    }  # fmt: skip
    for unknown in ("acc_0198c3f2-7d1a-7e4b-9f60-000000000001", "\0", ours[0]):
        with pytest.raises(Refusal) as caught:
            await list_all_endpoints(app.ports, unknown)
        assert caught.value.code == "ACCOUNT_NOT_FOUND"
    for unknown in ("we_0198c3f2-7d1a-7e4b-9f60-000000000001", "\0", app.account.account_id):
        with pytest.raises(Refusal) as caught:
            await switch_endpoint(app.ports, unknown, enabled=False)
        assert caught.value.code == "WEBHOOK_ENDPOINT_NOT_FOUND"


def test_rules_of_deliveries_keep_the_kind_of_theirs() -> None:
    """A worker saves a further delivery as the same type."""
    plain = fresh()
    further = EndpointDelivery(**{**msgspec.structs.asdict(plain), "id": f"{plain.id}/we_1"}, endpoint_id="we_1")
    assert isinstance(sent_anew(further, receives=True, now=NOON), EndpointDelivery)
    entered = after_attempt(further, outcome(503))
    assert isinstance(entered, EndpointDelivery)
    assert (entered.endpoint_id, entered.event_id) == ("we_1", plain.id)
