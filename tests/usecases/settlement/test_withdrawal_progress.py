"""A payout on its way: signed, sent, followed to its end, with its money and events (docs/settlement.md "Payouts")."""

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from cambist.adapters.payouts.simulator import FINALITY, LIFETIME
from cambist.adapters.script import Ending, Twist
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import WITHDRAWAL_MOVES, Withdrawal, WithdrawalStatus
from cambist.core.usecases.common.encrypted import tag_withdrawal
from cambist.core.usecases.signed_transfers.engine import SIGN_BACKOFF, poll_pause
from cambist.ports.payouts import TransferState
from tests.moves import pairs
from tests.payout_kit import CREDIT, OTHER_WALLET, PAID, REST, WALLET, Payouts, lost_wallet, open_payouts
from tests.planting import beneath

S = WithdrawalStatus
ZERO = Usdt(0)
EXPIRED = (LIFETIME + FINALITY).total_seconds()
COMPLETED = [(None, "pending"), ("pending", "processing"), ("processing", "sent"), ("sent", "completed")]
FAILED_UNSENT = [(None, "pending"), ("pending", "processing"), ("processing", "failed")]


@pytest.fixture
async def payouts() -> AsyncIterator[Payouts]:
    async with open_payouts() as opened:
        yield opened


class TestTheWay:
    async def test_a_payout_is_signed_sent_and_final(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.app.work(60)
        done = await payouts.record(withdrawal.id)
        assert (done.status, done.failure, done.blob, done.sequence) == (S.COMPLETED, None, None, 4)
        assert await payouts.on_chain() == [(WALLET, PAID.units)]
        assert await payouts.balance_types() == (REST, ZERO, PAID)
        assert await payouts.jobs() == []
        assert payouts.sender.count("sign") == payouts.sender.count("broadcast") == 1

    async def test_every_move_has_its_event_and_the_hash_is_shown_from_sent_on(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        [tx_hash] = payouts.sender.hashes("sign")
        shown = [event["tx_hash"] for event in await payouts.app.events(withdrawal.id)]
        assert shown == [None, None, tx_hash, tx_hash]

    async def test_the_signed_transfer_is_stored_before_it_is_broadcast(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        stored: list[Withdrawal] = []

        async def look(call: str) -> None:
            if call == "broadcast":
                stored.append(await payouts.record(withdrawal.id))

        payouts.sender.before = look
        await payouts.app.work()
        [at_broadcast] = stored
        [signed] = payouts.sender.signed.values()
        assert (at_broadcast.status, at_broadcast.tx_hash) == (S.PROCESSING, signed.tx_hash)
        assert (at_broadcast.blob, at_broadcast.signed_until) == (signed.blob, signed.expires_at)

    async def test_a_wallet_that_is_set_later_changes_nothing(self, payouts: Payouts) -> None:
        await payouts.made()
        await payouts.set_wallet(OTHER_WALLET)
        await payouts.app.work(60)
        assert await payouts.on_chain() == [(WALLET, PAID.units)]

    @pytest.mark.parametrize(("before", "after"), pairs(WITHDRAWAL_MOVES))
    async def test_every_row_of_the_table_is_reached(
        self, payouts: Payouts, before: WithdrawalStatus, after: WithdrawalStatus
    ) -> None:
        script = payouts.script
        if after is S.CANCELLED:
            script.sign.append(Twist(ending=Ending.REFUSED))
        elif (before, after) == (S.PROCESSING, S.FAILED):
            script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 20)
        withdrawal = await payouts.made()
        await payouts.app.work()
        if (before, after) == (S.SENT, S.FAILED):
            [tx_hash] = payouts.sender.hashes("sign")
            await payouts.sender.inner.simulate(tx_hash, TransferState.FAILED)
        await payouts.app.work(600)
        assert (before, after) in await payouts.statuses(withdrawal.id)


class TestSigning:
    async def test_refused_for_certain_it_is_cancelled_and_the_money_is_back(self, payouts: Payouts) -> None:
        payouts.script.sign.append(Twist(ending=Ending.REFUSED, reason="address"))
        withdrawal = await payouts.made()
        await payouts.app.work(3600)
        done = await payouts.record(withdrawal.id)
        assert (done.status, done.tx_hash) == (S.CANCELLED, None)
        assert done.failure == "not signed, address: refused by the script"
        assert await payouts.statuses(withdrawal.id) == [(None, "pending"), ("pending", "cancelled")]
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)
        assert await payouts.jobs() == []

    async def test_an_address_with_a_wrong_checksum_is_never_given_to_the_wallet(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        wrong = WALLET[:-1] + ("a" if WALLET[-1] != "a" else "b")
        async with beneath(payouts.ports).unit() as unit:
            forged = msgspec.structs.replace(withdrawal, wallet=wrong)
            unit[Withdrawal].save(tag_withdrawal(payouts.ports.vault, forged))
            await unit.commit()
        await payouts.app.work()
        assert (await payouts.record(withdrawal.id)).status is S.CANCELLED
        assert payouts.sender.calls == []

    async def test_unavailable_it_stays_pending_and_is_tried_again_on_a_backoff(self, payouts: Payouts) -> None:
        tries = len(SIGN_BACKOFF) + 2
        payouts.script.sign.extend([Twist(ending=Ending.UNAVAILABLE, message="the wallet is empty")] * tries)
        times: list[float] = []
        began = payouts.ports.clock.now()

        async def note(call: str) -> None:
            if call == "sign":
                times.append((payouts.ports.clock.now() - began).total_seconds())

        payouts.sender.before = note
        withdrawal = await payouts.made()
        await payouts.app.work(2 * 3600)
        assert (await payouts.record(withdrawal.id)).status is S.PENDING
        assert await payouts.balance_types() == (REST, PAID, ZERO)
        await payouts.app.work(2 * 3600)
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert pauses == [10, 30, 120, 600, 3600, 3600, 3600]
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED
        assert await payouts.statuses(withdrawal.id) == COMPLETED

    async def test_the_wallets_own_pause_is_kept_where_it_is_longer(self, payouts: Payouts) -> None:
        payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE, retry_after=90))
        await payouts.made()
        await payouts.app.work(89)
        assert payouts.sender.count("sign") == 1
        await payouts.app.work(1)
        assert payouts.sender.count("sign") == 2


class TestBroadcasting:
    @pytest.mark.parametrize("times", [1, 3])
    @pytest.mark.parametrize(
        "ending", [Ending.REFUSED, Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE, Ending.UNKNOWN_DONE]
    )
    async def test_only_the_same_transfer_is_sent_again_whatever_the_answer(
        self, payouts: Payouts, ending: Ending, times: int
    ) -> None:
        payouts.script.broadcast.extend([Twist(ending=ending)] * times)
        withdrawal = await payouts.made()
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        assert payouts.sender.count("sign") == 1
        assert payouts.sender.hashes("broadcast") == payouts.sender.hashes("sign")
        assert await payouts.on_chain() == [(WALLET, PAID.units)]
        assert await payouts.balance_types() == (REST, ZERO, PAID)

    async def test_an_unknown_outcome_is_asked_for_before_anything_is_sent_again(self, payouts: Payouts) -> None:
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_DONE))
        await payouts.made()
        await payouts.app.work(60)
        assert [name for name, _ in payouts.sender.calls][:4] == ["find", "sign", "broadcast", "state"]
        assert payouts.sender.count("broadcast") == 1

    @pytest.mark.parametrize("ending", [Ending.REFUSED, Ending.UNAVAILABLE, Ending.UNKNOWN_NOT_DONE])
    async def test_transfer_proven_lost_fails_and_the_next_settlement_pays_it(
        self, payouts: Payouts, ending: Ending
    ) -> None:
        payouts.script.broadcast.extend([Twist(ending=ending)] * 100)
        withdrawal = await payouts.made()
        await payouts.app.work(EXPIRED - 1)
        assert (await payouts.record(withdrawal.id)).status is S.PROCESSING
        assert await payouts.balance_types() == (REST, PAID, ZERO)
        await payouts.app.work(30)
        failed = await payouts.record(withdrawal.id)
        assert (failed.status, failed.blob) == (S.FAILED, None)
        assert failed.failure is not None
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)
        assert await payouts.statuses(withdrawal.id) == FAILED_UNSENT
        assert {event["tx_hash"] for event in await payouts.app.events(withdrawal.id)} == {None}
        payouts.script.broadcast.clear()
        second = await payouts.pay_out()
        await payouts.app.work(60)
        assert second is not None
        assert (await payouts.record(second.id)).status is S.COMPLETED
        assert await payouts.on_chain() == [(WALLET, PAID.units)]

    async def test_nothing_is_broadcast_from_its_end_on(self, payouts: Payouts) -> None:
        payouts.script.broadcast.extend([Twist(ending=Ending.UNAVAILABLE)] * 100)
        times = []
        end = payouts.ports.clock.now() + LIFETIME

        async def note(call: str) -> None:
            if call == "broadcast":
                times.append(payouts.ports.clock.now())

        payouts.sender.before = note
        await payouts.made()
        await payouts.app.work(600)
        assert end - max(times) == timedelta(seconds=5)


class TestWatching:
    async def test_a_state_that_cannot_be_read_is_read_again(self, payouts: Payouts) -> None:
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE)] * 3)
        withdrawal = await payouts.made()
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED

    async def test_a_state_that_stays_away_for_hours_says_nothing(self, payouts: Payouts) -> None:
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE, retry_after=7200)] * 2)
        withdrawal = await payouts.made()
        await payouts.app.work(7200)
        assert (await payouts.record(withdrawal.id)).status is S.SENT
        await payouts.app.work(7210)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_final_at_first_sight_it_was_sent_on_the_way(self, payouts: Payouts) -> None:
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_DONE))
        payouts.script.state.extend([Twist(ending=Ending.UNAVAILABLE)] * 3)
        withdrawal = await payouts.made()
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        done = await payouts.record(withdrawal.id)
        assert (done.sequence, done.sent_at) == (4, done.completed_at)

    async def test_reverted_after_it_was_sent_it_fails_and_keeps_its_hash(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.app.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.simulate(tx_hash, TransferState.FAILED)
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == [*COMPLETED[:3], ("sent", "failed")]
        assert [event["tx_hash"] for event in await payouts.app.events(withdrawal.id)][2:] == [tx_hash, tx_hash]
        assert await payouts.balance_types() == (CREDIT, ZERO, ZERO)

    async def test_a_dropped_block_is_followed_by_the_same_transfer(self, payouts: Payouts) -> None:
        withdrawal = await payouts.made()
        await payouts.app.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.simulate(tx_hash, TransferState.UNSEEN)
        await payouts.app.work(60)
        assert await payouts.statuses(withdrawal.id) == COMPLETED
        assert payouts.sender.count("broadcast") == 2
        assert payouts.sender.hashes("broadcast") == {tx_hash}

    @pytest.mark.parametrize("ending", [Ending.NORMAL, Ending.UNKNOWN_DONE])
    async def test_payout_stays_sent_while_its_block_may_be_reorganized(self, payouts: Payouts, ending: Ending) -> None:
        payouts.script.broadcast.append(Twist(ending=ending))
        withdrawal = await payouts.made()
        await payouts.app.work()
        [tx_hash] = payouts.sender.hashes("sign")
        await payouts.sender.inner.simulate(tx_hash, TransferState.IN_BLOCK)
        await payouts.app.work(3600)
        assert (await payouts.record(withdrawal.id)).status is S.SENT
        assert payouts.sender.count("broadcast") == 1
        assert await payouts.balance_types() == (REST, PAID, ZERO)

    @pytest.mark.parametrize(
        ("passed", "pause"),
        [(-60, 5), (0, 5), (299, 5), (300, 60), (3599, 60), (3600, 600), (864_000, 600)],
    )
    async def test_the_longer_it_takes_the_rarer_it_is_asked(self, payouts: Payouts, passed: int, pause: int) -> None:
        now = payouts.ports.clock.now()
        assert poll_pause(now - timedelta(seconds=passed), now) == timedelta(seconds=pause)

    @pytest.mark.parametrize("started", [False, True], ids=["pending", "sent"])
    async def test_a_wallet_that_is_no_longer_wired_is_waited_for_by_the_hour(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture, started: bool
    ) -> None:
        withdrawal = await payouts.made()
        if started:
            await payouts.app.work()
        payouts.app.ports = lost_wallet(payouts.ports)
        with caplog.at_level(logging.ERROR, logger="cambist.payouts"):
            await payouts.app.work(3 * 3600 - 1)
        assert len([line for line in caplog.records if withdrawal.id in line.getMessage()]) == 3
        payouts.app.ports = payouts.ports
        await payouts.app.work(3600)
        assert (await payouts.record(withdrawal.id)).status is S.COMPLETED

    async def test_logs_hold_neither_the_signed_transfer_nor_the_address(
        self, payouts: Payouts, caplog: pytest.LogCaptureFixture
    ) -> None:
        payouts.script.sign.append(Twist(ending=Ending.UNAVAILABLE))
        payouts.script.broadcast.append(Twist(ending=Ending.UNKNOWN_NOT_DONE))
        payouts.script.state.append(Twist(ending=Ending.UNAVAILABLE))
        with caplog.at_level(logging.DEBUG, logger="cambist"):
            await payouts.made()
            await payouts.app.work(60)
        [signed] = payouts.sender.signed.values()
        assert caplog.text
        assert WALLET not in caplog.text
        assert signed.blob.decode() not in caplog.text
