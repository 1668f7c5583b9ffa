"""Several nodes of a network are compared. A node that is away, lags, lies or limits calls is detected, and its
answers move nothing (docs/providers/chains.md "Nodes")."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cambist.adapters.chain.nodes import NodesChain
from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.rpc import Node, TooOften
from cambist.ports.chain import Final, InBlock, Network, NotFound
from cambist.ports.faults import Fault, NotConfigured, Unavailable
from cambist.testing import ProviderAnswer, ProviderFault
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import KEY
from tests.chains.world import SOMEBODY, ChainWorld
from tests.tables import table

BSC = Network.BSC
HASH = "ab" * 32
Ask = Callable[..., Any]


class Two:
    """Two providers of nodes of one network, and the watcher that uses both."""

    def __init__(self, world: ChainWorld, one: Front, other: Front) -> None:
        self.world, self.one, self.other = world, one, other
        self.nodes = Nodes(CHAINS[BSC], [one.address, other.address], world.clock)
        self.watcher = NodesChain({BSC: self.nodes})

    async def final_payment(self) -> str:
        tx_hash = self.world.pay(BSC, (SOMEBODY, 5))
        await self.world.mine()
        await self.world.finalise()
        return tx_hash


@pytest.fixture
async def two(networks: ChainWorld) -> AsyncIterator[Two]:
    world = networks.renewed()
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(Front(world.nodes[BSC], key=KEY)) for _ in range(2)]
        made = Two(world, one, other)
        yield made
        await made.watcher.close()


def wrong_hash(method: str, params: list[Any], result: Any) -> Any:
    """Answer a wrong hash for final blocks."""
    if method == "eth_getBlockByNumber" and params[0] != "latest":
        return {**result, "hash": f"0x{'66' * 32}"}
    return result


def invented(method: str, params: list[Any], result: Any) -> Any:
    """A final transaction that brings a million."""
    if method != "eth_getTransactionReceipt":
        return result
    topics = [f"0x{number:064x}" for number in (1, 2)]
    transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    log = {"address": CHAINS[BSC].usdt, "topics": [transfer, *topics], "data": f"0x{10**24:064x}"}
    at = {"blockNumber": "0x1", "blockHash": f"0x{'11' * 32}"}
    return {"transactionHash": params[0], "status": "0x1", "logs": [log], **at}


class TestSeveral:
    @pytest.mark.parametrize("place", [0, 1])
    async def test_one_voice_of_two_says_only_that_nothing_is_final_yet(self, two: Two, place: int) -> None:
        tx_hash = await two.final_payment()
        (two.one, two.other)[place].be_away()
        with pytest.raises(Unavailable, match="1 of 2 nodes of bsc answer about receipts, and 2 have to agree"):
            await two.watcher.lookup(BSC, tx_hash)
        assert await two.watcher.lookup(BSC, HASH) == NotFound()
        fresh = two.world.pay(BSC, (SOMEBODY, 5))
        await two.world.mine()
        assert await two.watcher.lookup(BSC, fresh) == InBlock()
        await (two.one, two.other)[place].come_back()
        await two.world.clock.advance(60)
        await two.world.mine()
        assert isinstance(await two.watcher.lookup(BSC, tx_hash), Final)

    async def test_finality_needs_two_nodes(self, two: Two) -> None:
        tx_hash = await two.final_payment()
        await two.watcher.lookup(BSC, tx_hash)
        assert [front.calls["eth_getTransactionReceipt"] for front in (two.one, two.other)] == [1, 1]

    @pytest.mark.parametrize("place", [0, 1])
    async def test_final_blocks_of_different_hashes_stop_the_reading(
        self, two: Two, place: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The majority of two is nobody's."""
        tx_hash = await two.final_payment()
        (two.one, two.other)[place].lie = wrong_hash
        with pytest.raises(Unavailable, match="contradict"):
            await two.watcher.lookup(BSC, tx_hash)
        assert [record.levelno for record in caplog.records] == [logging.ERROR]

    @pytest.mark.parametrize("place", [0, 1])
    async def test_a_final_transaction_that_one_alone_knows_is_none(self, two: Two, place: int) -> None:
        """Otherwise one node could invent deposits and proofs."""
        (two.one, two.other)[place].lie = invented
        with pytest.raises(Unavailable, match="contradict"):
            await two.watcher.lookup(BSC, HASH)

    async def test_nodes_that_disagree_about_a_final_transaction_are_not_believed(self, two: Two) -> None:
        tx_hash = await two.final_payment()
        two.other.lie = invented
        with pytest.raises(Unavailable, match="contradict"):
            await two.watcher.lookup(BSC, tx_hash)

    async def test_final_is_what_the_last_of_them_calls_final(self, two: Two) -> None:
        """A node that calls every block final would pass off a block that may still be taken back."""

        def hasty(method: str, params: list[Any], result: Any) -> Any:
            if method == "eth_getBlockByNumber" and params[0] == "finalized":
                return two.world.nodes[BSC].ask("eth_getBlockByNumber", "latest", False)
            return result

        two.one.lie = hasty
        tx_hash = two.world.pay(BSC, (SOMEBODY, 5))
        await two.world.mine()
        assert await two.watcher.lookup(BSC, tx_hash) == InBlock()

    async def test_lagging_node_is_left_out_until_it_catches_up(
        self, two: Two, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It would say that nothing came, and exchanges would expire by that."""
        old = two.world.nodes[BSC].ask("eth_getBlockByNumber", "latest", False)

        def late(method: str, params: list[Any], result: Any) -> Any:
            return old if method == "eth_getBlockByNumber" and params[0] == "latest" else result

        two.one.lie = late
        await two.world.mine(12)
        view = await two.nodes.view()
        assert [node.name for node in view.nodes] == ["bsc node 2"]
        two.one.lie = lambda method, params, result: result
        await two.world.mine()
        assert len((await two.nodes.view()).nodes) == 2
        told = [record.getMessage() for record in caplog.records]
        assert told[0].startswith("left out of questions for heads: bsc node 1 does not keep up: its newest block is ")
        assert told[1:] == ["bsc node 1 is asked for heads again"]

    async def test_chain_is_unavailable_if_all_nodes_lag(self, two: Two) -> None:
        await two.world.clock.advance(CHAINS[BSC].quiet + 10)
        with pytest.raises(Unavailable, match="does not keep up"):
            await two.watcher.lookup(BSC, HASH)

    async def test_a_block_of_the_future_leaves_a_node_out(self, two: Two) -> None:
        """Beside such a block the honest nodes would seem to lag."""

        def early(method: str, params: list[Any], result: Any) -> Any:
            if method == "eth_getBlockByNumber" and params[0] == "latest":
                return {**result, "timestamp": hex(int(result["timestamp"], 16) + 10_000)}
            return result

        two.one.lie = early
        assert [node.name for node in (await two.nodes.view()).nodes] == ["bsc node 2"]

    async def test_a_hash_that_is_none_is_one_nodes_fault(self, two: Two) -> None:
        def broken(method: str, params: list[Any], result: Any) -> Any:
            return {**result, "hash": "0x1"} if method == "eth_getBlockByNumber" else result

        two.one.lie = broken
        assert [node.name for node in (await two.nodes.view()).nodes] == ["bsc node 2"]


class TestChainId:
    async def test_one_of_another_chain_is_never_asked(self, two: Two) -> None:
        two.one.lie = lambda method, params, result: "0x1" if method == "eth_chainId" else result
        with pytest.raises(NotConfigured, match="bsc node 1 is of chain 1: bsc is 56"):
            await two.watcher.check()
        assert await two.watcher.lookup(BSC, HASH) == NotFound()
        assert two.one.calls["eth_getTransactionReceipt"] == 0

    async def test_all_nodes_of_another_chain_are_a_configuration_fault(self, two: Two) -> None:
        two.one.lie = two.other.lie = lambda method, params, result: "0x61" if method == "eth_chainId" else result
        with pytest.raises(NotConfigured, match="chain 97"):
            await two.watcher.lookup(BSC, HASH)

    async def test_chain_id_is_read_once(self, two: Two) -> None:
        for _ in range(3):
            await two.watcher.lookup(BSC, HASH)
            await two.world.mine()
        assert two.one.calls["eth_chainId"] == 1

    async def test_a_check_goes_well_while_one_answers(self, two: Two) -> None:
        two.one.be_away()
        await two.watcher.check()
        two.other.be_away()
        fresh = Nodes(CHAINS[BSC], [two.one.address, two.other.address], two.world.clock)
        with pytest.raises(Unavailable):
            await fresh.check()
        await fresh.close()


class TestFinality:
    async def test_blocks_are_counted_if_nodes_lack_the_finality_tag(self, two: Two) -> None:
        def no_tag(method: str, params: list[Any]) -> tuple[int, str] | None:
            return (-32602, "invalid block number") if "finalized" in params else None

        two.one.refuse = two.other.refuse = no_tag
        await two.world.mine(2)
        view = await two.nodes.view()
        assert view.final == max(0, view.latest - CHAINS[BSC].confirmations)
        tx_hash = await two.final_payment()
        assert await two.watcher.lookup(BSC, tx_hash) == InBlock(), "three blocks are not forty"

    @pytest.mark.parametrize("refusal", [(-32000, "header not found"), (-39001, "finalized block not found")])
    async def test_a_passing_refusal_lowers_nothing(self, two: Two, refusal: tuple[int, str]) -> None:
        """Otherwise a starting node would make us count confirmations."""
        two.one.refuse = two.other.refuse = lambda method, params: refusal if "finalized" in params else None
        with pytest.raises(Unavailable):
            await two.nodes.view()
        two.one.refuse = two.other.refuse = lambda method, params: None
        await two.world.mine()
        view = await two.nodes.view()
        assert view.final == view.latest - 2


class TestNode:
    """One node: valid answers, refusals, and invalid answers."""

    @pytest.fixture
    async def front(self, networks: ChainWorld) -> AsyncIterator[Front]:
        async with TronFront(networks.nodes[Network.TRON], key=KEY) as made:
            yield made

    @pytest.fixture
    async def node(self, front: Front) -> AsyncIterator[Node]:
        made = Node("tron node 1", front.address, VirtualClock())
        yield made
        await made.close()

    @pytest.mark.parametrize(
        "fault",
        [
            ProviderFault.BUSY,
            ProviderFault.FORBIDDEN,
            ProviderFault.SERVER_ERROR,
            ProviderFault.BAD_GATEWAY,
            ProviderFault.REDIRECT,
            ProviderFault.HTML,
            ProviderFault.NO_BODY,
            ProviderFault.BROKEN_JSON,
            ProviderFault.OTHER_JSON,
            ProviderFault.NULL_FIELDS,
            ProviderFault.HUGE,
            ProviderFault.CUT_IN_BODY,
            ProviderFault.LOST_AFTER,
            ProviderAnswer.of_json({"Error": "class java.lang.IllegalAccessException : lack of computing resources"}),
            ProviderAnswer.of_json({"jsonrpc": "2.0", "id": 7, "result": "0x2b6653dc"}),
            ProviderAnswer.of_json({"jsonrpc": "2.0", "id": 1, "result": 728126428}),
            ProviderAnswer.of_json({"jsonrpc": "2.0", "id": 1}),
        ],
        ids=repr,
    )
    async def test_faulty_answer_is_unavailable(
        self, front: Front, node: Node, fault: ProviderFault | ProviderAnswer
    ) -> None:
        front.next(fault, always=True)
        with pytest.raises(Unavailable) as raised:
            await node.ask("eth_chainId", str)
        assert KEY not in str(raised.value)

    async def test_a_key_that_is_not_taken_is_the_operators_matter(self, front: Front) -> None:
        stranger = Node("tron node 1", front.address.replace(KEY, "other"), VirtualClock())
        with pytest.raises(NotConfigured, match="tron node 1: the key"):
            await stranger.ask("eth_chainId", str)
        await stranger.close()

    async def test_rate_limiting_node_is_left_alone_as_long_as_it_says(self, front: Front) -> None:
        clock = VirtualClock()
        node = Node("tron node 1", front.address, clock)
        front.next(ProviderFault.BUSY, retry_after=7)
        for _ in range(3):
            with pytest.raises(Unavailable) as raised:
                await node.ask("eth_chainId", str)
            assert raised.value.retry_after == 7
        assert len(front.requests) == 1, "it is asked although it said no"
        await clock.advance(7)
        assert await node.ask("eth_chainId", str) == "0x2b6653dc"
        await node.close()

    async def test_silent_node_is_asked_ever_more_rarely(self, front: Front) -> None:
        """A node that hangs would delay every pass by the whole time limit of a query."""
        clock, rests = VirtualClock(), list[float]()
        node = Node("tron node 1", front.address, clock)
        front.next(ProviderFault.BAD_GATEWAY, always=True)
        for _ in range(8):
            with pytest.raises(Unavailable):
                await node.ask("eth_chainId", str)
            with pytest.raises(Unavailable) as raised:
                await node.ask("eth_chainId", str)
            rests.append(raised.value.retry_after or 0)
            await clock.advance(rests[-1])
        assert rests == [2, 4, 8, 16, 32, 60, 60, 60]
        assert len(front.requests) == 8
        front.recover()
        assert await node.ask("eth_chainId", str) == "0x2b6653dc"
        front.next(ProviderFault.BAD_GATEWAY, always=True)
        await asyncio.gather(*(node.ask("eth_chainId", str) for _ in range(4)), return_exceptions=True)
        with pytest.raises(Unavailable) as raised:
            await node.ask("eth_chainId", str)
        assert raised.value.retry_after == 2, "it answered meanwhile, and four at once are one silence"
        await node.close()

    @pytest.mark.parametrize(
        ("code", "said", "is_counted"),
        [
            (-32005, "daily request count exceeded, request rate limited", True),
            (429, "Your app has exceeded its compute units per second capacity", True),
            (-32005, "query returned more than 10000 results", False),
            (-32005, "limit exceeded", False),
            (-32602, "exceed max block range: 5000", False),
            (-32000, "failed to generate the operation's parameters", False),
        ],
    )
    async def test_too_many_requests_and_too_large_answers_are_distinguished(
        self, front: Front, node: Node, code: int, said: str, *, is_counted: bool
    ) -> None:
        front.refuse = lambda method, params: (code, said)
        with pytest.raises(Fault) as raised:
            await node.ask("eth_chainId", str)
        assert isinstance(raised.value, TooOften) is is_counted

    async def test_error_of_a_node_is_quoted_without_addresses(self, front: Front, node: Node) -> None:
        front.refuse = lambda method, params: (-32000, f"https://provider.example/{KEY} is not served\n" + "x" * 9999)
        with pytest.raises(Fault) as raised:
            await node.ask("eth_chainId", str)
        assert KEY not in str(raised.value)
        assert len(str(raised.value)) < 300

    @table("url", ["http://node.example/", "ftp://127.0.0.1", "https://", "https://h:99999", "x"])
    def test_only_addresses_that_nobody_can_listen_at_are_taken(self, url: str) -> None:
        with pytest.raises(NotConfigured) as raised:
            Node("tron node 1", url.replace("://", f"://{KEY}@"), VirtualClock())
        assert KEY not in str(raised.value)
