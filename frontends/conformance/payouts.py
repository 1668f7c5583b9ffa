"""Contract of a payout wallet (ports/payouts.py). Your conftest.py provides a fixture `payouts_harness`, a
PayoutsHarness."""

import asyncio
import re
from datetime import UTC, datetime

import msgspec
import pytest

from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.payouts import FindingSender, ListingSender, SentTransfer, SignedTransfer, TransferState, UsdtSender
from .harnesses import PayoutsHarness

OPERATION = "wd_conformance_1"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
UNITS = 250 * 10**8
SENT = (TransferState.IN_BLOCK, TransferState.FINAL)


async def signed(harness: PayoutsHarness, operation: str = OPERATION) -> SignedTransfer:
    return await harness.sender.sign(operation, harness.address, UNITS)


class TestSigning:
    """Signing sends nothing, and returns everything that must be stored before the transfer is sent."""

    async def test_a_signed_transfer_says_what_must_be_stored(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert made.operation == OPERATION
        assert re.fullmatch("[0-9a-f]{64}", made.tx_hash), "64 hex digits in lower case without 0x"
        assert made.blob, "there is nothing to send"
        assert made.expires_at is None or made.expires_at.utcoffset() is not None, "the end has a time zone"

    async def test_signing_sends_nothing(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert await payouts_harness.sender.state(made) is TransferState.UNSEEN
        assert await payouts_harness.moved() == 0

    async def test_two_operations_are_two_transfers(self, payouts_harness: PayoutsHarness) -> None:
        one, other = await signed(payouts_harness), await signed(payouts_harness, "wd_conformance_2")
        assert one.tx_hash != other.tx_hash, "of two payouts alike one would not be paid"
        for each in (one, other):
            await payouts_harness.sender.broadcast(each)
        assert await payouts_harness.moved() == 2 * UNITS

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
        assert await payouts_harness.moved() == step

    async def test_address_of_another_network_is_refused(self, payouts_harness: PayoutsHarness) -> None:
        for address in payouts_harness.wrong_addresses:
            await self._refused(payouts_harness, address, UNITS, "address")

    async def _refused(self, harness: PayoutsHarness, address: str, units: int, reason: str) -> None:
        with pytest.raises(Refused) as refused:
            await harness.sender.sign(OPERATION, address, units)
        assert refused.value.reason == reason


class TestBroadcast:
    """A stored transfer is sent unchanged and only once, however often it is broadcast."""

    async def test_a_transfer_is_in_a_block_and_then_final(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.sender.state(made) in (TransferState.UNSEEN, *SENT), (
            "it was sent: nothing is proven"
        )
        await payouts_harness.make_final(made)
        assert await payouts_harness.sender.state(made) is TransferState.FINAL
        assert await payouts_harness.moved() == UNITS

    async def test_a_repeat_is_the_same_transfer_and_success(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        for _ in range(3):
            await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, "a repeat moved the money again"
        await payouts_harness.make_final(made)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS, "a repeat moved the money again"

    async def test_repeats_at_once_are_one_transfer(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await asyncio.gather(*(payouts_harness.sender.broadcast(made) for _ in range(5)))
        assert await payouts_harness.moved() == UNITS

    async def test_stored_transfer_can_be_sent_after_a_restart(self, payouts_harness: PayoutsHarness) -> None:
        """The stored transfer contains everything needed to send it, so another process can send it from the
        database."""
        stored = msgspec.json.encode(await signed(payouts_harness))
        read = msgspec.json.decode(stored, type=SignedTransfer)
        await payouts_harness.restarted().broadcast(read)
        await payouts_harness.make_final(read)
        assert await payouts_harness.restarted().state(read) is TransferState.FINAL

    @pytest.mark.parametrize("done", [True, False])
    async def test_lost_answer_is_an_unknown_outcome_and_a_repeat_pays_once(
        self, payouts_harness: PayoutsHarness, done: bool
    ) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await payouts_harness.sender.broadcast(made)
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS

    @pytest.mark.parametrize("change", [{"tx_hash": "0" * 64}, {"blob": b""}, {"blob": b"{}"}], ids=str)
    async def test_transfer_that_the_wallet_did_not_sign_is_refused(
        self, payouts_harness: PayoutsHarness, change: dict[str, object]
    ) -> None:
        wrong = msgspec.structs.replace(await signed(payouts_harness), **change)
        with pytest.raises(Refused) as refused:
            await payouts_harness.sender.broadcast(wrong)
        assert refused.value.reason == "invalid"
        assert await payouts_harness.moved() == 0


class TestEnds:
    """FAILED proves that the transfer can never happen, and the money is returned after it. The wallet must not report
    it too early, and nothing may be sent afterwards."""

    async def test_unsent_transfer_is_unseen_until_it_expires(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        assert await payouts_harness.sender.state(made) is TransferState.UNSEEN, "it may still come: nothing is proven"
        await payouts_harness.outlive(made)
        assert await payouts_harness.sender.state(made) is TransferState.FAILED

    async def test_transfer_proven_failed_stays_failed(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.outlive(made)
        for wallet in (payouts_harness.sender, payouts_harness.restarted()):
            with pytest.raises(Refused) as refused:
                await wallet.broadcast(made)
            assert refused.value.reason == "expired"
            assert await wallet.state(made) is TransferState.FAILED
        assert await payouts_harness.moved() == 0

    async def test_final_transfer_does_not_expire(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.sender.broadcast(made)
        await payouts_harness.outlive(made)
        assert await payouts_harness.sender.state(made) is TransferState.FINAL
        await payouts_harness.sender.broadcast(made)
        assert await payouts_harness.moved() == UNITS


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
        assert await payouts_harness.sender.state(found.signed) is TransferState.FINAL, "what was found can be followed"

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
        with pytest.raises(OutcomeUnknown):
            await wallet.broadcast(made)
        if done:
            await self._is_found(payouts_harness, wallet, made)
        await wallet.broadcast(made)
        await self._is_found(payouts_harness, wallet, made)

    async def test_unsent_transfer_is_not_found(self, payouts_harness: PayoutsHarness) -> None:
        wallet = _finding(payouts_harness.sender)
        assert await wallet.find(OPERATION) is None
        made = await signed(payouts_harness)
        assert await wallet.find(OPERATION) is None, "it was signed and not sent: nothing was paid"
        await wallet.broadcast(made)
        for other in ("wd_conformance_2", OPERATION[:-1], f"{OPERATION}1", f"{OPERATION}/1"):
            assert await wallet.find(other) is None, "that is another operation"

    async def test_failed_transfer_is_not_found_but_its_successor_is(self, payouts_harness: PayoutsHarness) -> None:
        wallet = _finding(payouts_harness.sender)
        await payouts_harness.outlive(await signed(payouts_harness))
        assert await wallet.find(OPERATION) is None, "it can come no more: it may be signed again"
        again = await signed(payouts_harness)
        await wallet.broadcast(again)
        await self._is_found(payouts_harness, wallet, again)

    async def test_transfers_sent_since_a_moment_are_listed(self, payouts_harness: PayoutsHarness) -> None:
        """The list survives the loss of the wallet's notes, and contains no transfer that was only signed."""
        wallet = _listing(payouts_harness.sender)
        made = await signed(payouts_harness)
        assert list(await wallet.sent_since(_LONG_AGO)) == []
        await wallet.broadcast(made)
        await payouts_harness.forget()
        for asked in (wallet, _listing(payouts_harness.restarted())):
            listed = await asked.sent_since(_LONG_AGO)
            told = [(each.signed.operation, each.signed.tx_hash, each.units, each.address) for each in listed]
            assert told == [(made.operation, made.tx_hash, UNITS, payouts_harness.address)]
        await payouts_harness.be_away()
        with pytest.raises(Unavailable):
            await _listing(payouts_harness.restarted()).sent_since(_LONG_AGO)

    async def test_a_network_that_is_away_says_nothing(self, payouts_harness: PayoutsHarness) -> None:
        """Returning None would prove that nothing was sent, and the transfer would be paid again."""
        wallet = _finding(payouts_harness.sender)
        await payouts_harness.be_away()
        with pytest.raises(Unavailable):
            await wallet.find(OPERATION)

    async def _is_found(self, harness: PayoutsHarness, wallet: FindingSender, made: SignedTransfer) -> SentTransfer:
        found = await wallet.find(made.operation)
        assert found is not None, "what was sent is forgotten: it would be paid twice"
        assert (found.signed.operation, found.signed.tx_hash) == (made.operation, made.tx_hash)
        assert found.units == UNITS
        assert found.address == harness.address
        return found


def _listing(sender: UsdtSender) -> ListingSender:
    if not isinstance(sender, ListingSender):
        pytest.skip("the wallet cannot list what it sent: a restored database is compared with its statements by hand")
    return sender


def _finding(sender: UsdtSender) -> FindingSender:
    if not isinstance(sender, FindingSender):
        pytest.skip("the wallet cannot be asked what it sent: nothing protects a restored database but its operator")
    return sender
