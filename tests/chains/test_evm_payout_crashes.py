"""A payout on an EVM network is paid once, despite crashes at any point and lost or wrong answers of the network
(docs/providers/chains.md "Paying out")."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.spelling import EVM
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from cambist.ports.chain import Network
from cambist.ports.payouts import Senders
from cambist.testing import ProviderFault
from tests.chains.evm_harness import RICH, EvmHarness, is_broadcast
from tests.chains.fronts import Front
from tests.chains.world import ChainWorld, chain_world
from tests.crash_points import CrashPoint, Killed, fused
from tests.payout_kit import CREDIT, Payouts, open_payouts
from tests.planting import beneath

COMMITS = 8
"""The payout, the book's completeness, its number, the signed transfer, `processing`, `handed`, `sent`, the end."""
ROUGH = (ProviderFault.LOST_BEFORE, ProviderFault.LOST_AFTER)


@pytest.fixture(scope="module")
def one_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWorld]:
    folder: Path = tmp_path_factory.mktemp("bsc")
    with chain_world(folder, [Network.BSC], VirtualClock().now()) as world:
        yield world


@pytest.fixture
def made_world(one_for_all: ChainWorld) -> ChainWorld:
    """A node with a short chain."""
    return one_for_all.renewed()


async def run_with_crash(
    world: ChainWorld, commit: int, *, after: bool, faults: Sequence[ProviderFault] = ()
) -> tuple[int, int]:
    """Pay out, crash at a commit, and let another process continue. Return the number of commits, and the
    broadcasts."""
    async with open_payouts() as payouts, Front(world.nodes[Network.BSC]) as front:
        await payouts.app.clock.advance_to(max(payouts.app.clock.now(), world.clock.now()))
        world.join(payouts.app.clock)
        for fault in faults:
            front.next(fault, matching=is_broadcast)
        harness = EvmHarness(world, Network.BSC, front, storage=payouts.ports.storage)
        senders = Senders(senders={"evm": harness.sender}, modes={"test": "evm"})
        whole = payouts.ports = payouts.app.ports = msgspec.structs.replace(payouts.ports, senders=senders)
        await payouts.set_wallet(EVM.write(bytes(range(20))))
        await payouts.credit()
        commits = CrashPoint(commit, after=after)
        payouts.app.ports = fused(whole, commits)
        harness.storage = payouts.app.ports.storage
        doomed = msgspec.structs.replace(senders, senders={"evm": harness.restarted()})
        payouts.app.ports = msgspec.structs.replace(payouts.app.ports, senders=doomed)
        with suppress(Killed):
            await payouts.pay_out()
            await worked(payouts, world)
        payouts.app.ports = whole
        await payouts.pay_out()
        await worked(payouts, world)
        assert await harness.moved() == CREDIT.units
        assert CREDIT.units < RICH
        assert {each.status for each in await payouts.every()} == {WithdrawalStatus.COMPLETED}
        await harness.close()
        return commits.commits, sum(map(is_broadcast, front.requests))


async def worked(payouts: Payouts, world: ChainWorld) -> None:
    """Let time pass until all transfers are final."""
    for _ in range(25):
        await world.mine(2)
        await payouts.app.work()


async def test_a_payout_that_nothing_befalls_is_broadcast_once(made_world: ChainWorld) -> None:
    commits, sent = await run_with_crash(made_world, 0, after=False)
    assert commits >= COMMITS
    assert sent == 1


@pytest.mark.parametrize(("after", "faults"), [(False, ROUGH), (True, ())], ids=["before, rough", "after, calm"])
@pytest.mark.parametrize("commit", range(1, COMMITS + 1))
async def test_a_crash_at_any_commit_pays_once(
    made_world: ChainWorld, commit: int, after: bool, faults: Sequence[ProviderFault]
) -> None:
    assert (await run_with_crash(made_world, commit, after=after, faults=faults))[1] >= 1


async def test_a_database_that_was_restored_pays_nobody_twice(made_world: ChainWorld) -> None:
    """The backup is older than the signature: payout and book have forgotten it, the network has not."""
    world = made_world
    async with open_payouts() as payouts, Front(world.nodes[Network.BSC]) as front:
        await payouts.app.clock.advance_to(max(payouts.app.clock.now(), world.clock.now()))
        world.join(payouts.app.clock)
        await world.mine()
        harness = await EvmHarness(world, Network.BSC, front, storage=payouts.ports.storage).begin()
        senders = Senders(senders={"evm": harness.sender}, modes={"test": "evm"})
        payouts.ports = payouts.app.ports = msgspec.structs.replace(payouts.ports, senders=senders)
        await payouts.set_wallet(EVM.write(bytes(range(20))))
        made = await payouts.made()
        await payouts.app.work()
        sent = await payouts.record(made.id)
        assert sent.tx_hash is not None
        await world.mine()
        async with beneath(payouts.ports).unit() as unit:
            unit[Withdrawal].save(msgspec.structs.replace(made, version=sent.version))
            await unit.commit()
        await harness.forget()
        await worked(payouts, world)
        after = await payouts.record(made.id)
        assert (after.status, after.tx_hash) == (WithdrawalStatus.COMPLETED, sent.tx_hash)
        assert await harness.moved() == CREDIT.units
        await harness.close()
