"""A merchant is settled and paid out in USDT on Ethereum, or on BNB Smart Chain, by a service that is a real process
over a real node and is killed just before and just after the transfer reached it: the merchant is paid once, over HTTP
all is told, and the ledger is whole (docs/providers/chains.md "On Ethereum and BNB Smart Chain")."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.spelling import EVM, TRON
from cambist.adapters.payouts.evm.transaction import Transaction, read
from cambist.adapters.payouts.signer import KeySigner
from cambist.core.domain.money import Usdt
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.ports.chain import Network
from cambist.testing import ProviderAnswer, ProviderRequest
from tests.chains.evm_harness import COIN, RICH, is_broadcast
from tests.chains.fronts import Front
from tests.chains.world import chain_world
from tests.drills.test_clock_steps import needs_faketime
from tests.patience import drill_of
from tests.stories.on_chains import PHONE, OnChains, add_client, let_it_go_by
from tests.stories.processes import eventually, installation

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
OWNER = KeySigner(KEY).payload
MERCHANT = bytes(range(20))
LONG = 12
"""Seconds between two polls. A node counts as lagging from 60 on, so a slow service must not fall behind."""
PAUSE = 1.0
"""Real seconds between two polls."""


class DeadlyFront(Front):
    """The service is killed when it hands over its first transaction, which is lost then, and again when its second one
    has arrived."""

    kill: Callable[[], Awaitable[None]]
    handed: list[bytes]

    async def _relayed(self, request: ProviderRequest) -> ProviderAnswer:
        if not is_broadcast(request):
            return await super()._relayed(request)
        self.handed.append(request.body)
        if len(self.handed) == 1:
            await self.kill()
            return ProviderAnswer(status=502)
        answer = await super()._relayed(request)
        if len(self.handed) == 2:
            await self.kill()
        return answer


@pytest.fixture(params=[("evm", Network.ETHEREUM), ("bsc", Network.BSC)], ids=["evm", "bsc"])
async def paying(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[tuple[OnChains, DeadlyFront]]:
    name, network = request.param
    chain = CHAINS[network]
    async with AsyncExitStack() as stack:
        start = datetime.now(UTC).replace(microsecond=0)
        world = stack.enter_context(chain_world(tmp_path, [network], start))
        node = world.nodes[network]
        node.ask("anvil_setBalance", f"0x{OWNER.hex()}", hex(COIN))
        node.ask("anvil_setStorageAt", chain.usdt, f"0x{int.from_bytes(OWNER):064x}", f"0x{chain.amount(RICH):064x}")
        front = await stack.enter_async_context(DeadlyFront(node))
        settings = {f"{name}_nodes": front.address, f"{name}_key": KEY}
        place = stack.enter_context(installation(tmp_path, payouts=name, rate_sources="simulator", **settings))
        await place.migrate()
        account = await place.account()
        async with place.app() as ports:
            await set_settings(ports, account.account_id, {"payout_wallet": EVM.write(MERCHANT), "exchange": "true"})
            await add_client(ports, account.account_id)
        let_it_go_by(place, tmp_path / "offset")
        made = OnChains(place, world, account)
        front.kill, front.handed = made.kill, []
        await made.serve()
        yield made, front
        await made.end()


def transaction_of(body: bytes) -> Transaction:
    """Return the transaction that a request hands to the network."""
    [raw] = json.loads(body)["params"]
    return read(bytes.fromhex(raw.removeprefix("0x"))).made


async def dies(at: OnChains) -> None:
    """Let time pass until the service is dead, then start it again."""

    async def look() -> bool:
        await at.pass_time(LONG)
        return at.is_dead

    await eventually(look, every=PAUSE)
    await at.serve()


async def paid_out(at: OnChains) -> dict[str, Any]:
    """Let time pass until the one payout is completed."""

    async def look() -> str | None:
        await at.pass_time(LONG)
        listed = (await at.edge.ask("GET", "/withdrawals")).json
        return next((each["id"] for each in listed["data"]), None)

    payout_id = await eventually(look, every=PAUSE)
    return await at.until(f"/withdrawals/{payout_id}", "completed")


@pytest.mark.drill
@drill_of("tests/chains/test_evm_payout_crashes.py")
@needs_faketime
@pytest.mark.timeout(400)
async def test_a_payout_is_sent_once_whenever_the_service_dies(paying: tuple[OnChains, DeadlyFront]) -> None:
    at, front = paying
    [network] = at.world.nodes
    node, chain = at.world.nodes[network], CHAINS[network]
    payment = await at.post("/payments", {"amount_rub": "10000.00"})
    await at.pays(payment["id"])
    await at.settles()
    await dies(at)
    assert at.usdt_of(network, MERCHANT) == 0
    await dies(at)
    shown = await paid_out(at)
    paid = at.usdt_of(network, MERCHANT)
    assert chain.units(paid) == Usdt.parse(shown["amount_usdt"]).units > 0
    assert chain.amount(RICH) - at.usdt_of(network, OWNER) == paid, "nothing left the wallet but to the merchant"
    assert int(node.ask("eth_getTransactionCount", f"0x{OWNER.hex()}", "latest"), 16) == 1, "one transaction"
    assert node.ask("eth_getTransactionReceipt", f"0x{shown['tx_hash'].removeprefix('0x')}")["status"] == "0x1"
    handed = {(made.nonce, made.data) for made in map(transaction_of, front.handed)}
    assert len(handed) == 1, "one place, and one transfer, whatever was offered for it"
    await refuses_an_exchange(at)
    await at.verified()


async def refuses_an_exchange(at: OnChains) -> None:
    """Check that no exchange is created: exchanges are on TRON, and this wallet is not."""
    order = ("--amount-rub", "10000", "--client-phone", PHONE, "--address", TRON.write(MERCHANT))
    command = ("exchange", "create-rub-usdt", at.account.account_id, "--mode", "live", *order)
    refused = await asyncio.to_thread(at.place.call, *command)
    assert refused.status != 0
    assert "No wallet sends USDT on TRON" in refused.err
