"""The hold of a copied database: nothing that sends live money runs, everything else does, and `resume` ends the
hold."""

from datetime import timedelta

import pytest

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.installation import INSTALLATION, Because, Installation
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.settlement.settlement import SettlementBatch
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.common.encrypted import tag_hold
from cambist.core.usecases.common.quarantine import hold, read_hold
from cambist.core.usecases.gateways.gateways import list_gateways
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_hold
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.settlement import settle_asked
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.core.usecases.refunds.waiting import retry_waiting
from cambist.core.usecases.settlement import settlement
from cambist.core.usecases.settlement.settlement import open_batch, settle_batch, settle_now
from cambist.core.usecases.settlement.withdrawals import every_withdrawal, pay_out_now
from cambist.frontends.conformance.registers import request_of
from cambist.ports.bundle import Ports
from cambist.ports.faults import Held
from cambist.ports.remittances import RemittanceRequest
from tests.apps import TestApp, open_test_app
from tests.charge_app import open_charge_app
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.planting import beneath
from tests.refund_app import RefundApp, open_refund_app


async def held_refund(app: RefundApp) -> tuple[str, str]:
    """A payment of live mode that was paid, and a refund of it that was applied for after the hold was set."""
    payment_id = await app.paid(mode="live")
    await hold(app.ports, Because.BY_HAND)
    return payment_id, await approved(app, payment_id)


async def approved(app: RefundApp, payment_id: str) -> str:
    refund_id = await app.apply(payment_id, "40.00", mode="live")
    await approve_refund(app.ports, refund_id)
    return refund_id


async def test_refund_waits_in_quarantine_and_is_sent_on_release() -> None:
    async with open_refund_app() as app:
        payment_id, refund_id = await held_refund(app)
        await app.app.work(3 * 3600)
        assert await app.status(refund_id) == "pending"
        assert await app.left_at_bank(payment_id, "live") == 100_00
        await resume(app.ports)
        await app.app.work(1)
        assert await app.status(refund_id) in ("processing", "completed")
        assert await app.left_at_bank(payment_id, "live") == 60_00


async def test_refund_already_at_the_bank_is_polled_and_not_sent() -> None:
    """A quarantined copy polls operations that it knows: learning their outcome sends no money."""
    async with open_refund_app() as app:
        payment_id = await app.paid(mode="live")
        refund_id = await approved(app, payment_id)
        app.app.script.refund.append(Twist(ending=Ending.UNKNOWN_DONE))
        await app.app.work(0)
        assert await app.status(refund_id) == "processing"
        await hold(app.ports, Because.BY_HAND)
        await app.app.work(3600)
        assert await app.status(refund_id) == "completed"


async def test_test_mode_goes_on() -> None:
    async with open_refund_app() as app:
        await hold(app.ports, Because.BY_HAND)
        _, refund_id = await app.completed()
        assert await app.status(refund_id) == "completed"


async def test_payments_are_taken() -> None:
    async with open_refund_app() as app:
        await hold(app.ports, Because.BY_HAND)
        payment = await app.payment(await app.paid(mode="live"))
        assert payment.status.value == "paid"


async def test_a_payout_is_not_signed_until_it_is_let_go() -> None:
    async with open_refund_app() as app:
        await app.set(payout_wallet=WALLET)
        await app.paid(mode="live")
        await app.app.clock.advance(1)
        sender = app.ports.senders.of_mode("live")
        assert isinstance(sender, SimulatedSender)
        sender.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
        await app.app.work(0)
        await hold(app.ports, Because.BY_HAND)
        await app.app.work(3 * 3600)
        assert [(each.status, each.tx_hash) for each in await payouts(app)] == [(WithdrawalStatus.PENDING, None)]
        await resume(app.ports)
        await app.app.work(1)
        [sent] = await payouts(app)
        assert (sent.status, sent.tx_hash is None) == (WithdrawalStatus.SENT, False)


async def test_live_settlement_and_payouts_are_refused_while_held() -> None:
    async with open_refund_app() as app:
        await app.set(payout_wallet=WALLET)
        payment_id = await app.paid(mode="live")
        await app.app.clock.advance(1)
        await hold(app.ports, Because.BY_HAND)
        with pytest.raises(Refusal, match=r"held.*cambist resume"):
            await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
        with pytest.raises(Refusal, match=r"held.*cambist resume"):
            await settle_now(app.ports, Mode.LIVE)
        with pytest.raises(Refusal, match="held"):
            await pay_out_now(app.ports, app.app.account.account_id, Mode.LIVE)
        assert (await app.payment(payment_id)).status is PaymentStatus.PAID
        assert await live_batches(app) == []
        await resume(app.ports)
        await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
        await app.app.work(1)
        assert [each.status for each in await payouts(app)] == [WithdrawalStatus.SENT]


async def test_the_daily_settlement_waits_for_resume_and_follows_by_itself() -> None:
    async with open_refund_app() as app:
        await start_recurring_jobs(app.ports)
        await app.set(payout_wallet=WALLET)
        live, test = await app.paid(mode="live"), await app.paid()
        await hold(app.ports, Because.RESTORED)
        await app.app.work(2 * 24 * 3600)
        assert (await app.payment(live)).status is PaymentStatus.PAID
        assert (await app.payment(test)).status is PaymentStatus.SETTLED, "test mode settles"
        assert await live_batches(app) == []
        await resume(app.ports)
        await app.app.work(120)
        assert (await app.payment(live)).status is PaymentStatus.SETTLED
        assert [each.mode for each in await payouts(app)].count(Mode.LIVE) == 1


async def test_an_open_live_batch_stays_open_while_held() -> None:
    """A hold that is set in the middle of a settlement keeps its payout back; `resume` brings it."""
    async with open_refund_app() as app:
        await app.set(payout_wallet=WALLET)
        payment_id = await app.paid(mode="live")
        await app.app.clock.advance(1)
        batch = await open_batch(app.ports, "live:now", Mode.LIVE, app.ports.clock.now())
        await hold(app.ports, Because.BY_HAND)
        await app.app.work(3600)
        assert (await app.payment(payment_id)).status is PaymentStatus.PAID
        with pytest.raises(Refusal, match="held"):
            await settle_batch(app.ports, batch, lambda _: None)
        await resume(app.ports)
        await app.app.work(180)
        assert [each.mode for each in await payouts(app)] == [Mode.LIVE]
        [closed] = await live_batches(app)
        assert closed.completed_at is not None


async def test_a_hold_in_the_middle_of_a_settlement_keeps_its_batch_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The payment is settled and its payout kept back: a closed batch would never bring it."""
    async with open_refund_app() as app:
        await app.set(payout_wallet=WALLET)
        payment_id = await app.paid(mode="live")
        await app.app.clock.advance(1)

        async def held_before_the_payout(ports: Ports, account_id: str, mode: Mode) -> None:
            monkeypatch.undo()
            await hold(ports, Because.BY_HAND)
            await retry_waiting(ports, account_id, mode)

        monkeypatch.setattr(settlement, "retry_waiting", held_before_the_payout)
        await open_batch(app.ports, "live:now", Mode.LIVE, app.ports.clock.now())
        await app.app.work(600)
        assert (await app.payment(payment_id)).status is PaymentStatus.SETTLED
        assert await payouts(app) == []
        await resume(app.ports)
        await app.app.work(180)
        assert [each.mode for each in await payouts(app)] == [Mode.LIVE]


async def live_batches(app: RefundApp) -> list[SettlementBatch]:
    return [each for each in await everything(app.ports, SettlementBatch) if each.mode is Mode.LIVE]


async def payouts(app: RefundApp) -> list[Withdrawal]:
    return await every_withdrawal(app.ports)


async def test_every_call_that_sends_to_a_live_provider_is_refused() -> None:
    """Also an operator's action, a plug-in, a use case that nobody thought of."""
    async with open_charge_app() as app:
        ports = app.ports
        sender, bank = ports.senders.of_mode("live"), app.bank("live")
        assert isinstance(sender, SimulatedSender)
        transfer = await sender.sign("wd_1", WALLET, 1_000_000)
        await hold(ports, Because.BY_HAND)
        with pytest.raises(Held):
            await sender.sign("wd_1", WALLET, 1_000_000)
        with pytest.raises(Held):
            await sender.broadcast(transfer)
        for call in (bank.refund, bank.charge):
            with pytest.raises(Held):
                await call(None)  # type: ignore[arg-type]  # it never comes so far
        with pytest.raises(Held):
            await bank.remit(RemittanceRequest(operation="op", phone="+79990000000", bank_id="bank1", amount_kopecks=1))
        await sender.state(transfer)
        assert await bank.find_refund("ref_1") is None


async def test_register_of_a_held_copy_writes_no_receipt() -> None:
    async with open_test_app(receipts="simulator") as app:
        await hold(app.ports, Because.BY_HAND)
        register, request = app.ports.register, request_of()
        assert register is not None
        with pytest.raises(Held):
            await register.write_receipt(request)
        assert await register.find_receipt(request) is None


async def test_the_bank_of_a_held_copy_is_not_judged_by_it() -> None:
    """The bank got no call, so no merchant gets an event that its gateway is down."""
    async with open_refund_app() as app:
        await app.paid(mode="live")
        for _ in range(5):
            payment_id = await app.paid(mode="live")
            await approved(app, payment_id)
        await hold(app.ports, Because.BY_HAND)
        await app.app.work(3600)
        assert {each.status for each in await list_gateways(app.ports, Mode.LIVE)} == {GatewayStatus.OPERATIONAL}


async def test_quarantine_shows_in_the_doctor_and_the_action_items() -> None:
    async with open_refund_app() as app:
        await start_recurring_jobs(app.ports)
        assert "degraded" not in (await app.app.http.get("/health")).json()
        assert (await check_hold(app.ports)).level is Level.OK
        await hold(app.ports, Because.COPIED)
        await app.app.clock.advance(2)
        answer = await app.app.http.get("/health")
        assert (answer.status_code, answer.json()["degraded"]) == (503, ["held"])
        assert (await app.app.http.get("/readyz")).status_code == 200, "payments are taken"
        finding = await check_hold(app.ports)
        assert (finding.level, "it is a copy" in finding.message) == (Level.FAILED, True)
        assert [need.kind for need in (await read_action_items(app.ports)).found] == ["hold"]


async def test_letting_go_is_an_action_and_happens_once() -> None:
    async with open_refund_app() as app:
        await hold(app.ports, Because.BY_HAND)
        await resume(acting(app.ports, OperatorAction(operator="eve", name="resume")))
        async with app.ports.storage.unit() as unit:
            [row] = await unit[AuditEntry].find(action="resume")
        assert (row.operator, row.object_id) == ("eve", "installation")
        assert "held_because=by_hand" in row.before
        assert await read_hold(app.ports) is None
        with pytest.raises(Refusal, match="not held"):
            await resume(app.ports)


async def test_a_second_hold_keeps_the_older_moment() -> None:
    """The moment of the state: operations sent since then must be compared."""
    async with open_refund_app() as app:
        first = await hold(app.ports, Because.RESTORED)
        await app.app.clock.advance(60)
        second = await hold(app.ports, Because.BY_HAND)
        assert (second.as_of, second.held_since) == (first.as_of, first.held_since)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_hold_is_as_of_the_moment_that_is_known_or_of_the_last_mark(app: TestApp, is_known: bool) -> None:
    """Later than the mark, where the state is known to be no older."""
    async with beneath(app.ports).unit() as unit:
        found = await unit[Installation].get(INSTALLATION)
        marked = found or unit[Installation].add(
            tag_hold(app.ports.vault, Installation(mark="m", marked_at=app.clock.now()))
        )
        await unit.commit()
    later = marked.marked_at + timedelta(hours=1)
    await app.clock.advance(7200)
    after = await hold(app.ports, Because.RESTORED, later if is_known else None)
    assert (after.as_of, after.held_since) == (later if is_known else marked.marked_at, app.clock.now())
