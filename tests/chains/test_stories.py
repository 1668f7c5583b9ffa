"""Whole apps on real nodes, wired by their settings: an exchange through a block that is taken back and a node that
starts again, and delivery proofs on each network, as a merchant sees them over HTTP."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.deposits.nodes import NodesDeposits
from cambist.adapters.nodes.networks import CHAINS
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.installation import Because
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common.encrypted import client_phone_aad
from cambist.core.usecases.common.quarantine import hold
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.kyc.gate import client_id
from cambist.ports.chain import Network
from cambist.ports.faults import Held
from tests.apps import TestApp, open_test_app
from tests.chains.fronts import Front, TronFront
from tests.chains.harnesses import KEY, XPUB
from tests.chains.world import SOMEBODY, ChainWorld, chain_world
from tests.proof_kit import CREDIT, open_exchange

TRON = Network.TRON
PHONE = "+79001234567"
USDT = 10**8


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ChainWorld]:
    """Build a chain that starts at the app's time."""
    with chain_world(tmp_path, [TRON], VirtualClock().now()) as made:
        yield made


class Exchanging:
    """A live app with deposits on a real node, and a verified client."""

    def __init__(self, app: TestApp, world: ChainWorld) -> None:
        self.app, self.world = app, world

    async def post(self, amount: str) -> dict[str, Any]:
        body = {"amount_usdt": amount, "client_phone": PHONE, "client_bank_id": "bank100000000004"}
        headers = self.app.headers("live", Idempotency_Key=str(uuid4()))
        response = await self.app.http.post("/api/v1/exchanges", json=body, headers=headers)
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def status(self, exchange_id: str) -> str:
        response = await self.app.get(f"/exchanges/{exchange_id}", mode="live")
        return str(response.json()["status"])

    def send(self, made: dict[str, Any], usdt: int) -> str:
        """The client's transaction, not in a block yet."""
        payload = CHAINS[TRON].spelling.read(made["crypto_deposit_address"])
        return self.world.pay(TRON, (payload, usdt * USDT))

    async def work(self, seconds: int, *, mining: bool = True) -> None:
        """Let time pass, make blocks, and run the due work."""
        for _ in range(seconds // 6):
            await self.world.mine() if mining else await self.app.clock.advance(6)
            await run_due(self.app.ports)


@pytest.fixture
async def exchanging(world: ChainWorld) -> AsyncIterator[Exchanging]:
    async with TronFront(world.nodes[TRON], key=KEY) as front:
        providers = {"tron_nodes": (front.address,), "deposit_xpub_tron": XPUB}
        async with open_test_app(deposits="tron", providers=providers) as app:
            world.join(app.clock)
            await set_settings(app.ports, app.account.account_id, {"exchange": "true"})
            await add_client(app)
            yield Exchanging(app, world)


async def add_client(app: TestApp) -> None:
    record_id, now = str(uuid4()), app.clock.now()
    async with app.ports.storage.unit() as unit:
        unit[Client].add(
            Client(
                id=record_id,
                account_id=app.account.account_id,
                mode=Mode.LIVE,
                phone=app.ports.vault.encrypt(PHONE.encode(), client_phone_aad(record_id)),
                phone_digest=client_id(app.ports, app.account.account_id, Mode.LIVE, PHONE),
                kyc=KycStatus.VERIFIED,
                created_at=now,
                updated_at=now,
                verified_at=now,
            )
        )
        await unit.commit()


async def test_exchange_in_two_parts_survives_a_reorg_and_a_node_restart(exchanging: Exchanging) -> None:
    """At the end the app holds the books against the objects."""
    world = exchanging.world
    made = await exchanging.post("100")
    assert made["crypto_deposit_address"] == "TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6", "the wallet's first"
    tx_hash = exchanging.send(made, 40)
    await exchanging.work(12)
    assert await exchanging.status(made["id"]) == "awaiting_usdt", "it is in a block, and not final"
    raw = world.nodes[TRON].ask("eth_getRawTransactionByHash", f"0x{tx_hash}")
    await world.take_back(TRON, 2)
    await exchanging.work(60)
    assert await exchanging.status(made["id"]) == "awaiting_usdt", "its block was taken back"
    world.nodes[TRON].ask("eth_sendRawTransaction", raw)
    await exchanging.work(30)
    assert await exchanging.status(made["id"]) == "partial"
    exchanging.send(made, 60)
    await world.mine()
    world.nodes[TRON].stop()
    await exchanging.work(60, mining=False)
    assert await exchanging.status(made["id"]) == "partial"
    world.nodes[TRON].start()
    await exchanging.work(90)
    assert await exchanging.status(made["id"]) == "completed"
    [told] = [body for body in exchanging.app.postman.bodies if body.get("exchange_id") == made["id"]]
    assert (told["status"], told["amount_usdt_received"]) == ("completed", "100.00000000")


async def test_no_exchange_expires_or_begins_without_a_node(exchanging: Exchanging) -> None:
    """Only what the nodes report may expire an exchange: the client may have paid in time."""
    made = await exchanging.post("100")
    exchanging.send(made, 100)
    await exchanging.world.mine()
    exchanging.world.nodes[TRON].stop()
    await exchanging.work(1200, mining=False)
    assert await exchanging.status(made["id"]) == "awaiting_usdt"
    headers = exchanging.app.headers("live", Idempotency_Key=str(uuid4()))
    body = {"amount_usdt": "100", "client_phone": PHONE, "client_bank_id": "bank100000000004"}
    refused = await exchanging.app.http.post("/api/v1/exchanges", json=body, headers=headers)
    assert refused.json()["error"]["code"] in ("EXCHANGE_IN_PROGRESS", "PROVIDER_UNAVAILABLE")
    exchanging.world.nodes[TRON].start()
    await exchanging.work(120)
    assert await exchanging.status(made["id"]) == "completed", "it was paid in time"


async def test_payment_in_the_last_seconds_is_in_time(exchanging: Exchanging) -> None:
    """The poll at the deadline cannot have seen the block yet."""
    app, node = exchanging.app, exchanging.world.nodes[TRON]
    made = await exchanging.post("100")
    end = datetime.fromisoformat(made["expires_at"])
    await exchanging.work(round((end - app.clock.now()).total_seconds()) - 12)
    exchanging.send(made, 100)
    await app.clock.advance_to(end)
    await run_due(app.ports)
    assert await exchanging.status(made["id"]) == "awaiting_usdt"
    node.ask("evm_setNextBlockTimestamp", int(end.timestamp()) - 2)
    node.ask("evm_mine")
    await exchanging.work(120)
    assert await exchanging.status(made["id"]) == "completed"


async def test_unpaid_exchange_expires_a_minute_after_its_end(exchanging: Exchanging) -> None:
    made = await exchanging.post("100")
    end = datetime.fromisoformat(made["expires_at"])
    await exchanging.work(round((end - exchanging.app.clock.now()).total_seconds()) + 72)
    assert await exchanging.status(made["id"]) == "expired"


async def test_a_held_copy_gives_out_no_address_and_watches_those_it_knows(exchanging: Exchanging) -> None:
    """It may have lost the record of addresses that clients were given."""
    made = await exchanging.post("100")
    await hold(exchanging.app.ports, Because.BY_HAND)
    watcher = exchanging.app.ports.deposits.of_mode("live")
    with pytest.raises(Held):
        await watcher.address("exch_another")
    exchanging.send(made, 40)
    await exchanging.work(30)
    assert await exchanging.status(made["id"]) == "partial"


async def test_addresses_outlive_the_process(exchanging: Exchanging) -> None:
    first = await exchanging.post("100")
    watcher = exchanging.app.ports.deposits.of_mode("live")
    assert isinstance(watcher, NodesDeposits)
    assert watcher.name == "tron"
    assert await watcher.address(first["id"]) == first["crypto_deposit_address"]


@pytest.mark.parametrize(("named", "network"), [("TRC20", TRON), ("ERC20", Network.ETHEREUM), ("BEP20", Network.BSC)])
async def test_a_delivery_proof_is_confirmed(tmp_path: Path, named: str, network: Network) -> None:
    """When it is final, and not before."""
    setting = {TRON: "tron_nodes", Network.ETHEREUM: "evm_nodes", Network.BSC: "bsc_nodes"}[network]
    async with AsyncExitStack() as stack:
        world = stack.enter_context(chain_world(tmp_path, [network], VirtualClock().now()))
        kind = TronFront if network is TRON else Front
        front = await stack.enter_async_context(kind(world.nodes[network], key=KEY))
        exchange = await stack.enter_async_context(open_exchange(chain="nodes", providers={setting: (front.address,)}))
        world.join(exchange.app.clock)
        payment_id = await exchange.settled()
        tx_hash = world.pay(network, (SOMEBODY, CREDIT.units))
        await world.mine()
        await exchange.submit(payment_id, tx_hash, named)
        await exchange.app.work()
        assert (await exchange.status(payment_id))[0] != "confirmed"
        for _ in range(40):
            await world.mine()
            await run_due(exchange.app.ports)
        assert await exchange.status(payment_id) == ("confirmed", None)
