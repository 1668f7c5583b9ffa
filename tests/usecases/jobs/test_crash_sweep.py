"""A crash at any point loses nothing and does nothing twice: the story is run once per commit, killed just before or
just after it, and continued by a new process (ARCHITECTURE.md "Units and jobs")."""

from contextlib import suppress
from uuid import UUID

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.core.usecases.common.encrypted import open_event_body
from cambist.core.usecases.jobs import LEASE
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.tables import table

KEY = str(UUID(int=7))


async def caller(ports: Ports, account_id: str) -> Caller:
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.TEST, key_id="svc_test_sweep")


async def story(app: TestApp, ports: Ports) -> str:
    """Create, pay, deliver. Returns the payment's id."""
    who = await caller(ports, app.account.account_id)
    made = await create_payment(ports, who, KEY, lambda: PaymentOrder(amount_rub="100.00"))
    await simulate_payment(ports, made.resource, Simulation(status=InvoiceStatus.PAID))
    app.ports = ports
    await app.work()
    return made.resource.id


async def run_with_crash(bank: str, at: int, *, after: bool) -> int:
    """Run the story with a crash at commit `at`, recover, finish it, check everything. Returns commits seen."""
    async with open_test_app(test_banks=(bank,)) as app:
        whole, fuse = app.ports, CrashPoint(at, after=after)
        with suppress(Killed):
            await story(app, fused(whole, fuse))
        app.ports = whole
        # The new process: the dead one's leases expire, and the watch resumes its work.
        await app.work(LEASE + 30)
        payment_id = await story(app, whole)
        await app.work(LEASE)
        await check(app, payment_id)
        return fuse.commits


async def check(app: TestApp, payment_id: str) -> None:
    async with app.ports.storage.unit() as unit:
        payments = await unit[Payment].find()
        keys = await unit[IdempotencyKey].find()
        events = await unit[Event].find()
        deliveries = await unit[Delivery].find()
        jobs = [job for job in await unit[Job].find() if not job.kind.startswith("webhook.release")]
    assert [payment.id for payment in payments] == [payment_id]
    assert [key.resource_id for key in keys] == [payment_id]
    assert (payments[0].status, payments[0].sequence) == ("paid", 1)
    assert [msgspec.json.decode(open_event_body(app.ports.vault, event))["status"] for event in events] == ["paid"]
    assert [delivery.status for delivery in deliveries] == [DeliveryStatus.DELIVERED]
    assert {webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks} == {events[0].id}
    assert [job.kind for job in jobs] in ([], ["payment.watch"])


COMMITS = {"simulator": 3, "simulator-asked": 4}
"""The creation, its opening if the bank needs a call, the move with its event, and the delivery's receipt."""


@table(("bank", "commits"), COMMITS.items())
async def test_the_story_has_as_many_commits_as_are_swept(bank: str, commits: int) -> None:
    assert await run_with_crash(bank, 0, after=False) == commits


@table("after", [False, True], ids=["before", "after"])
@table(("bank", "at"), [(bank, at) for bank, most in COMMITS.items() for at in range(1, most + 1)])
async def test_a_crash_at_any_commit_loses_nothing_and_does_nothing_twice(bank: str, at: int, after: bool) -> None:
    await run_with_crash(bank, at, after=after)


@table("after", [False, True], ids=["before", "after"])
async def test_a_crash_while_a_refused_payment_is_taken_back_frees_the_key(after: bool) -> None:
    async with open_test_app() as app:
        whole, fuse = app.ports, CrashPoint(2, after=after)
        app.script.create.extend([Twist(ending=Ending.REFUSED)] * (1 if after else 2))
        with pytest.raises(Killed):
            await story(app, fused(whole, fuse))
        await app.work(LEASE)
        assert not app.script.create
        await story(app, whole)
