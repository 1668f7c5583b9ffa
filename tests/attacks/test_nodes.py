"""The owner of one node of several makes no money: not by inventing a transfer, nor by hiding one, whatever the other
nodes do meanwhile (docs/providers/chains.md "Nodes")."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from cambist.adapters.chain.nodes import NodesChain
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.records import TRANSFER, topic_of
from cambist.adapters.nodes.rpc import Node
from cambist.ports.chain import InBlock, Network, NotFound
from cambist.ports.faults import Fault, Unavailable
from cambist.ports.payouts import TransferState
from cambist.testing import ProviderAnswer, ProviderFault
from tests.chains.evm_harness import EvmHarness
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import NodesDepositsHarness
from tests.chains.test_voices import fronts_of
from tests.chains.world import ChainWorld, chain_world

BSC, TRON = Network.BSC, Network.TRON
HASH = "ab" * 32
THOUSAND = 1000 * 10**8

Problem = Callable[[Front], Awaitable[None]]


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWorld]:
    with chain_world(tmp_path_factory.mktemp("networks"), [TRON, BSC]) as world:
        yield world


async def _honest(front: Front) -> None:
    """The node answers, and does not know the invention."""


async def _forbidden(front: Front) -> None:
    front.next(ProviderFault.FORBIDDEN, always=True)


async def _busy(front: Front) -> None:
    front.next(ProviderFault.BUSY, always=True)


async def _hangs(front: Front) -> None:
    for _ in range(50):
        front.hold_next()


async def _down(front: Front) -> None:
    front.be_away()


async def _refuses_receipts(front: Front) -> None:
    front.refuse = lambda method, params: (-32000, "indexing") if method == "eth_getTransactionReceipt" else None


async def _answers_oddly(front: Front) -> None:
    front.next(ProviderAnswer.of_json({"id": 1, "result": 7}), always=True)


OTHERS: dict[str, Problem] = {
    "honest": _honest,
    "403": _forbidden,
    "429": _busy,
    "hangs": _hangs,
    "down": _down,
    "no receipts": _refuses_receipts,
    "odd": _answers_oddly,
}


@asynccontextmanager
async def liar_and(networks: ChainWorld, count: int) -> AsyncIterator[tuple[ChainWorld, Front, list[Front]]]:
    async with fronts_of(networks, TRON, count + 1, TronFront) as (world, [liar, *others]):
        yield world, liar, others
        for front in others:
            front.recover()


def invent(world: ChainWorld, liar: Front, recipient: bytes) -> None:
    """Let the lying node report a final transfer of 1000 USDT that never happened, in a block that exists."""
    block = world.nodes[TRON].ask("eth_getBlockByNumber", "finalized", False)
    topics = [TRANSFER, topic_of(bytes(20)), topic_of(recipient)]
    data = f"0x{CHAINS[TRON].amount(THOUSAND):064x}"
    at = {"blockNumber": block["number"], "blockHash": block["hash"], "transactionHash": f"0x{HASH}"}
    log = {"address": CHAINS[TRON].usdt, "topics": topics, "data": data, **at}

    def lie(method: str, params: list[Any], result: Any) -> Any:
        if method == "eth_getLogs":
            reaches = int(params[0]["fromBlock"], 16) <= int(block["number"], 16) <= int(params[0]["toBlock"], 16)
            return [*result, log] if reaches else result
        if method == "eth_getTransactionReceipt" and params[0] == f"0x{HASH}":
            return {**at, "status": "0x1", "logs": [log]}
        return result

    liar.lie = lie


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that hangs is given up at once."""
    assert Node.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Node.__init__.__kwdefaults__, "limit", 0.3)


@pytest.mark.usefixtures("impatient")
class TestInventions:
    @pytest.mark.parametrize("others", [(each,) for each in OTHERS] + [("honest", "down"), ("403", "hangs")], ids=str)
    async def test_an_invented_deposit_is_never_final(self, networks: ChainWorld, others: tuple[str, ...]) -> None:
        async with liar_and(networks, len(others)) as (_, liar, fronts):
            harness = NodesDepositsHarness(networks, liar, *fronts)
            address = await harness.wallet.address("exch_1")
            invent(networks, liar, harness.payload(address))
            await harness.world.clock.advance(3)
            for name, front in zip(others, fronts, strict=True):
                await OTHERS[name](front)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await harness.wallet.deposits(address)
                await harness.world.mine()
            [shown] = await harness.wallet.addresses(0, 1)
            assert shown.units == 0
            await harness.close()

    @pytest.mark.parametrize("others", [(each,) for each in OTHERS] + [("honest", "down"), ("403", "hangs")], ids=str)
    async def test_an_invented_proof_is_never_final(self, networks: ChainWorld, others: tuple[str, ...]) -> None:
        async with liar_and(networks, len(others)) as (world, liar, fronts):
            chain = NodesChain({TRON: Nodes(CHAINS[TRON], [each.address for each in (liar, *fronts)], world.clock)})
            await chain.lookup(TRON, HASH)
            invent(world, liar, bytes(range(20)))
            for name, front in zip(others, fronts, strict=True):
                await OTHERS[name](front)
            for _ in range(3):
                try:
                    seen: Any = await chain.lookup(TRON, HASH)
                except Fault as fault:
                    seen = fault
                assert isinstance(seen, (Unavailable, NotFound, InBlock)), seen
                await world.mine()
            await chain.close()

    async def test_two_honest_nodes_outvote_no_liar_but_stop_him(self, networks: ChainWorld) -> None:
        """Where nodes contradict one another nothing is read."""
        async with liar_and(networks, 2) as (world, liar, fronts):
            chain = NodesChain({TRON: Nodes(CHAINS[TRON], [each.address for each in (liar, *fronts)], world.clock)})
            invent(world, liar, bytes(range(20)))
            with pytest.raises(Unavailable, match="contradict"):
                await chain.lookup(TRON, HASH)
            await chain.close()


class TestMoments:
    """The moment of a block decides whether a deposit is in time, and whether a transfer on TRON has expired."""

    async def test_moment_of_a_final_block_needs_two_nodes(self, networks: ChainWorld) -> None:
        async with fronts_of(networks, BSC, 2) as (world, [liar, honest]):
            nodes = Nodes(CHAINS[BSC], [liar.address, honest.address], world.clock)
            view = await nodes.view()

            def late(method: str, params: list[Any], result: Any) -> Any:
                is_block = method == "eth_getBlockByNumber" and params[0].startswith("0x")
                return {**result, "timestamp": hex(int(result["timestamp"], 16) + 7200)} if is_block else result

            liar.lie = late
            with pytest.raises(Unavailable, match="contradict"):
                await nodes.block(view, view.final)
            honest.be_away()
            with pytest.raises(Unavailable, match="2 have to agree"):
                await nodes.block(view, view.final)
            await nodes.close()


class TestPayouts:
    """A node cannot have the wallet sign twice, skip a number, or take a payout for failed."""

    @asynccontextmanager
    async def harness(self, networks: ChainWorld) -> AsyncIterator[tuple[EvmHarness, Front, Front]]:
        async with AsyncExitStack() as stack:
            world, [liar, honest] = await stack.enter_async_context(fronts_of(networks, BSC, 2))
            made = await EvmHarness(world, BSC, liar, honest).begin()
            yield made, liar, honest
            await made.close()

    async def test_a_count_that_one_node_inflates_skips_no_number(self, networks: ChainWorld) -> None:
        async with self.harness(networks) as (harness, liar, _):
            liar.lie = lambda method, params, result: "0x40" if method == "eth_getTransactionCount" else result
            made = await harness.wallet.sign("wd_1", harness.address, THOUSAND)
            liar.lie = lambda method, params, result: result
            await harness.wallet.broadcast(made)
            assert await harness.moved() == THOUSAND

    async def test_a_balance_that_one_node_invents_signs_nothing(self, networks: ChainWorld) -> None:
        async with self.harness(networks) as (harness, liar, _):
            harness.endow(usdt=0)
            liar.lie = lambda method, params, result: f"0x{10**30:064x}" if method == "eth_call" else result
            with pytest.raises(Unavailable, match="lacks USDT"):
                await harness.wallet.sign("wd_1", harness.address, THOUSAND)

    @pytest.mark.parametrize("other", ["honest", "down", "403"])
    async def test_one_node_alone_proves_no_failure(self, networks: ChainWorld, other: str) -> None:
        """It hides the transfer, and says that its number is used: signed again it would be paid twice."""
        async with self.harness(networks) as (harness, liar, honest):
            made = await harness.wallet.sign("wd_1", harness.address, THOUSAND)
            await harness.wallet.broadcast(made)
            assert await harness.moved() == THOUSAND
            await harness.settle()
            hidden: dict[str, Any] = {
                "eth_getTransactionReceipt": None,
                "eth_getLogs": [],
                "eth_getTransactionCount": "0x1",
            }
            liar.lie = lambda method, params, result: hidden.get(method, result)
            await OTHERS[other](honest)
            try:
                state = await harness.wallet.state(made)
            except Unavailable:
                state = TransferState.UNSEEN
            assert state is not TransferState.FAILED
            honest.recover()
            await honest.come_back()
            liar.lie = lambda method, params, result: result
            await harness.recover()
            assert await harness.wallet.state(made) is TransferState.FINAL

    async def test_number_of_a_transaction_needs_two_nodes(self, networks: ChainWorld) -> None:
        """One node reports another number for our transaction, as if nothing had come of it."""
        async with self.harness(networks) as (harness, liar, _):
            made = await harness.wallet.sign("wd_1", harness.address, THOUSAND)
            await harness.wallet.broadcast(made)
            assert await harness.moved() == THOUSAND
            await harness.settle()

            def lie(method: str, params: list[Any], result: Any) -> Any:
                if method == "eth_getTransactionByHash":
                    return {**result, "nonce": "0x9"}
                return None if method == "eth_getTransactionReceipt" else result

            liar.lie = lie
            with pytest.raises(Unavailable):
                await harness.wallet.state(made)
