"""Old test data is forgotten by itself (docs/sandbox.md "Forgetting")."""

from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.sandbox import expiry
from cambist.core.usecases.sandbox.data import Kind, forget_some
from cambist.core.usecases.standing import EXPIRE, start_standing
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from tests.houses import TestHouse
from tests.invariants import everything
from tests.subscription_house import subscribed

DAYS = timedelta(days=90).total_seconds()


async def expired(house: TestHouse) -> Job:
    """Do the job until nothing is left for today. Returns it."""
    async with house.ports.storage.unit() as unit:
        if await unit[Job].get(EXPIRE) is None:
            await start_standing(house.ports)
    while True:
        job = await house.ports.storage.get(Job, EXPIRE)
        assert job is not None
        if job.due > house.clock.now() + timedelta(hours=1):
            return job
        await expiry.expire(house.ports, job)


async def paid(house: TestHouse, mode: str = "test") -> str:
    payment_id: str = (await house.create(mode=mode)).json()["id"]
    if mode == "test":
        await house.simulate(payment_id, outcome="paid")
    await house.work(5)
    return payment_id


async def payments(ports: Ports) -> set[str]:
    return {each.id for each in await everything(ports, Payment)}


async def test_test_data_of_ninety_days_goes_with_its_events_and_no_other_does(house: TestHouse) -> None:
    old, live = await paid(house), await paid(house, "live")
    await house.clock.advance(DAYS)
    young = await paid(house)
    await house.clock.advance(60)
    await expired(house)
    assert await payments(house.ports) == {live, young}
    left = {event.object_id for event in await everything(house.ports, Event)}
    assert old not in left
    assert young in left


async def test_zero_days_keep_everything(house: TestHouse) -> None:
    house.ports = msgspec.structs.replace(house.ports, test_data_days=0)
    old = await paid(house)
    await house.clock.advance(10 * DAYS)
    await expired(house)
    assert await payments(house.ports) == {old}


async def test_a_subscription_that_goes_on_keeps_itself_and_its_payments(house: TestHouse) -> None:
    going, over = (await subscribed(house))["id"], (await subscribed(house))["id"]
    path = f"/api/v1/subscriptions/{over}/cancel"
    assert (await house.http.post(path, headers=house.headers())).status_code == 200
    await house.work(5)
    await house.clock.advance(2 * DAYS)
    house.made_up = True  # no charge was made meanwhile
    await expired(house)
    assert {each.id for each in await everything(house.ports, Subscription)} == {going}
    assert {each.subscription_id for each in await everything(house.ports, Payment)} <= {going}


async def test_one_accounts_amount_costs_only_that_account(house: TestHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each account has a portion of a round; an account with more data waits for the next round."""
    monkeypatch.setattr(expiry, "PORTION", 2)
    for _ in range(5):
        await paid(house)
    other = await accounts.create_account(house.ports, "Another")
    second = TestHouse(house.ports, house.clock, house.postman, house.script, house.http, other)
    mine = await paid(second)
    await house.clock.advance(DAYS + 60)
    await start_standing(house.ports)
    job = await house.ports.storage.get(Job, EXPIRE)
    assert job is not None
    await expiry.expire(house.ports, job)
    left = await payments(house.ports)
    assert (len(left), mine in left) == (3, False)
    await expired(house)
    assert await payments(house.ports) == set()


async def test_a_fault_of_one_account_keeps_no_other(house: TestHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await paid(house)
    other = await accounts.create_account(house.ports, "Another")
    second = TestHouse(house.ports, house.clock, house.postman, house.script, house.http, other)
    await paid(second)
    await house.clock.advance(DAYS + 60)

    async def fails(ports: Ports, kind: Kind, rows: dict[str, object], most: int) -> int:
        if rows["account_id"] == house.account.account_id:
            raise Unavailable("a row is damaged")
        return await forget_some(ports, kind, rows, most)

    monkeypatch.setattr(expiry, "forget_some", fails)
    await expired(house)
    assert await payments(house.ports) == {first}


async def test_a_clock_that_is_ahead_makes_nothing_old(house: TestHouse) -> None:
    """Objects made today stay, however far the test clock was moved since."""
    made = await paid(house)
    await house.http.post("/api/v1/sandbox/clock/advance", json={"seconds": int(2 * DAYS)}, headers=house.headers())
    await expired(house)
    assert await payments(house.ports) == {made}


def test_mode_of_what_expires_is_test() -> None:
    assert all(kind.rows("acc_1", Mode.TEST).get("mode", Mode.TEST) is Mode.TEST for kind in expiry._EXPIRING)
