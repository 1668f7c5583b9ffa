"""Deposits read from nodes. Every deposit is found once and under one name, despite problem with blocks, nodes and
processes, and few calls are needed (docs/providers/chains.md "Deposits")."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.chain.nodes import NodesChain
from cambist.adapters.deposits.nodes import FRESH
from cambist.adapters.deposits.passes import StillReading
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.ports.chain import Final, Network
from cambist.ports.deposits import Deposit
from cambist.ports.faults import Unavailable
from cambist.testing import ProviderFault
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import NodesDepositsHarness
from tests.chains.world import SOMEBODY, STRANGE, ChainWorld, chain_world

TRON = Network.TRON
USDT = CHAINS[TRON].usdt
Units = list[tuple[int, bool]]


@pytest.fixture
async def front(networks: ChainWorld) -> AsyncIterator[Front]:
    async with TronFront(networks.nodes[TRON]) as made:
        yield made


@pytest.fixture
async def harness(networks: ChainWorld, front: Front) -> AsyncIterator[NodesDepositsHarness]:
    made = NodesDepositsHarness(networks, front)
    yield made
    await made.close()


def spans(front: Front) -> list[tuple[int, int]]:
    """First and last block of each question for logs."""
    asked = [json.loads(request.body) for request in front.requests]
    wanted = [each["params"][0] for each in asked if each["method"] == "eth_getLogs"]
    return [(int(each["fromBlock"], 16), int(each["toBlock"], 16)) for each in wanted]


def told(deposits: Any) -> Units:
    return [(each.units, each.is_final) for each in deposits]


async def given(harness: NodesDepositsHarness, count: int) -> list[str]:
    return [await harness.watcher.address(f"exch_{number}") for number in range(count)]


class TestNames:
    async def test_a_deposit_has_the_index_that_the_chain_gives_it(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        """Its place among all events of the transaction: the node's own numbers go by block."""
        address = await harness.watcher.address("exch_1")
        mine, world = harness.payload(address), harness.world
        world.pay(TRON, (SOMEBODY, 9_00))  # an event before it in the block
        tx_hash = world.send(
            TRON, [(USDT, SOMEBODY, 1), (STRANGE, mine, 7), (USDT, mine, 5), (USDT, mine, 0), (USDT, mine, 6)]
        )
        await world.mine()
        await world.finalise()
        found = await harness.watcher.deposits(address)
        assert [(each.tx_hash, each.index, each.units) for each in found] == [(tx_hash, 2, 5_00), (tx_hash, 4, 6_00)]
        chain = NodesChain({TRON: Nodes(CHAINS[TRON], [front.address], world.clock)})
        seen = await chain.lookup(TRON, tx_hash)
        assert isinstance(seen, Final)
        mine_there = [(each.index, each.units) for each in seen.transfers if each.recipient == address]
        assert mine_there == [(2, 5_00), (4, 6_00)]
        await chain.close()

    async def test_in_another_block_it_is_the_same_deposit(self, harness: NodesDepositsHarness) -> None:
        """A block is replaced and the next one contains the transaction: at another time, but not twice."""
        address, world = await harness.watcher.address("exch_1"), harness.world
        tx_hash = await harness.send(address, 5_00, final=False)
        [before] = await harness.watcher.deposits(address)
        raw = world.nodes[TRON].ask("eth_getRawTransactionByHash", f"0x{tx_hash}")
        world.nodes[TRON].ask("anvil_reorg", 1, [[raw, 0]])
        await world.mine()
        [after] = await harness.watcher.deposits(address)
        assert (after.tx_hash, after.index, after.is_final) == (before.tx_hash, before.index, False)
        await world.finalise()
        assert told(await harness.watcher.deposits(address)) == [(5_00, True)]

    async def test_the_moment_is_the_blocks(self, harness: NodesDepositsHarness) -> None:
        """The block's time decides whether a deposit is late. The time when we saw it does not."""
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00, final=False)
        made_at = harness.world.clock.now()
        await harness.world.mine(5)
        [found] = await harness.watcher.deposits(address)
        assert found.at == made_at


class TestReading:
    async def test_many_addresses_are_one_question(self, harness: NodesDepositsHarness, front: Front) -> None:
        """The same holds for addresses that are queried one after the other."""
        addresses = await given(harness, 40)
        for address in addresses[:20]:
            await harness.watcher.deposits(address)
        for number in (3, 37):
            await harness.send(addresses[number], 5_00)
        front.calls.clear()
        await asyncio.gather(*(harness.watcher.deposits(address) for address in addresses))
        assert (front.calls["eth_getLogs"], front.calls["eth_getTransactionReceipt"]) == (1, 2)
        await harness.world.mine()
        front.calls.clear()
        for address in addresses:
            await harness.watcher.deposits(address)
        assert (front.calls["eth_getLogs"], front.calls["eth_getTransactionReceipt"]) == (1, 0)

    async def test_repeated_poll_gets_the_same_answer_without_a_call(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        address = await harness.watcher.address("exch_1")
        await harness.watcher.deposits(address)
        front.calls.clear()
        await harness.watcher.deposits(address)
        assert not front.calls
        await harness.world.clock.advance(FRESH + 1)
        await harness.watcher.deposits(address)
        assert front.calls["eth_getLogs"] == 1

    async def test_cancelled_caller_does_not_cancel_the_others_answer(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        one, other = await given(harness, 2)
        await harness.send(other, 5_00)
        held = front.hold_next(matching=lambda request: b"eth_getLogs" in request.body)
        impatient, patient = [asyncio.create_task(harness.wallet.deposits(address)) for address in (one, other)]
        await held.arrived()
        impatient.cancel()
        await asyncio.wait([impatient])
        await held.release()
        assert told(await patient) == [(5_00, True)]

    async def test_deposits_and_progress_survive_a_restart(self, harness: NodesDepositsHarness, front: Front) -> None:
        """A deposit and the reading position are stored, and the next process continues there."""
        address = await harness.watcher.address("exch_1")
        watcher = harness.restarted(span=10)
        await harness.send(address, 5_00)
        await harness.world.mine(60)
        await watcher.deposits(address)
        front.requests.clear()
        await harness.world.mine()
        again = harness.restarted(span=10)
        assert told(await again.deposits(address)) == [(5_00, True)]
        first, _ = spans(front)[0]
        assert first == harness.world.height(TRON) - 1 - CHAINS[TRON].reread + 1

    async def test_address_far_behind_delays_no_other(self, harness: NodesDepositsHarness, front: Front) -> None:
        old = await harness.watcher.address("exch_old")
        await harness.world.mine(70)
        young = await harness.watcher.address("exch_young")
        watcher = harness.restarted(span=10)
        await watcher.deposits(young)
        front.requests.clear()
        await watcher.deposits(old)
        assert all(last - first < 10 for first, last in spans(front))

    async def test_long_scan_resumes_where_it_stopped(self, harness: NodesDepositsHarness, front: Front) -> None:
        """After hours without a node each pass reads a part, and the answer is "unknown" until everything is read."""
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00)
        await harness.world.mine(60)
        watcher, found, polls = harness.restarted(span=1), list[Deposit](), 0
        while not found and polls < 10:
            polls += 1
            with contextlib.suppress(StillReading):
                found = [*await watcher.deposits(address)]
            await harness.world.clock.advance(1)
        assert (polls > 1, told(found)) == (True, [(5_00, True)])

    async def test_dust_of_strangers_costs_no_calls(self, harness: NodesDepositsHarness, front: Front) -> None:
        """Strangers send transfers of zero to addresses so that their own address is noticed."""
        address = await harness.watcher.address("exch_1")
        await harness.watcher.deposits(address)
        for _ in range(3):
            await harness.send(address, 0, final=False)
        front.calls.clear()
        assert list(await harness.watcher.deposits(address)) == []
        assert front.calls["eth_getTransactionReceipt"] == 0

    async def test_a_node_that_starts_again_has_lost_nothing(self, tmp_path: Path) -> None:
        with chain_world(tmp_path, [TRON]) as world:
            node = world.nodes[TRON]
            async with TronFront(node) as front:
                harness = NodesDepositsHarness(world, front)
                address = await harness.watcher.address("exch_1")
                await harness.send(address, 5_00)
                node.stop()
                with pytest.raises(Unavailable):
                    await harness.watcher.deposits(address)
                node.start()
                await harness.world.mine()
                assert told(await harness.watcher.deposits(address)) == [(5_00, True)]
                await harness.close()


class TestRefusals:
    """How many blocks and addresses one question may have each node decides for itself."""

    @pytest.mark.parametrize(
        "refusal",
        [
            (-32602, "exceed max block range: 10"),
            (-32005, "query returned more than 10000 results"),
            (-32000, "block range is too wide"),
        ],
    )
    async def test_the_span_is_halved_until_it_is_taken(
        self, harness: NodesDepositsHarness, front: Front, refusal: tuple[int, str]
    ) -> None:
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00)
        await harness.world.mine(50)

        def narrow(method: str, params: list[Any]) -> tuple[int, str] | None:
            wanted = params[0] if method == "eth_getLogs" else {"fromBlock": "0x0", "toBlock": "0x0"}
            return refusal if int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) >= 10 else None

        front.refuse = narrow
        assert told(await harness.watcher.deposits(address)) == [(5_00, True)]
        asked = len(spans(front))
        await harness.world.mine()
        await harness.watcher.deposits(address)
        assert all(last - first < 10 for first, last in spans(front)[asked:]), "what was learned is forgotten"

    async def test_so_are_the_addresses(self, harness: NodesDepositsHarness, front: Front) -> None:
        addresses = await given(harness, 9)
        await harness.send(addresses[4], 5_00)

        def few(method: str, params: list[Any]) -> tuple[int, str] | None:
            is_many = method == "eth_getLogs" and len(params[0]["topics"][2]) > 2
            return (-32602, "exceed max topics: 2") if is_many else None

        front.refuse = few
        found = [await harness.watcher.deposits(address) for address in addresses]
        assert [told(each) for each in found if each] == [[(5_00, True)]]

    async def test_a_node_that_refuses_one_block_of_one_address_is_of_no_use(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        address = await harness.watcher.address("exch_1")
        front.refuse = lambda method, params: (-32000, "no logs here") if method == "eth_getLogs" else None
        with pytest.raises(Unavailable, match="no logs here"):
            await harness.watcher.deposits(address)

    async def test_rate_limiting_node_is_asked_later_not_in_smaller_spans(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        address, watcher = await harness.watcher.address("exch_1"), harness.restarted(span=64)
        await harness.world.mine(40)
        await watcher.deposits(address)
        await harness.world.mine()
        first, last = spans(front)[-1]
        assert last - first > 32, "half of the span would do, too"
        front.next(ProviderFault.BUSY, matching=lambda request: b"eth_getLogs" in request.body, retry_after=3)
        with pytest.raises(Unavailable) as raised:
            await watcher.deposits(address)
        assert raised.value.retry_after == 3
        await harness.world.mine()
        front.calls.clear()
        await watcher.deposits(address)
        assert front.calls["eth_getLogs"] == 1, "it is asked in halves"


class TestLies:
    @pytest.mark.parametrize(
        "lie",
        [
            lambda logs: [{**each, "blockNumber": "0xffff"} for each in logs],
            lambda logs: [{**each, "blockHash": "0x" + "77" * 32} for each in logs],
            lambda logs: [{**each, "transactionHash": "0x" + "77" * 32} for each in logs],
            lambda logs: [{**each, "transactionHash": "0x7"} for each in logs],
            lambda logs: [{**each, "data": "0x" + "zz" * 32} for each in logs],
            lambda logs: {},
        ],
    )
    async def test_logs_that_cannot_be_true_are_no_answer(
        self, harness: NodesDepositsHarness, front: Front, lie: Callable[[Any], Any]
    ) -> None:
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00)
        front.lie = lambda method, params, result: lie(result) if method == "eth_getLogs" else result
        with pytest.raises(Unavailable):
            await harness.watcher.deposits(address)

    async def test_removed_or_foreign_log_is_not_counted(self, harness: NodesDepositsHarness, front: Front) -> None:
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00)
        front.lie = lambda method, params, result: (
            [{**each, "removed": True} for each in result] + [{**each, "address": STRANGE} for each in result]
            if method == "eth_getLogs"
            else result
        )
        assert list(await harness.watcher.deposits(address)) == []


class TestWallet:
    async def test_an_address_that_held_usdt_is_given_to_nobody(self, harness: NodesDepositsHarness) -> None:
        """A restored database counts from its old state: deposits since then belong to another exchange."""
        first, second, third = [each.address for each in await harness.wallet.addresses(0, 3)]
        await harness.send(first, 5_00)
        await harness.send(second, 5_00)
        assert await harness.watcher.address("exch_1") == third
        assert await harness.watcher.address("exch_1") == third
        assert await harness.restarted().address("exch_1") == third

    async def test_the_wallet_s_addresses_are_its_own_given_out_or_next(self, harness: NodesDepositsHarness) -> None:
        given = await harness.watcher.address("exch_1")
        following = [each.address for each in await harness.wallet.addresses(0, 100)]
        for address in (given, following[1], following[99]):
            assert await harness.restarted().owns(address)
        for other in ("TP2XF6cQrytbPzkiympYZe7ptUkDacptok", "", "x"):
            assert not await harness.wallet.owns(other)

    async def test_numbers_that_are_skipped_are_given_to_nobody(self, harness: NodesDepositsHarness) -> None:
        await harness.watcher.address("exch_1")
        assert await harness.wallet.skip(7) == 7
        assert await harness.wallet.skip(3) == 7, "it went back"
        assert await harness.watcher.address("exch_2") == (await harness.wallet.addresses(7, 1))[0].address

    async def test_deposits_are_shown_by_address_number(self, harness: NodesDepositsHarness) -> None:
        for number in range(3):
            await harness.watcher.address(f"exch_{number}")
        shown = await harness.wallet.addresses(0, 4)
        await harness.send(shown[1].address, 5_00, 7_00)
        await harness.watcher.deposits(shown[1].address)
        after = await harness.wallet.addresses(0, 4)
        assert [(each.number, each.is_given, each.units) for each in after] == [
            (0, True, 0),
            (1, True, 12_00),
            (2, True, 0),
            (3, False, 0),
        ]

    async def test_an_address_of_nobody_is_not_watched(self, harness: NodesDepositsHarness) -> None:
        [following] = await harness.wallet.addresses(0, 1)
        for address in (following.address, "T" + "1" * 33, ""):
            with pytest.raises(Unavailable):
                await harness.watcher.deposits(address)


class TestPages:
    """The stored page of an address, as a newly started process finds it."""

    async def test_stored_deposit_is_verified_once_more_after_a_restart(
        self, harness: NodesDepositsHarness, front: Front
    ) -> None:
        address = await harness.watcher.address("exch_1")
        await harness.send(address, 5_00)
        await harness.watcher.deposits(address)
        again = harness.restarted()
        front.calls.clear()
        for _ in range(2):
            await harness.world.mine()
            assert told(await again.deposits(address)) == [(5_00, True)]
        assert front.calls["eth_getTransactionReceipt"] == 1

    async def test_a_page_that_somebody_wrote_makes_no_money(
        self, harness: NodesDepositsHarness, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Otherwise a writer to the database could obtain RUB without a deposit."""
        address = await harness.watcher.address("exch_1")
        other = await harness.watcher.address("exch_2")
        elsewhere = await harness.send(other, 9_00)
        at = harness.world.clock.now()
        forged = tuple(
            Deposit(tx_hash=tx_hash, index=0, units=5_00, at=at, is_final=True) for tx_hash in ("ab" * 32, elsewhere)
        )
        watcher = harness.restarted()
        await watcher._pages.change(address, lambda page: msgspec.structs.replace(page, found=forged))
        await harness.world.mine()
        assert list(await watcher.deposits(address)) == []
        assert f"the network knows nothing of {'ab' * 32}" in caplog.text


async def test_two_processes_keep_one_page(harness: NodesDepositsHarness) -> None:
    """Neither process removes deposits that the other found."""
    address = await harness.watcher.address("exch_1")
    one, other = harness.restarted(), harness.restarted()
    await one.deposits(address)
    await other.deposits(address)
    await harness.send(address, 5_00)
    await one.deposits(address)
    await harness.send(address, 7_00)
    await other.deposits(address)
    await harness.world.mine(60)
    assert sorted(told(await harness.restarted().deposits(address))) == [(5_00, True), (7_00, True)]


async def test_failing_storage_does_not_hide_deposits(
    harness: NodesDepositsHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    address, watcher = await harness.watcher.address("exch_1"), harness.wallet
    await harness.send(address, 5_00)

    async def away(*_: Any) -> None:
        raise Unavailable("the storage is away")

    monkeypatch.setattr(watcher._pages, "change", away)
    found: list[Deposit] = [*await watcher.deposits(address)]
    assert told(found) == [(5_00, True)]
    assert "could not be kept" in caplog.text
    monkeypatch.undo()
    await harness.world.clock.advance(10)
    await watcher.deposits(address)
    assert (await watcher.addresses(0, 1))[0].units == 5_00
