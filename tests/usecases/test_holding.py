"""The hold of a copied database: nothing that sends live money runs, all else goes on, and `resume` lets it go."""

from datetime import timedelta

import pytest

from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.installation import INSTALLATION, Because, Installation
from cambist.core.domain.operators.audit import Act, AuditEntry
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.settlement.settlement import SettlementBatch
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.core.usecases.acts.audit import acting
from cambist.core.usecases.gateways.gateways import list_gateways
from cambist.core.usecases.holding import hold, read_hold
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_hold
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.settlement import settle_asked
from cambist.core.usecases.refunds.refunds import approve_refund
from cambist.core.usecases.refunds.waiting import retry_waiting
from cambist.core.usecases.sealed import tag_hold
from cambist.core.usecases.settlement import settlement
from cambist.core.usecases.settlement.settlement import open_batch, settle_batch, settle_now
from cambist.core.usecases.settlement.withdrawals import every_withdrawal, pay_out_now
from cambist.core.usecases.standing import start_standing
from cambist.ports.bundle import Ports
from cambist.ports.faults import Held
from cambist.ports.remittances import RemittanceRequest
from tests.charge_house import open_charge_house
from tests.houses import TestHouse
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.planting import beneath
from tests.refund_house import RefundHouse, open_refund_house


async def held_refund(house: RefundHouse) -> tuple[str, str]:
    """A payment of live mode that was paid, and a refund of it that was applied for after the hold was set."""
    payment_id = await house.paid(mode="live")
    await hold(house.ports, Because.BY_HAND)
    return payment_id, await approved(house, payment_id)


async def approved(house: RefundHouse, payment_id: str) -> str:
    refund_id = await house.apply(payment_id, "40.00", mode="live")
    await approve_refund(house.ports, refund_id)
    return refund_id


async def test_a_refund_stays_pending_with_nothing_taken_and_is_sent_at_once_when_it_is_let_go() -> None:
    async with open_refund_house() as house:
        payment_id, refund_id = await held_refund(house)
        await house.house.work(3 * 3600)
        assert await house.status(refund_id) == "pending"
        assert await house.left_at_bank(payment_id, "live") == 100_00
        await resume(house.ports)
        await house.house.work(1)
        assert await house.status(refund_id) in ("processing", "completed")
        assert await house.left_at_bank(payment_id, "live") == 60_00


async def test_one_that_was_at_the_bank_is_asked_about_and_not_sent() -> None:
    """A quarantined copy polls operations that it knows: learning their outcome sends no money."""
    async with open_refund_house() as house:
        payment_id = await house.paid(mode="live")
        refund_id = await approved(house, payment_id)
        house.house.script.refund.append(Twist(ending=Ending.UNKNOWN_DONE))
        await house.house.work(0)
        assert await house.status(refund_id) == "processing"
        await hold(house.ports, Because.BY_HAND)
        await house.house.work(3600)
        assert await house.status(refund_id) == "completed"


async def test_test_mode_goes_on() -> None:
    async with open_refund_house() as house:
        await hold(house.ports, Because.BY_HAND)
        _, refund_id = await house.completed()
        assert await house.status(refund_id) == "completed"


async def test_payments_are_taken() -> None:
    async with open_refund_house() as house:
        await hold(house.ports, Because.BY_HAND)
        payment = await house.payment(await house.paid(mode="live"))
        assert payment.status.value == "paid"


async def test_a_payout_is_not_signed_until_it_is_let_go() -> None:
    async with open_refund_house() as house:
        await house.set(payout_wallet=WALLET)
        await house.paid(mode="live")
        await house.house.clock.advance(1)
        sender = house.ports.senders.of_mode("live")
        assert isinstance(sender, SimulatedSender)
        sender.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        await settle_asked(house.ports, Mode.LIVE, house.ports.clock.now(), lambda _: None)
        await house.house.work(0)
        await hold(house.ports, Because.BY_HAND)
        await house.house.work(3 * 3600)
        assert [(each.status, each.tx_hash) for each in await payouts(house)] == [(WithdrawalStatus.PENDING, None)]
        await resume(house.ports)
        await house.house.work(1)
        [sent] = await payouts(house)
        assert (sent.status, sent.tx_hash is None) == (WithdrawalStatus.SENT, False)


async def test_live_settlement_and_payouts_are_refused_while_held() -> None:
    async with open_refund_house() as house:
        await house.set(payout_wallet=WALLET)
        payment_id = await house.paid(mode="live")
        await house.house.clock.advance(1)
        await hold(house.ports, Because.BY_HAND)
        with pytest.raises(Refusal, match=r"held.*cambist resume"):
            await settle_asked(house.ports, Mode.LIVE, house.ports.clock.now(), lambda _: None)
        with pytest.raises(Refusal, match=r"held.*cambist resume"):
            await settle_now(house.ports, Mode.LIVE)
        with pytest.raises(Refusal, match="held"):
            await pay_out_now(house.ports, house.house.account.account_id, Mode.LIVE)
        assert (await house.payment(payment_id)).status is PaymentStatus.PAID
        assert await live_batches(house) == []
        await resume(house.ports)
        await settle_asked(house.ports, Mode.LIVE, house.ports.clock.now(), lambda _: None)
        await house.house.work(1)
        assert [each.status for each in await payouts(house)] == [WithdrawalStatus.SENT]


async def test_the_daily_settlement_waits_for_resume_and_follows_by_itself() -> None:
    async with open_refund_house() as house:
        await start_standing(house.ports)
        await house.set(payout_wallet=WALLET)
        live, test = await house.paid(mode="live"), await house.paid()
        await hold(house.ports, Because.RESTORED)
        await house.house.work(2 * 24 * 3600)
        assert (await house.payment(live)).status is PaymentStatus.PAID
        assert (await house.payment(test)).status is PaymentStatus.SETTLED, "test mode settles"
        assert await live_batches(house) == []
        await resume(house.ports)
        await house.house.work(120)
        assert (await house.payment(live)).status is PaymentStatus.SETTLED
        assert [each.mode for each in await payouts(house)].count(Mode.LIVE) == 1


async def test_an_open_live_batch_stays_open_while_held() -> None:
    """A hold that is set in the middle of a settlement keeps its payout back; `resume` brings it."""
    async with open_refund_house() as house:
        await house.set(payout_wallet=WALLET)
        payment_id = await house.paid(mode="live")
        await house.house.clock.advance(1)
        batch = await open_batch(house.ports, "live:now", Mode.LIVE, house.ports.clock.now())
        await hold(house.ports, Because.BY_HAND)
        await house.house.work(3600)
        assert (await house.payment(payment_id)).status is PaymentStatus.PAID
        with pytest.raises(Refusal, match="held"):
            await settle_batch(house.ports, batch, lambda _: None)
        await resume(house.ports)
        await house.house.work(180)
        assert [each.mode for each in await payouts(house)] == [Mode.LIVE]
        [closed] = await live_batches(house)
        assert closed.completed_at is not None


async def test_a_hold_in_the_middle_of_a_settlement_keeps_its_batch_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The payment is settled and its payout kept back: a closed batch would never bring it."""
    async with open_refund_house() as house:
        await house.set(payout_wallet=WALLET)
        payment_id = await house.paid(mode="live")
        await house.house.clock.advance(1)

        async def held_before_the_payout(ports: Ports, account_id: str, mode: Mode) -> None:
            monkeypatch.undo()
            await hold(ports, Because.BY_HAND)
            await retry_waiting(ports, account_id, mode)

        monkeypatch.setattr(settlement, "retry_waiting", held_before_the_payout)
        await open_batch(house.ports, "live:now", Mode.LIVE, house.ports.clock.now())
        await house.house.work(600)
        assert (await house.payment(payment_id)).status is PaymentStatus.SETTLED
        assert await payouts(house) == []
        await resume(house.ports)
        await house.house.work(180)
        assert [each.mode for each in await payouts(house)] == [Mode.LIVE]


async def live_batches(house: RefundHouse) -> list[SettlementBatch]:
    return [each for each in await everything(house.ports, SettlementBatch) if each.mode is Mode.LIVE]


async def payouts(house: RefundHouse) -> list[Withdrawal]:
    return await every_withdrawal(house.ports)


async def test_whoever_calls_a_live_provider_to_send_is_refused() -> None:
    """Also an operator's act, a plug-in, a use case that nobody thought of."""
    async with open_charge_house() as house:
        ports = house.ports
        sender, bank = ports.senders.of_mode("live"), house.bank("live")
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


async def test_the_bank_of_a_held_copy_is_not_judged_by_it() -> None:
    """It was not asked, so no merchant hears that its gateway is down."""
    async with open_refund_house() as house:
        await house.paid(mode="live")
        for _ in range(5):
            payment_id = await house.paid(mode="live")
            await approved(house, payment_id)
        await hold(house.ports, Because.BY_HAND)
        await house.house.work(3600)
        assert {each.status for each in await list_gateways(house.ports, Mode.LIVE)} == {GatewayStatus.OPERATIONAL}


async def test_everybody_is_told() -> None:
    async with open_refund_house() as house:
        await start_standing(house.ports)
        assert "degraded" not in (await house.house.http.get("/health")).json()
        assert (await check_hold(house.ports)).level is Level.OK
        await hold(house.ports, Because.COPIED)
        await house.house.clock.advance(2)
        answer = await house.house.http.get("/health")
        assert (answer.status_code, answer.json()["degraded"]) == (503, ["held"])
        assert (await house.house.http.get("/readyz")).status_code == 200, "payments are taken"
        finding = await check_hold(house.ports)
        assert (finding.level, "it is a copy" in finding.message) == (Level.FAILED, True)
        assert [need.kind for need in (await read_action_items(house.ports)).found] == ["hold"]


async def test_letting_go_is_an_act_and_happens_once() -> None:
    async with open_refund_house() as house:
        await hold(house.ports, Because.BY_HAND)
        await resume(acting(house.ports, Act(operator="eve", name="resume")))
        async with house.ports.storage.unit() as unit:
            [row] = await unit[AuditEntry].find(act="resume")
        assert (row.operator, row.object_id) == ("eve", "installation")
        assert "held_because=by_hand" in row.before
        assert await read_hold(house.ports) is None
        with pytest.raises(Refusal, match="not held"):
            await resume(house.ports)


async def test_a_second_hold_keeps_the_older_moment() -> None:
    """The moment of the state: operations sent since then must be compared."""
    async with open_refund_house() as house:
        first = await hold(house.ports, Because.RESTORED)
        await house.house.clock.advance(60)
        second = await hold(house.ports, Because.BY_HAND)
        assert (second.as_of, second.held_since) == (first.as_of, first.held_since)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_hold_is_as_of_the_moment_that_is_known_or_of_the_last_mark(house: TestHouse, is_known: bool) -> None:
    """Later than the mark, where the state is known to be no older."""
    async with beneath(house.ports).unit() as unit:
        found = await unit[Installation].get(INSTALLATION)
        marked = found or unit[Installation].add(
            tag_hold(house.ports.vault, Installation(mark="m", marked_at=house.clock.now()))
        )
        await unit.commit()
    later = marked.marked_at + timedelta(hours=1)
    await house.clock.advance(7200)
    after = await hold(house.ports, Because.RESTORED, later if is_known else None)
    assert (after.as_of, after.held_since) == (later if is_known else marked.marked_at, house.clock.now())
