"""USDT paid out on Ethereum and BNB Smart Chain, on real nodes: the shipped contract, and behaviour of the network
that a wallet must not misread (docs/providers/chains.md "Paying out")."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.nodes.logs import LogSearch
from cambist.adapters.nodes.spelling import EVM
from cambist.adapters.payouts.evm import book, numbers, sightings
from cambist.adapters.payouts.evm.offers import PATIENCE
from cambist.adapters.payouts.evm.sender import EvmSender
from cambist.adapters.payouts.evm.transaction import Transfer, read
from cambist.adapters.payouts.signer import KeySigner
from cambist.frontends.compose import open_app
from cambist.frontends.conformance import payout_faults
from cambist.frontends.conformance import payouts as of_payouts
from cambist.frontends.conformance.benches import PayoutsBench
from cambist.frontends.conformance.trouble import Work
from cambist.frontends.plugins import PluginError
from cambist.frontends.settings import Settings
from cambist.ports.chain import Network
from cambist.ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.payouts import ListingSender, ReplacingSender, SignedTransfer, TransferState
from cambist.testing import ProviderFault, ProviderRequest
from tests.chains.benches import KEY
from tests.chains.evm_bench import EvmBench, LivelyFront
from tests.chains.fronts import Front
from tests.chains.world import ChainWorld, chain_world
from tests.contracts.storage_kit import START

Patch = pytest.MonkeyPatch
UNITS = 250 * 10**8


@asynccontextmanager
async def bench_on(
    networks: ChainWorld, network: Network, kind: Callable[..., Front] = Front
) -> AsyncIterator[EvmBench]:
    world = networks.renewed()
    async with kind(world.nodes[network], key=KEY) as front:
        made = await EvmBench(world, network, front).begin()
        yield made
        await made.close()


@pytest.fixture(params=[Network.ETHEREUM, Network.BSC])
async def bench(networks: ChainWorld, request: pytest.FixtureRequest) -> AsyncIterator[EvmBench]:
    async with bench_on(networks, request.param) as made:
        yield made


class TestTheContract:
    @pytest.fixture
    def payouts_bench(self, bench: EvmBench) -> PayoutsBench:
        return bench

    class TestSigning(of_payouts.TestSigning): ...

    class TestBroadcast(of_payouts.TestBroadcast): ...

    class TestEnds(of_payouts.TestEnds): ...

    class TestMemory(of_payouts.TestMemory):
        """Transfers in blocks. While a transfer waits for a block and the book lacks it, the wallet signs nothing."""

        @pytest.fixture
        async def payouts_bench(self, networks: ChainWorld) -> AsyncIterator[PayoutsBench]:
            async with bench_on(networks, Network.BSC, LivelyFront) as made:
                yield made

    class TestFailures(payout_faults.TestFailures): ...

    class TestPayoutsAtFaults(payout_faults.TestPayoutsAtFaults):
        """One network is enough: both share the code that interprets missing and bad answers."""

        @pytest.fixture
        async def payouts_bench(self, networks: ChainWorld) -> AsyncIterator[PayoutsBench]:
            async with bench_on(networks, Network.ETHEREUM) as made:
                yield made

        @pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED])
        async def test_credentials_that_are_refused_once_refuse_one_call(
            self, work: Work, fault: ProviderFault
        ) -> None:
            """403 says that a node is asked too often."""
            await super().test_credentials_that_are_refused_once_refuse_one_call(work, fault)

    class TestCancelledPayouts(payout_faults.TestCancelledPayouts): ...

    class TestTwoPayOut(payout_faults.TestTwoPayOut): ...


async def test_the_wallet_s_address_is_its_own(bench: EvmBench) -> None:
    assert await bench.wallet.owns(bench.wallet.address)
    for other in (bench.address, "", "x", "0x00"):
        assert not await bench.wallet.owns(other)


async def sent(bench: EvmBench, operation: str = "wd_1", wallet: EvmSender | None = None) -> SignedTransfer:
    """Signed and handed over."""
    by = wallet or bench.wallet
    made = await by.sign(operation, bench.address, UNITS)
    await by.broadcast(made)
    return made


def nonce_of(made: SignedTransfer) -> int:
    return read(made.blob).made.nonce


class TestNumbers:
    """Each transfer has a number of the wallet, which the network takes once. A single writer assigns the numbers."""

    async def test_many_at_once_by_two_processes_have_each_its_own(self, bench: EvmBench) -> None:
        wallets = bench.wallet, bench.restarted()
        made = await asyncio.gather(*(wallets[each % 2].sign(f"wd_{each}", bench.address, UNITS) for each in range(12)))
        assert sorted(map(nonce_of, made)) == list(range(12))
        for each in made:
            await bench.wallet.broadcast(each)
        assert await bench.moved() == 12 * UNITS

    async def test_one_operation_has_one_however_often_it_is_signed(self, bench: EvmBench) -> None:
        first = await bench.wallet.sign("wd_1", bench.address, UNITS)
        again = await bench.restarted().sign("wd_1", bench.address, UNITS)
        assert again == first
        with pytest.raises(Unavailable, match="something else"):
            await bench.wallet.sign("wd_1", bench.address, UNITS + bench.sender.capabilities.step)

    async def test_two_that_sign_one_operation_at_once_leave_no_gap(self, bench: EvmBench) -> None:
        asked = (each.sign("wd_1", bench.address, UNITS) for each in (bench.wallet, bench.restarted()))
        made = [each for each in await asyncio.gather(*asked, return_exceptions=True) if not isinstance(each, Fault)]
        assert {nonce_of(each) for each in made if isinstance(each, SignedTransfer)} == {0}
        assert nonce_of(await bench.wallet.sign("wd_2", bench.address, UNITS)) == 1

    async def test_a_signer_that_is_away_keeps_the_number(self, bench: EvmBench) -> None:
        bench.wallet._offers._signer, whole = _Away(bench.owner), bench.wallet._signer
        with pytest.raises(Unavailable):
            await bench.wallet.sign("wd_1", bench.address, UNITS)
        bench.wallet._offers._signer = whole
        assert nonce_of(await bench.wallet.sign("wd_1", bench.address, UNITS)) == 0

    async def test_no_more_wait_for_a_block_than_nodes_keep(self, bench: EvmBench, monkeypatch: Patch) -> None:
        monkeypatch.setattr(numbers, "IN_FLIGHT", 3)
        for each in range(3):
            await sent(bench, f"wd_{each}")
        with pytest.raises(Unavailable, match="wait for a block") as full:
            await bench.wallet.sign("wd_3", bench.address, UNITS)
        assert full.value.retry_after == 10
        await bench.world.mine()
        await sent(bench, "wd_3")

    async def test_a_number_that_was_never_handed_over_is_used_up_by_nothing(self, bench: EvmBench) -> None:
        """The payout was called off. The transfer behind it waits ten minutes, and then goes out."""
        called_off = await bench.wallet.sign("wd_off", bench.address, UNITS)
        behind = await sent(bench, "wd_2")
        for _ in range(3):
            await bench.world.mine(40)
            await bench.wallet.broadcast(behind)
            assert bench.count() == 0
        await bench.world.mine(60)
        await bench.wallet.broadcast(behind)
        assert await bench.moved() == UNITS
        assert await bench.wallet.state(called_off) is TransferState.UNSEEN, "what stands in its place is not it"
        await bench.settle()
        assert await bench.wallet.state(behind) is TransferState.FINAL
        assert await bench.wallet.state(called_off) is TransferState.FAILED
        with pytest.raises(Refused) as refused:
            await bench.wallet.broadcast(called_off)
        assert refused.value.reason == "expired"
        again = await sent(bench, "wd_off")
        assert nonce_of(again) == 2
        assert await bench.moved() == 2 * UNITS

    async def test_what_was_handed_over_is_never_given_up(self, bench: EvmBench) -> None:
        """When a node forgot a transfer, the next transfer in line hands it over again."""
        first, behind = await sent(bench), await sent(bench, "wd_2")
        bench.drop([first.tx_hash])
        for _ in range(5):
            await bench.world.mine(40)
            await bench.wallet.broadcast(behind)
        assert await bench.moved() == 2 * UNITS
        await bench.settle()
        assert await bench.wallet.state(first) is TransferState.FINAL

    async def test_while_the_book_lacks_what_waits_for_a_block_nothing_is_signed(self, bench: EvmBench) -> None:
        await sent(bench)
        await bench.forget()
        with pytest.raises(Unavailable, match="the book lacks"):
            await bench.restarted().find("wd_1")

    async def test_what_somebody_else_sent_is_told_and_does_not_stop_us(
        self, bench: EvmBench, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bench.send_raw(bench.raw(0))
        await bench.settle()
        assert await bench.wallet.find("wd_1") is None
        assert "somebody else spends" in caplog.text
        assert nonce_of(await sent(bench)) == 1

    async def test_a_long_way_back_that_is_cut_off_is_gone_on_with(self, bench: EvmBench, monkeypatch: Patch) -> None:
        """A call ends after 20 s. The next call continues where it stopped and reads nothing twice."""
        monkeypatch.setattr(sightings, "LogSearch", partial(LogSearch, span=5))
        monkeypatch.setattr(book, "_AGE", 0)
        for each in ("wd_1", "wd_2"):
            await sent(bench, each)
            await bench.settle()
        await bench.forget()
        searches = count(1)

        def is_fourth(request: ProviderRequest) -> bool:
            return b"eth_getLogs" in request.body and next(searches) == 4

        bench.fronts[0].next(ProviderFault.BAD_GATEWAY, matching=is_fourth)
        bench.fronts[0].requests.clear()
        with pytest.raises(Unavailable):
            await bench.restarted().find("wd_2")
        before = self._searched_from(bench)
        await bench.recover()
        assert await bench.restarted().find("wd_2") is not None
        assert self._searched_from(bench)[0] == before[2] + 4, "the last block that was read, and what comes after it"
        assert await bench.wallet.find("wd_1") is not None

    @staticmethod
    def _searched_from(bench: EvmBench) -> list[int]:
        asked = [json.loads(each.body) for each in bench.fronts[0].requests if b"eth_getLogs" in each.body]
        bench.fronts[0].requests.clear()
        return [int(each["params"][0]["fromBlock"], 16) for each in asked]


class TestFees:
    """A transfer whose fee is too low is replaced at the same number with a higher fee. Only one of them moves the
    USDT."""

    async def _passed_over(self, bench: EvmBench, raw: bytes, seconds: float) -> None:
        """Blocks are made, and it is in none of them, but waits on."""
        bench.drop(bench.in_pool())
        await bench.world.mine(int(seconds // 6) + 1)
        bench.node.ask("eth_sendRawTransaction", f"0x{raw.hex()}")

    async def _stuck(self, bench: EvmBench) -> SignedTransfer:
        made = await sent(bench)
        await self._passed_over(bench, made.blob, PATIENCE.total_seconds())
        return made

    async def test_after_three_minutes_another_has_its_place(self, bench: EvmBench) -> None:
        made = await sent(bench)
        await self._passed_over(bench, made.blob, PATIENCE.total_seconds() - 30)
        await bench.wallet.broadcast(made)
        assert bench.in_pool() == [made.tx_hash], "it is waited for"
        await self._passed_over(bench, made.blob, 30)
        await bench.wallet.broadcast(made)
        [dearer] = bench.in_pool()
        assert dearer != made.tx_hash
        await bench.wallet.broadcast(made)
        assert bench.in_pool() == [dearer], "and that one, too"
        assert await bench.moved() == UNITS
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FINAL
        shown = await bench.restarted().in_place(made)
        assert (shown.tx_hash, shown.operation, shown.expires_at) == (dearer, "wd_1", None)
        assert read(shown.blob).made.nonce == 0
        found = await bench.restarted().find("wd_1")
        assert found is not None
        assert found.signed == shown

    async def test_the_first_may_be_the_one_that_comes(self, bench: EvmBench) -> None:
        made = await self._stuck(bench)
        await bench.wallet.broadcast(made)
        bench.drop(bench.in_pool())
        bench.node.ask("eth_sendRawTransaction", f"0x{made.blob.hex()}")
        assert await bench.moved() == UNITS
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FINAL
        assert await bench.wallet.in_place(made) == made

    async def test_two_processes_agree_on_one(self, bench: EvmBench) -> None:
        made = await self._stuck(bench)
        await asyncio.gather(*(each.broadcast(made) for each in (bench.wallet, bench.restarted())))
        assert len(bench.in_pool()) == 1
        assert await bench.moved() == UNITS

    @pytest.mark.parametrize("lack", ["coins", "limit"])
    async def test_what_cannot_be_paid_for_is_told_and_waits(
        self, bench: EvmBench, lack: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = await self._stuck(bench)
        most = read(made.blob).made.fees.most
        wallet = bench.restarted(limit=most) if lack == "limit" else bench.wallet
        if lack == "coins":
            bench.endow(coins=read(made.blob).made.gas * most)
        await wallet.broadcast(made)
        assert bench.in_pool() == [made.tx_hash]
        assert ("above the limit" if lack == "limit" else "lacks coins") in caplog.text
        assert await wallet.state(made) is TransferState.UNSEEN

    async def test_blocks_without_a_base_fee_have_the_older_kind(self, bench: EvmBench) -> None:
        """With the chain's id in the signature (EIP-155)."""

        def lie(method: str, params: list[Any], result: Any) -> Any:
            return {**result, "baseFeePerGas": None} if method == "eth_getBlockByNumber" else result

        bench.fronts[0].lie = lie
        made = await sent(bench)
        assert read(made.blob).made.fees.tip is None
        assert await bench.moved() == UNITS
        await bench.forget()
        found = await bench.restarted().find("wd_1")
        assert found is not None
        assert found.signed == made

    async def test_a_node_that_knows_no_tips_is_asked_for_the_price(self, bench: EvmBench) -> None:
        bench.fronts[0].refuse = lambda method, _: (-32601, "no") if method == "eth_maxPriorityFeePerGas" else None
        await sent(bench)
        assert await bench.moved() == UNITS


class TestMeans:
    """The network keeps the fee of a failed transfer, so the wallet signs none that could fail. The payout waits."""

    async def _lacks(self, bench: EvmBench, match: str, wallet: EvmSender | None = None) -> None:
        with pytest.raises(Unavailable, match=match):
            await (wallet or bench.wallet).sign("wd_2", bench.address, UNITS)

    async def test_usdt_beside_what_is_on_its_way(self, bench: EvmBench) -> None:
        bench.endow(usdt=2 * UNITS - bench.sender.capabilities.step)
        await sent(bench)
        await self._lacks(bench, r"lacks USDT: it has 249\.99|lacks USDT: it has 250\.00")

    async def test_coins_for_all_that_is_on_its_way(self, bench: EvmBench) -> None:
        one = read((await bench.wallet.sign("wd_1", bench.address, UNITS)).blob).made
        bench.endow(coins=one.gas * one.fees.most * 3 // 2)
        await self._lacks(bench, "lacks coins for gas")

    async def test_a_recipient_whom_the_contract_refuses(self, bench: EvmBench) -> None:
        bench.fronts[0].refuse = lambda method, _: (3, "execution reverted") if method == "eth_estimateGas" else None
        await self._lacks(bench, "would not do")

    async def test_a_price_above_the_limit(self, bench: EvmBench) -> None:
        await self._lacks(bench, "above the limit of 0.00", bench.restarted(limit=1))

    async def test_the_check_tells_of_an_empty_wallet(self, bench: EvmBench) -> None:
        await bench.wallet.check()
        bench.endow(coins=0)
        with pytest.raises(Unavailable, match="lacks coins"):
            await bench.wallet.check()


class TestProof:
    """FAILED gives the money back. The proof is another final transaction with the same number, confirmed by all
    nodes."""

    async def test_another_in_its_place_proves_nothing_before_it_is_deep(self, bench: EvmBench) -> None:
        made = await bench.wallet.sign("wd_1", bench.address, UNITS)
        await bench.send_raw(bench.raw(0))
        await bench.world.mine()
        assert await bench.wallet.state(made) is TransferState.UNSEEN
        await bench.world.finalise()
        assert await bench.wallet.state(made) is TransferState.UNSEEN, "nodes may not know yet what is in it"
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FAILED

    async def test_a_reorg_takes_nothing_for_certain(self, bench: EvmBench) -> None:
        made = await sent(bench)
        await bench.world.mine()
        assert await bench.wallet.state(made) is TransferState.IN_BLOCK
        await bench.world.take_back(bench.network)
        assert await bench.wallet.state(made) is TransferState.UNSEEN
        await bench.wallet.broadcast(made)
        assert await bench.moved() == UNITS
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FINAL

    async def test_one_that_the_contract_refused_is_failed_when_it_is_final(self, bench: EvmBench) -> None:
        made = await sent(bench)
        bench.endow(usdt=0)
        await bench.world.mine()
        assert await bench.wallet.state(made) is TransferState.IN_BLOCK
        await bench.world.finalise()
        assert await bench.wallet.state(made) is TransferState.FAILED
        bench.endow()
        assert nonce_of(await sent(bench)) == 1

    async def test_the_same_transfer_with_another_fee_is_not_failed(self, bench: EvmBench) -> None:
        """It was sent after the backup was made that our book is of: the logs tell."""
        made = await bench.wallet.sign("wd_1", bench.address, UNITS)
        was = read(made.blob).made
        other = await bench.send_raw(msgspec.structs.replace(was, fees=was.fees.raised))
        await bench.world.mine()
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FINAL
        assert (await bench.wallet.in_place(made)).tx_hash == other

    async def test_another_payment_in_its_place_is_not_taken_for_it(self, bench: EvmBench) -> None:
        made = await bench.wallet.sign("wd_1", bench.address, UNITS)
        less = Transfer(recipient=EVM.read(bench.address), amount=1, operation="wd_1")
        token = bytes.fromhex(bench.chain.usdt[2:])
        await bench.send_raw(bench.raw(0, to=token, data=less.data))
        await bench.world.mine()
        await bench.settle()
        assert await bench.wallet.state(made) is TransferState.FAILED

    async def test_one_node_alone_proves_nothing(self, networks: ChainWorld) -> None:
        """The first of two nodes reports the number as used, or hides the transaction that used it."""
        world = networks.renewed()
        node = world.nodes[Network.BSC]
        async with Front(node, key=KEY) as honest, Front(node, key=KEY) as liar:
            bench = await EvmBench(world, Network.BSC, liar, honest).begin()
            made = await bench.wallet.sign("wd_1", bench.address, UNITS)
            await bench.settle()

            def says_used(method: str, params: list[Any], result: Any) -> Any:
                return "0x1" if method == "eth_getTransactionCount" else result

            liar.lie = says_used
            assert await bench.wallet.state(made) is TransferState.UNSEEN
            liar.lie = lambda method, params, result: result
            was = read(made.blob).made
            await bench.send_raw(msgspec.structs.replace(was, fees=was.fees.raised))
            await bench.world.mine()
            await bench.settle()
            liar.lie = lambda method, params, result: [] if method == "eth_getLogs" else result
            assert await bench.wallet.state(made) is TransferState.FINAL
            await bench.close()

    async def test_a_node_that_starts_again_changes_nothing(self, tmp_path: Path) -> None:
        with chain_world(tmp_path, [Network.BSC], START) as world:
            async with Front(world.nodes[Network.BSC]) as front:
                bench = await EvmBench(world, Network.BSC, front).begin()
                made = await sent(bench)
                world.nodes[Network.BSC].stop()
                await bench.world.clock.advance(60)
                with pytest.raises(Unavailable):
                    await bench.wallet.state(made)
                world.nodes[Network.BSC].start()
                await bench.recover()
                await bench.wallet.broadcast(made)
                assert await bench.moved() == UNITS
                await bench.close()


class TestWhatANodeAnswers:
    @pytest.mark.parametrize(
        ("words", "end"),
        [("txpool is full", Unavailable), ("something new", OutcomeUnknown), ("invalid sender", Refused)],
    )
    async def test_each_word_has_its_end(self, bench: EvmBench, words: str, end: type[Exception]) -> None:
        made = await bench.wallet.sign("wd_1", bench.address, UNITS)
        bench.fronts[0].refuse = lambda method, _: (-32000, words) if method == "eth_sendRawTransaction" else None
        with pytest.raises(end):
            await bench.wallet.broadcast(made)
        bench.fronts[0].refuse = lambda method, params: None
        await bench.wallet.broadcast(made)
        assert await bench.moved() == UNITS


class TestSettings:
    """An operator's settings make the wallet; test mode simulates the same network."""

    @pytest.mark.parametrize(("name", "network"), [("evm", Network.ETHEREUM), ("bsc", Network.BSC)])
    async def test_a_app_has_it(self, networks: ChainWorld, name: str, network: Network) -> None:
        async with bench_on(networks, network) as bench:
            providers = {f"{name}_nodes": (bench.fronts[0].address,), f"{name}_key": bench.key}
            settings = Settings(database_url="memory://", payouts=name, providers=providers)
            async with open_app(settings, clock=bench.world.clock) as app:
                live, test = (app.ports.senders.of_mode(mode) for mode in ("live", "test"))
                await live.check()  # type: ignore[attr-defined]  # it is Checkable
                assert live.name == name
                assert live.capabilities.network is test.capabilities.network is network
                assert (live.capabilities.step, test.capabilities.step) == (bench.sender.capabilities.step,) * 2
                assert isinstance(live, ListingSender)
                assert isinstance(live, ReplacingSender)
                with pytest.raises(NotConfigured):
                    app.ports.senders.on("live", "tron")
                assert app.ports.senders.on("test", "tron") is test, "exchanges of test mode go on"

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({}, "set CAMBIST_BSC_KEY"),
            ({"bsc_key": "1" * 64}, "set CAMBIST_BSC_NODES"),
        ],
    )
    async def test_what_is_missing_is_named(self, given: dict[str, object], said: str) -> None:
        with pytest.raises(PluginError, match=said):
            async with open_app(Settings(database_url="memory://", payouts="bsc", providers=given)):
                pass


class _Away(KeySigner):
    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    async def sign(self, digest: bytes) -> bytes:
        raise Unavailable("the device is away")
