"""Old test data is deleted automatically (docs/sandbox.md "Forgetting")."""

from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.recurring_jobs import EXPIRE, start_recurring_jobs
from cambist.core.usecases.sandbox import expiry
from cambist.core.usecases.sandbox.data import Kind, forget_some
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.invariants import everything
from tests.subscription_app import subscribed

DAYS = timedelta(days=90).total_seconds()


async def expired(app: TestApp) -> Job:
    """Run the job until nothing is left for today, and return it."""
    async with app.ports.storage.unit() as unit:
        if await unit[Job].get(EXPIRE) is None:
            await start_recurring_jobs(app.ports)
    while True:
        job = await app.ports.storage.get(Job, EXPIRE)
        assert job is not None
        if job.due > app.clock.now() + timedelta(hours=1):
            return job
        await expiry.expire(app.ports, job)


async def paid(app: TestApp, mode: str = "test") -> str:
    payment_id: str = (await app.create(mode=mode)).json()["id"]
    if mode == "test":
        await app.simulate(payment_id, outcome="paid")
    await app.work(5)
    return payment_id


async def payments(ports: Ports) -> set[str]:
    return {each.id for each in await everything(ports, Payment)}


async def test_test_data_of_ninety_days_goes_with_its_events_and_no_other_does(app: TestApp) -> None:
    old, live = await paid(app), await paid(app, "live")
    await app.clock.advance(DAYS)
    young = await paid(app)
    await app.clock.advance(60)
    await expired(app)
    assert await payments(app.ports) == {live, young}
    left = {event.object_id for event in await everything(app.ports, Event)}
    assert old not in left
    assert young in left


async def test_zero_days_keep_everything(app: TestApp) -> None:
    app.ports = msgspec.structs.replace(app.ports, test_data_days=0)
    old = await paid(app)
    await app.clock.advance(10 * DAYS)
    await expired(app)
    assert await payments(app.ports) == {old}


async def test_a_subscription_that_goes_on_keeps_itself_and_its_payments(app: TestApp) -> None:
    going, over = (await subscribed(app))["id"], (await subscribed(app))["id"]
    path = f"/api/v1/subscriptions/{over}/cancel"
    assert (await app.http.post(path, headers=app.headers())).status_code == 200
    await app.work(5)
    await app.clock.advance(2 * DAYS)
    app.made_up = True  # no charge was made meanwhile
    await expired(app)
    assert {each.id for each in await everything(app.ports, Subscription)} == {going}
    assert {each.subscription_id for each in await everything(app.ports, Payment)} <= {going}


async def test_one_accounts_amount_costs_only_that_account(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each account has a portion of a round; an account with more data waits for the next round."""
    monkeypatch.setattr(expiry, "PORTION", 2)
    for _ in range(5):
        await paid(app)
    other = await accounts.create_account(app.ports, "Another")
    second = TestApp(app.ports, app.clock, app.postman, app.script, app.http, other)
    mine = await paid(second)
    await app.clock.advance(DAYS + 60)
    await start_recurring_jobs(app.ports)
    job = await app.ports.storage.get(Job, EXPIRE)
    assert job is not None
    await expiry.expire(app.ports, job)
    left = await payments(app.ports)
    assert (len(left), mine in left) == (3, False)
    await expired(app)
    assert await payments(app.ports) == set()


async def test_a_fault_of_one_account_keeps_no_other(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await paid(app)
    other = await accounts.create_account(app.ports, "Another")
    second = TestApp(app.ports, app.clock, app.postman, app.script, app.http, other)
    await paid(second)
    await app.clock.advance(DAYS + 60)

    async def fails(ports: Ports, kind: Kind, rows: dict[str, object], most: int) -> int:
        if rows["account_id"] == app.account.account_id:
            raise Unavailable("a row is damaged")
        return await forget_some(ports, kind, rows, most)

    monkeypatch.setattr(expiry, "forget_some", fails)
    await expired(app)
    assert await payments(app.ports) == {first}


async def test_a_clock_that_is_ahead_makes_nothing_old(app: TestApp) -> None:
    """Objects made today stay, however far the test clock was moved since."""
    made = await paid(app)
    await app.http.post("/api/v1/sandbox/clock/advance", json={"seconds": int(2 * DAYS)}, headers=app.headers())
    await expired(app)
    assert await payments(app.ports) == {made}


def test_mode_of_what_expires_is_test() -> None:
    assert all(kind.rows("acc_1", Mode.TEST).get("mode", Mode.TEST) is Mode.TEST for kind in expiry._EXPIRING)
