"""Automatic payouts: made after a settlement, cancelled or requested by operators (docs/settlement.md "Payouts")."""

import logging
from collections.abc import AsyncIterator

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus, WithdrawalTrigger
from cambist.core.usecases.settlement.withdrawal_progress import advance
from cambist.core.usecases.settlement.withdrawals import (
    LONGEST_REASON,
    cancel_withdrawal,
    every_withdrawal,
    hurry_withdrawal,
    pay_out,
    pay_out_now,
)
from tests.payout_kit import CREDIT, PAID, REST, WALLET, Payouts, lost_wallet, open_payouts

S = WithdrawalStatus
ZERO = Usdt(0)
NOTHING = "wd_00000000-0000-7000-8000-000000000000"


@pytest.fixture
async def payouts() -> AsyncIterator[Payouts]:
    async with open_payouts() as opened:
        yield opened


class TestMaking:
    async def test_payout_reserves_all_that_the_network_can_move(self, payouts: Payouts) -> None:
        await payouts.credit()
        withdrawal = await payouts.pay_out()
        assert withdrawal is not None
        assert (withdrawal.status, withdrawal.amount, withdrawal.wallet) == ("pending", PAID, WALLET)
        assert (withdrawal.network, withdrawal.sender) == ("tron", payouts.sender.name)
        assert await payouts.balance_types() == (REST, PAID, ZERO)
        assert [job.argument for job in await payouts.jobs()] == [withdrawal.id]
        assert withdrawal == await payouts.record(withdrawal.id)

    async def test_first_event_of_a_payout_has_no_previous_status_and_no_hash(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        [event] = await payouts.app.events(withdrawal.id)
        assert event == {
            "event": "withdrawal.status_changed",
            "withdrawal_id": withdrawal.id,
            "status": "pending",
            "previous_status": None,
            "amount_usdt": "100.00000100",
            "wallet_address": WALLET,
            "tx_hash": None,
            "timestamp": event["timestamp"],
        }
        assert withdrawal.sequence == 1

    @pytest.mark.parametrize("units", [0, 1, 99, -500], ids=str)
    async def test_less_than_one_step_of_the_network_and_a_debt_stay(self, payouts: Payouts, units: int) -> None:
        if units:
            await payouts.credit(Usdt(units))
        assert await payouts.pay_out() is None
        assert await payouts.balance_types() == (Usdt(units), ZERO, ZERO)
        assert await payouts.jobs() == []

    async def test_one_step_is_paid(self, payouts: Payouts) -> None:
        await payouts.credit(Usdt(100))
        withdrawal = await payouts.pay_out()
        assert withdrawal is not None
        assert withdrawal.amount == Usdt(100)

    async def test_balance_stays_until_there_is_a_wallet(self) -> None:
        async with open_payouts(wallet=False) as payouts:
            await payouts.credit()
            assert await payouts.pay_out() is None
            assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)
            await payouts.set_wallet(WALLET)
            assert await payouts.pay_out() is not None

    async def test_balance_stays_with_a_warning_if_no_sender_is_wired(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture
    ) -> None:
        await payouts.credit()
        with caplog.at_level(logging.WARNING, logger="cambist.payouts"):
            assert await pay_out(lost_wallet(payouts.ports), payouts.account_id, payouts.mode) is None
        assert payouts.account_id in caplog.text
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)

    async def test_a_wallet_on_another_network_than_is_paid_on_keeps_the_balance(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture
    ) -> None:
        await payouts.credit()
        await payouts.set_wallet("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
        assert await payouts.pay_out() is None
        assert "its payout_wallet is none on tron" in caplog.text
        with pytest.raises(Refusal, match="is no address of tron"):
            await pay_out_now(payouts.ports, payouts.account_id, payouts.mode)
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)

    async def test_an_account_that_is_not_there_gets_nothing(self, payouts: Payouts) -> None:
        assert await pay_out(payouts.ports, "acc_nobody", payouts.mode) is None

    async def test_a_second_call_finds_nothing_more_to_take(self, payouts: Payouts) -> None:
        await payouts.made()
        assert await payouts.pay_out() is None
        assert len(await payouts.every()) == 1

    async def test_later_credit_makes_a_separate_payout(self, payouts: Payouts) -> None:
        await payouts.made()
        await payouts.credit(Usdt(1000))
        second = await payouts.pay_out()
        assert second is not None
        assert second.amount == Usdt(1000)

    async def test_modes_are_paid_out_apart(self, payouts: Payouts) -> None:
        await payouts.credit(mode=Mode.LIVE)
        assert await payouts.pay_out() is None
        live = await pay_out(payouts.ports, payouts.account_id, Mode.LIVE)
        assert live is not None
        assert (live.mode, live.sender) == (Mode.LIVE, payouts.ports.senders.of_mode("live").name)

    async def test_the_statement_names_the_first_payout_that_followed_it(self, payouts: Payouts) -> None:
        settlement_id = await payouts.credit()
        first = await payouts.pay_out(settlement_id=settlement_id)
        await payouts.credit()
        second = await payouts.pay_out(settlement_id=settlement_id)
        assert first is not None
        assert second is not None
        assert first.settlement_id == second.settlement_id == settlement_id
        statement = await payouts.statement(settlement_id)
        assert (statement.withdrawal_id, statement.credit) == (first.id, CREDIT)

    async def test_a_statement_with_nothing_to_pay_out_names_none(self, payouts: Payouts) -> None:
        settlement_id = await payouts.credit(Usdt(99))
        assert await payouts.pay_out(settlement_id=settlement_id) is None
        assert (await payouts.statement(settlement_id)).withdrawal_id is None


class TestOperators:
    async def test_cancelled_pending_payout_gives_its_money_back(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        done = await cancel_withdrawal(payouts.ports, withdrawal.id, " a wrong wallet ")
        assert (done.status, done.failure) == (S.CANCELLED, "a wrong wallet")
        assert await payouts.statuses(withdrawal.id) == [(None, "pending"), ("pending", "cancelled")]
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)
        assert await payouts.jobs() == []
        await payouts.app.work(3600)
        assert payouts.sender.calls == [("find", "-")], "asked once whether it was sent, when it was called off"
        assert await payouts.pay_out() is not None

    @pytest.mark.parametrize("status", [each for each in S if each is not S.PENDING])
    async def test_from_processing_on_nobody_can_call_it_off(self, payouts: Payouts, status: WithdrawalStatus) -> None:
        script = payouts.script
        if status is S.CANCELLED:
            script.sign.append(Twist(ending=Ending.REFUSED))
        elif status in (S.PROCESSING, S.FAILED):
            script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 20)
        withdrawal = await payouts.made()
        await payouts.app.work(0 if status in (S.PROCESSING, S.SENT) else 600)
        assert (await payouts.record(withdrawal.id)).status is status
        before = await payouts.balance_types()
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal.id, "too late")
        assert refused.value.code == "INVALID_STATE"
        assert await payouts.balance_types() == before

    @pytest.mark.parametrize("withdrawal_id", [NOTHING, "nothing", "", "wd_\0"])
    async def test_cancelling_an_unknown_withdrawal_is_refused(self, payouts: Payouts, withdrawal_id: str) -> None:
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal_id, "why")
        assert refused.value.code == "WITHDRAWAL_NOT_FOUND"

    @pytest.mark.parametrize("reason", ["", "  ", "x" * (LONGEST_REASON + 1), "a\nb"], ids=ascii)
    async def test_a_reason_is_needed(self, payouts: Payouts, reason: str) -> None:
        withdrawal = await payouts.made()
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal.id, reason)
        assert refused.value.code == "VALIDATION_ERROR"

    async def test_a_reason_may_be_as_long_as_said(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        done = await cancel_withdrawal(payouts.ports, withdrawal.id, "x" * LONGEST_REASON)
        assert done.failure == "x" * LONGEST_REASON

    async def test_payout_under_way_is_polled_at_once_for_an_operator(self, payouts: Payouts) -> None:
        payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        withdrawal = await payouts.made()
        await payouts.app.work(0)
        [job] = await payouts.jobs()
        now = payouts.ports.clock.now()
        assert job.due > now
        assert await hurry_withdrawal(payouts.ports, withdrawal.id) == await payouts.record(withdrawal.id)
        assert [each.due for each in await payouts.jobs()] == [now]
        await payouts.app.work(600)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED
        with pytest.raises(Refusal) as refused:
            await hurry_withdrawal(payouts.ports, withdrawal.id)
        assert refused.value.code == "INVALID_STATE"

    async def test_operator_pays_out_the_available_balance_at_once(self, payouts: Payouts) -> None:
        await payouts.credit()
        withdrawal = await pay_out_now(payouts.ports, payouts.account_id, payouts.mode)
        assert (withdrawal.amount, withdrawal.settlement_id) == (PAID, None)
        await payouts.app.work(60)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_payout_now_needs_money_a_wallet_and_a_route(self, payouts: Payouts) -> None:
        async def refusal(account_id: str = payouts.account_id, *, wired: bool = True) -> str:
            ports = payouts.ports if wired else lost_wallet(payouts.ports)
            with pytest.raises(Refusal) as refused:
                await pay_out_now(ports, account_id, payouts.mode)
            return refused.value.code

        assert await refusal() == "INVALID_STATE"
        await payouts.credit()
        assert await refusal(wired=False) == "INVALID_STATE"
        assert await refusal("acc_nobody") == "ACCOUNT_NOT_FOUND"
        await payouts.set_wallet("")
        assert await refusal() == "INVALID_STATE"
        assert await payouts.every() == []

    async def test_operators_see_the_payouts_of_all_newest_first(self, payouts: Payouts) -> None:
        made = []
        for _ in range(3):
            made.append((await payouts.made()).id)
            await payouts.app.clock.advance(1)
        await cancel_withdrawal(payouts.ports, made[0], "why")

        async def listed(limit: int = 1000, status: WithdrawalStatus | None = None) -> list[str]:
            return [each.id for each in await every_withdrawal(payouts.ports, status=status, limit=limit)]

        assert await listed() == made[::-1]
        assert await listed(limit=2) == made[:0:-1]
        assert await listed(status=S.CANCELLED) == [made[0]]
        own = await every_withdrawal(payouts.ports, account_id=payouts.account_id, status=S.PENDING)
        assert [each.id for each in own] == made[:0:-1]
        with pytest.raises(Refusal) as refused:
            await every_withdrawal(payouts.ports, account_id="acc_\0")
        assert refused.value.code == "ACCOUNT_NOT_FOUND"


async def test_a_move_that_the_table_does_not_have_writes_nothing(payouts: Payouts) -> None:
    withdrawal = await payouts.made()
    async with payouts.ports.storage.unit() as unit:
        with pytest.raises(IllegalMove):
            await advance(payouts.ports, unit, withdrawal, WithdrawalTrigger.FINAL)
    assert await payouts.balance_types() == (REST, PAID, ZERO)
