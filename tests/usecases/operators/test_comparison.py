"""A quarantined copy lists operations at providers that it does not know, by provider, and books them before it
resumes."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import LONG_AGO
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import invoice_operation
from cambist.core.domain.exchanges.returns import rub_return_operation
from cambist.core.domain.installation import Because
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AuditEntry, OperatorAction
from cambist.core.domain.operators.guarded import Guarded
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.domain.refunds.suspense_returns import return_operation
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.actions.decisions import Waits
from cambist.core.usecases.common.quarantine import hold, read_hold
from cambist.core.usecases.exchanges.creation import create_rub_usdt
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.installation.bringing_in import bring_in
from cambist.core.usecases.installation.comparison import MARGIN, Decisions, compare, decided
from cambist.core.usecases.installation.resume import resume_compared
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.ledger.ledger import balance_types
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.pending_actions import confirm_action
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.operators.settlement import settle_asked
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.refunds.refunds import approve_refund, create_refund, create_refund_for
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.core.usecases.settlement.withdrawals import accept_sent
from cambist.ports.bank import InvoiceStatus, RefundRequest, RefundStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import FourEyes
from cambist.ports.faults import Unavailable
from cambist.ports.fingerprints import Nowhere
from cambist.ports.payouts import SentTransfer
from cambist.ports.remittances import RemittanceRequest
from tests.exchange_app import BANK_ID, PHONE
from tests.payout_kit import WALLET, WatchedFinder
from tests.restored import App, Copy, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World("memory", tmp_path)


async def paid(app: App) -> Payment:
    caller = await app.caller()
    key = app.ports.ids.uuid()
    made = await create_payment(app.ports, caller, key, lambda: PaymentOrder(amount_rub="1000.00"))
    await app.pay(made.resource)
    await app.world.clock.advance(1)
    return made.resource


async def refund(app: App, payment: Payment, key: str | None = None) -> str:
    """A refund of 100 RUB that the bank took; its id."""
    order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
    made = await create_refund(app.ports, await app.caller(), key or app.ports.ids.uuid(), lambda: order)
    await app.work(60)
    return made.resource.id


async def send_back(world: World, reference: str | None, operation: str) -> None:
    """Send the bank a refund under this id, as any process could have."""
    await world.bank.refund(RefundRequest(operation=operation, reference=reference or "", amount_kopecks=100))


async def refunded(world: World) -> list[str]:
    return [operation for operation, _ in await world.refunded()]


async def lacking(app: App) -> list[str]:
    return [each.operation for each in (await compare(app.ports, None)).lacking]


async def settled_now(app: App) -> None:
    """Settle as `cambist settle --cutoff now`: another batch each time, so its payouts have other ids."""
    await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
    await app.work(3600)


async def available(app: App) -> int:
    async with app.ports.storage.unit() as unit:
        return (await balance_types(unit, app.world.account_id, Mode.LIVE)).get(BalanceType.AVAILABLE, 0)


async def test_a_payout_that_the_copy_lacks_is_brought_in_and_not_paid_again(world: World) -> None:
    async with world.opened() as app:
        await paid(app)
        copy, as_of = world.copy(), app.ports.clock.now()
        await settled_now(app)
    [first] = await world.paid_out()
    async with world.opened(copy) as app:
        found = await compare(app.ports, as_of)
        assert [(each.kind, each.operation, each.account_id) for each in found.lacking] == [
            ("transfer", first[0], world.account_id)
        ]
        [brought] = await bring_in(acting(app.ports, OperatorAction(operator="eve", name="resume")), found)
        assert brought.id == first[0]
        assert await available(app) == -brought.amount.units, "it was paid, and is not credited here yet"
        assert (await compare(app.ports, as_of)).lacking == []
        await settled_now(app)
        assert await world.paid_out() == [first], "nothing is owed any more"
        assert [each.status for each in await app.withdrawals()] == [WithdrawalStatus.COMPLETED]
        async with app.ports.storage.unit() as unit:
            assert [row.object_id for row in await unit[AuditEntry].find(action="resume")] == [first[0]]
        await app.check()


async def test_unsent_payout_pending_in_the_copy_is_cancelled(world: World) -> None:
    """Otherwise it would be sent, too: it was made from the same balance, under another id."""
    async with world.opened() as app:
        await paid(app)
        await world.clock.advance(1)
        copy = world.copy()
        await settled_now(app)
    sent = await world.paid_out()
    async with world.opened(copy) as app:
        world.wallet.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
        await run_due(app.ports)
        await bring_in(app.ports, await compare(app.ports, None))
        assert sorted(each.status for each in await app.withdrawals()) == ["cancelled", "pending"]
        await app.work(2 * 3600)
        await settled_now(app)
        assert await world.paid_out() == sent
        await app.check()


async def test_brought_in_twice_it_is_one(world: World) -> None:
    async with world.opened() as app:
        await paid(app)
        copy = world.copy()
        await settled_now(app)
    async with world.opened(copy) as app:
        found = await compare(app.ports, None)
        assert await bring_in(app.ports, found) == await bring_in(app.ports, found)
        await app.check()


class TestTwoMerchantsWithOneWallet:
    """An owner with two accounts, or an exchange's deposit address."""

    async def test_a_payout_of_a_daily_batch_is_attributed_by_its_id(self, world: World) -> None:
        """The copy knows nothing of the batch, whose id follows from its day."""
        async with world.opened() as app:
            await paid(app)
            copy = world.copy()
            await settled_daily(app)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, LONG_AGO)
            assert [(each.account_id, each.is_certain) for each in found.lacking] == [(world.account_id, True)]
            await resume_compared(app.ports, found)
            await settled_daily(app)
            assert await world.paid_out() == [sent], "nothing is owed any more"
            await app.check()

    async def test_a_payout_that_nobody_can_attribute_keeps_the_hold(self, world: World) -> None:
        """An operator's batch has its cutoff in its id, which the copy has forgotten."""
        copy = await self._sent_by_hand(world)
        [(operation, _, _)] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            assert [each.operation for each in found.open] == [operation]
            with pytest.raises(Refusal, match=f"--assign {operation}=.*--not-ours {operation}") as refused:
                await resume_compared(app.ports, found)
            assert (refused.value.code, refused.value.details) == ("INVALID_STATE", {"open": [operation]})
            assert await read_hold(app.ports) is not None
            assert await app.withdrawals() == []

    async def test_an_assigned_payout_is_a_debt_and_is_not_paid_again(self, world: World) -> None:
        copy = await self._sent_by_hand(world)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            decisions = Decisions(assigned={sent[0]: world.account_id})
            found = await decided(app.ports, await compare(app.ports, None), decisions)
            # The first run was killed before it let go.
            await bring_in(acting(app.ports, OperatorAction(operator="eve", name="resume")), found)
            found = await decided(app.ports, await compare(app.ports, None), decisions)
            assert found.lacking == []
            await resume_compared(app.ports, found)
            assert await available(app) == -sent[2]
            await settled_now(app)
            assert await world.paid_out() == [sent]
            async with app.ports.storage.unit() as unit:
                assert [row.object_id for row in await unit[AuditEntry].find(action="resume")] == [sent[0]]
            await app.check()

    async def test_two_operators_cannot_assign_a_payout_to_two_merchants(self, world: World) -> None:
        copy = await self._sent_by_hand(world)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            other = await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            mine, theirs = [
                await decided(app.ports, found, Decisions(assigned={sent[0]: account_id}))
                for account_id in (world.account_id, other)
            ]
            done = await asyncio.gather(
                resume_compared(app.ports, mine), resume_compared(app.ports, theirs), return_exceptions=True
            )
            assert sum(isinstance(each, Refusal) for each in done) == 1
            assert len(await app.withdrawals()) == 1
            await app.check()

    async def test_payout_that_is_not_ours_is_left_out_and_recorded(self, world: World) -> None:
        copy = await self._sent_by_hand(world)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            found = await decided(app.ports, found, Decisions(not_ours=frozenset({sent[0]})))
            await resume_compared(acting(app.ports, OperatorAction(operator="eve", name="resume")), found)
            assert await read_hold(app.ports) is None
            assert await app.withdrawals() == []
            async with app.ports.storage.unit() as unit:
                rows = [row.object_id for row in await unit[AuditEntry].find(action="resume", order="id")]
            assert rows == [sent[0], "installation"]

    @pytest.mark.parametrize("sends_more", [False, True])
    async def test_a_second_operator_confirms_what_providers_say_by_then(self, world: World, sends_more: bool) -> None:
        """A transfer may have got into a block since the first operator's comparison."""
        copy = await self._sent_by_hand(world)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            found = await decided(app.ports, found, Decisions(not_ours=frozenset({sent[0]})))
            guarded = msgspec.structs.replace(app.ports, four_eyes=FourEyes(actions=frozenset(Guarded)))
            with pytest.raises(Waits) as waits:
                await resume_compared(acting(guarded, OperatorAction(operator="eve", name="resume")), found)
            assert waits.value.action.arguments == {"not_ours": sent[0]}
            confirming = acting(guarded, OperatorAction(operator="bob", name="action.confirm"))
            if sends_more:
                await world.wallet.broadcast(await world.wallet.inner.sign("wd_more", WALLET, 1_000_000))
                with pytest.raises(Refusal, match=r"sent more since the comparison.*wd_more"):
                    await confirm_action(confirming, waits.value.action.id, Nowhere())
            else:
                await confirm_action(confirming, waits.value.action.id, Nowhere())
            assert (await read_hold(app.ports) is not None) is sends_more

    @pytest.mark.parametrize(
        ("decisions", "code"),
        [
            (Decisions(assigned={"wd_1": "acc_1"}), "VALIDATION_ERROR"),
            (Decisions(not_ours=frozenset({"wd_1"})), "VALIDATION_ERROR"),
            (Decisions(assigned={"SENT": "acc_1"}), "ACCOUNT_NOT_FOUND"),
            (Decisions(assigned={"SENT": "MINE"}, not_ours=frozenset({"SENT"})), "VALIDATION_ERROR"),
        ],
    )
    async def test_a_decision_about_something_else_is_refused(
        self, world: World, decisions: Decisions, code: str
    ) -> None:
        copy = await self._sent_by_hand(world)
        [sent] = await world.paid_out()
        told = {"SENT": sent[0], "MINE": world.account_id}
        decisions = Decisions(
            assigned={told.get(key, key): told.get(value, value) for key, value in decisions.assigned.items()},
            not_ours=frozenset(told.get(each, each) for each in decisions.not_ours),
        )
        async with world.opened(copy) as app:
            await twin(app)
            with pytest.raises(Refusal) as refused:
                await decided(app.ports, await compare(app.ports, None), decisions)
            assert refused.value.code == code

    async def test_a_payout_whose_id_proves_its_owner_is_given_to_nobody_else(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            copy = world.copy()
            await settled_daily(app)
        [(operation, _, _)] = await world.paid_out()
        async with world.opened(copy) as app:
            other = await twin(app)
            found = await compare(app.ports, LONG_AGO)
            for wrong in (Decisions(assigned={operation: other}), Decisions(not_ours=frozenset({operation}))):
                with pytest.raises(Refusal, match="follows from account"):
                    await decided(app.ports, found, wrong)

    async def _sent_by_hand(self, world: World) -> Copy:
        """Return a copy from before a payout that an operator requested."""
        async with world.opened() as app:
            await paid(app)
            copy = world.copy()
            await settled_now(app)
        return copy


class TestWalletThatCannotList:
    """The wallet can look up a transfer by its id only, so it is queried for each payout that a settlement may have
    caused."""

    @pytest.fixture(autouse=True)
    def finds_only(self, world: World) -> None:
        world.wallet = WatchedFinder(world.wallet.inner)

    async def test_a_forgotten_daily_payout_is_found_by_its_id(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            copy, as_of = world.copy(), app.ports.clock.now()
            await settled_daily(app)
        [sent] = await world.paid_out()
        async with world.opened(copy) as app:
            await twin(app)
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, as_of)
            assert [(each.operation, each.account_id) for each in found.lacking] == [(sent[0], world.account_id)]
            await resume_compared(app.ports, found)
            await settled_daily(app)
            assert await world.paid_out() == [sent]
            await app.check()

    async def test_a_pending_payout_that_was_sent_otherwise_keeps_the_hold(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.opened() as app:
            await paid(app)
            world.wallet.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
            await settle_asked(app.ports, Mode.LIVE, app.ports.clock.now(), lambda _: None)
            await app.work()
            copy = world.copy()
            await app.work(60)
        [(operation, _, units)] = await world.paid_out()
        find = world.wallet.find

        async def more(asked: str) -> SentTransfer | None:
            sent = await find(asked)
            return sent and msgspec.structs.replace(sent, units=units + 1_000_000)

        monkeypatch.setattr(world.wallet, "find", more)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            assert [(each.operation, each.differs) for each in found.open] == [(operation, True)]
            with pytest.raises(Refusal, match=f"cambist payout accept {operation}"):
                await resume_compared(app.ports, found)
            await accept_sent(app.ports, operation)
            await resume_compared(app.ports, await compare(app.ports, None))
            assert await read_hold(app.ports) is None

    async def test_a_wallet_that_gives_no_answer_is_no_comparison(self, world: World) -> None:
        async with world.opened() as app:
            await paid(app)
            copy = world.copy()
        async with world.opened(copy) as app:
            await world.clock.advance(24 * 3600)
            world.wallet.script.find.append(Twist(ending=Ending.UNAVAILABLE))
            with pytest.raises(Unavailable):
                await compare(app.ports, app.ports.clock.now())


async def twin(app: App) -> str:
    """Create another merchant with the same payout wallet."""
    other = await create_account(app.ports, "Other")
    await set_settings(app.ports, other.account_id, {"payout_wallet": WALLET})
    return other.account_id


async def settled_daily(app: App) -> None:
    """The daily settlement of all that was paid by now, and its payouts to their end."""
    await app.world.clock.advance(2 * 24 * 3600)
    await settle_now(app.ports, Mode.LIVE)
    await app.work(3600)


async def test_known_payout_is_not_lacking(world: World) -> None:
    async with world.opened() as app:
        await paid(app)
        await settled_now(app)
        assert (await compare(app.ports, None)).lacking == []


async def test_a_wallet_that_gives_no_answer_is_no_comparison(world: World) -> None:
    """Nothing was sent, it would say."""
    async with world.opened() as app:
        await paid(app)
        copy = world.copy()
        await settled_now(app)
    async with world.opened(copy) as app:
        world.wallet.script.find.append(Twist(ending=Ending.UNAVAILABLE))
        with pytest.raises(Unavailable):
            await compare(app.ports, None)


class TestRefunds:
    """A refund is brought in for the payment whose invoice it names."""

    async def test_a_refund_that_the_copy_lacks_is_booked_before_the_hold_ends(self, world: World) -> None:
        """The merchant had an answer, and so has no reason to repeat the request."""
        async with world.opened() as app:
            payment = await paid(app)
            copy, as_of, key = world.copy(), app.ports.clock.now(), app.ports.ids.uuid()
            refund_id = await refund(app, payment, key)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, as_of)
            [lacking] = found.lacking
            assert (lacking.provider, lacking.kind, lacking.operation) == ("bank", "refund", refund_id)
            assert (lacking.amount, lacking.account_id) == ("100.00 RUB", world.account_id)
            assert await bring_in(app.ports, found) == []
            await resume_compared(app.ports, found)
            booked = await app.ports.storage.get(Refund, refund_id)
            assert booked is not None
            assert (booked.status, booked.amount) == ("completed", Rub(100_00))
            await settled_now(app)
            assert await refund(app, payment, key) == refund_id, "the key gives the refund that it made"
            assert await refunded(world) == [refund_id]
            await app.check()

    async def test_executed_refunds_and_payouts_need_no_second_operator(self, world: World) -> None:
        """They were executed, so no decision is needed. The end of the hold still needs a second operator."""
        async with world.opened() as app:
            payment = await paid(app)
            copy = world.copy()
            refund_id = await refund(app, payment)
            await settled_now(app)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            guarded = msgspec.structs.replace(app.ports, four_eyes=FourEyes(actions=frozenset(Guarded)))
            acted = acting(guarded, OperatorAction(operator="eve", name="resume"))
            with pytest.raises(Waits):
                await resume_compared(acted, await compare(app.ports, None))
            assert await read_hold(app.ports) is not None
            booked = await app.ports.storage.get(Refund, refund_id)
            assert booked is not None
            assert booked.status == "completed"
            [payout] = await app.withdrawals()
            async with app.ports.storage.unit() as unit:
                rows = {row.object_id for row in await unit[AuditEntry].find(action="resume")}
            assert {refund_id, payout.id} <= rows

    async def test_a_refund_above_what_is_left_of_its_payment_is_open(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy = world.copy()
            refund_id = await refund(app, payment)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            await create_refund_for(app.ports, payment.id)
            found = await compare(app.ports, None)
            assert [each.operation for each in found.open] == [refund_id]
            with pytest.raises(Refusal, match=f"--not-ours {refund_id}"):
                await resume_compared(app.ports, found)

    async def test_pending_refunds_are_asked_for_before_the_hold_ends(self, world: World) -> None:
        """This includes refunds that were not approved in the copy, or that wait for money there."""
        async with world.opened() as app:
            payment = await paid(app)
            await set_settings(app.ports, world.account_id, {"refund_approval": "manual"})
            order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
            made = await create_refund(app.ports, await app.caller(), app.ports.ids.uuid(), lambda: order)
            copy = world.copy()
            await approve_refund(app.ports, made.resource.id)
            await app.work(60)
        async with world.opened(copy) as app:
            await hold(app.ports, Because.RESTORED)
            found = await compare(app.ports, None)
            assert found.lacking == []
            world.script.find_refund.append(Twist(ending=Ending.UNAVAILABLE))
            with pytest.raises(Unavailable):
                await resume_compared(app.ports, found)
            assert await read_hold(app.ports) is not None
            await resume_compared(app.ports, found)
            booked = await app.ports.storage.get(Refund, made.resource.id)
            assert booked is not None
            assert booked.status == "completed"
            await app.check()

    async def test_refund_that_the_copy_knows_is_not_lacking(self, world: World) -> None:
        async with world.opened() as app:
            await refund(app, await paid(app))
            copy = world.copy()
        async with world.opened(copy) as app:
            assert (await compare(app.ports, None)).lacking == []

    async def test_one_from_before_the_moment_is_not_asked_for(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            copy = world.copy()
            await refund(app, payment)
            await world.clock.advance((2 * MARGIN).total_seconds())
        async with world.opened(copy) as app:
            assert (await compare(app.ports, app.ports.clock.now())).lacking == []

    async def test_failed_refund_is_not_lacking(self, world: World) -> None:
        """No money went."""
        async with world.opened() as app:
            payment = await paid(app)
            copy = world.copy()
            world.bank._refunds_hold = None
            refund_id = await refund(app, payment)
            await world.bank.simulate_refund(refund_id, RefundStatus.FAILED)
        async with world.opened(copy) as app:
            assert (await compare(app.ports, None)).lacking == []

    async def test_money_that_was_sent_back_from_suspense_is_known(self, world: World) -> None:
        async with world.opened() as app:
            payment = await paid(app)
            await app.pay(payment, again=True)
            [money] = await list_suspense(app.ports)
            await return_suspense(app.ports, money.id)
            await app.work(60)
            assert await refunded(world) == [return_operation(money, 1)]
            assert await lacking(app) == []

    async def test_rub_that_an_exchange_gave_back_are_known(self, world: World) -> None:
        async with world.opened() as app:
            await app.know_client(PHONE)
            made = await create_rub_usdt(
                app.ports, world.account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET
            )
            await app.work(1000)
            invoice = invoice_operation(made.id)
            for notification in await world.bank.simulate(invoice, Simulation(status=InvoiceStatus.PAID)):
                await on_notification(app.ports, notification)
            [transfer] = await return_money(app.ports, made.id)
            await app.work(60)
            assert await refunded(world) == [rub_return_operation(transfer.id, 1)]
            assert await lacking(app) == []

    async def test_money_that_the_copy_never_had_is_listed_by_its_operation(self, world: World) -> None:
        """It came and went back since; the payment that the id names is known, and is not enough."""
        async with world.opened() as app:
            payment = await paid(app)
            copy = world.copy()
            await app.pay(payment, again=True)
            [money] = await list_suspense(app.ports)
            await return_suspense(app.ports, money.id)
            await app.work(60)
        async with world.opened(copy) as app:
            assert await lacking(app) == [return_operation(money, 1)]

    async def test_rub_for_a_client_are_no_refund(self, world: World) -> None:
        await world.bank.remit(RemittanceRequest(operation="op", phone=PHONE, bank_id=BANK_ID, amount_kopecks=1))
        assert await world.remitted() == ["op"]
        assert await world.bank.refunds_since(LONG_AGO) == []

    async def test_a_bank_that_gives_no_answer_is_no_comparison(self, world: World) -> None:
        world.script.refunds_since.append(Twist(ending=Ending.UNAVAILABLE))
        async with world.opened() as app:
            with pytest.raises(Unavailable):
                await compare(app.ports, None)
