"""The fake of TRON's nodes satisfies tronpy, a client that others wrote, and each reads what the other sent: so the
fake speaks the protocol, and not only what we take for it (docs/providers/chains.md "On TRON")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.spelling import TRON
from cambist.ports import TransferState
from tests.chains.test_tron_payouts import KEY, RICH, TO, UNITS, TronHarness
from tests.chains.tron_network import PACE, USDT, TronNetwork

tronpy: Any = None
keys: Any = None
providers: Any = None
exceptions: Any = None

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


@pytest.fixture(autouse=True, scope="module")
def tronpy_loaded() -> None:
    """Not at the collection, which would load it in each worker."""
    global tronpy, keys, providers, exceptions
    tronpy = pytest.importorskip("tronpy", reason="tronpy is not installed")
    keys, providers, exceptions = (import_module(f"tronpy.{each}") for each in ("keys", "providers", "exceptions"))


class Foreign:
    """tronpy at the same node, with the same wallet. It waits for answers, so it runs beside the event loop."""

    def __init__(self, harness: TronHarness) -> None:
        self.key = keys.PrivateKey(bytes.fromhex(KEY))
        self.address = self.key.public_key.to_base58check_address()
        provider = providers.HTTPProvider(harness.network.url)
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
async def harness() -> AsyncIterator[TronHarness]:
    """Yield a harness at the present time, because tronpy uses the machine's clock."""
    async with TronNetwork(VirtualClock(datetime.now(UTC)), API_KEY) as network:
        made = TronHarness(network)
        yield made
        await made.close()


@pytest.fixture
def foreign(harness: TronHarness) -> Foreign:
    return Foreign(harness)


async def test_both_know_the_wallet_by_one_address(harness: TronHarness, foreign: Foreign) -> None:
    assert foreign.address == harness.wallet.address
    assert await foreign.balance(foreign.address) == RICH


async def test_tronpy_reads_what_our_wallet_sent(harness: TronHarness, foreign: Foreign) -> None:
    made = await harness.wallet.sign("wd_1", TO, UNITS)
    await harness.wallet.broadcast(made)
    await harness.network.pass_time(25 * PACE)
    assert await harness.wallet.state(made) is TransferState.FINAL
    info = await asyncio.to_thread(foreign.client.get_transaction_info, made.tx_hash)
    assert info["id"] == made.tx_hash
    told = await asyncio.to_thread(foreign.client.get_transaction, made.tx_hash)
    assert told["txID"] == made.tx_hash
    assert await foreign.balance(TO) == UNITS // 100


async def test_network_takes_a_tronpy_transfer_and_our_wallet_does_not_claim_it(
    harness: TronHarness, foreign: Foreign
) -> None:
    tx_hash = await foreign.send(7_000_000)
    await harness.network.pass_time(25 * PACE)
    assert await foreign.balance(TO) == 7_000_000
    assert (await asyncio.to_thread(foreign.client.get_transaction_info, tx_hash))["id"] == tx_hash
    assert await harness.wallet.find("wd_1") is None


async def test_tronpy_raises_its_own_error_for_each_refusal_of_the_network(
    harness: TronHarness, foreign: Foreign
) -> None:
    harness.network.code = "TAPOS_ERROR"
    with pytest.raises(exceptions.TaposError):
        await foreign.send(7_000_000)
    harness.network.code = "SIGERROR"
    with pytest.raises(exceptions.BadSignature):
        await foreign.send(7_000_000)


async def test_tronpy_reads_prices_and_resources(harness: TronHarness, foreign: Foreign) -> None:
    harness.network.energy[harness.owner] = 160_000
    resources = await asyncio.to_thread(foreign.client.get_account_resource, foreign.address)
    assert resources["EnergyLimit"] == 160_000
    prices = await asyncio.to_thread(foreign.client.get_chain_parameters)
    assert {each["key"]: each.get("value") for each in prices}["getEnergyFee"] > 0
    assert await asyncio.to_thread(foreign.client.get_latest_solid_block_number) == harness.network.final
