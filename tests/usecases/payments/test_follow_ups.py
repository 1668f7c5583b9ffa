"""Ownership of a job that two runs work on: after an expired lease, an operator's wake-up, or a plan for other work
(ARCHITECTURE.md "Units and jobs")."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import iso
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.reports import Report
from cambist.core.usecases.common.schedule import FollowUp, is_ours
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.jobs import HANDLERS, LEASE, run
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.payments import moves, progress
from cambist.core.usecases.payments.recurring import any_subscription, binding_operation
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.subscriptions.mandate_end import plan_revoking
from cambist.core.usecases.webhooks.events import EventQuery
from cambist.core.usecases.webhooks.outbox import DELIVER, ask_to_deliver
from cambist.core.usecases.webhooks.resends import RESEND, resend_range
from cambist.core.usecases.webhooks.results import is_unchanged
from cambist.ports.bank import InvoiceStatus, RefundRequest, RefundState
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.storage import Unit
from tests.apps import TestApp, open_test_app
from tests.charge_app import ChargeApp, due_subscription
from tests.event_factory import happen
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.proof_kit import exchange_terminal
from tests.refund_app import RefundApp
from tests.subscription_app import bound, call, open_link, record, simulator, subscribed


@pytest.fixture
async def app() -> AsyncIterator[TestApp]:
    async with open_test_app() as opened:
        await RefundApp(opened).set(refunds="true", exchange="true")
        await opened.clock.advance(2)
        yield opened


async def _payment(app: TestApp) -> None:
    await app.created()


async def _refund(app: TestApp) -> None:
    await RefundApp(app).processing()


async def _suspense(app: TestApp) -> None:
    payment_id = await RefundApp(app).paid()
    await app.told(payment_id, Simulation(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True))
    [money] = await list_suspense(app.ports)
    await return_suspense(app.ports, money.id)
    app.script.find_refund.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
    app.script.refund.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)


async def _binding(app: TestApp) -> None:
    await open_link(app, (await subscribed(app))["id"])


async def _charge(app: TestApp) -> None:
    charges = ChargeApp(app)
    subscription_id = await due_subscription(charges)
    app.script.charge.append(Twist(ending=Ending.UNAVAILABLE))
    app.script.find_charge.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
    await charges.post(subscription_id)


async def _mandate(app: TestApp) -> None:
    await bound(app)


async def _ended_mandate(app: TestApp) -> None:
    app.script.revoke.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
    await call(app, (await bound(app))["id"], "cancel")


async def _exchange(app: TestApp) -> None:
    await ExchangeApp(app).made()


async def _suspended_rub(app: TestApp) -> None:
    exchanges = ExchangeApp(app)
    made = await exchanges.bought()
    await app.work(1000)
    await exchanges.pay(made.id, again=True)
    await return_money(app.ports, made.id)
    app.script.find_refund.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)
    app.script.refund.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)


async def _suspended_usdt(app: TestApp) -> None:
    exchanges = ExchangeApp(app)
    made = await exchanges.made()
    await exchanges.cancel(made.id)
    await exchanges.send(made.id, "7")
    await exchanges.look(made.id)
    await return_money(app.ports, made.id, "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH")
    exchanges.sender.script.sign.extend([Twist(ending=Ending.UNAVAILABLE)] * 9)


async def _failed_charge(app: TestApp) -> None:
    charges = ChargeApp(app)
    subscription_id = await due_subscription(charges)
    await charges.next(subscription_id, "insufficient_funds")
    await charges.post(subscription_id)


async def _without_proof(app: TestApp) -> None:
    method_id = await exchange_terminal(app, app.account.account_id)
    payment = (await app.create({"amount_rub": "10000.00", "method_id": method_id}, mode="live")).json()
    await app.told(payment["id"], Simulation(status=InvoiceStatus.PAID))


async def jobs_of(app: TestApp, kind: str) -> list[Job]:
    return [job for job in await everything(app.ports, Job) if job.kind == kind]


async def claimed(app: TestApp, kind: str) -> Job:
    """Return the one job of this kind, claimed as soon as it is due."""
    [job] = await jobs_of(app, kind)
    await app.clock.advance(max(0.0, (job.due - app.clock.now()).total_seconds()))
    found = [each for each in await app.ports.storage.claim(100, LEASE) if each.kind == kind]
    assert len(found) == 1
    return found[0]


FOLLOWED: dict[str, Callable[[TestApp], Awaitable[None]]] = {
    "payment.watch": _payment,
    "refund.execute": _refund,
    "suspense.send": _suspense,
    "binding.watch": _binding,
    "subscription.watch": _mandate,
    "charge.watch": _charge,
    "mandate.revoke": _ended_mandate,
    "exchange.watch": _exchange,
    "exchange.return of RUB": _suspended_rub,
    "exchange.return of USDT": _suspended_usdt,
    "proof.remind": _without_proof,
    "subscription.exhaust": _failed_charge,
}
"""Kinds of jobs, and what makes one of each that has something to do still."""
_ONE_RUN = ("subscription.exhaust",)
"""After which there is nothing left to do."""


@pytest.mark.parametrize("name", FOLLOWED)
async def test_late_runner_leaves_the_job_to_its_successor(app: TestApp, name: str) -> None:
    """The first run's lease expired while a provider delayed it, and the second run owns the job."""
    kind = name.partition(" ")[0]
    await FOLLOWED[name](app)
    first = await claimed(app, kind)
    await app.clock.advance(LEASE + 1)
    second = await claimed(app, kind)
    await run(app.ports, first)
    [job] = await jobs_of(app, kind)
    assert (job.version, job.leased_until) == (second.version, second.leased_until)
    await run(app.ports, second)
    after = await jobs_of(app, kind)
    assert [job.leased_until for job in after] == ([] if kind in _ONE_RUN else [None])
    assert all(job.due > app.clock.now() for job in after)


async def test_late_runner_sends_no_batch_beside_its_successor(app: TestApp) -> None:
    """The next batch is the next run's, and so is the lease."""
    await RefundApp(app).paid()
    await app.work(5)
    sent = len(app.postman.webhooks)
    earlier, later = app.clock.now() - timedelta(hours=1), app.clock.now() + timedelta(seconds=1)
    asked = EventQuery(since=iso(earlier), until=iso(later))
    assert await resend_range(app.ports, app.account.account_id, Mode.TEST, asked) == 1
    first = await claimed(app, RESEND)
    await app.clock.advance(LEASE + 1)
    second = await claimed(app, RESEND)
    await run(app.ports, first)
    [job] = await jobs_of(app, RESEND)
    assert (job.version, job.leased_until) == (second.version, second.leased_until)
    await run(app.ports, second)
    assert await jobs_of(app, RESEND) == []
    await app.work(5)
    assert len(app.postman.webhooks) == sent + 1


async def test_an_endpoint_is_served_by_one_though_its_job_ended_and_came_anew(app: TestApp) -> None:
    """The first one's lease ended, another did the work and removed the job; for the next event there is one of the
    same version."""

    async def ask() -> Job:
        async with app.ports.storage.unit() as unit:
            ask_to_deliver(app.ports, unit, app.account.account_id, Mode.TEST)
            await unit.commit()
        return await claimed(app, DELIVER)

    first = await ask()
    await app.clock.advance(LEASE + 1)
    await run(app.ports, await claimed(app, DELIVER))
    assert await jobs_of(app, DELIVER) == []
    second = await ask()
    assert (second.id, second.version) == (first.id, first.version)
    assert not is_ours(second, first)
    assert not is_unchanged(second, first)
    assert is_unchanged(second, second)
    [event] = await happen(app.ports, app.account.account_id)
    sent = len(app.postman.webhooks)
    await run(app.ports, first)
    assert await app.ports.storage.get(Job, second.id) == msgspec.structs.replace(second, asked=second.asked + 1)
    await run(app.ports, second)
    assert event in [webhook.headers["X-Webhook-Id"] for webhook in app.postman.webhooks[sent:]]
    assert await jobs_of(app, DELIVER) == []


class TestFollowUp:
    """Effects of units on a job while a run of it is under way and while it waits."""

    kind = FollowUp("payment.watch")

    async def had(self, app: TestApp, *, leased: bool) -> Job:
        """Return the job of a payment: claimed, or waiting after a run."""
        await app.created()
        job = await claimed(app, self.kind.kind)
        if leased:
            return job
        await run(app.ports, job)
        [job] = await jobs_of(app, self.kind.kind)
        return job

    async def write(self, app: TestApp, means: Callable[[Unit], Awaitable[None]]) -> Job | None:
        async with app.ports.storage.unit() as unit:
            await means(unit)
            await unit.commit()
        found = await jobs_of(app, self.kind.kind)
        return found[0] if found else None

    @pytest.mark.parametrize("leased", [False, True])
    @pytest.mark.parametrize("anew", [False, True])
    async def test_plan_counts_whoever_has_it(self, app: TestApp, leased: bool, anew: bool) -> None:
        job, now = await self.had(app, leased=leased), app.clock.now()
        after = await self.write(app, lambda unit: self.kind.plan(unit, job.argument, now, now, anew=anew))
        assert after is not None
        assert not is_ours(after, job)
        assert (after.due, after.leased_until, after.attempts) == (now, None, 0 if anew else 1)

    @pytest.mark.parametrize("leased", [False, True])
    async def test_keep_leaves_one_that_stands(self, app: TestApp, leased: bool) -> None:
        job, now = await self.had(app, leased=leased), app.clock.now()
        assert await self.write(app, lambda unit: self.kind.keep(unit, job.argument, now, now)) == job

    @pytest.mark.parametrize("leased", [False, True])
    async def test_hurry_leaves_one_in_hand(self, app: TestApp, leased: bool) -> None:
        job, now = await self.had(app, leased=leased), app.clock.now()
        after = await self.write(app, lambda unit: self.kind.hurry(unit, job.argument, now))
        assert after is not None
        assert after == job if leased else after.due == now

    @pytest.mark.parametrize("leased", [False, True])
    async def test_job_dropped_and_planned_again_is_another_job(self, app: TestApp, leased: bool) -> None:
        """Its version may be the same."""
        job = await self.had(app, leased=leased)
        assert await self.write(app, lambda unit: self.kind.drop(unit, job.argument)) is None
        await app.clock.advance(1)
        now = app.clock.now()
        after = await self.write(app, lambda unit: self.kind.keep(unit, job.argument, now, now))
        assert after is not None
        assert not is_ours(msgspec.structs.replace(after, version=job.version), job)


async def test_a_refunds_first_run_keeps_its_lease(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a second worker would ask the bank, too, as soon as the first lease ends."""
    refunds = RefundApp(app)
    refund_id = await refunds.apply(await refunds.paid())
    job = await claimed(app, "refund.execute")
    bank = refunds.bank()
    inner = bank.refund
    seen: list[Job] = []

    async def slow(request: RefundRequest) -> RefundState:
        await app.clock.advance(LEASE - 1)
        await app.ports.storage.renew([job], LEASE)
        await app.clock.advance(LEASE - 1)
        seen.extend(each for each in await app.ports.storage.claim(100, LEASE) if each.kind == job.kind)
        return await inner(request)

    monkeypatch.setattr(bank, "refund", slow)
    await run(app.ports, job)
    assert await refunds.status(refund_id) == "processing"
    assert seen == []


@pytest.mark.parametrize("fails", [False, True])
async def test_replanned_job_stays_with_its_new_runner(app: TestApp, fails: bool) -> None:
    """Planned anew a job has no attempts, claimed by another one again: as many as the first runner saw."""
    await _ended_mandate(app)
    app.script.revoke.clear()
    first = await claimed(app, "mandate.revoke")
    async with app.ports.storage.unit() as unit:
        subscription = await any_subscription(unit, first.argument)
        assert subscription is not None
        await plan_revoking(app.ports, unit, subscription)
        await unit.commit()
    second = await claimed(app, "mandate.revoke")
    assert second.attempts == first.attempts
    handlers = {"mandate.revoke": _fail} if fails else HANDLERS
    await run(app.ports, first, handlers)
    [job] = await jobs_of(app, "mandate.revoke")
    assert (job.version, job.leased_until) == (second.version, second.leased_until)


async def _fail(_ports: Ports, _job: Job) -> None:
    raise RuntimeError("a slip of the program")


@pytest.mark.parametrize("reason", ["unknown", "not_found"])
async def test_a_refused_look_ends_no_payout_whose_money_is_gone(app: TestApp, reason: str) -> None:
    """A refused query does not refuse the transfer: the RUB were sent, the answer was lost, and the bank does not
    report the status."""
    exchanges = ExchangeApp(app)
    made = await exchanges.made()
    await exchanges.send(made.id)
    app.script.remit.append(Twist(ending=Ending.UNKNOWN_DONE))
    app.script.find_remittance.append(Twist(ending=Ending.REFUSED, reason=reason))
    assert await exchanges.look(made.id) == "rub_sending"
    assert await exchanges.look(made.id) == "rub_sending"
    await app.work(3600)
    assert await exchanges.said(made.id) == ["completed"]
    assert len(await exchanges.remitted()) == 1


async def test_a_refused_look_leaves_a_binding_to_be_ended_later(app: TestApp) -> None:
    """A bank that refuses to say whether it has a binding has not ended it."""
    made = await subscribed(app)
    app.script.bind.append(Twist(ending=Ending.UNKNOWN_DONE))
    payment = await open_link(app, made["id"])
    assert payment.bank_reference is None
    app.script.find_binding.extend([Twist(ending=Ending.REFUSED)] * 2)
    await call(app, made["id"], "cancel")
    await app.work(1)
    assert await jobs_of(app, "mandate.revoke"), "it is asked again"
    await app.work(3600)
    assert await jobs_of(app, "mandate.revoke") == []
    assert not (await record(app, made["id"])).revoke_pending
    found = await simulator(app).find_binding(binding_operation(payment.id))
    assert found is not None
    assert (await simulator(app).mandate_state(found.reference)).status == "closed"


async def test_a_storage_that_fails_for_a_moment_is_no_bank_that_is_away(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its deadline the bank says `paid`; that this cannot be written now lets nothing expire."""
    payment_id = (await app.created())["id"]
    reference = (await app.payment(payment_id)).bank_reference
    await RefundApp(app).bank().simulate(payment_id, Simulation(status=InvoiceStatus.PAID), reference=reference)
    inner = moves.apply
    failed: list[str] = []

    async def failing(ports: Ports, about: str, report: Report) -> Payment | None:
        if report.status is PaymentStatus.PAID and not failed:
            failed.append(about)
            raise Unavailable("the storage gives no answer")
        return await inner(ports, about, report)

    monkeypatch.setattr(progress, "apply", failing)
    await app.work(3600)
    assert failed == [payment_id]
    assert [event["status"] for event in await app.events(payment_id)] == ["paid"]
