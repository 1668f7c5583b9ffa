"""Contract of a USDT sender under failures, cancelled calls and two processes (ports/payouts.py)."""

import msgspec
import pytest

from ...ports.faults import Fault, Unavailable
from ...ports.payouts import FindingSender, UsdtSender
from .benches import PayoutsBench, check_hidden, check_name
from .payouts import OPERATION, UNITS, signed
from .trouble import Ask, CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules


class TestFailures:
    """The wallet reports an unreachable network, has a valid name, and leaks no credential."""

    async def test_a_network_that_is_away_was_certainly_not_sent_to(self, payouts_bench: PayoutsBench) -> None:
        made = await signed(payouts_bench)
        await payouts_bench.be_away()
        with pytest.raises(Unavailable):
            await payouts_bench.sender.broadcast(made)
        with pytest.raises(Unavailable):
            await payouts_bench.sender.state(made)

    async def test_its_name_can_be_stored(self, payouts_bench: PayoutsBench) -> None:
        check_name(payouts_bench.sender)

    async def test_no_credential_shows(self, payouts_bench: PayoutsBench) -> None:
        """Neither the repr nor a fault contains a credential or the blob: anybody with the blob can send the
        transfer."""
        sender: UsdtSender = payouts_bench.sender
        made = await signed(payouts_bench)
        wrong = msgspec.structs.replace(made, tx_hash="0" * 64)
        with pytest.raises(Fault) as raised:
            await sender.broadcast(wrong)
        check_hidden((*payouts_bench.secrets, repr(made.blob)), sender, raised.value, made)


class _OfTransfers:
    @pytest.fixture
    async def work(self, payouts_bench: PayoutsBench) -> Work:
        made = await signed(payouts_bench)

        async def is_there() -> bool:
            return await payouts_bench.moved() == UNITS

        async def once() -> None:
            assert await payouts_bench.moved() == UNITS

        return Work(
            bench=payouts_bench,
            adapter=payouts_bench.sender,
            write=lambda: payouts_bench.sender.broadcast(made),
            is_there=is_there,
            once=once,
            beside=lambda: payouts_bench.restarted().broadcast(made),
        )


class TestPayoutsAtFaults(_OfTransfers, WriteRules, ReadRules):
    """Transfers while the node fails."""

    @pytest.fixture
    async def read(self, payouts_bench: PayoutsBench) -> Reading:
        made, sender = await signed(payouts_bench), payouts_bench.sender
        reads: tuple[Ask, ...] = (lambda: sender.state(made),)
        if isinstance(sender, FindingSender):
            reads = (*reads, lambda: sender.find(OPERATION))
        return Reading(bench=payouts_bench, adapter=sender, reads=reads)


class TestCancelledPayouts(_OfTransfers, CancelRules):
    """Transfers when the caller cancels the call."""


class TestTwoPayOut(_OfTransfers, TwoProcessRules):
    """Two processes send one transfer."""
