"""A restored database lacks the operations sent since its backup; the bank and the wallet know them. Nothing is paid
twice (ARCHITECTURE.md "Three outcomes")."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation, unsigned
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.installation import Because
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.refunds.suspense_returns import return_operation
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus
from cambist.core.domain.subscriptions.charges import ChargeOrder
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.exchanges.creation import create_exchange, create_rub_usdt
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.refunds.refunds import cancel_refund, create_refund, reject_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.core.usecases.settlement.withdrawals import accept_sent, cancel_withdrawal
from cambist.core.usecases.subscriptions.charges import create_charge
from cambist.ports.bank import InvoiceStatus, RefundRequest, RefundState
from cambist.ports.bank_simulator import Simulation
from cambist.ports.mandates import ChargeRequest, ChargeState
from cambist.ports.payouts import SentTransfer, TransferState
from cambist.ports.remittances import RemittanceRequest, RemittanceState
from tests.exchange_app import BANK_ID, PHONE, open_exchange_app
from tests.payout_kit import OTHER_WALLET, WALLET, open_payouts
from tests.refund_app import open_refund_app
from tests.restored import App, Copy, World

BACK = OTHER_WALLET
POCKETS = (BalanceType.AVAILABLE, BalanceType.RESERVED, BalanceType.PAID_OUT)
DAY = 24 * 3600
S = WithdrawalStatus

AWAY = Twist(ending=Ending.UNAVAILABLE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World("memory", tmp_path)


async def paid(app: App, amount: str = "1000.00") -> Payment:
    """A payment that was paid, two days ago by now."""
    caller = await app.caller()
    key = app.ports.ids.uuid()
    made = await create_payment(app.ports, caller, key, lambda: PaymentOrder(amount_rub=amount))
    await app.pay(made.resource)
    await app.world.clock.advance(2 * DAY)
    return made.resource


class TestPayouts:
    """A payout that is pending in the copy, and was sent in the world."""

    async def test_transfer_that_the_wallet_sent_is_adopted_not_signed_again(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            world.wallet.script.sign.append(AWAY)
            await settle_now(app.ports, Mode.LIVE)
            await app.work()
            [pending] = await app.withdrawals()
            copy = world.copy()
            await app.work(60)
            [done] = await app.withdrawals()
        assert (pending.status, done.status) == (S.PENDING, S.COMPLETED)
        async with world.opened(copy) as app:
            await app.work(DAY / 4)
            [again] = await app.withdrawals()
            assert (again.status, again.tx_hash) == (S.COMPLETED, done.tx_hash)
            await app.check()
        assert await world.paid_out() == [(pending.id, WALLET, pending.amount.units)]
        assert len(world.wallet.signed) == 1

    async def test_transfer_under_way_is_followed_without_its_signed_copy(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.opened() as app:
            copy = await self._sent_after_a_copy(world, app)
        remembers(world, monkeypatch, blob=b"")
        [sent] = world.wallet.signed
        async with world.opened(copy) as app:
            await world.wallet.inner.simulate(sent, TransferState.IN_BLOCK)
            await app.work(DAY)
            assert [each.status for each in await app.withdrawals()] == [S.SENT]
            await world.wallet.inner.simulate(sent, TransferState.FINAL)
            await app.work(DAY)
            assert [each.status for each in await app.withdrawals()] == [S.COMPLETED]
            await app.check()
        assert (world.wallet.count("sign"), world.wallet.count("broadcast")) == (2, 1)

    @pytest.mark.parametrize("wrong", [{"units": 1}, {"address": OTHER_WALLET}], ids=str)
    async def test_differently_sent_transfer_is_neither_replaced_nor_returned(
        self,
        world: World,
        wrong: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The payout waits for an operator, and an error is logged."""
        async with world.opened() as app:
            copy = await self._sent_after_a_copy(world, app)
        remembers(world, monkeypatch, **wrong)
        async with world.opened(copy) as app:
            await app.work(DAY)
            [waiting] = await app.withdrawals()
            assert (waiting.status, waiting.tx_hash) == (S.PENDING, None)
            await app.check()
        assert len(world.wallet.signed) == 1
        [sent] = world.wallet.signed
        told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert told
        assert all(waiting.id in text and sent in text for text in told)

    @pytest.mark.parametrize("more", [-5_000_000, 0, 5_000_000])
    async def test_an_operator_accepts_what_was_sent_otherwise(
        self, world: World, monkeypatch: pytest.MonkeyPatch, more: int
    ) -> None:
        """The rest becomes available, an excess becomes a debt, and the payout completes."""
        async with world.opened() as app:
            copy = await self._sent_after_a_copy(world, app)
        async with world.opened(copy) as app:
            [pending] = await app.withdrawals()
            before, sent = await app.balance_type(BalanceType.AVAILABLE), pending.amount.units + more
            remembers(world, monkeypatch, units=sent, address=OTHER_WALLET)
            await app.work(3600)
            accepted = await accept_sent(app.ports, pending.id)
            assert (accepted.status, accepted.amount.units, accepted.wallet) == (S.PROCESSING, sent, OTHER_WALLET)
            await app.work(60)
            assert [each.status for each in await app.withdrawals()] == [S.COMPLETED]
            assert [await app.balance_type(each) for each in POCKETS] == [before - more, 0, sent]
            await app.check()
        assert len(world.wallet.signed) == 1

    async def test_accepting_a_transfer_that_was_never_sent_is_refused(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            world.wallet.script.sign.append(AWAY)
            await settle_now(app.ports, Mode.LIVE)
            await app.work()
            [pending] = await app.withdrawals()
            with pytest.raises(Refusal) as nothing:
                await accept_sent(app.ports, pending.id)
            await app.work(60)
            with pytest.raises(Refusal) as over:
                await accept_sent(app.ports, pending.id)
            assert (nothing.value.code, over.value.code) == ("INVALID_STATE", "INVALID_STATE")

    async def test_sent_transfer_cannot_be_cancelled(self, world: World) -> None:
        """Its amount would be available again, and be paid with the next settlement."""
        async with world.opened() as app:
            copy = await self._sent_after_a_copy(world, app)
        async with world.opened(copy) as app:
            [pending] = await app.withdrawals()
            with pytest.raises(Refusal) as sent:
                await cancel_withdrawal(app.ports, pending.id, "it hangs")
            world.wallet.script.find.append(AWAY)
            with pytest.raises(Refusal) as silent:
                await cancel_withdrawal(app.ports, pending.id, "it hangs")
            assert (sent.value.code, silent.value.code) == ("INVALID_STATE", "PROVIDER_UNAVAILABLE")
            assert [each.status for each in await app.withdrawals()] == [S.PENDING]

    @pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.REFUSED])
    async def test_nothing_is_signed_while_the_wallet_does_not_say_what_it_sent(
        self, world: World, ending: Ending
    ) -> None:
        async with world.opened() as app:
            copy = await self._sent_after_a_copy(world, app)
        world.wallet.script.find.extend(Twist(ending=ending) for _ in range(3))
        async with world.opened(copy) as app:
            await app.work(60)
            assert [each.status for each in await app.withdrawals()] == [S.PENDING]
            await app.work(DAY)
            assert [each.status for each in await app.withdrawals()] == [S.COMPLETED]
        assert len(await world.paid_out()) == 1

    async def _sent_after_a_copy(self, world: World, app: App) -> Copy:
        """A copy in which the one payout is pending; the world has it."""
        await paid(app)
        world.wallet.script.sign.append(AWAY)
        await settle_now(app.ports, Mode.LIVE)
        await app.work()
        copy = world.copy()
        await app.work(60)
        assert len(await world.paid_out()) == 1
        return copy


class TestTheSameCauses:
    """Objects that a restored database lacks, and that are requested again, get the ids that providers know."""

    async def test_a_refund_that_is_asked_for_again_by_its_key_is_sent_once(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await refund(app, payment, key)
        async with world.opened(copy) as app:
            again = await refund(app, payment, key)
            other = await refund(app, payment, app.ports.ids.uuid())
            await app.check()
        assert again == first
        assert await world.refunded() == [(first, 100_00), (other, 100_00)]

    async def test_simultaneous_requests_with_one_key_make_one_refund(self, world: World) -> None:
        """The storage may refuse the others for the refund's id as well as for the key."""
        async with world.opened() as app:
            payment, key, caller = await paid(app), app.ports.ids.uuid(), await app.caller()
            order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
            made = await asyncio.gather(*(create_refund(app.ports, caller, key, lambda: order) for _ in range(5)))
            assert len({each.resource.id for each in made}) == 1
            assert [each.replayed for each in made].count(False) == 1

    async def test_a_settlement_that_is_made_again_pays_out_once(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            copy = world.copy()
            await settle_now(app.ports, Mode.LIVE)
            await app.work(60)
            [first], [statement] = await app.withdrawals(), await app.statements()
        async with world.opened(copy) as app:
            await settle_now(app.ports, Mode.LIVE)
            await app.work(60)
            [again], [statement_again] = await app.withdrawals(), await app.statements()
            await app.check()
        assert (again.id, again.status, again.tx_hash) == (first.id, S.COMPLETED, first.tx_hash)
        assert statement_again.id == statement.id
        assert len(await world.paid_out()) == 1

    async def test_amount_available_before_a_batch_ends_is_a_separate_payout(self) -> None:
        made = []
        for _ in range(2):
            async with open_payouts(mode=Mode.LIVE) as payouts:
                ids = []
                for _ in range(2):
                    await payouts.credit()
                    withdrawal = await payouts.pay_out(batch_id="live:2026-11-22")
                    assert withdrawal is not None
                    ids.append(withdrawal.id)
                made.append((payouts.account_id, *ids))
        assert made[0] == made[1], "the same accounts, settled alike"
        assert made[0][1] != made[0][2]

    async def test_an_exchange_that_is_asked_for_again_by_its_key_pays_once(self, world: World) -> None:
        async with world.opened() as app:
            await app.know_client(PHONE)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await exchange(app, key)
            assert first.crypto_deposit_address is not None
            await world.deposits.simulate_deposit(first.crypto_deposit_address, first.amount_usdt.units)
            await app.work(60)
        async with world.opened(copy) as app:
            again = await exchange(app, key)
            assert (again.id, again.crypto_deposit_address) == (first.id, first.crypto_deposit_address)
            await app.work(60)
            done = await app.ports.storage.get(Exchange, first.id)
            assert (done and done.status) == "completed"
        assert await world.remitted() == [part_operation(first.id, 1)]

    async def test_a_charge_that_is_asked_for_again_by_its_key_debits_once(self, world: World) -> None:
        async with world.opened() as app:
            subscription_id = await app.bound()
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await charge(app, subscription_id, key)
            await app.work(60)
        async with world.opened(copy) as app:
            again = await charge(app, subscription_id, key)
            await app.work(60)
            done = await app.ports.storage.get(Payment, again)
            assert (done and done.status) == "paid"
            await app.check()
        assert again == first
        assert await world.debited() == [first]

    async def test_charge_id_cannot_be_derived_from_its_key(self, tmp_path: Path) -> None:
        """It opens the window of its payment: another installation with the same accounts and keys has another one."""
        made = set()
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            world = World("memory", tmp_path / name)
            async with world.opened() as app:
                subscription_id = await app.bound()
                payment_id = await charge(app, subscription_id, "00000000-0000-4000-8000-000000000001")
                made.add((world.account_id, subscription_id, payment_id))
        assert len({(account_id, subscription_id) for account_id, subscription_id, _ in made}) == 1
        assert len(made) == 2

    async def test_in_test_mode_a_key_that_was_forgotten_makes_something_new(self) -> None:
        """An object that is deleted and made again is another object, although its key is the same."""
        async with open_refund_app() as app:
            payment, key = await app.paid(), str(uuid4())
            made = [(await app.post({"payment_id": payment}, key=key)).json()["id"]]
            assert (await app.app.http.delete("/api/v1/sandbox/data", headers=app.app.headers())).is_success
            payment = await app.paid()
            made += [(await app.post({"payment_id": payment}, key=key)).json()["id"]]
            assert made[0] != made[1]


class TestExecutedRefunds:
    """A refund that its bank executed in a time that the copy has forgotten is booked whatever the balance."""

    async def test_refund_repeated_while_held_is_completed_while_held(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await refund(app, payment, key)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            assert await applied(app, payment, key) == first
            await app.work(60)
            assert await refund_status(app, first) == ("completed", None)
            await app.check()
        assert await world.refunded() == [(first, 100_00)]

    async def test_refund_executed_before_is_a_debt_when_the_balance_was_paid_out(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await refund(app, payment, key)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            await resume(app.ports)
            await settle_now(app.ports, Mode.LIVE)
            await app.work(3600)
            assert await app.balance_type(BalanceType.AVAILABLE) < 100
            assert await applied(app, payment, key) == first
            await app.work(60)
            assert await refund_status(app, first) == ("completed", None)
            assert await app.balance_type(BalanceType.AVAILABLE) < -1_000_000, "the merchant owes what the refund took"
            await app.check()
        assert await world.refunded() == [(first, 100_00)]

    async def test_refund_unknown_to_the_bank_still_waits_for_money(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            await hold(app.ports, Because.RESTORED)
            await resume(app.ports)
            await settle_now(app.ports, Mode.LIVE)
            await app.work(3600)
            waiting = await applied(app, payment, app.ports.ids.uuid())
            await app.work(60)
            assert await refund_status(app, waiting) == ("pending", "insufficient_balance")
            await app.check()
        assert await world.refunded() == []

    async def test_refund_is_not_judged_while_its_bank_gives_no_answer(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await refund(app, payment, key)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            await resume(app.ports)
            await settle_now(app.ports, Mode.LIVE)
            await app.work(3600)
            world.script.find_refund.extend([AWAY, AWAY])
            assert await applied(app, payment, key) == first
            await app.work()
            assert await refund_status(app, first) == ("pending", None)
            await app.work(3600)
            assert await refund_status(app, first) == ("completed", None)

    async def test_refund_that_waited_in_the_copy_is_not_rejected_after_14_days(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            await settle_now(app.ports, Mode.LIVE)
            await app.work(3600)
            waiting = await applied(app, payment, app.ports.ids.uuid())
            await app.work(60)
            assert await refund_status(app, waiting) == ("pending", "insufficient_balance")
            copy = world.copy()
            await world.bank.refund(
                RefundRequest(operation=waiting, reference=payment.bank_reference or "", amount_kopecks=100_00)
            )
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            await resume(app.ports)
            world.script.find_refund.append(AWAY)
            await app.work(15 * DAY)
            assert await refund_status(app, waiting) == ("completed", None)
            await app.check()

    async def test_executed_refund_is_neither_cancelled_nor_rejected(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key = world.copy(), app.ports.ids.uuid()
            first = await refund(app, payment, key)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            assert await applied(app, payment, key) == first
            caller = await app.caller()
            with pytest.raises(Refusal) as cancelled:
                await cancel_refund(app.ports, caller, first)
            with pytest.raises(Refusal) as rejected:
                await reject_refund(app.ports, first, "a mistake")
            world.script.find_refund.append(AWAY)
            with pytest.raises(Refusal) as silent:
                await cancel_refund(app.ports, caller, first)
            codes = [each.value.code for each in (cancelled, rejected, silent)]
            assert codes == ["INVALID_STATE", "INVALID_STATE", "PROVIDER_UNAVAILABLE"]
            fresh = await applied(app, payment, app.ports.ids.uuid())
            assert (await cancel_refund(app.ports, caller, fresh)).status == "cancelled"


class TestSearches:
    """A bank that searches by time is queried from the backup's moment on, because the operation may be older than its
    row."""

    @pytest.fixture
    def asked_since(self, world: World) -> dict[str, datetime]:
        """Return from when on the first bank searched, by the kind of operation."""
        asked: dict[str, datetime] = {}

        class SearchingBank(SimulatedBank):
            async def search_refund(self, request: RefundRequest, since: datetime) -> RefundState | None:
                asked["refund"] = since
                return await self.find_refund(request.operation)

            async def search_remittance(self, request: RemittanceRequest, since: datetime) -> RemittanceState | None:
                asked["remittance"] = since
                return await self.find_remittance(request.operation)

            async def search_charge(self, request: ChargeRequest, since: datetime) -> ChargeState | None:
                asked["charge"] = since
                return await self.find_charge(request.operation)

        world.bank = SearchingBank("bank", world.books, world.clock, world.ids, script=world.script)
        world.banks[0] = world.bank
        return asked

    async def test_refund_is_searched_from_the_backup_on(self, world: World, asked_since: dict[str, datetime]) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy, key, as_of = world.copy(), app.ports.ids.uuid(), app.ports.clock.now()
            first = await refund(app, payment, key)
            await world.clock.advance(DAY)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED, as_of)
            await resume(app.ports)
            assert await refund(app, payment, key) == first
        assert asked_since["refund"] <= as_of

    async def test_charge_is_searched_from_the_backup_on(self, world: World, asked_since: dict[str, datetime]) -> None:
        async with world.opened() as app:
            subscription_id = await app.bound()
            copy, key, as_of = world.copy(), app.ports.ids.uuid(), app.ports.clock.now()
            first = await charge(app, subscription_id, key)
            await app.work(60)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED, as_of)
            await resume(app.ports)
            assert await charge(app, subscription_id, key) == first
            await app.work(60)
        assert asked_since["charge"] <= as_of
        assert await world.debited() == [first]

    async def test_rub_for_a_client_are_searched_from_the_backup_on(
        self, world: World, asked_since: dict[str, datetime]
    ) -> None:
        async with world.opened() as app:
            await app.know_client(PHONE)
            copy, key, as_of = world.copy(), app.ports.ids.uuid(), app.ports.clock.now()
            first = await exchange(app, key)
            assert first.crypto_deposit_address is not None
            await world.deposits.simulate_deposit(first.crypto_deposit_address, first.amount_usdt.units)
            await app.work(60)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED, as_of)
            await resume(app.ports)
            assert (await exchange(app, key)).id == first.id
            await app.work(60)
        assert asked_since["remittance"] <= as_of
        assert await world.remitted() == [part_operation(first.id, 1)]


class TestOlderThanTheProcess:
    """Operations older than the process are polled before they are sent, because a bank may recognise a repeat for some
    days only."""

    @pytest.fixture
    def sent(self, world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return every operation by which a bank was asked to send money."""
        operations: list[str] = []

        def watch(bank: SimulatedBank, name: str) -> None:
            call = getattr(bank, name)

            async def watched(request: Any) -> Any:
                operations.append(request.operation)
                return await call(request)

            monkeypatch.setattr(bank, name, watched)

        for bank in world.banks:
            watch(bank, "refund")
            watch(bank, "remit")
        return operations

    @pytest.mark.parametrize("knows", [True, False])
    async def test_a_refund_is_sent_unless_the_bank_has_it(self, world: World, sent: list[str], knows: bool) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
            made = (await create_refund(app.ports, await app.caller(), str(uuid4()), lambda: order)).resource
            copy = world.copy()
            if knows:
                await app.work(60)
        await world.clock.advance(60)
        async with world.opened(copy) as app:
            await app.work(60)
            done = await app.ports.storage.get(Refund, made.id)
            assert (done and done.status) == "completed"
            await app.check()
        assert sent == [made.id]

    @pytest.mark.parametrize("knows", [True, False])
    async def test_money_in_suspense_goes_back_unless_the_bank_has_it(
        self, world: World, sent: list[str], knows: bool
    ) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            await app.pay(payment, again=True)
            [money] = await list_suspense(app.ports)
            await return_suspense(app.ports, money.id)
            copy = world.copy()
            if knows:
                await app.work(60)
        await world.clock.advance(60)
        async with world.opened(copy) as app:
            await app.work(60)
            assert await list_suspense(app.ports) == []
            await app.check()
        assert sent == [return_operation(money, 1)]

    @pytest.mark.parametrize("knows", [True, False])
    async def test_rub_of_an_exchange_go_back_unless_the_bank_has_them(
        self, world: World, sent: list[str], knows: bool
    ) -> None:
        async with world.opened() as app:
            await app.know_client(PHONE)
            made = await create_rub_usdt(
                app.ports, world.account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET
            )
            await app.work(1000)
            for notification in await world.bank.simulate(
                invoice_operation(made.id), Simulation(status=InvoiceStatus.PAID)
            ):
                await on_notification(app.ports, notification)
            await return_money(app.ports, made.id)
            copy = world.copy()
            if knows:
                await app.work(60)
        await world.clock.advance(60)
        async with world.opened(copy) as app:
            await app.work(60)
            assert await list_suspended(app.ports) == []
            await app.check()
        assert len(sent) == 1

    async def test_rub_for_a_client_stay_with_the_bank_that_sent_them(self, world: World, sent: list[str]) -> None:
        """Though another one is first by now."""
        async with world.opened() as app:
            await app.know_client(PHONE)
            made = await exchange(app, str(uuid4()))
            copy = world.copy()
            assert made.crypto_deposit_address is not None
            await world.deposits.simulate_deposit(made.crypto_deposit_address, made.amount_usdt.units)
            await app.work(60)
        await world.clock.advance(60)
        world.banks.reverse()
        async with world.opened(copy) as app:
            await app.work(60)
            done = await app.ports.storage.get(Exchange, made.id)
            assert (done and done.status, done and done.bank) == ("completed", "bank")
            await app.check()
        assert sent == [part_operation(made.id, 1)]

    async def test_payout_goes_to_no_other_bank_while_one_of_them_does_not_answer(
        self, world: World, sent: list[str]
    ) -> None:
        async with world.opened() as app:
            await app.know_client(PHONE)
            made = await exchange(app, str(uuid4()))
            assert made.crypto_deposit_address is not None
            await world.deposits.simulate_deposit(made.crypto_deposit_address, made.amount_usdt.units)
            copy = world.copy()
        await world.clock.advance(60)
        world.script.find_remittance.append(Twist(ending=Ending.UNAVAILABLE))
        world.banks.reverse()
        async with world.opened(copy) as app:
            await app.work(5)
            waiting = await app.ports.storage.get(Exchange, made.id)
            assert (waiting and waiting.status, sent) == ("usdt_received", [])
            await app.work(600)
            assert sent == [part_operation(made.id, 1)]

    async def test_refund_made_while_running_costs_no_extra_poll(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            asked: list[str] = []
            find = world.bank.find_refund

            async def counted(operation: str) -> Any:
                asked.append(operation)
                return await find(operation)

            monkeypatch.setattr(world.bank, "find_refund", counted)
            await refund(app, payment, str(uuid4()))
            assert asked == []


async def refund(app: App, payment: Payment, key: str) -> str:
    """A refund of 100 RUB that is carried out; its id."""
    refund_id = await applied(app, payment, key)
    await app.work(60)
    assert await refund_status(app, refund_id) == ("completed", None)
    return refund_id


async def applied(app: App, payment: Payment, key: str) -> str:
    """An application for a refund of 100 RUB; its id."""
    order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
    return (await create_refund(app.ports, await app.caller(), key, lambda: order)).resource.id


async def refund_status(app: App, refund_id: str) -> tuple[str, str | None]:
    """Return the status of a refund and its pending reason."""
    found = await app.ports.storage.get(Refund, refund_id)
    assert found is not None
    return found.status, found.pending_reason


async def charge(app: App, subscription_id: str, key: str) -> str:
    """The payment of a charge."""
    order = ChargeOrder(amount_rub="100.00")
    answer = await create_charge(app.ports, await app.caller(), subscription_id, key, lambda: order)
    return answer.payment.id


async def exchange(app: App, key: str) -> Exchange:
    """An exchange of 100 USDT."""
    order = ExchangeOrder(amount_usdt="100", client_phone=PHONE, client_bank_id=BANK_ID)
    return (await create_exchange(app.ports, await app.caller(), key, lambda: order)).resource


def remembers(world: World, monkeypatch: pytest.MonkeyPatch, blob: bytes | None = None, **other: Any) -> None:
    """Make the wallet answer with these values for a transfer that it sent."""
    find = world.wallet.find

    async def told(operation: str) -> SentTransfer | None:
        found = await find(operation)
        if found is None:
            return None
        signed = found.signed if blob is None else msgspec.structs.replace(found.signed, blob=blob)
        return msgspec.structs.replace(found, signed=signed, **other)

    monkeypatch.setattr(world.wallet, "find", told)


class TestExchanges:
    """USDT for clients are paid by the same way."""

    async def test_the_usdt_of_an_exchange_are_sent_once(self) -> None:
        async with open_exchange_app() as app:
            made = await app.bought()
            await app.pay(made.id)
            await app.app.work(300)
            sent = await app.exchange(made.id)
            async with app.ports.storage.unit() as unit:
                unit[Exchange].save(unsigned(sent))
                await unit.commit()
            await app.app.work(3600)
            done = await app.exchange(made.id)
            assert (done.status, done.tx_hash) == ("completed", sent.tx_hash)
            assert len(await app.on_chain()) == 1

    async def test_usdt_that_go_back_are_sent_once(self) -> None:
        async with open_exchange_app() as app:
            made = await app.made()
            await app.cancel(made.id)
            await app.send(made.id, "7")
            await app.look(made.id)
            [planned] = await app.transfers()
            await return_money(app.ports, made.id, BACK)
            [planned] = await app.transfers()
            await app.app.work(1)
            [sent] = await app.transfers()
            assert len(await app.on_chain()) == 1
            async with app.ports.storage.unit() as unit:
                unit[ExchangeTransfer].save(msgspec.structs.replace(planned, version=sent.version))
                await unit.commit()
            await app.app.work(3600)
            [done] = await app.transfers()
            assert (done.sent_back and done.sent_back.status, done.went_by) == ("returned", sent.went_by)
            assert len(await app.on_chain()) == 1
