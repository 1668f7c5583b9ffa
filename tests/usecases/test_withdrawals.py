"""Automatic payouts: made, signed, sent, followed to their end, with their money and events (SPEC "What the service
does", 2; SPEC "Withdrawal payload"; DECISIONS 4 "Withdrawals")."""

import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from cambist.adapters.payouts.script import Ending, Twist
from cambist.adapters.payouts.simulator import FINALITY, LIFETIME
from cambist.core.domain.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Usdt
from cambist.core.domain.withdrawals import WITHDRAWAL_MOVES, Withdrawal, WithdrawalStatus
from cambist.core.usecases.withdrawal_progress import SIGN_LADDER, advance, next_look
from cambist.core.usecases.withdrawals import (
    LONGEST_REASON,
    cancel_withdrawal,
    every_withdrawal,
    pay_out,
    pay_out_now,
)
from cambist.ports.payouts import TransferState
from tests.payout_kit import (
    CREDIT,
    OTHER_WALLET,
    PAID,
    REST,
    WALLET,
    Payouts,
    lost_wallet,
    open_payouts,
)

S = WithdrawalStatus
ZERO = Usdt(0)
NOTHING = "wd_00000000-0000-7000-8000-000000000000"
EXPIRED = (LIFETIME + FINALITY).total_seconds()
COMPLETED = [(None, "pending"), ("pending", "processing"), ("processing", "sent"), ("sent", "completed")]
FAILED_UNSENT = [(None, "pending"), ("pending", "processing"), ("processing", "failed")]


@pytest.fixture
async def payouts() -> AsyncIterator[Payouts]:
    async with open_payouts() as opened:
        yield opened


class TestMaking:
    async def test_all_that_is_available_is_reserved_but_for_what_the_network_cannot_move(
        self, payouts: Payouts
    ) -> None:
        await payouts.credit()
        withdrawal = await payouts.pay_out()
        assert withdrawal is not None
        assert (withdrawal.status, withdrawal.amount, withdrawal.wallet) == ("pending", PAID, WALLET)
        assert (withdrawal.network, withdrawal.sender) == ("tron", payouts.sender.name)
        assert await payouts.purses() == (REST, PAID, ZERO)
        assert [job.argument for job in await payouts.jobs()] == [withdrawal.id]
        assert withdrawal == await payouts.record(withdrawal.id)

    async def test_its_first_event_has_no_previous_status_and_no_hash(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        [event] = await payouts.house.events(withdrawal.id)
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
        assert await payouts.purses() == (Usdt(units), ZERO, ZERO)
        assert await payouts.jobs() == []

    async def test_one_step_is_paid(self, payouts: Payouts) -> None:
        await payouts.credit(Usdt(100))
        withdrawal = await payouts.pay_out()
        assert withdrawal is not None
        assert withdrawal.amount == Usdt(100)

    async def test_without_a_wallet_the_balance_stays_and_is_paid_out_once_there_is_one(self) -> None:
        async with open_payouts(wallet=False) as payouts:
            await payouts.credit()
            assert await payouts.pay_out() is None
            assert await payouts.purses() == (CREDIT, ZERO, ZERO)
            await payouts.set_wallet(WALLET)
            assert await payouts.pay_out() is not None

    async def test_where_no_wallet_of_the_service_is_wired_the_balance_stays_and_it_is_said(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture
    ) -> None:
        await payouts.credit()
        with caplog.at_level(logging.WARNING, logger="cambist.payouts"):
            assert await pay_out(lost_wallet(payouts.ports), payouts.account_id, payouts.mode) is None
        assert payouts.account_id in caplog.text
        assert await payouts.purses() == (CREDIT, ZERO, ZERO)

    async def test_an_account_that_is_not_there_gets_nothing(self, payouts: Payouts) -> None:
        assert await pay_out(payouts.ports, "acc_nobody", payouts.mode) is None

    async def test_a_second_call_finds_nothing_more_to_take(self, payouts: Payouts) -> None:
        await payouts.made()
        assert await payouts.pay_out() is None
        assert len(await payouts.every()) == 1

    async def test_what_came_later_makes_a_payout_of_its_own(self, payouts: Payouts) -> None:
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


class TestTheWay:
    async def test_a_payout_is_signed_sent_and_final(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.house.work(60)
        done = await payouts.record(withdrawal.id)
        assert (done.status, done.failure, done.blob, done.sequence) == (S.COMPLETED, None, None, 4)
        assert await payouts.on_chain() == [(WALLET, PAID.units)]
        assert await payouts.purses() == (REST, ZERO, PAID)
        assert await payouts.jobs() == []
        assert payouts.sender.count("sign") == payouts.sender.count("broadcast") == 1

    async def test_every_move_has_its_event_and_the_hash_is_shown_from_sent_on(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        [tx_hash] = payouts.sender.hashes("sign")
        shown = [event["tx_hash"] for event in await payouts.house.events(withdrawal.id)]
        assert shown == [None, None, tx_hash, tx_hash]

    async def test_the_signed_transfer_is_stored_before_it_is_broadcast(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        stored: list[Withdrawal] = []

        async def look(call: str) -> None:
            if call == "broadcast":
                stored.append(await payouts.record(withdrawal.id))

        payouts.sender.before = look
        await payouts.house.work()
        [at_broadcast] = stored
        [signed] = payouts.sender.signed.values()
        assert (at_broadcast.status, at_broadcast.tx_hash) == (S.PROCESSING, signed.tx_hash)
        assert (at_broadcast.blob, at_broadcast.signed_until) == (signed.blob, signed.expires_at)

    async def test_a_wallet_that_is_set_later_changes_nothing(self, payouts: Payouts) -> None:
        await payouts.made()
        await payouts.set_wallet(OTHER_WALLET)
        await payouts.house.work(60)
        assert await payouts.on_chain() == [(WALLET, PAID.units)]

    @pytest.mark.parametrize(("before", "after"), [(row.before, row.after) for row in WITHDRAWAL_MOVES.rows])
    async def test_every_row_of_the_table_is_reached(
        self, payouts: Payouts, before: WithdrawalStatus, after: WithdrawalStatus
    ) -> None:
        script = payouts.script
        if after is S.CANCELLED:
            script.sign.append(Twist(ending=Ending.REFUSED))
        elif (before, after) == (S.PROCESSING, S.FAILED):
            script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 20)
        withdrawal = await payouts.made()
        await payouts.house.work()
        if (before, after) == (S.SENT, S.FAILED):
            [tx_hash] = payouts.sender.hashes("sign")
            await payouts.sender.inner.pretend(tx_hash, TransferState.FAILED)
        await payouts.house.work(600)
        assert (before, after) in await payouts.statuses(withdrawal.id)


class TestSigning:
    async def test_refused_for_certain_it_is_cancelled_and_the_money_is_back(self, payouts: Payouts) -> None:
        payouts.script.sign.append(Twist(ending=Ending.REFUSED, reason="address"))
        withdrawal = await payouts.made()
        await payouts.house.work(3600)
        done = await payouts.record(withdrawal.id)
        assert (done.status, done.tx_hash) == (S.CANCELLED, None)
        assert done.failure == "not signed, address: refused by the script"
        assert await payouts.statuses(withdrawal.id) == [(None, "pending"), ("pending", "cancelled")]
        assert await payouts.purses() == (CREDIT, ZERO, ZERO)
        assert await payouts.jobs() == []

    async def test_an_address_with_a_wrong_checksum_is_never_given_to_the_wallet(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        wrong = WALLET[:-1] + ("a" if WALLET[-1] != "a" else "b")
        async with payouts.ports.storage.unit() as unit:
            unit[Withdrawal].save(msgspec.structs.replace(withdrawal, wallet=wrong))
            await unit.commit()
        await payouts.house.work()
        assert (await payouts.record(withdrawal.id)).status is S.CANCELLED
        assert payouts.sender.calls == []

    async def test_unavailable_it_stays_pending_and_is_tried_again_on_a_ladder(self, payouts: Payouts) -> None:
        tries = len(SIGN_LADDER) + 2
        payouts.script.sign.extend([Twist(ending=Ending.UNAVAILABLE, message="the wallet is empty")] * tries)
        times: list[float] = []
        began = payouts.ports.clock.now()

        async def note(call: str) -> None:
            if call == "sign":
                times.append((payouts.ports.clock.now() - began).total_seconds())

        payouts.sender.before = note
        withdrawal = await payouts.made()
        await payouts.house.work(2 * 3600)
        assert (await payouts.record(withdrawal.id)).status is S.PENDING
        assert await payouts.purses() == (REST, PAID, ZERO)
        await payouts.house.work(2 * 3600)
        pauses = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
        assert pauses == [10, 30, 120, 600, 3600, 3600, 3600]
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED
        assert await payouts.statuses(withdrawal.id) == COMPLETED

    async def test_the_wallets_own_pause_is_kept_where_it_is_longer(self, payouts: Payouts) -> None:
        payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE, retry_after=90))
        await payouts.made()
        await payouts.house.work(89)
        assert payouts.sender.count("sign") == 1
        await payouts.house.work(1)
        assert payouts.sender.count("sign") == 2


class TestBroadcasting:
    @pytest.mark.parametrize("times", [1, 3])
    @pytest.mark.parametrize(
        "ending", [Ending.REFUSED, Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE, Ending.UNKNOWN_DONE]
    )
    async def test_whatever_it_answers_only_the_same_transfer_is_sent_again(
        self, payouts: Payouts, ending: Ending, times: int
    ) -> None:
        payouts.script.broadcast.extend([Twist(ending=ending)] * times)
        withdrawal = await payouts.made()
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        assert payouts.sender.count("sign") == 1
        assert payouts.sender.hashes("broadcast") == payouts.sender.hashes("sign")
        assert await payouts.on_chain() == [(WALLET, PAID.units)]
        assert await payouts.purses() == (REST, ZERO, PAID)

    async def test_an_unknown_outcome_is_asked_for_before_anything_is_sent_again(self, payouts: Payouts) -> None:
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_DONE))
        await payouts.made()
        await payouts.house.work(60)
        assert [name for name, _ in payouts.sender.calls][:3] == ["sign", "broadcast", "state"]
        assert payouts.sender.count("broadcast") == 1

    @pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE])
    async def test_never_taken_it_fails_once_that_is_proven_and_the_next_settlement_pays_it(
        self, payouts: Payouts, ending: Ending
    ) -> None:
        payouts.script.broadcast.extend([Twist(ending=ending)] * 100)
        withdrawal = await payouts.made()
        await payouts.house.work(EXPIRED - 1)
        assert (await payouts.record(withdrawal.id)).status is S.PROCESSING
        assert await payouts.purses() == (REST, PAID, ZERO)
        await payouts.house.work(30)
        failed = await payouts.record(withdrawal.id)
        assert (failed.status, failed.blob) == (S.FAILED, None)
        assert failed.failure is not None
        assert await payouts.purses() == (CREDIT, ZERO, ZERO)
        assert await payouts.statuses(withdrawal.id) == FAILED_UNSENT
        assert {event["tx_hash"] for event in await payouts.house.events(withdrawal.id)} == {None}
        payouts.script.broadcast.clear()
        second = await payouts.pay_out()
        await payouts.house.work(60)
        assert second is not None
        assert (await payouts.record(second.id)).status is S.COMPLETED
        assert await payouts.on_chain() == [(WALLET, PAID.units)]

    async def test_nothing_is_broadcast_from_its_end_on(self, payouts: Payouts) -> None:
        payouts.script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 100)
        payouts.script.state.extend([Twist()] * 11 + [Twist(ending=Ending.UNAVAILABLE)] * 5)
        times = []
        end = payouts.ports.clock.now() + LIFETIME

        async def note(call: str) -> None:
            if call == "broadcast":
                times.append(payouts.ports.clock.now())

        payouts.sender.before = note
        await payouts.made()
        await payouts.house.work(600)
        assert max(times) < end


class TestWatching:
    async def test_a_state_that_cannot_be_read_is_read_again(self, payouts: Payouts) -> None:
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE)] * 3)
        withdrawal = await payouts.made()
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED

    async def test_a_state_that_stays_away_for_hours_says_nothing(self, payouts: Payouts) -> None:
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE, retry_after=7200)] * 2)
        withdrawal = await payouts.made()
        await payouts.house.work(7200)
        assert (await payouts.record(withdrawal.id)).status is S.SENT
        await payouts.house.work(7210)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_final_at_first_sight_it_was_sent_on_the_way(self, payouts: Payouts) -> None:
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_DONE))
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE)] * 3)
        withdrawal = await payouts.made()
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        done = await payouts.record(withdrawal.id)
        assert (done.sequence, done.sent_at) == (4, done.completed_at)

    async def test_reverted_after_it_was_sent_it_fails_and_keeps_its_hash(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.house.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.pretend(tx_hash, TransferState.FAILED)
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == [*COMPLETED[:3], ("sent", "failed")]
        assert [event["tx_hash"] for event in await payouts.house.events(withdrawal.id)][2:] == [tx_hash, tx_hash]
        assert await payouts.purses() == (CREDIT, ZERO, ZERO)

    async def test_a_dropped_block_is_followed_by_the_same_transfer(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.house.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.pretend(tx_hash, TransferState.UNSEEN)
        await payouts.house.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        assert payouts.sender.count("broadcast") == 2
        assert payouts.sender.hashes("broadcast") == {tx_hash}

    async def test_while_a_block_may_be_taken_back_nothing_is_over(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.house.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.pretend(tx_hash, TransferState.IN_BLOCK)
        await payouts.house.work(3600)
        assert (await payouts.record(withdrawal.id)).status is S.SENT
        assert await payouts.purses() == (REST, PAID, ZERO)

    @pytest.mark.parametrize(
        ("passed", "pause"),
        [(-60, 5), (0, 5), (299, 5), (300, 60), (3599, 60), (3600, 600), (864_000, 600)],
    )
    async def test_the_longer_it_takes_the_rarer_it_is_asked(self, payouts: Payouts, passed: int, pause: int) -> None:
        withdrawal = await payouts.made()
        now = payouts.ports.clock.now()
        withdrawal = msgspec.structs.replace(withdrawal, signed_until=now - timedelta(seconds=passed))
        assert next_look(withdrawal, now) == timedelta(seconds=pause)

    @pytest.mark.parametrize("started", [False, True], ids=["pending", "sent"])
    async def test_a_wallet_that_is_no_longer_wired_is_waited_for_by_the_hour(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture, started: bool
    ) -> None:
        withdrawal = await payouts.made()
        if started:
            await payouts.house.work()
        payouts.house.ports = lost_wallet(payouts.ports)
        with caplog.at_level(logging.ERROR, logger="cambist.payouts"):
            await payouts.house.work(3 * 3600 - 1)
        assert len([line for line in caplog.records if withdrawal.id in line.getMessage()]) == 3
        payouts.house.ports = payouts.ports
        await payouts.house.work(3600)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_logs_hold_neither_the_signed_transfer_nor_the_address(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture
    ) -> None:
        payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        payouts.script.state.append(Twist(ending=Ending.UNAVAILABLE))
        with caplog.at_level(logging.DEBUG, logger="cambist"):
            await payouts.made()
            await payouts.house.work(60)
        [signed] = payouts.sender.signed.values()
        assert caplog.text
        assert WALLET not in caplog.text
        assert signed.blob.decode() not in caplog.text


class TestOperators:
    async def test_a_pending_payout_is_called_off_and_its_money_is_back(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        done = await cancel_withdrawal(payouts.ports, withdrawal.id, " a wrong wallet ")
        assert (done.status, done.failure) == (S.CANCELLED, "a wrong wallet")
        assert await payouts.statuses(withdrawal.id) == [(None, "pending"), ("pending", "cancelled")]
        assert await payouts.purses() == (CREDIT, ZERO, ZERO)
        assert await payouts.jobs() == []
        await payouts.house.work(3600)
        assert payouts.sender.calls == []
        assert await payouts.pay_out() is not None

    @pytest.mark.parametrize("status", [each for each in S if each is not S.PENDING])
    async def test_from_processing_on_nobody_can_call_it_off(self, payouts: Payouts, status: WithdrawalStatus) -> None:
        script = payouts.script
        if status is S.CANCELLED:
            script.sign.append(Twist(ending=Ending.REFUSED))
        elif status in (S.PROCESSING, S.FAILED):
            script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 20)
        withdrawal = await payouts.made()
        await payouts.house.work(0 if status in (S.PROCESSING, S.SENT) else 600)
        assert (await payouts.record(withdrawal.id)).status is status
        before = await payouts.purses()
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal.id, "too late")
        assert refused.value.code == "INVALID_STATE"
        assert await payouts.purses() == before

    @pytest.mark.parametrize("withdrawal_id", [NOTHING, "nothing", "", "wd_\0"])
    async def test_what_is_not_there_cannot_be_called_off(self, payouts: Payouts, withdrawal_id: str) -> None:
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal_id, "why")
        assert refused.value.code == "WITHDRAWAL_NOT_FOUND"

    @pytest.mark.parametrize("reason", ["", "  ", "x" * (LONGEST_REASON + 1), "a\nb"], ids=ascii)
    async def test_a_reason_is_needed(self, payouts: Payouts, reason: str) -> None:
        withdrawal = await payouts.made()
        with pytest.raises(Refusal) as refused:
            await cancel_withdrawal(payouts.ports, withdrawal.id, reason)
        assert refused.value.code == "VALIDATION_ERROR"

    async def test_what_is_available_is_paid_out_at_once_when_an_operator_asks(self, payouts: Payouts) -> None:
        await payouts.credit()
        withdrawal = await pay_out_now(payouts.ports, payouts.account_id, payouts.mode)
        assert (withdrawal.amount, withdrawal.settlement_id) == (PAID, None)
        await payouts.house.work(60)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_without_money_a_wallet_or_a_way_there_is_no_payout_now(self, payouts: Payouts) -> None:
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
            await payouts.house.clock.advance(1)
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
            await advance(payouts.ports, unit, withdrawal, S.COMPLETED)
    assert await payouts.purses() == (REST, PAID, ZERO)
