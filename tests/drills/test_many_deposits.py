"""Many exchanges wait for USDT at once, on a real node. The calls grow with hundreds of addresses and not with polls,
no deposit is missed, and the memory of a polling process does not grow (docs/providers/chains.md "Deposits"). In
full: 50 000."""

import asyncio
import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cambist.adapters.deposits.derived import AccountKey
from cambist.adapters.deposits.nodes import FRESH, NodesDeposits
from cambist.adapters.deposits.watched import AddressPage
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.rpc import Node
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.chain import Network
from cambist.ports.operation_log import NumberedOperations, OperationLog
from tests.chains.harnesses import XPUB
from tests.chains.world import ChainWorld, chain_world
from tests.patience import FULL

pytestmark = pytest.mark.drill

DEPOSITS = 50_000 if FULL else 600
TOGETHER = 300
"""Transfers in one transaction."""
SLOTS = 64
"""As many as a worker asks about at once."""
QUESTION = 500
"""Addresses of one question."""
WRITTEN = 64 * 1024
"""Bytes of the pages that one pass writes anew, at most: this storage is in memory, too."""
TABLE = 100
"""Bytes of an address' place in a dict, which is made anew now and then, and was made before anybody counted."""
TRON = Network.TRON


class Counted(NodesDeposits):
    """Deposits that count their calls."""

    calls: Counter[str]


@pytest.fixture
async def watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Counted, ChainWorld]]:
    calls: Counter[str] = Counter()
    ask = Node.ask

    async def counted(self: Node, method: str, shape: Any, *params: Any) -> Any:
        calls[method] += 1
        return await ask(self, method, shape, *params)

    monkeypatch.setattr(Node, "ask", counted)
    with chain_world(tmp_path, [TRON]) as world:
        storage, clock = MemoryStorage(world.clock), world.clock
        nodes = Nodes(CHAINS[TRON], [world.nodes[TRON].url], clock)
        pages = OperationLog("tron", AddressPage, storage, clock)
        numbers = NumberedOperations("tron", "addresses", storage, clock)
        made = Counted("tron", nodes, AccountKey(XPUB), pages, numbers, clock)
        made.calls = calls
        yield made, world
        await made.close()


async def looked(watcher: Counted, addresses: Sequence[str]) -> int:
    """Return the total units that arrived, read as a worker does: some at once, one after the other."""
    found = 0
    for begin in range(0, len(addresses), SLOTS):
        each = await asyncio.gather(*(watcher.deposits(address) for address in addresses[begin : begin + SLOTS]))
        found += sum(deposit.units for deposits in each for deposit in deposits if deposit.is_final)
    return found


async def test_many_deposits_cost_few_calls_and_no_memory(watcher: tuple[Counted, ChainWorld]) -> None:
    deposits, world = watcher
    addresses = [await deposits.address(f"exch_{number}") for number in range(DEPOSITS)]
    assert len(set(addresses)) == DEPOSITS
    began = time.perf_counter()
    assert await looked(deposits, addresses) == 0
    first = deposits.calls.pop("eth_getLogs")
    parts, batches = -(-DEPOSITS // QUESTION), -(-DEPOSITS // SLOTS)
    print(f"first looks: {first} questions for {DEPOSITS} addresses, {time.perf_counter() - began:.1f} s")
    assert first <= batches + parts, "a question for each batch of a worker, at most"
    chain, sent = CHAINS[TRON], 0
    for begin in range(0, DEPOSITS, TOGETHER):
        payloads = [chain.spelling.read(address) for address in addresses[begin : begin + TOGETHER]]
        world.pay(TRON, *((payload, 500) for payload in payloads))
        await world.mine()
        sent += 1
    await world.finalise()
    deposits.calls.clear()
    began = time.perf_counter()
    assert await looked(deposits, addresses) == DEPOSITS * 500, "a deposit is missing"
    print(f"after a break: {dict(deposits.calls)}, {time.perf_counter() - began:.1f} s")
    assert deposits.calls["eth_getLogs"] <= batches + parts
    assert deposits.calls["eth_getTransactionReceipt"] <= 2 * sent
    kept = []
    tracemalloc.start()
    try:
        for _ in range(3):
            deposits.calls.clear()
            await world.clock.advance(FRESH + 1)
            await world.mine(5)
            assert await looked(deposits, addresses) == DEPOSITS * 500
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
            print(f"looks 30 s later: {dict(deposits.calls)}, {kept[-1]} bytes kept")
            assert deposits.calls["eth_getLogs"] <= parts + 1, "who goes on looking costs a question for hundreds"
            assert deposits.calls["eth_getTransactionReceipt"] == 0, "what is known is asked for again"
    finally:
        tracemalloc.stop()
    assert kept[-1] - kept[0] < 2 * WRITTEN + TABLE * DEPOSITS, "each look leaves something behind"
