"""What a sender of USDT says in its faults, and when it is given up or asked by two (ports/payouts.py)."""

import msgspec
import pytest

from ...ports.faults import Fault, Unavailable
from ...ports.payouts import FindingSender, UsdtSender
from .benches import PayoutsBench, check_hidden, check_name
from .payouts import OPERATION, UNITS, signed
from .trouble import Ask, CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules


class TestFailures:
    """What the network does not answer, and what the wallet says of itself."""

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
        """In its repr, and in what it raises; nor the blob, which whoever holds it can send."""
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
    """Transfers by a node that fails."""

    @pytest.fixture
    async def read(self, payouts_bench: PayoutsBench) -> Reading:
        made, sender = await signed(payouts_bench), payouts_bench.sender
        reads: tuple[Ask, ...] = (lambda: sender.state(made),)
        if isinstance(sender, FindingSender):
            reads = (*reads, lambda: sender.find(OPERATION))
        return Reading(bench=payouts_bench, adapter=sender, reads=reads)


class TestCancelledPayouts(_OfTransfers, CancelRules):
    """Transfers whose caller goes away."""


class TestTwoPayOut(_OfTransfers, TwoProcessRules):
    """Two processes send one transfer."""
