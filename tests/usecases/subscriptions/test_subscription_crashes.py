"""A crash at any point loses nothing and binds nobody twice: the story is run once per commit, killed just before or
just after it, and continued by a new process (ARCHITECTURE.md "Units and jobs")."""

from contextlib import suppress
from uuid import UUID

from msgspec import UNSET

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.core.usecases.subscriptions.subscriptions import cancel_subscription, create_subscription
from cambist.ports.bundle import Ports
from cambist.ports.mandates import MandateEvent, MandateSimulation
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import everything
from tests.subscription_app import choose_calendar, simulator, statuses
from tests.tables import table

KEY = str(UUID(int=7))
_NEVER = 10**6


async def caller(ports: Ports, account_id: str) -> Caller:
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.TEST, key_id="svc_test_sweep")


async def story(app: TestApp, ports: Ports) -> str:
    """Create, open, confirm; returns the id. Each step is what the merchant, the payer or the bank does once more
    where it got no answer."""
    who = await caller(ports, app.account.account_id)
    order = SubscriptionOrder(amount_rub="500.00", interval="month", description="Club")
    made = (await create_subscription(ports, who, KEY, lambda: order, lambda: UNSET)).resource
    await open_binding(ports, made.id)
    async with ports.storage.unit() as unit:
        now = await unit[Subscription].get(made.id)
    assert now is not None
    assert now.binding is not None
    for notification in await simulator(app).simulate_mandate(
        now.binding.operation, MandateSimulation(event=MandateEvent.CONFIRM)
    ):
        await on_notification(ports, notification)
    app.ports = ports
    await app.work()
    return made.id


async def run_with_crash(at: int, *, after: bool, calendar: bool) -> int:
    async with open_test_app() as app:
        if calendar:
            await choose_calendar(app)
        whole, fuse = app.ports, CrashPoint(at, after=after)
        with suppress(Killed):
            await story(app, fused(whole, fuse))
        app.ports = whole
        # The new process: the dead one's leases expire, and the watches resume the work.
        await app.work(LEASE + 30)
        made = await story(app, whole)
        await app.work(LEASE)
        await check(app, made)
        return fuse.commits


async def check(app: TestApp, made: str) -> None:
    [subscription] = await everything(app.ports, Subscription)
    assert (subscription.id, subscription.status) == (made, "active")
    payments = [payment for payment in await everything(app.ports, Payment) if payment.binding is not None]
    assert [(each.status, each.subscription_id) for each in payments] == [("paid", made)]
    assert await everything(app.ports, Suspense) == []
    assert [each for each in await statuses(app, made) if each[0] != each[1]] == [("pending_binding", "active")]
    assert await statuses(app, payments[0].id) == [("pending", "paid")]


@table("calendar", [False, True])
@table("after", [False, True])
async def test_create_open_confirm_survives_a_crash_at_every_commit(after: bool, calendar: bool) -> None:
    commits = await run_with_crash(_NEVER, after=after, calendar=calendar)
    assert commits > 5
    for at in range(1, commits + 1):
        await run_with_crash(at, after=after, calendar=calendar)


async def ended(app: TestApp, ports: Ports, made: str) -> None:
    """Cancel and revoke."""
    who = await caller(ports, app.account.account_id)
    await cancel_subscription(ports, who, made)
    app.ports = ports
    await app.work()


async def cancel_with_crash(at: int, *, after: bool) -> int:
    async with open_test_app() as app:
        whole, fuse = app.ports, CrashPoint(at, after=after)
        made = await story(app, whole)
        with suppress(Killed):
            await ended(app, fused(whole, fuse), made)
        app.ports = whole
        await app.work(LEASE + 30)
        await app.work(LEASE)
        [subscription] = await everything(whole, Subscription)
        if subscription.status != "cancelled":
            await ended(app, whole, made)
            [subscription] = await everything(whole, Subscription)
        assert (subscription.status, subscription.revoke_pending) == ("cancelled", False)
        assert (await simulator(app).mandate_state(subscription.mandate_reference or "")).status == "ended"
        assert [each for each in await statuses(app, made) if each[1] == "cancelled"] == [("active", "cancelled")]
        return fuse.commits


@table("after", [False, True])
async def test_cancelling_survives_a_crash_at_every_commit(after: bool) -> None:
    commits = await cancel_with_crash(_NEVER, after=after)
    assert commits > 2
    for at in range(1, commits + 1):
        await cancel_with_crash(at, after=after)
