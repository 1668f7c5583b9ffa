"""Contract of a payout wallet (ports/payouts.py). Your conftest.py provides a fixture `payouts_harness`, a
PayoutsHarness."""

import asyncio
import re
from datetime import UTC, datetime

import msgspec
import pytest

from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.payouts import FindingSender, ListingSender, SentTransfer, SignedTransfer, TransferState, UsdtSender
from .expectations import must_answer, must_raise
from .harnesses import PayoutsHarness

OPERATION = "wd_conformance_1"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
UNITS = 250 * 10**8
ODD = 123_456_789 * 100
"""Units of an amount with all decimals that a network of 6 has."""
SENT = (TransferState.IN_BLOCK, TransferState.FINAL)

_REPEAT = "a repeat must be the same transfer: it must not move the money again"
_AMOUNT = "a transfer must move its amount exactly, in units of 0.00000001 USDT"
_UNKNOWN = "a broadcast whose answer is lost has an unknown outcome: the transfer may have been sent"


async def signed(harness: PayoutsHarness, operation: str = OPERATION) -> SignedTransfer:
    return await harness.sender.sign(operation, harness.address, UNITS)


class TestSigning:
    """Signing sends nothing, and returns everything that must be stored before the transfer is sent."""

    async def test_a_signed_transfer_says_what_must_be_stored(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert made.operation == OPERATION, "a signed transfer must name the operation that it is for"
        assert re.fullmatch("[0-9a-f]{64}", made.tx_hash), "64 hex digits in lower case without 0x"
        assert made.blob, "there is nothing to send"
        assert made.expires_at is None or made.expires_at.utcoffset() is not None, "the end has a time zone"

    async def test_signing_sends_nothing(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert await payouts_harness.sender.state(made) is TransferState.UNSEEN, "signing must send nothing"
        assert await payouts_harness.moved() == 0, "signing must send nothing"

    async def test_the_address_gets_the_amount_to_the_last_digit(self, payouts_harness: PayoutsHarness) -> None:
        made = await payouts_harness.sender.sign(OPERATION, payouts_harness.address, ODD)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.make_final(made)
        assert await payouts_harness.moved() == ODD, _AMOUNT
        assert await payouts_harness.paid(payouts_harness.address) == ODD, (
            "the address of the request must get the money, and no other"
        )

    async def test_two_operations_are_two_transfers(self, payouts_harness: PayoutsHarness) -> None:
        one, other = await signed(payouts_harness), await signed(payouts_harness, "wd_conformance_2")
        assert one.tx_hash != other.tx_hash, "two operations must be two transfers: of two alike one would not be paid"
        for each in (one, other):
            await payouts_harness.sender.broadcast(each)
        assert await payouts_harness.moved() == 2 * UNITS, "two operations must both be paid"

    @pytest.mark.parametrize("units", [0, -1, -(10**8)])
    async def test_nothing_and_less_is_refused(self, payouts_harness: PayoutsHarness, units: int) -> None:
        await self._refused(payouts_harness, payouts_harness.address, units, "amount")

    async def test_amount_that_is_no_multiple_of_the_step_is_refused(self, payouts_harness: PayoutsHarness) -> None:
        """Rounding down would send less than was booked."""
        if payouts_harness.sender.capabilities.step == 1:
            pytest.skip("the network moves any amount")
        for units in (1, UNITS + 1, UNITS - 1):
            await self._refused(payouts_harness, payouts_harness.address, units, "amount")

    async def test_the_smallest_amount_can_be_sent(self, payouts_harness: PayoutsHarness) -> None:
        step = payouts_harness.sender.capabilities.step
        made = await payouts_harness.sender.sign(OPERATION, payouts_harness.address, step)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == step, _AMOUNT

    async def test_address_of_another_network_is_refused(self, payouts_harness: PayoutsHarness) -> None:
        for address in payouts_harness.wrong_addresses:
            await self._refused(payouts_harness, address, UNITS, "address")

    async def _refused(self, harness: PayoutsHarness, address: str, units: int, reason: str) -> None:
        with must_raise(f"a transfer with a wrong {reason} must be Refused", Refused, reason=reason):
            await harness.sender.sign(OPERATION, address, units)


class TestBroadcast:
    """A stored transfer is sent unchanged and only once, however often it is broadcast."""

    async def test_a_transfer_is_in_a_block_and_then_final(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.sender.state(made) in (TransferState.UNSEEN, *SENT), (
            "a transfer that was sent must not be FAILED: nothing is proven"
        )
        if not payouts_harness.final_at_once:
            assert await payouts_harness.sender.state(made) is not TransferState.FINAL, (
                "a transfer must not be FINAL while its block may be reverted: are confirmations counted?"
            )
        await payouts_harness.make_final(made)
        assert await payouts_harness.sender.state(made) is TransferState.FINAL, (
            "a transfer must be FINAL with its block: each read reports the present state"
        )
        assert await payouts_harness.moved() == UNITS, _AMOUNT

    async def test_transfer_that_the_contract_refused_is_failed(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.revert(made)
        assert await payouts_harness.sender.state(made) is TransferState.FAILED, (
            "a final transaction that moved nothing must be FAILED, and not FINAL"
        )

    async def test_transfer_whose_block_is_taken_back_is_unseen(self, payouts_harness: PayoutsHarness) -> None:
        """The service broadcasts it again."""
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.take_back(made)
        assert await payouts_harness.sender.state(made) is TransferState.UNSEEN, (
            "a transfer whose block was taken back must be UNSEEN: it may still come"
        )
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, "a transfer whose block was taken back must be sent again"

    async def test_a_repeat_is_the_same_transfer_and_success(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        for _ in range(3):
            await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, _REPEAT
        await payouts_harness.make_final(made)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, _REPEAT

    async def test_repeats_at_once_are_one_transfer(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await asyncio.gather(*(payouts_harness.sender.broadcast(made) for _ in range(5)))
        assert await payouts_harness.moved() == UNITS, _REPEAT

    async def test_stored_transfer_can_be_sent_after_a_restart(self, payouts_harness: PayoutsHarness) -> None:
        """The stored transfer contains everything needed to send it, so another process can send it from the
        database."""
        stored = msgspec.json.encode(await signed(payouts_harness))
        read = msgspec.json.decode(stored, type=SignedTransfer)
        rule = "a stored transfer must be enough to send it and to follow it from another process"
        with must_answer(rule):
            await payouts_harness.restarted().broadcast(read)
        await payouts_harness.make_final(read)
        assert await payouts_harness.restarted().state(read) is TransferState.FINAL, rule

    @pytest.mark.parametrize("done", [True, False])
    async def test_lost_answer_is_an_unknown_outcome_and_a_repeat_pays_once(
        self, payouts_harness: PayoutsHarness, done: bool
    ) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.lose_next_answer(done=done)
        with must_raise(_UNKNOWN, OutcomeUnknown):
            await payouts_harness.sender.broadcast(made)
        with must_answer("a repeat after a lost answer must succeed, whatever the network knows"):
            await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, _REPEAT

    @pytest.mark.parametrize("change", [{"tx_hash": "0" * 64}, {"blob": b""}, {"blob": b"{}"}], ids=str)
    async def test_transfer_that_the_wallet_did_not_sign_is_refused(
        self, payouts_harness: PayoutsHarness, change: dict[str, object]
    ) -> None:
        wrong = msgspec.structs.replace(await signed(payouts_harness), **change)
        with must_raise("a transfer that the wallet did not sign must be Refused", Refused, reason="invalid"):
            await payouts_harness.sender.broadcast(wrong)
        assert await payouts_harness.moved() == 0, "a transfer that was refused must move nothing"


class TestEnds:
    """FAILED proves that the transfer can never happen, and the money is returned after it. The wallet must not report
    it too early, and nothing may be sent afterwards."""

    async def test_unsent_transfer_is_unseen_until_it_expires(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert await payouts_harness.sender.state(made) is TransferState.UNSEEN, (
            "an unsent transfer must be UNSEEN until it is proven absent: it may still come"
        )
        await payouts_harness.outlive(made)
        assert await payouts_harness.sender.state(made) is TransferState.FAILED, (
            "a transfer that can never come must be FAILED, or its money is never returned"
        )

    async def test_transfer_proven_failed_stays_failed(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.outlive(made)
        for wallet in (payouts_harness.sender, payouts_harness.restarted()):
            with must_raise("a transfer that expired must be Refused", Refused, reason="expired"):
                await wallet.broadcast(made)
            assert await wallet.state(made) is TransferState.FAILED, "a transfer proven failed must stay FAILED"
        assert await payouts_harness.moved() == 0, "a transfer proven failed must move nothing: its money was returned"

    async def test_final_transfer_does_not_expire(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.outlive(made)
        assert await payouts_harness.sender.state(made) is TransferState.FINAL, "a final transfer must never expire"
        with must_answer("a repeat of a final transfer is success"):
            await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, _REPEAT


class TestMemory:
    """A restored database has forgotten transfers that the wallet and the network remember. A wallet that can search by
    operation reports them, so that they are not sent again."""

    async def test_sent_transfer_is_found_by_its_operation(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        for wallet in (_finding(payouts_harness.sender), _finding(payouts_harness.restarted())):
            await self._is_found(payouts_harness, wallet, made)

    async def test_it_is_found_when_it_is_final(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.make_final(made)
        await payouts_harness.outlive(made)
        found = await self._is_found(payouts_harness, _finding(payouts_harness.restarted()), made)
        assert await payouts_harness.sender.state(found.signed) is TransferState.FINAL, (
            "a transfer that `find` returns must be one whose state can be read"
        )

    async def test_it_is_found_although_we_forgot_all_of_it(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.forget()
        await self._is_found(payouts_harness, _finding(payouts_harness.restarted()), made)

    @pytest.mark.parametrize("done", [True, False])
    async def test_after_a_lost_answer_the_network_s_word_counts(
        self, payouts_harness: PayoutsHarness, done: bool
    ) -> None:
        wallet = _finding(payouts_harness.sender)
        made = await signed(payouts_harness)
        await payouts_harness.lose_next_answer(done=done)
        with must_raise(_UNKNOWN, OutcomeUnknown):
            await wallet.broadcast(made)
        if done:
            await self._is_found(payouts_harness, wallet, made)
        await wallet.broadcast(made)
        await self._is_found(payouts_harness, wallet, made)

    async def test_unsent_transfer_is_not_found(self, payouts_harness: PayoutsHarness) -> None:
        wallet = _finding(payouts_harness.sender)
        assert await wallet.find(OPERATION) is None, "an operation without a transfer must be found as None"
        made = await signed(payouts_harness)
        assert await wallet.find(OPERATION) is None, "a transfer that was only signed must not be found"
        await wallet.broadcast(made)
        for other in ("wd_conformance_2", OPERATION[:-1], f"{OPERATION}1", f"{OPERATION}/1"):
            assert await wallet.find(other) is None, "`find` must compare the whole operation id"

    async def test_failed_transfer_is_not_found_but_its_successor_is(self, payouts_harness: PayoutsHarness) -> None:
        wallet = _finding(payouts_harness.sender)
        await payouts_harness.outlive(await signed(payouts_harness))
        assert await wallet.find(OPERATION) is None, "a failed transfer must not be found: it is signed again"
        again = await signed(payouts_harness)
        await wallet.broadcast(again)
        await self._is_found(payouts_harness, wallet, again)

    async def test_transfers_sent_since_a_moment_are_listed(self, payouts_harness: PayoutsHarness) -> None:
        """The list survives the loss of the wallet's notes, and contains no transfer that was only signed."""
        wallet = _listing(payouts_harness.sender)
        made = await signed(payouts_harness)
        assert list(await wallet.sent_since(_LONG_AGO)) == [], "a transfer that was only signed must not be listed"
        await wallet.broadcast(made)
        await payouts_harness.forget()
        for asked in (wallet, _listing(payouts_harness.restarted())):
            listed = await asked.sent_since(_LONG_AGO)
            told = [(each.signed.operation, each.signed.tx_hash, each.units, each.address) for each in listed]
            assert told == [(made.operation, made.tx_hash, UNITS, payouts_harness.address)], (
                "each transfer that was sent must be listed once, with its operation, hash, amount and address"
            )
        await payouts_harness.be_away()
        with must_raise("a list that failed is Unavailable, and never empty", Unavailable):
            await _listing(payouts_harness.restarted()).sent_since(_LONG_AGO)

    async def test_each_of_many_transfers_is_listed(self, payouts_harness: PayoutsHarness) -> None:
        wallet, wanted = _listing(payouts_harness.sender), []
        for number in range(2 * payouts_harness.page + 1):
            made = await signed(payouts_harness, f"wd_conformance_{number}")
            await wallet.broadcast(made)
            await payouts_harness.make_final(made)
            wanted.append(made.tx_hash)
        listed = [each.signed.tx_hash for each in await wallet.sent_since(_LONG_AGO)]
        assert sorted(listed) == sorted(wanted), (
            "each transfer must be listed once: are the later pages read, and their first and last rows?"
        )

    async def test_a_network_that_is_away_says_nothing(self, payouts_harness: PayoutsHarness) -> None:
        """Returning None would prove that nothing was sent, and the transfer would be paid again."""
        wallet = _finding(payouts_harness.sender)
        await payouts_harness.be_away()
        with must_raise("a read that failed is Unavailable, and never None", Unavailable):
            await wallet.find(OPERATION)

    async def _is_found(self, harness: PayoutsHarness, wallet: FindingSender, made: SignedTransfer) -> SentTransfer:
        found = await wallet.find(made.operation)
        assert found is not None, "a transfer that was sent must be found by its operation, or it would be paid twice"
        assert (found.signed.operation, found.signed.tx_hash) == (made.operation, made.tx_hash), (
            "an operation must find its own transfer"
        )
        assert found.units == UNITS, "a transfer must be found with its amount, in units of 0.00000001 USDT"
        assert found.address == harness.address, "a transfer must be found with its address"
        return found


def _listing(sender: UsdtSender) -> ListingSender:
    if not isinstance(sender, ListingSender):
        pytest.skip("the wallet cannot list what it sent: a restored database is compared with its statements by hand")
    return sender


def _finding(sender: UsdtSender) -> FindingSender:
    if not isinstance(sender, FindingSender):
        pytest.skip("the wallet cannot be asked what it sent: nothing protects a restored database but its operator")
    return sender
