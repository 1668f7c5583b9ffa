"""A node's refusal or odd answer leaves out that node for that question alone; the others answer, and what money moves
by as many say as have to agree (docs/providers/chains.md "Nodes")."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from cambist.adapters.chain.nodes import NodesChain
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.records import MOST_UNITS
from cambist.ports.chain import Final, Network, NotFound, Reverted
from cambist.ports.faults import OutcomeUnknown, Unavailable
from cambist.ports.payouts import TransferState
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.chains.evm_harness import EvmHarness
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import NodesDepositsHarness
from tests.chains.world import SOMEBODY, STRANGE, ChainWorld, chain_world

BSC, TRON = Network.BSC, Network.TRON
OTHER = "cd" * 32
UNITS = 250 * 10**8

Refuse = Callable[[Front, str], None]


def error(code: Any, message: Any) -> Refuse:
    """An error of JSON-RPC in answer to one method."""

    def answer(request: ProviderRequest) -> ProviderAnswer:
        return ProviderAnswer.of_json(
            {"id": json.loads(request.body)["id"], "error": {"code": code, "message": message}}
        )

    def refuse(front: Front, method: str) -> None:
        relayed = front._relayed

        async def handle(request: ProviderRequest) -> ProviderAnswer:
            return answer(request) if is_of(method)(request) else await relayed(request)

        front.on("POST", "/jsonrpc", handle)

    return refuse


def answer(made: ProviderAnswer | ProviderFault) -> Refuse:
    """Something else in answer to one method."""
    return lambda front, method: front.next(made, matching=is_of(method), always=True)


def is_of(method: str) -> Callable[[ProviderRequest], bool]:
    return lambda request: bool(request.body) and json.loads(request.body).get("method") == method


REFUSALS: dict[str, Refuse] = {
    "indexing": error(-32000, "transaction indexing is in progress"),
    "no method": error(-32601, "the method does not exist/is not available"),
    "internal error": error(-32603, "Internal error"),
    "pruned": error(-32000, "missing trie node 5b1c"),
    "limit": error(-32005, "limit exceeded"),
    "rate limit": error(429, "too many requests"),
    "code of text": error("E42", "no"),
    "words that are none": error(-32000, {"reason": "no"}),
    "400": answer(ProviderAnswer(status=400, body=b"bad request")),
    "403": answer(ProviderFault.FORBIDDEN),
    "404": answer(ProviderAnswer(status=404, body=b"<html>")),
    "429": answer(ProviderFault.BUSY),
    "500 of JSON": answer(ProviderFault.SERVER_ERROR),
    "a list": answer(ProviderAnswer.of_json([])),
    "another shape": answer(ProviderAnswer.of_json({"jsonrpc": "2.0", "id": 1, "result": {"a": [1]}})),
    "no result": answer(ProviderAnswer.of_json({"jsonrpc": "2.0", "id": 1})),
}


@pytest.fixture(scope="class")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWorld]:
    """Nodes of their own: one forgets its oldest states after some hundreds of blocks."""
    with chain_world(tmp_path_factory.mktemp("networks"), [TRON, BSC]) as world:
        yield world


@asynccontextmanager
async def fronts_of(
    networks: ChainWorld, network: Network, count: int, kind: type[Front] = Front
) -> AsyncIterator[tuple[ChainWorld, list[Front]]]:
    world = networks.renewed()
    async with AsyncExitStack() as stack:
        yield world, [await stack.enter_async_context(kind(world.nodes[network])) for _ in range(count)]


class Watched:
    """A watcher of BSC behind some nodes."""

    def __init__(self, world: ChainWorld, fronts: list[Front]) -> None:
        self.world, self.fronts = world, fronts
        self.nodes = Nodes(CHAINS[BSC], [each.address for each in fronts], world.clock)
        self.watcher = NodesChain({BSC: self.nodes})

    async def paid(self) -> str:
        tx_hash = self.world.pay(BSC, (SOMEBODY, 5))
        await self.world.mine()
        await self.world.finalise()
        return tx_hash

    async def seen(self, tx_hash: str) -> Any:
        return await self.watcher.lookup(BSC, tx_hash)


@pytest.fixture
async def three(networks: ChainWorld) -> AsyncIterator[Watched]:
    async with fronts_of(networks, BSC, 3) as (world, fronts):
        made = Watched(world, fronts)
        yield made
        await made.watcher.close()


@pytest.fixture
async def single(networks: ChainWorld) -> AsyncIterator[Watched]:
    async with fronts_of(networks, BSC, 1) as (world, fronts):
        made = Watched(world, fronts)
        yield made
        await made.watcher.close()


class TestRefusals:
    @pytest.mark.parametrize("refusal", REFUSALS)
    @pytest.mark.parametrize("place", [0, 1])
    async def test_receipt_refused_by_one_of_three_nodes_comes_from_the_others(
        self, three: Watched, refusal: str, place: int
    ) -> None:
        tx_hash = await three.paid()
        REFUSALS[refusal](three.fronts[place], "eth_getTransactionReceipt")
        assert isinstance(await three.seen(tx_hash), Final)
        assert len((await three.nodes.view()).nodes) == 3

    @pytest.mark.parametrize("refusal", REFUSALS)
    async def test_a_refusal_of_one_method_leaves_the_others_to_the_node(
        self, networks: ChainWorld, refusal: str
    ) -> None:
        """The refused query waits for both nodes; all others continue."""
        async with fronts_of(networks, BSC, 2) as (world, fronts):
            two = Watched(world, fronts)
            tx_hash = await two.paid()
            REFUSALS[refusal](fronts[0], "eth_getLogs")
            view = await two.nodes.view()
            for node in view.nodes[:1]:
                with pytest.raises(Unavailable):
                    await node.ask("eth_getLogs", list, {})
            assert isinstance(await two.seen(tx_hash), Final)
            await two.watcher.close()

    async def test_a_node_that_refuses_is_logged_once(self, three: Watched, caplog: pytest.LogCaptureFixture) -> None:
        tx_hash = await three.paid()
        REFUSALS["indexing"](three.fronts[0], "eth_getTransactionReceipt")
        for _ in range(3):
            await three.seen(tx_hash)
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 1
        assert told[0].startswith("left out of questions for receipts: bsc node 1: eth_getTransactionReceipt: -32000 ")

    async def test_a_refusal_by_all_is_an_answer(self, three: Watched) -> None:
        tx_hash = await three.paid()
        for front in three.fronts:
            REFUSALS["pruned"](front, "eth_getTransactionReceipt")
        with pytest.raises(Unavailable, match="missing trie node"):
            await three.seen(tx_hash)

    async def test_a_node_that_refuses_heads_is_not_in_the_view(self, three: Watched) -> None:
        REFUSALS["internal error"](three.fronts[1], "eth_getBlockByNumber")
        assert [each.name for each in (await three.nodes.view()).nodes] == ["bsc node 1", "bsc node 3"]

    @pytest.mark.parametrize(
        ("method", "refusal"),
        [
            ("eth_chainId", "internal error"),
            ("eth_getBlockByNumber", "no method"),
            ("eth_getTransactionReceipt", "403"),
            ("eth_getTransactionCount", "another shape"),
            ("eth_getTransactionByHash", "internal error"),
            ("eth_getLogs", "no method"),
            ("eth_call", "403"),
            ("eth_getBalance", "another shape"),
            ("eth_estimateGas", "internal error"),
            ("eth_gasPrice", "no method"),
            ("eth_maxPriorityFeePerGas", "403"),
            *(("eth_sendRawTransaction", each) for each in ("internal error", "no method", "403", "another shape")),
        ],
    )
    async def test_a_payout_needs_two_of_three_nodes_for_each_question(
        self, networks: ChainWorld, method: str, refusal: str
    ) -> None:
        async with fronts_of(networks, BSC, 3) as (world, fronts):
            harness = await EvmHarness(world, BSC, *fronts).begin()
            REFUSALS[refusal](fronts[0], method)
            made = await harness.wallet.sign("wd_1", harness.address, UNITS)
            await harness.wallet.broadcast(made)
            assert await harness.moved() == UNITS
            await harness.settle()
            assert await harness.wallet.state(made) is TransferState.FINAL
            await harness.forget()
            found = await harness.restarted().find("wd_1")
            assert found is not None
            assert found.signed == made
            await harness.close()

    @pytest.mark.parametrize(
        ("method", "refusal"),
        [
            ("eth_getBlockByNumber", "internal error"),
            ("eth_getTransactionReceipt", "limit"),
            ("eth_call", "403"),
            *(("eth_getLogs", each) for each in ("internal error", "limit", "403", "another shape")),
        ],
    )
    async def test_a_deposit_needs_two_of_three_nodes_for_each_question(
        self, networks: ChainWorld, method: str, refusal: str
    ) -> None:
        async with fronts_of(networks, TRON, 3, TronFront) as (world, fronts):
            harness = NodesDepositsHarness(world, *fronts)
            REFUSALS[refusal](fronts[0], method)
            address = await harness.wallet.address("exch_1")
            await harness.send(address, UNITS)
            [found] = await harness.wallet.deposits(address)
            assert (found.units, found.is_final) == (UNITS, True)
            await harness.close()


class TestSilence:
    @pytest.mark.parametrize("fault", [ProviderFault.LOST_AFTER, ProviderFault.HTML, ProviderFault.BAD_GATEWAY])
    async def test_silence_rests_a_node_for_all_questions(self, single: Watched, fault: ProviderFault) -> None:
        view = await single.nodes.view()
        single.fronts[0].next(fault, matching=is_of("eth_getLogs"), always=True)
        with pytest.raises(Unavailable):
            await view.nodes[0].ask("eth_getLogs", list, {})
        with pytest.raises(Unavailable, match="left alone"):
            await view.nodes[0].ask("eth_chainId", str)

    async def test_an_answer_that_is_too_long_rests_nobody(
        self, single: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        view = await single.nodes.view()
        single.fronts[0].next(ProviderFault.HUGE, matching=is_of("eth_getLogs"))
        with pytest.raises(Unavailable, match="too long"):
            await view.nodes[0].ask("eth_getLogs", list, {})
        assert await view.nodes[0].ask("eth_chainId", str) == "0x38"


class TestOddReceipts:
    """Merchants choose the hashes that are looked up, so one odd receipt must not slow the reading of others."""

    @pytest.mark.parametrize(
        ("odd", "told"),
        [
            ({"blockNumber": None, "blockHash": None, "status": None, "logs": []}, NotFound()),
            ({"blockNumber": None, "blockHash": None, "status": None, "logs": None}, NotFound()),
            ({"blockHash": None}, NotFound()),
            ({"status": None}, None),
            ({"logs": None}, None),
            ({"status": "0x0", "logs": []}, Reverted()),
            ({"status": 1}, None),
            ({"logs": [7]}, None),
        ],
    )
    async def test_a_receipt_with_nulls_is_read_as_far_as_it_is_safe(
        self, single: Watched, odd: dict[str, Any], told: Any
    ) -> None:
        mine, other = await single.paid(), await single.paid()

        def lie(method: str, params: list[Any], result: Any) -> Any:
            return {**result, **odd} if method == "eth_getTransactionReceipt" and params[0] == f"0x{mine}" else result

        single.fronts[0].lie = lie
        for _ in range(3):
            if told is None:
                with pytest.raises(Unavailable):
                    await single.seen(mine)
            else:
                assert await single.seen(mine) == told
            assert isinstance(await single.seen(other), Final)

    async def test_an_odd_event_of_another_contract_hides_nothing(self, single: Watched) -> None:
        tx_hash = await single.paid()
        odd = [
            {"address": STRANGE, "topics": None, "data": None},
            {"address": STRANGE, "topics": ["0x1"], "data": "0x"},
        ]

        def lie(method: str, params: list[Any], result: Any) -> Any:
            is_receipt = method == "eth_getTransactionReceipt"
            return {**result, "logs": [*odd, *result["logs"]]} if is_receipt else result

        single.fronts[0].lie = lie
        seen = await single.seen(tx_hash)
        assert [(each.index, each.units) for each in seen.transfers] == [(2, 5)]

    @pytest.mark.parametrize(("units", "is_taken"), [(MOST_UNITS, True), (MOST_UNITS + 1, False), (1 << 200, False)])
    async def test_more_usdt_than_there_can_be_is_no_answer(
        self, single: Watched, units: int, *, is_taken: bool
    ) -> None:
        tx_hash = await single.paid()

        def lie(method: str, params: list[Any], result: Any) -> Any:
            if method != "eth_getTransactionReceipt":
                return result
            [log] = result["logs"]
            return {**result, "logs": [{**log, "data": f"0x{CHAINS[BSC].amount(units):064x}"}]}

        single.fronts[0].lie = lie
        if is_taken:
            assert (await single.seen(tx_hash)).transfers[0].units == units
        else:
            with pytest.raises(Unavailable, match="more USDT than there is"):
                await single.seen(tx_hash)

    async def test_an_id_that_comes_back_as_text_is_the_same_id(self, single: Watched) -> None:
        view = await single.nodes.view()
        single.fronts[0].next(ProviderAnswer.of_json({"id": str(view.nodes[0]._number + 1), "result": "0x38"}))
        assert await view.nodes[0].ask("eth_chainId", str) == "0x38"


class TestOddLogs:
    """Logs are read one by one. An unreadable log that may be a deposit keeps the scanner where it is."""

    @pytest.fixture
    async def harness(self, networks: ChainWorld) -> AsyncIterator[NodesDepositsHarness]:
        async with fronts_of(networks, TRON, 1, TronFront) as (world, fronts):
            made = NodesDepositsHarness(world, *fronts)
            yield made
            await made.close()

    @staticmethod
    def adds(harness: NodesDepositsHarness, *odd: Any, place: int = 0) -> None:
        harness._fronts[place].lie = lambda method, params, result: (
            [*odd, *result] if method == "eth_getLogs" else result
        )

    @pytest.mark.parametrize(
        "odd",
        [
            {"address": STRANGE, "topics": None},
            {"address": STRANGE},
            {**dict.fromkeys(("blockNumber", "blockHash")), "address": CHAINS[TRON].usdt, "topics": [], "data": "0x"}
            | {"transactionHash": f"0x{OTHER}", "removed": None},
        ],
    )
    async def test_odd_log_that_cannot_be_ours_drops_no_deposit(self, harness: NodesDepositsHarness, odd: Any) -> None:
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        self.adds(harness, odd)
        assert [each.units for each in await harness.wallet.deposits(address)] == [UNITS]

    async def test_a_null_for_removed_is_no(self, harness: NodesDepositsHarness) -> None:
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        harness._fronts[0].lie = lambda method, params, result: (
            [{**each, "removed": None} for each in result] if method == "eth_getLogs" else result
        )
        assert [each.units for each in await harness.wallet.deposits(address)] == [UNITS]

    @pytest.mark.parametrize("odd", [None, 7, {}, {"address": CHAINS[TRON].usdt}, {"address": None}])
    async def test_odd_log_that_may_be_ours_stops_the_scanner(self, harness: NodesDepositsHarness, odd: Any) -> None:
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        await harness.world.mine(60)

        def hides(method: str, params: list[Any], result: Any) -> Any:
            return [odd] if method == "eth_getLogs" and result else result

        harness._fronts[0].lie = hides
        for _ in range(3):
            with pytest.raises(Unavailable, match="cannot be read"):
                await harness.wallet.deposits(address)
            await harness.world.mine()
        harness._fronts[0].lie = lambda method, params, result: result
        assert [each.units for each in await harness.wallet.deposits(address)] == [UNITS]


class TestTwoScanners:
    """One of two nodes may lack or hide a deposit. The other's report is reason enough to examine it."""

    @pytest.fixture
    async def harness(self, networks: ChainWorld) -> AsyncIterator[NodesDepositsHarness]:
        async with fronts_of(networks, TRON, 2, TronFront) as (world, fronts):
            made = NodesDepositsHarness(world, *fronts)
            yield made
            await made.close()

    @pytest.mark.parametrize("place", [0, 1])
    async def test_logs_hidden_by_one_node_come_from_the_other(self, harness: NodesDepositsHarness, place: int) -> None:
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        harness._fronts[place].lie = lambda method, params, result: [] if method == "eth_getLogs" else result
        assert [each.is_final for each in await harness.wallet.deposits(address)] == [True]

    async def test_span_read_by_one_node_alone_is_read_again(self, harness: NodesDepositsHarness) -> None:
        """It says that nothing came while the other is away."""
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        await harness.world.mine(60)
        harness._fronts[0].lie = lambda method, params, result: [] if method == "eth_getLogs" else result
        harness._fronts[1].be_away()
        for _ in range(3):
            assert list(await harness.wallet.deposits(address)) == []
            await harness.world.mine(10)
        await harness._fronts[1].come_back()
        await harness.world.mine(10)
        assert [each.units for each in await harness.wallet.deposits(address)] == [UNITS]

    async def test_each_node_is_asked_in_spans_that_it_takes(self, harness: NodesDepositsHarness) -> None:
        address = await harness.wallet.address("exch_1")
        await harness.send(address, UNITS)
        await harness.world.mine(60)

        def narrow(method: str, params: list[Any]) -> tuple[int, str] | None:
            if method != "eth_getLogs":
                return None
            blocks = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16)
            return (-32602, "exceed max block range: 10") if blocks >= 10 else None

        harness._fronts[1].refuse = narrow
        assert [each.is_final for each in await harness.wallet.deposits(address)] == [True]
        await harness.world.mine()
        harness._fronts[1].be_away()
        assert [each.is_final for each in await harness.wallet.deposits(address)] == [True], (
            "it was agreed, and is kept"
        )

    async def test_a_node_is_not_asked_for_blocks_that_it_lacks(self, harness: NodesDepositsHarness) -> None:
        """Some nodes refuse that, and the range would shrink further at each query."""
        address = await harness.wallet.address("exch_1")
        lags = hex(harness.world.height(TRON) - 1)
        before = harness.world.nodes[TRON].ask("eth_getBlockByNumber", lags, False)

        def behind(method: str, params: list[Any], result: Any) -> Any:
            return before if method == "eth_getBlockByNumber" and params[0] == "latest" else result

        harness._fronts[1].lie = behind
        harness._fronts[1].requests.clear()
        await harness.world.clock.advance(10)
        await harness.wallet.deposits(address)
        asked = [json.loads(each.body) for each in harness._fronts[1].requests]
        assert [each["params"][0]["toBlock"] for each in asked if each["method"] == "eth_getLogs"] == [lags]


class TestWallets:
    async def test_a_payout_waits_while_one_of_two_nodes_is_away(self, networks: ChainWorld) -> None:
        async with fronts_of(networks, BSC, 2) as (world, fronts):
            harness = await EvmHarness(world, BSC, *fronts).begin()
            made = await harness.wallet.sign("wd_1", harness.address, UNITS)
            fronts[1].be_away()
            await harness.world.mine()
            with pytest.raises(Unavailable, match="2 have to agree"):
                await harness.wallet.sign("wd_2", harness.address, UNITS)
            await harness.wallet.broadcast(made)
            assert await harness.moved() == UNITS
            await harness.settle()
            for asked in (harness.wallet.state(made), harness.restarted().find("wd_3")):
                with pytest.raises(Unavailable, match="2 have to agree"):
                    await asked
            await fronts[1].come_back()
            await harness.recover()
            assert await harness.wallet.state(made) is TransferState.FINAL
            await harness.close()

    async def test_a_broadcast_of_which_one_node_answers_oddly_is_unknown(self, networks: ChainWorld) -> None:
        async with fronts_of(networks, BSC, 1) as (world, fronts):
            harness = await EvmHarness(world, BSC, *fronts).begin()
            made = await harness.wallet.sign("wd_1", harness.address, UNITS)
            fronts[0].next(ProviderAnswer.of_json({"id": 1}), matching=is_of("eth_sendRawTransaction"))
            with pytest.raises(OutcomeUnknown):
                await harness.wallet.broadcast(made)
            await harness.close()


class TestShortage:
    async def test_none_while_as_many_answer_as_have_to_agree(self, three: Watched) -> None:
        three.fronts[0].be_away()
        assert await three.nodes.shortage() is None

    async def test_one_voice_of_several_is_a_shortage_until_it_is_over(self, three: Watched) -> None:
        for front in three.fronts[:2]:
            front.be_away()
        shortage = await three.nodes.shortage()
        assert shortage is not None
        assert shortage.of == "bsc"
        assert shortage.told.startswith("1 of 3 nodes answer, and 2 have to agree: bsc node 1: no connection")
        since = shortage.since
        await three.world.mine(2)
        again = await three.nodes.shortage()
        assert again is not None
        assert again.since == since
        await three.fronts[0].come_back()
        await three.world.mine(20)
        assert await three.nodes.shortage() is None

    async def test_a_node_that_answers_but_one_question_is_a_voice_less(self, networks: ChainWorld) -> None:
        async with fronts_of(networks, BSC, 2) as (world, fronts):
            two = Watched(world, fronts)
            REFUSALS["indexing"](fronts[1], "eth_getTransactionReceipt")
            await two.seen(OTHER)
            shortage = await two.nodes.shortage()
            assert shortage is not None
            assert "indexing is in progress" in shortage.told
            await two.watcher.close()

    async def test_a_single_node_is_none(self, single: Watched) -> None:
        assert await single.nodes.shortage() is None
