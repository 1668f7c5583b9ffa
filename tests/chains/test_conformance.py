"""The watchers that read nodes keep the contracts that we ship, over real nodes. TRON's stand behind its own rules."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from cambist.frontends.conformance import chain as of_chains
from cambist.frontends.conformance import deposits as of_deposits
from cambist.frontends.conformance.harnesses import ChainHarness, DepositsHarness
from cambist.ports.chain import Network
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import KEY, NodesChainHarness, NodesDepositsHarness
from tests.chains.world import ChainWorld


def front(world: ChainWorld, network: Network) -> Front:
    kind = TronFront if network is Network.TRON else Front
    return kind(world.nodes[network], key=KEY)


class TestProofs:
    @pytest.fixture
    async def chain_harness(self, networks: ChainWorld) -> AsyncIterator[ChainHarness]:
        async with AsyncExitStack() as stack:
            fronts = {network: await stack.enter_async_context(front(networks, network)) for network in Network}
            harness = NodesChainHarness(networks, fronts)
            yield harness
            await harness.close()

    class TestSightings(of_chains.TestSightings): ...

    class TestFailures(of_chains.TestFailures): ...


class TestDepositsByNodes:
    @pytest.fixture(params=[Network.TRON, Network.BSC])
    async def deposits_harness(
        self, networks: ChainWorld, request: pytest.FixtureRequest
    ) -> AsyncIterator[DepositsHarness]:
        async with front(networks, request.param) as one:
            harness = NodesDepositsHarness(networks, one, network=request.param)
            yield harness
            await harness.close()

    class TestAddresses(of_deposits.TestAddresses): ...

    class TestDeposits(of_deposits.TestDeposits): ...

    class TestFailures(of_deposits.TestFailures): ...
