"""A payout on TRON is paid once, despite crashes at any point and lost or wrong answers of the network
(docs/providers/chains.md "Paying out")."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec
import pytest

from cambist.core.domain.settlement.withdrawals import WithdrawalStatus
from cambist.ports.payouts import Senders
from cambist.testing import ProviderFault
from tests.chains.test_tron_payouts import RICH, TronHarness, is_broadcast
from tests.chains.tron_network import TronNetwork
from tests.crash_points import CrashPoint, Killed, fused
from tests.payout_kit import PAID, Payouts, open_payouts

COMMITS = 6
"""The payout, its signed transfer, `sent`, and polls. The later polls are alike until the transfer is final."""
ROUGH = (ProviderFault.LOST_BEFORE, ProviderFault.LOST_AFTER)


async def run_with_crash(commit: int, *, after: bool, faults: Sequence[ProviderFault] = ()) -> tuple[int, int]:
    """Pay out, crash at a commit, and let another process continue. Return the number of commits, and the
    broadcasts."""
    async with open_payouts() as payouts, TronNetwork(payouts.app.clock) as network:
        network.lively = True
        for fault in faults:
            network.next(fault, matching=is_broadcast)
        harness = TronHarness(network)
        senders = Senders(senders={"tron": harness.sender}, modes={"test": "tron"})
        whole = payouts.ports = payouts.app.ports = msgspec.structs.replace(payouts.ports, senders=senders)
        await payouts.credit()
        commits = CrashPoint(commit, after=after)
        payouts.app.ports = fused(whole, commits)
        with suppress(Killed):
            await payouts.pay_out()
            await worked(payouts)
        payouts.app.ports = whole
        await payouts.pay_out()
        await worked(payouts)
        assert RICH - network.usdt[harness.owner] == PAID.units // 100
        assert {each.status for each in await payouts.every()} == {WithdrawalStatus.COMPLETED}
        sent = sum(map(is_broadcast, network.requests))
        await harness.close()
        return commits.commits, sent


async def worked(payouts: Payouts) -> None:
    """Let time pass until all transfers are final."""
    for _ in range(30):
        await payouts.app.work(10)


async def test_a_payout_that_nothing_befalls_is_broadcast_once() -> None:
    commits, sent = await run_with_crash(0, after=False)
    assert commits > COMMITS
    assert sent == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("commit", range(1, COMMITS + 1))
@pytest.mark.parametrize("faults", [(), ROUGH], ids=["calm", "rough"])
async def test_a_crash_at_any_commit_pays_once(commit: int, after: bool, faults: Sequence[ProviderFault]) -> None:
    assert (await run_with_crash(commit, after=after, faults=faults))[1] >= 1
