"""Contract of a USDT sender under failures, cancelled calls and two processes (ports/payouts.py)."""

import msgspec
import pytest

from ...ports.faults import Fault, Unavailable
from ...ports.payouts import FindingSender, UsdtSender
from .expectations import must_raise
from .harnesses import PayoutsHarness, check_hidden, check_name
from .payouts import OPERATION, UNITS, signed
from .problem import Ask, CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules


class TestFailures:
    """The wallet reports an unreachable network, has a valid name, and leaks no credential."""

    async def test_a_network_that_is_away_was_certainly_not_sent_to(self, payouts_harness: PayoutsHarness) -> None:
        made = await signed(payouts_harness)
        await payouts_harness.be_away()
        with must_raise("a network that cannot be reached is Unavailable: nothing was sent", Unavailable):
            await payouts_harness.sender.broadcast(made)
        with must_raise("a read that failed is Unavailable, and proves nothing", Unavailable):
            await payouts_harness.sender.state(made)

    async def test_its_name_can_be_stored(self, payouts_harness: PayoutsHarness) -> None:
        check_name(payouts_harness.sender)

    async def test_no_credential_shows(self, payouts_harness: PayoutsHarness) -> None:
        """Neither the repr nor a fault contains a credential or the blob: anybody with the blob can send the
        transfer."""
        sender: UsdtSender = payouts_harness.sender
        made = await signed(payouts_harness)
        wrong = msgspec.structs.replace(made, tx_hash="0" * 64)
        with must_raise("a transfer that the wallet did not sign must raise a fault", Fault) as raised:
            await sender.broadcast(wrong)
        check_hidden((*payouts_harness.secrets, repr(made.blob)), sender, raised.value, made)


class _OfTransfers:
    @pytest.fixture
    async def work(self, payouts_harness: PayoutsHarness) -> Work:
        made = await signed(payouts_harness)

        async def is_there() -> bool:
            return await payouts_harness.moved() == UNITS

        async def once() -> None:
            assert await payouts_harness.moved() == UNITS, "one transfer must move its amount once"

        return Work(
            harness=payouts_harness,
            adapter=payouts_harness.sender,
            write=lambda: payouts_harness.sender.broadcast(made),
            is_there=is_there,
            once=once,
            beside=lambda: payouts_harness.restarted().broadcast(made),
        )


class TestPayoutsAtFaults(_OfTransfers, WriteRules, ReadRules):
    """Transfers while the node fails."""

    @pytest.fixture
    async def read(self, payouts_harness: PayoutsHarness) -> Reading:
        made, sender = await signed(payouts_harness), payouts_harness.sender
        reads: tuple[Ask, ...] = (lambda: sender.state(made),)
        if isinstance(sender, FindingSender):
            reads = (*reads, lambda: sender.find(OPERATION))
        return Reading(harness=payouts_harness, adapter=sender, reads=reads)


class TestCancelledPayouts(_OfTransfers, CancelRules):
    """Transfers when the caller cancels the call."""


class TestTwoPayOut(_OfTransfers, TwoProcessRules):
    """Two processes send one transfer."""
