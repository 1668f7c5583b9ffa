"""The fake of TRON's nodes satisfies tronpy, a client that others wrote, and each reads what the other sent: so the
fake speaks the protocol, and not only what we take for it (docs/providers/chains.md "On TRON")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.spelling import TRON
from cambist.ports import TransferState
from tests.chains.test_tron_payouts import KEY, RICH, TO, UNITS, TronBench
from tests.chains.tron_network import PACE, USDT, TronNetwork

tronpy: Any = pytest.importorskip("tronpy", reason="tronpy is not installed")
keys: Any = pytest.importorskip("tronpy.keys")
providers: Any = pytest.importorskip("tronpy.providers")
exceptions: Any = pytest.importorskip("tronpy.exceptions")

API_KEY = "an-api-key"
ABI = [
    {
        "name": name,
        "type": "function",
        "stateMutability": mutability,
        "inputs": [{"name": f"a{place}", "type": kind} for place, kind in enumerate(inputs)],
        "outputs": [{"name": "", "type": output}],
    }
    for name, mutability, inputs, output in (
        ("transfer", "nonpayable", ("address", "uint256"), "bool"),
        ("balanceOf", "view", ("address",), "uint256"),
    )
]


class Foreign:
    """tronpy at the same node, with the same wallet. It waits for answers, so it runs beside the event loop."""

    def __init__(self, bench: TronBench) -> None:
        self.key = keys.PrivateKey(bytes.fromhex(KEY))
        self.address = self.key.public_key.to_base58check_address()
        provider = providers.HTTPProvider(bench.network.url)
        # tronpy sends its key only to TronGrid's own address.
        provider.sess.headers["Tron-Pro-Api-Key"] = API_KEY
        self.client = tronpy.Tron(provider)
        self.usdt = tronpy.contract.Contract(addr=TRON.write(USDT), abi=ABI, client=self.client)

    async def balance(self, address: str) -> int:
        return int(await asyncio.to_thread(self.usdt.functions.balanceOf, address))

    async def send(self, amount: int, limit: int = 60_000_000) -> str:
        def work() -> str:
            built = self.usdt.functions.transfer(TO, amount).with_owner(self.address).fee_limit(limit).build()
            return str(built.sign(self.key).broadcast().txid)

        return await asyncio.to_thread(work)


@pytest.fixture
async def bench() -> AsyncIterator[TronBench]:
    """Of now: tronpy goes by the machine's clock."""
    async with TronNetwork(VirtualClock(datetime.now(UTC)), API_KEY) as network:
        made = TronBench(network)
        yield made
        await made.close()


@pytest.fixture
def foreign(bench: TronBench) -> Foreign:
    return Foreign(bench)


async def test_both_know_the_wallet_by_one_address(bench: TronBench, foreign: Foreign) -> None:
    assert foreign.address == bench.wallet.address
    assert await foreign.balance(foreign.address) == RICH


async def test_tronpy_reads_what_our_wallet_sent(bench: TronBench, foreign: Foreign) -> None:
    made = await bench.wallet.sign("wd_1", TO, UNITS)
    await bench.wallet.broadcast(made)
    await bench.network.pass_time(25 * PACE)
    assert await bench.wallet.state(made) is TransferState.FINAL
    info = await asyncio.to_thread(foreign.client.get_transaction_info, made.tx_hash)
    assert info["id"] == made.tx_hash
    told = await asyncio.to_thread(foreign.client.get_transaction, made.tx_hash)
    assert told["txID"] == made.tx_hash
    assert await foreign.balance(TO) == UNITS // 100


async def test_network_takes_a_tronpy_transfer_and_our_wallet_does_not_claim_it(
    bench: TronBench, foreign: Foreign
) -> None:
    tx_hash = await foreign.send(7_000_000)
    await bench.network.pass_time(25 * PACE)
    assert await foreign.balance(TO) == 7_000_000
    assert (await asyncio.to_thread(foreign.client.get_transaction_info, tx_hash))["id"] == tx_hash
    assert await bench.wallet.find("wd_1") is None


async def test_what_the_network_refuses_tronpy_hears_in_its_words(bench: TronBench, foreign: Foreign) -> None:
    bench.network.code = "TAPOS_ERROR"
    with pytest.raises(exceptions.TaposError):
        await foreign.send(7_000_000)
    bench.network.code = "SIGERROR"
    with pytest.raises(exceptions.BadSignature):
        await foreign.send(7_000_000)


async def test_tronpy_reads_prices_and_resources(bench: TronBench, foreign: Foreign) -> None:
    bench.network.energy[bench.owner] = 160_000
    resources = await asyncio.to_thread(foreign.client.get_account_resource, foreign.address)
    assert resources["EnergyLimit"] == 160_000
    prices = await asyncio.to_thread(foreign.client.get_chain_parameters)
    assert {each["key"]: each.get("value") for each in prices}["getEnergyFee"] > 0
    assert await asyncio.to_thread(foreign.client.get_latest_solid_block_number) == bench.network.final
