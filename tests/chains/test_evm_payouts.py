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
from cambist.frontends.app.compose import open_app
from cambist.frontends.conformance import payout_faults
from cambist.frontends.conformance import payouts as of_payouts
from cambist.frontends.conformance.harnesses import PayoutsHarness
from cambist.frontends.conformance.problem import Work
from cambist.frontends.settings.plugins import PluginError
from cambist.frontends.settings.settings import Settings
from cambist.ports.chain import Network
from cambist.ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.payouts import ListingSender, ReplacingSender, SignedTransfer, TransferState
from cambist.testing import ProviderFault, ProviderRequest
from tests.chains.evm_harness import EvmHarness, LivelyFront
from tests.chains.fronts import Front
from tests.chains.harnesses import KEY
from tests.chains.world import ChainWorld, chain_world
from tests.contracts.storage_kit import START
from tests.tables import table

Patch = pytest.MonkeyPatch
UNITS = 250 * 10**8


@asynccontextmanager
async def harness_on(
    networks: ChainWorld, network: Network, kind: Callable[..., Front] = Front
) -> AsyncIterator[EvmHarness]:
    world = networks.renewed()
    async with kind(world.nodes[network], key=KEY) as front:
        made = await EvmHarness(world, network, front).begin()
        yield made
        await made.close()


@pytest.fixture(params=[Network.ETHEREUM, Network.BSC])
async def harness(networks: ChainWorld, request: pytest.FixtureRequest) -> AsyncIterator[EvmHarness]:
    async with harness_on(networks, request.param) as made:
        yield made


class TestTheContract:
    @pytest.fixture
    def payouts_harness(self, harness: EvmHarness) -> PayoutsHarness:
        return harness

    class TestSigning(of_payouts.TestSigning): ...

    class TestBroadcast(of_payouts.TestBroadcast): ...

    class TestEnds(of_payouts.TestEnds): ...

    class TestMemory(of_payouts.TestMemory):
        """Transfers in blocks. While a transfer waits for a block and the book lacks it, the wallet signs nothing."""

        @pytest.fixture
        async def payouts_harness(self, networks: ChainWorld) -> AsyncIterator[PayoutsHarness]:
            async with harness_on(networks, Network.BSC, LivelyFront) as made:
                yield made

    class TestFailures(payout_faults.TestFailures): ...

    class TestPayoutsAtFaults(payout_faults.TestPayoutsAtFaults):
        """One network is enough: both share the code that interprets missing and bad answers."""

        @pytest.fixture
        async def payouts_harness(self, networks: ChainWorld) -> AsyncIterator[PayoutsHarness]:
            async with harness_on(networks, Network.ETHEREUM) as made:
                yield made

        @pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED])
        async def test_credentials_that_are_refused_once_refuse_one_call(
            self, work: Work, fault: ProviderFault
        ) -> None:
            """A 403 means that the node gets too many requests."""
            await super().test_credentials_that_are_refused_once_refuse_one_call(work, fault)

    class TestCancelledPayouts(payout_faults.TestCancelledPayouts): ...

    class TestTwoPayOut(payout_faults.TestTwoPayOut): ...


async def test_the_wallet_s_address_is_its_own(harness: EvmHarness) -> None:
    assert await harness.wallet.owns(harness.wallet.address)
    for other in (harness.address, "", "x", "0x00"):
        assert not await harness.wallet.owns(other)


async def sent(harness: EvmHarness, operation: str = "wd_1", wallet: EvmSender | None = None) -> SignedTransfer:
    """Signed and handed over."""
    by = wallet or harness.wallet
    made = await by.sign(operation, harness.address, UNITS)
    await by.broadcast(made)
    return made


def nonce_of(made: SignedTransfer) -> int:
    return read(made.blob).made.nonce


class TestNumbers:
    """Each transfer has a number of the wallet, which the network takes once. A single writer assigns the numbers."""

    async def test_many_at_once_by_two_processes_have_each_its_own(self, harness: EvmHarness) -> None:
        wallets = harness.wallet, harness.restarted()
        made = await asyncio.gather(
            *(wallets[each % 2].sign(f"wd_{each}", harness.address, UNITS) for each in range(12))
        )
        assert sorted(map(nonce_of, made)) == list(range(12))
        for each in made:
            await harness.wallet.broadcast(each)
        assert await harness.moved() == 12 * UNITS

    async def test_one_operation_has_one_however_often_it_is_signed(self, harness: EvmHarness) -> None:
        first = await harness.wallet.sign("wd_1", harness.address, UNITS)
        again = await harness.restarted().sign("wd_1", harness.address, UNITS)
        assert again == first
        with pytest.raises(Unavailable, match="something else"):
            await harness.wallet.sign("wd_1", harness.address, UNITS + harness.sender.capabilities.step)

    async def test_two_that_sign_one_operation_at_once_leave_no_gap(self, harness: EvmHarness) -> None:
        asked = (each.sign("wd_1", harness.address, UNITS) for each in (harness.wallet, harness.restarted()))
        made = [each for each in await asyncio.gather(*asked, return_exceptions=True) if not isinstance(each, Fault)]
        assert {nonce_of(each) for each in made if isinstance(each, SignedTransfer)} == {0}
        assert nonce_of(await harness.wallet.sign("wd_2", harness.address, UNITS)) == 1

    async def test_a_signer_that_is_away_keeps_the_number(self, harness: EvmHarness) -> None:
        harness.wallet._offers._signer, whole = _Away(harness.owner), harness.wallet._signer
        with pytest.raises(Unavailable):
            await harness.wallet.sign("wd_1", harness.address, UNITS)
        harness.wallet._offers._signer = whole
        assert nonce_of(await harness.wallet.sign("wd_1", harness.address, UNITS)) == 0

    async def test_no_more_wait_for_a_block_than_nodes_keep(self, harness: EvmHarness, monkeypatch: Patch) -> None:
        monkeypatch.setattr(numbers, "IN_FLIGHT", 3)
        for each in range(3):
            await sent(harness, f"wd_{each}")
        with pytest.raises(Unavailable, match="wait for a block") as full:
            await harness.wallet.sign("wd_3", harness.address, UNITS)
        assert full.value.retry_after == 10
        await harness.world.mine()
        await sent(harness, "wd_3")

    async def test_a_number_that_was_never_handed_over_is_used_up_by_nothing(self, harness: EvmHarness) -> None:
        """The payout was called off. The transfer behind it waits ten minutes, and then goes out."""
        called_off = await harness.wallet.sign("wd_off", harness.address, UNITS)
        behind = await sent(harness, "wd_2")
        for _ in range(3):
            await harness.world.mine(40)
            await harness.wallet.broadcast(behind)
            assert harness.count() == 0
        await harness.world.mine(60)
        await harness.wallet.broadcast(behind)
        assert await harness.moved() == UNITS
        assert await harness.wallet.state(called_off) is TransferState.UNSEEN, "what stands in its place is not it"
        await harness.settle()
        assert await harness.wallet.state(behind) is TransferState.FINAL
        assert await harness.wallet.state(called_off) is TransferState.FAILED
        with pytest.raises(Refused) as refused:
            await harness.wallet.broadcast(called_off)
        assert refused.value.reason == "expired"
        again = await sent(harness, "wd_off")
        assert nonce_of(again) == 2
        assert await harness.moved() == 2 * UNITS

    async def test_broadcast_transfer_is_never_abandoned(self, harness: EvmHarness) -> None:
        """When a node forgot a transfer, the next transfer in line hands it over again."""
        first, behind = await sent(harness), await sent(harness, "wd_2")
        harness.drop([first.tx_hash])
        for _ in range(5):
            await harness.world.mine(40)
            await harness.wallet.broadcast(behind)
        assert await harness.moved() == 2 * UNITS
        await harness.settle()
        assert await harness.wallet.state(first) is TransferState.FINAL

    async def test_nothing_is_signed_while_the_book_lacks_a_pending_transfer(self, harness: EvmHarness) -> None:
        await sent(harness)
        await harness.forget()
        with pytest.raises(Unavailable, match="the book lacks"):
            await harness.restarted().find("wd_1")

    async def test_foreign_transaction_of_the_wallet_is_logged_and_stops_nothing(
        self, harness: EvmHarness, caplog: pytest.LogCaptureFixture
    ) -> None:
        await harness.send_raw(harness.raw(0))
        await harness.settle()
        assert await harness.wallet.find("wd_1") is None
        assert "somebody else spends" in caplog.text
        assert nonce_of(await sent(harness)) == 1

    async def test_a_long_way_back_that_is_cut_off_is_gone_on_with(
        self, harness: EvmHarness, monkeypatch: Patch
    ) -> None:
        """A call ends after 20 s. The next call continues where it stopped and reads nothing twice."""
        monkeypatch.setattr(sightings, "LogSearch", partial(LogSearch, span=5))
        monkeypatch.setattr(book, "_AGE", 0)
        for each in ("wd_1", "wd_2"):
            await sent(harness, each)
            await harness.settle()
        await harness.forget()
        searches = count(1)

        def is_fourth(request: ProviderRequest) -> bool:
            return b"eth_getLogs" in request.body and next(searches) == 4

        harness.fronts[0].next(ProviderFault.BAD_GATEWAY, matching=is_fourth)
        harness.fronts[0].requests.clear()
        with pytest.raises(Unavailable):
            await harness.restarted().find("wd_2")
        before = self._searched_from(harness)
        await harness.recover()
        assert await harness.restarted().find("wd_2") is not None
        assert self._searched_from(harness)[0] == before[2] + 4, "the last block that was read, and what comes after it"
        assert await harness.wallet.find("wd_1") is not None

    @staticmethod
    def _searched_from(harness: EvmHarness) -> list[int]:
        asked = [json.loads(each.body) for each in harness.fronts[0].requests if b"eth_getLogs" in each.body]
        harness.fronts[0].requests.clear()
        return [int(each["params"][0]["fromBlock"], 16) for each in asked]


class TestFees:
    """A transfer whose fee is too low is replaced at the same number with a higher fee. Only one of them moves the
    USDT."""

    async def _passed_over(self, harness: EvmHarness, raw: bytes, seconds: float) -> None:
        """Blocks are made, and it is in none of them, but waits on."""
        harness.drop(harness.in_pool())
        await harness.world.mine(int(seconds // 6) + 1)
        harness.node.ask("eth_sendRawTransaction", f"0x{raw.hex()}")

    async def _stuck(self, harness: EvmHarness) -> SignedTransfer:
        made = await sent(harness)
        await self._passed_over(harness, made.blob, PATIENCE.total_seconds())
        return made

    async def test_after_three_minutes_another_has_its_place(self, harness: EvmHarness) -> None:
        made = await sent(harness)
        await self._passed_over(harness, made.blob, PATIENCE.total_seconds() - 30)
        await harness.wallet.broadcast(made)
        assert harness.in_pool() == [made.tx_hash], "it is waited for"
        await self._passed_over(harness, made.blob, 30)
        await harness.wallet.broadcast(made)
        [dearer] = harness.in_pool()
        assert dearer != made.tx_hash
        await harness.wallet.broadcast(made)
        assert harness.in_pool() == [dearer], "and that one, too"
        assert await harness.moved() == UNITS
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FINAL
        shown = await harness.restarted().in_place(made)
        assert (shown.tx_hash, shown.operation, shown.expires_at) == (dearer, "wd_1", None)
        assert read(shown.blob).made.nonce == 0
        found = await harness.restarted().find("wd_1")
        assert found is not None
        assert found.signed == shown

    async def test_the_first_may_be_the_one_that_comes(self, harness: EvmHarness) -> None:
        made = await self._stuck(harness)
        await harness.wallet.broadcast(made)
        harness.drop(harness.in_pool())
        harness.node.ask("eth_sendRawTransaction", f"0x{made.blob.hex()}")
        assert await harness.moved() == UNITS
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FINAL
        assert await harness.wallet.in_place(made) == made

    async def test_two_processes_agree_on_one(self, harness: EvmHarness) -> None:
        made = await self._stuck(harness)
        await asyncio.gather(*(each.broadcast(made) for each in (harness.wallet, harness.restarted())))
        assert len(harness.in_pool()) == 1
        assert await harness.moved() == UNITS

    @pytest.mark.parametrize("lack", ["coins", "limit"])
    async def test_transfer_without_coins_or_above_the_limit_is_logged_and_waits(
        self, harness: EvmHarness, lack: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = await self._stuck(harness)
        most = read(made.blob).made.fees.most
        wallet = harness.restarted(limit=most) if lack == "limit" else harness.wallet
        if lack == "coins":
            harness.endow(coins=read(made.blob).made.gas * most)
        await wallet.broadcast(made)
        assert harness.in_pool() == [made.tx_hash]
        assert ("above the limit" if lack == "limit" else "lacks coins") in caplog.text
        assert await wallet.state(made) is TransferState.UNSEEN

    async def test_blocks_without_a_base_fee_have_the_older_kind(self, harness: EvmHarness) -> None:
        """With the chain's id in the signature (EIP-155)."""

        def lie(method: str, params: list[Any], result: Any) -> Any:
            return {**result, "baseFeePerGas": None} if method == "eth_getBlockByNumber" else result

        harness.fronts[0].lie = lie
        made = await sent(harness)
        assert read(made.blob).made.fees.tip is None
        assert await harness.moved() == UNITS
        await harness.forget()
        found = await harness.restarted().find("wd_1")
        assert found is not None
        assert found.signed == made

    async def test_a_node_that_knows_no_tips_is_asked_for_the_price(self, harness: EvmHarness) -> None:
        harness.fronts[0].refuse = lambda method, _: (-32601, "no") if method == "eth_maxPriorityFeePerGas" else None
        await sent(harness)
        assert await harness.moved() == UNITS


class TestMeans:
    """The network keeps the fee of a failed transfer, so the wallet signs none that could fail. The payout waits."""

    async def _lacks(self, harness: EvmHarness, match: str, wallet: EvmSender | None = None) -> None:
        with pytest.raises(Unavailable, match=match):
            await (wallet or harness.wallet).sign("wd_2", harness.address, UNITS)

    async def test_usdt_beside_what_is_on_its_way(self, harness: EvmHarness) -> None:
        harness.endow(usdt=2 * UNITS - harness.sender.capabilities.step)
        await sent(harness)
        await self._lacks(harness, r"lacks USDT: it has 249\.99|lacks USDT: it has 250\.00")

    async def test_coins_for_all_that_is_on_its_way(self, harness: EvmHarness) -> None:
        one = read((await harness.wallet.sign("wd_1", harness.address, UNITS)).blob).made
        harness.endow(coins=one.gas * one.fees.most * 3 // 2)
        await self._lacks(harness, "lacks coins for gas")

    async def test_a_recipient_whom_the_contract_refuses(self, harness: EvmHarness) -> None:
        harness.fronts[0].refuse = lambda method, _: (3, "execution reverted") if method == "eth_estimateGas" else None
        await self._lacks(harness, "would not do")

    async def test_a_price_above_the_limit(self, harness: EvmHarness) -> None:
        await self._lacks(harness, "above the limit of 0.00", harness.restarted(limit=1))

    async def test_check_reports_an_empty_wallet(self, harness: EvmHarness) -> None:
        await harness.wallet.check()
        harness.endow(coins=0)
        with pytest.raises(Unavailable, match="lacks coins"):
            await harness.wallet.check()


class TestProof:
    """FAILED gives the money back. The proof is another final transaction with the same number, confirmed by all
    nodes."""

    async def test_another_in_its_place_proves_nothing_before_it_is_deep(self, harness: EvmHarness) -> None:
        made = await harness.wallet.sign("wd_1", harness.address, UNITS)
        await harness.send_raw(harness.raw(0))
        await harness.world.mine()
        assert await harness.wallet.state(made) is TransferState.UNSEEN
        await harness.world.finalise()
        assert await harness.wallet.state(made) is TransferState.UNSEEN, "nodes may not know yet what is in it"
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FAILED

    async def test_a_reorg_takes_nothing_for_certain(self, harness: EvmHarness) -> None:
        made = await sent(harness)
        await harness.world.mine()
        assert await harness.wallet.state(made) is TransferState.IN_BLOCK
        await harness.world.take_back(harness.network)
        assert await harness.wallet.state(made) is TransferState.UNSEEN
        await harness.wallet.broadcast(made)
        assert await harness.moved() == UNITS
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FINAL

    async def test_transfer_reverted_by_the_contract_fails_once_final(self, harness: EvmHarness) -> None:
        made = await sent(harness)
        harness.endow(usdt=0)
        await harness.world.mine()
        assert await harness.wallet.state(made) is TransferState.IN_BLOCK
        await harness.world.finalise()
        assert await harness.wallet.state(made) is TransferState.FAILED
        harness.endow()
        assert nonce_of(await sent(harness)) == 1

    async def test_the_same_transfer_with_another_fee_is_not_failed(self, harness: EvmHarness) -> None:
        """It was sent after the backup from which our operation log was restored; the logs of the chain show it."""
        made = await harness.wallet.sign("wd_1", harness.address, UNITS)
        was = read(made.blob).made
        other = await harness.send_raw(msgspec.structs.replace(was, fees=was.fees.raised))
        await harness.world.mine()
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FINAL
        assert (await harness.wallet.in_place(made)).tx_hash == other

    async def test_another_payment_in_its_place_is_not_taken_for_it(self, harness: EvmHarness) -> None:
        made = await harness.wallet.sign("wd_1", harness.address, UNITS)
        less = Transfer(recipient=EVM.read(harness.address), amount=1, operation="wd_1")
        token = bytes.fromhex(harness.chain.usdt[2:])
        await harness.send_raw(harness.raw(0, to=token, data=less.data))
        await harness.world.mine()
        await harness.settle()
        assert await harness.wallet.state(made) is TransferState.FAILED

    async def test_one_node_alone_proves_nothing(self, networks: ChainWorld) -> None:
        """The first of two nodes reports the number as used, or hides the transaction that used it."""
        world = networks.renewed()
        node = world.nodes[Network.BSC]
        async with Front(node, key=KEY) as honest, Front(node, key=KEY) as liar:
            harness = await EvmHarness(world, Network.BSC, liar, honest).begin()
            made = await harness.wallet.sign("wd_1", harness.address, UNITS)
            await harness.settle()

            def says_used(method: str, params: list[Any], result: Any) -> Any:
                return "0x1" if method == "eth_getTransactionCount" else result

            liar.lie = says_used
            assert await harness.wallet.state(made) is TransferState.UNSEEN
            liar.lie = lambda method, params, result: result
            was = read(made.blob).made
            await harness.send_raw(msgspec.structs.replace(was, fees=was.fees.raised))
            await harness.world.mine()
            await harness.settle()
            liar.lie = lambda method, params, result: [] if method == "eth_getLogs" else result
            assert await harness.wallet.state(made) is TransferState.FINAL
            await harness.close()

    async def test_a_node_that_starts_again_changes_nothing(self, tmp_path: Path) -> None:
        with chain_world(tmp_path, [Network.BSC], START) as world:
            async with Front(world.nodes[Network.BSC]) as front:
                harness = await EvmHarness(world, Network.BSC, front).begin()
                made = await sent(harness)
                world.nodes[Network.BSC].stop()
                await harness.world.clock.advance(60)
                with pytest.raises(Unavailable):
                    await harness.wallet.state(made)
                world.nodes[Network.BSC].start()
                await harness.recover()
                await harness.wallet.broadcast(made)
                assert await harness.moved() == UNITS
                await harness.close()


class TestWhatANodeAnswers:
    @pytest.mark.parametrize(
        ("words", "end"),
        [("txpool is full", Unavailable), ("something new", OutcomeUnknown), ("invalid sender", Refused)],
    )
    async def test_each_word_has_its_end(self, harness: EvmHarness, words: str, end: type[Exception]) -> None:
        made = await harness.wallet.sign("wd_1", harness.address, UNITS)
        harness.fronts[0].refuse = lambda method, _: (-32000, words) if method == "eth_sendRawTransaction" else None
        with pytest.raises(end):
            await harness.wallet.broadcast(made)
        harness.fronts[0].refuse = lambda method, params: None
        await harness.wallet.broadcast(made)
        assert await harness.moved() == UNITS


class TestSettings:
    """An operator's settings make the wallet; test mode simulates the same network."""

    @pytest.mark.parametrize(("name", "network"), [("evm", Network.ETHEREUM), ("bsc", Network.BSC)])
    async def test_a_app_has_it(self, networks: ChainWorld, name: str, network: Network) -> None:
        async with harness_on(networks, network) as harness:
            providers = {f"{name}_nodes": (harness.fronts[0].address,), f"{name}_key": harness.key}
            settings = Settings(database_url="memory://", payouts=name, providers=providers)
            async with open_app(settings, clock=harness.world.clock) as app:
                live, test = (app.ports.senders.of_mode(mode) for mode in ("live", "test"))
                await live.check()  # type: ignore[attr-defined]  # it is Checkable
                assert live.name == name
                assert live.capabilities.network is test.capabilities.network is network
                assert (live.capabilities.step, test.capabilities.step) == (harness.sender.capabilities.step,) * 2
                assert isinstance(live, ListingSender)
                assert isinstance(live, ReplacingSender)
                with pytest.raises(NotConfigured):
                    app.ports.senders.on("live", "tron")
                assert app.ports.senders.on("test", "tron") is test, "exchanges of test mode go on"

    @table(
        ("given", "said"),
        [
            ({}, "set CAMBIST_BSC_NODES and CAMBIST_BSC_KEY"),
            ({"bsc_key": "1" * 64}, "set CAMBIST_BSC_NODES"),
        ],
    )
    async def test_missing_setting_is_named(self, given: dict[str, object], said: str) -> None:
        with pytest.raises(PluginError, match=said):
            async with open_app(Settings(database_url="memory://", payouts="bsc", providers=given)):
                pass


class _Away(KeySigner):
    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    async def sign(self, digest: bytes) -> bytes:
        raise Unavailable("the device is away")
