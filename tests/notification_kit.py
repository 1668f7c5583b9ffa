"""A service whose bank sends notifications (examples/own_bank); tests control them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

import cambist
from cambist.adapters.clock import VirtualClock
from cambist.core.domain.notifications import NotificationAddress
from cambist.core.usecases.accounts.rate_limits import NOTIFICATIONS_PER_MINUTE
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.core.usecases.notification_intake import HEAR
from cambist.frontends.app.compose import open_app
from cambist.frontends.app.notification_addresses import begin_receiving
from cambist.frontends.server.app import create_app
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.frontends.telemetry.telemetry import Telemetry
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from examples.own_bank.bank import NAME, ExampleBank
from examples.own_bank.provider import Provider
from tests.contracts.storage_kit import START

TOKEN = "a-token-that-must-not-show"
PROVIDER_AT = "203.0.113.5"


class Hearing(ExampleBank):
    """The example's bank, whose networks a test chooses."""

    networks: tuple[str, ...] = ()

    @property
    def notification_networks(self) -> tuple[str, ...]:
        return self.networks


@dataclass
class World:
    """An open service, its bank and the bank's provider."""

    service: cambist.Service
    bank: Hearing
    provider: Provider
    merchant: cambist.Merchant

    async def path(self) -> str:
        """Where the provider posts, below the service's root."""
        return urlsplit((await self.service.notification_addresses())[NAME]).path

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | list[tuple[bytes, bytes]] | None = None,
        *,
        path: str | None = None,
        peer: str = PROVIDER_AT,
        method: str = "POST",
    ) -> httpx.Response:
        """Post the content from the address `peer` to the bank's notification address, or to `path`."""
        transport = httpx.ASGITransport(self.service.asgi(), client=(peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.request(method, path or await self.path(), content=body, headers=headers)

    async def tell(self, operation: str, **more: Any) -> httpx.Response:
        """The provider posts a notification about this operation."""
        return await self.post(*Provider.notification(operation, TOKEN), **more)

    def pay(self, operation: str, kopecks: int = 490_00) -> None:
        """Pay the invoice of this operation without a notification."""
        self.provider.pay(operation, kopecks, datetime.now(UTC).isoformat())

    async def jobs(self) -> list[Job]:
        """Return the jobs that poll because of notifications."""
        async with self.service.ports.storage.unit() as unit:
            return [job for job in await unit[Job].find(limit=1000) if job.kind == HEAR.kind]

    async def address(self) -> NotificationAddress:
        found = await self.service.ports.storage.get(NotificationAddress, NAME)
        assert found is not None
        return found

    async def status(self, payment: cambist.Payment) -> str:
        return (await self.merchant.payment(payment.id)).status.value


@asynccontextmanager
async def hearing(
    database: str = "memory://", *, networks: tuple[str, ...] = (), mode: str = "live", **settings: Any
) -> AsyncIterator[World]:
    """A service on this database, whose bank of this mode is the example's."""
    async with cambist.open() as aside, Provider() as provider:
        bank = Hearing(aside.tools(), provider.url, TOKEN)
        bank.networks = networks
        adapters = cambist.Adapters(banks={cambist.Mode(mode): [bank]})
        told = msgspec.structs.replace(cambist.Settings(database_url=database), **settings)
        async with cambist.open(told, adapters=adapters, migrated=database.startswith("sqlite")) as service:
            account = await service.create_account("My shop")
            yield World(service, bank, provider, await service.merchant(account.account_id, mode))
        await bank.close()


@dataclass
class Watched:
    """An app under a virtual clock, which is counted."""

    clock: VirtualClock
    ports: Ports
    telemetry: Telemetry
    http: httpx.AsyncClient
    address: str

    def told(self) -> dict[tuple[str, ...], int]:
        """Return the number of notifications by adapter and outcome."""
        return dict(self.telemetry.counters.notifications.read())


@asynccontextmanager
async def watched(
    kind: type[Hearing] = Hearing, notifications_per_minute: int = NOTIFICATIONS_PER_MINUTE
) -> AsyncIterator[Watched]:
    """An app in memory whose live bank is the example's, of this kind."""
    clock = VirtualClock(START)
    telemetry = Telemetry(clock)
    async with cambist.open() as aside, Provider() as provider:
        bank = kind(aside.tools(), provider.url, TOKEN)
        adapters = cambist.Adapters(banks={cambist.Mode.LIVE: [bank]})
        settings = cambist.Settings(database_url="memory://")
        async with open_app(settings, clock=clock, adapters=adapters, telemetry=telemetry) as app:
            await begin_receiving(settings, app.ports)
            [shown] = await list_addresses(app.ports)
            asgi = create_app(
                app.ports, watch=RequestWatch(clock, telemetry), notifications_per_minute=notifications_per_minute
            )
            async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi)) as http:  # type: ignore[arg-type]
                yield Watched(clock, app.ports, telemetry, http, shown.address or "")
        await bank.close()
