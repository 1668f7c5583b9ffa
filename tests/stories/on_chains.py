"""A service that is a real process over real nodes, for stories: a clock that it goes by, which a test sets, and the
blocks that are made meanwhile."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.nodes.networks import CHAINS
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.usecases.accounts.accounts import NewAccount
from cambist.core.usecases.common.encrypted import client_phone_aad
from cambist.core.usecases.kyc.gate import client_id
from cambist.core.usecases.notifications import on_notification
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.chain import Network
from tests.chains.world import ChainWorld
from tests.drills.test_clock_steps import library, set_clock
from tests.stories.merchant import Answer, Merchant, merchant
from tests.stories.processes import Installation, Service, eventually

PHONE = "+79001234567"
STEP = 6
"""Seconds between two polls."""


class OnChains:
    """The service, with the actions of a merchant, a payer and an operator."""

    def __init__(self, place: Installation, world: ChainWorld, account: NewAccount) -> None:
        self.place, self.world, self.account = place, world, account
        self._ahead = 0
        self._service: Service | None = None
        self.edge: Merchant
        self._edges = AsyncExitStack()

    async def serve(self) -> None:
        """Start the service; again where it was killed."""
        self._service = await asyncio.to_thread(self.place.start_service)
        base = await asyncio.to_thread(self._service.ready)
        await self._edges.aclose()
        self.edge = await self._edges.enter_async_context(merchant(base, self.account.live))

    async def kill(self) -> None:
        assert self._service is not None
        await asyncio.to_thread(self._service.kill)

    @property
    def is_dead(self) -> bool:
        return self._service is None or self._service.ended

    async def end(self) -> None:
        assert self._service is not None
        await self._edges.aclose()
        assert await asyncio.to_thread(self._service.terminate) == 0, self._service.err

    async def pass_time(self, seconds: int = STEP) -> None:
        """Advance the clock, and mine blocks."""
        self._ahead += seconds
        set_clock(self.place.folder / "offset", self._ahead)
        await self.world.catch_up(datetime.now(UTC) + timedelta(seconds=self._ahead))

    async def until(self, path: str, status: str) -> dict[str, Any]:
        """Let time pass until the object has this status."""

        async def look() -> dict[str, Any] | None:
            await self.pass_time()
            shown: dict[str, Any] = (await self.edge.ask("GET", path)).json
            assert shown["status"] not in _OVER, shown
            return shown if shown["status"] == status else None

        return await eventually(look, every=0.3)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post, and repeat with the same key while the answer is 503 because a node has not been read yet."""
        key = str(uuid4())

        async def ask() -> Answer | None:
            answer = await self.edge.ask("POST", path, key=key, body=body)
            return None if answer.status == 503 else answer

        answer = await eventually(ask)
        assert answer.status in (200, 201), answer.text
        made: dict[str, Any] = answer.json
        return made

    async def pays(self, operation: str, kopecks: int | None = None, *, again: bool = False) -> None:
        """Let somebody pay an invoice, or `kopecks` of it, and send the bank's notification."""
        async with self.place.app() as ports:
            [bank] = ports.banks.of_mode("live")
            simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks, again=again)
            for notification in await simulated(bank).simulate(operation, simulation):
                await on_notification(ports, notification)

    async def settles(self) -> None:
        """Settle all paid payments. Repeat the command if it broke off: faketime breaks a sleep during which the clock
        was set, and the command may be repeated."""

        async def settled() -> bool:
            said = await asyncio.to_thread(self.place.call, "settle", "--mode", "live", "--cutoff", "now", "--json")
            assert said.status == 0 or "Invalid argument" in said.err, said.err
            return said.status == 0

        await eventually(settled)

    async def verified(self) -> None:
        """The books are whole."""
        verified = await asyncio.to_thread(self.place.call, "ledger", "verify")
        assert verified.status == 0, verified.err

    def usdt_of(self, network: Network, owner: bytes) -> int:
        """The contract's smallest parts."""
        slot = f"0x{int.from_bytes(owner):064x}"
        return int(self.world.nodes[network].ask("eth_getStorageAt", CHAINS[network].usdt, slot, "latest"), 16)


_OVER = frozenset(("failed", "expired", "cancelled", "rejected"))


def simulated(bank: Any) -> SimulatedBank:
    """The bank itself, below the layers around it."""
    while type(bank) is not SimulatedBank:
        bank = bank._adapter
    return bank


def let_it_go_by(place: Installation, file: Path) -> None:
    """Start further processes with the clock that `set_clock` sets in this file."""
    set_clock(file, 0)
    place.environ |= {
        "LD_PRELOAD": library(),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


async def add_client(ports: Ports, account_id: str) -> None:
    """Add a verified client with the phone PHONE."""
    record_id, now = str(uuid4()), ports.clock.now()
    async with ports.storage.unit() as unit:
        unit[Client].add(
            Client(
                id=record_id,
                account_id=account_id,
                mode=Mode.LIVE,
                phone=ports.vault.encrypt(PHONE.encode(), client_phone_aad(record_id)),
                phone_digest=client_id(ports, account_id, Mode.LIVE, PHONE),
                kyc=KycStatus.VERIFIED,
                created_at=now,
                updated_at=now,
                verified_at=now,
            )
        )
        await unit.commit()
