"""A client exchanges USDT to RUB and RUB back to USDT at a service that is a real process over real nodes, each in two
parts, while blocks are taken back, the node starts again and the service is killed; and a delivery proof is confirmed
on each network. In the end the ledger is whole, and the chain has what it says
(docs/providers/chains.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.spelling import TRON as SPELLING
from cambist.adapters.payouts.signer import KeySigner
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.exchanges.exchanges import invoice_operation
from cambist.core.domain.money import Usdt
from cambist.core.usecases.accounts.accounts import NewAccount, set_settings
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.ports.chain import Network
from tests.chains.fronts import Front
from tests.chains.harnesses import XPUB
from tests.chains.tron_on_anvil import TronOnAnvil
from tests.chains.world import SOMEBODY, ChainWorld, chain_world
from tests.drills.test_clock_steps import needs_faketime
from tests.patience import drill_of
from tests.stories.on_chains import PHONE, OnChains, add_client, let_it_go_by
from tests.stories.processes import Installation, eventually, installation

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
OWNER = KeySigner(KEY).payload
RICH = 10**6 * 10**6
CLIENT = SPELLING.write(bytes(range(20)))
PROOFS = {"TRC20": Network.TRON, "ERC20": Network.ETHEREUM, "BEP20": Network.BSC}


class Exchanging(OnChains):
    """Stories on a TRON network that executes transfers."""

    def __init__(self, place: Installation, world: ChainWorld, tron: TronOnAnvil, account: NewAccount) -> None:
        super().__init__(place, world, account)
        self.tron = tron


@pytest.fixture
async def exchanging(tmp_path: Path) -> AsyncIterator[Exchanging]:
    async with AsyncExitStack() as stack:
        world = stack.enter_context(chain_world(tmp_path, start=datetime.now(UTC).replace(microsecond=0)))
        node = world.nodes[Network.TRON]
        node.ask("anvil_setStorageAt", CHAINS[Network.TRON].usdt, f"0x{int.from_bytes(OWNER):064x}", f"0x{RICH:064x}")
        tron = await stack.enter_async_context(TronOnAnvil(world))
        tron.sun[OWNER] = 10**12
        fronts = {
            network: await stack.enter_async_context(Front(world.nodes[network]))
            for network in (Network.ETHEREUM, Network.BSC)
        }
        place = stack.enter_context(
            installation(
                tmp_path,
                chain="nodes",
                deposits="tron",
                payouts="tron",
                rate_sources="simulator",
                tron_nodes=tron.node,
                evm_nodes=fronts[Network.ETHEREUM].address,
                bsc_nodes=fronts[Network.BSC].address,
                tron_key=KEY,
                deposit_xpub_tron=XPUB,
            )
        )
        await place.migrate()
        account = await place.account()
        async with place.app() as ports:
            wish = {"exchange": "true", "terminals": "true", "payout_wallet": CLIENT}
            await set_settings(ports, account.account_id, wish)
            await add_client(ports, account.account_id)
        let_it_go_by(place, tmp_path / "offset")
        made = Exchanging(place, world, tron, account)
        await made.serve()
        yield made
        await made.end()


@pytest.mark.drill
@drill_of("tests/chains/test_stories.py")
@needs_faketime
async def test_usdt_to_rub_and_back_over_real_nodes(exchanging: Exchanging) -> None:
    made = await usdt_to_rub(exchanging)
    bought = await rub_to_usdt(exchanging)
    await proofs(exchanging)
    paid = exchanging.usdt_of(Network.TRON, SPELLING.read(CLIENT))
    assert RICH - exchanging.usdt_of(Network.TRON, OWNER) == paid, "nothing left the wallet but to the client"
    assert paid >= Usdt.parse(bought["amount_usdt"]).units // 100
    assert made["amount_usdt_received"] == "100.00000000"
    await exchanging.verified()


async def usdt_to_rub(at: Exchanging) -> dict[str, Any]:
    """In two parts: the first through blocks that are taken back, the second through a node that starts again."""
    node = at.world.nodes[Network.TRON]
    body = {"amount_usdt": "100", "client_phone": PHONE, "client_bank_id": "bank100000000004"}
    made = await at.post("/exchanges", body)
    address = SPELLING.read(made["crypto_deposit_address"])
    await at.pass_time()
    tx_hash = at.world.pay(Network.TRON, (address, 40 * 10**8))
    await at.world.mine()
    raw = node.ask("eth_getRawTransactionByHash", f"0x{tx_hash}")
    await at.world.take_back(Network.TRON)
    for _ in range(3):
        await at.pass_time()
        assert (await at.edge.ask("GET", f"/exchanges/{made['id']}")).json["status"] == "awaiting_usdt"
    node.ask("eth_sendRawTransaction", raw)
    await at.until(f"/exchanges/{made['id']}", "partial")
    at.world.pay(Network.TRON, (address, 60 * 10**8))
    await at.pass_time()
    await at.kill()
    node.stop()
    node.start()
    await at.serve()
    return await at.until(f"/exchanges/{made['id']}", "completed")


async def rub_to_usdt(at: Exchanging) -> dict[str, Any]:
    """In two parts; the transfer's block is taken back, and the service killed while it is on its way."""
    order = ("--amount-rub", "10000", "--client-phone", PHONE, "--address", CLIENT)
    command = ("exchange", "create-rub-usdt", at.account.account_id, "--mode", "live", *order, "--json")
    said = await asyncio.to_thread(at.place.call, *command)
    assert said.status == 0, said
    made = said.document
    operation = invoice_operation(made["exchange_id"])
    await at.pays(operation, 4_000_00)
    await at.until(f"/exchanges/{made['exchange_id']}", "partial")
    await at.pays(operation, 6_000_00, again=True)
    await at.until(f"/exchanges/{made['exchange_id']}", "rub_received")
    at.tron.holds = True
    await at.pass_time(300)

    async def handed() -> bool | None:
        await at.pass_time()
        return bool(at.tron.calls)

    await eventually(handed, every=0.3)
    await at.kill()
    at.tron.remind()
    await at.world.mine()
    await at.world.take_back(Network.TRON)
    at.tron.remind()
    await at.serve()
    shown = await at.until(f"/exchanges/{made['exchange_id']}", "completed")
    assert len(at.tron.calls) == 1, "one transfer, whoever died"
    return shown


async def proofs(at: Exchanging) -> None:
    """A payment by an exchange terminal is settled, and its delivery proven, on each network."""
    async with at.place.app() as ports:
        terminal = await create_terminal(ports, at.account.account_id, TerminalWish(label="exchange", kind="exchange"))
    made = {}
    for named in PROOFS:
        payment = await at.post("/payments", {"amount_rub": "10000.00", "method_id": terminal.id})
        await at.pays(payment["id"])
        made[named] = payment["id"]
    await at.settles()
    for named, payment_id in made.items():
        shown = await at.until(f"/payments/{payment_id}", "settled")
        tx_hash = at.world.pay(PROOFS[named], (SOMEBODY, Usdt.parse(shown["amount_usdt"]).units))
        await at.pass_time()
        await at.post(f"/payments/{payment_id}/delivery-proof", {"network": named, "tx_hash": tx_hash})
    for payment_id in made.values():
        await at.until(f"/payments/{payment_id}/delivery-proof", "confirmed")
