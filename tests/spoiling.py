"""Apps on databases into which tests write past the program: rows that nobody can read."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.jobs import run_due
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.app_pool import lent_app
from tests.apps import WEBHOOK_SECRET
from tests.quiesce import at_rest


class Street:
    """A notifier between several merchants' receivers, which all answer well, but for the next few that are refused."""

    def __init__(self) -> None:
        self.webhooks: list[WebhookRequest] = []
        self.refuses = 0

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.webhooks.append(webhook)
        if self.refuses:
            self.refuses -= 1
            return DeliveryResult(answer=Answer.RESPONDED, status=500)
        return DeliveryResult(answer=Answer.RESPONDED, status=200)

    async def close(self) -> None:
        """Nothing is open."""

    def told(self, name: str) -> list[str]:
        """Return the ids of the events that this merchant got, in order."""
        return [webhook.headers["X-Webhook-Id"] for webhook in self.webhooks if webhook.url == address(name)]


def address(name: str) -> str:
    return f"https://{name}.example/hook"


class Spoilable:
    """An app with several merchants, and a way to write past it."""

    def __init__(self, url: str, ports: Ports, clock: VirtualClock, client: httpx.AsyncClient, street: Street) -> None:
        self.url = url
        self.ports = ports
        self.clock = clock
        self.http = client
        self.street = street
        self.merchants: dict[str, NewAccount] = {}

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    async def merchant(self, name: str) -> str:
        """A new account with a receiver; its id."""
        made = self.merchants[name] = await create_account(self.ports, name)
        wish = {"webhook_url": address(name), "webhook_secret": WEBHOOK_SECRET}
        await set_settings(self.ports, made.account_id, wish)
        await self.work()
        return made.account_id

    async def call(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        """A request of a merchant's, with its test keys."""
        pair = self.merchants[name].test
        headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret, "Idempotency-Key": str(uuid4())}
        return await self.http.request(method, f"/api/v1{path}", headers=headers, **options)

    async def pay(self, name: str, amount: str = "100.00") -> str:
        """A new payment that is paid; its id."""
        made = await self.call(name, "POST", "/payments", json={"amount_rub": amount})
        assert made.status_code == 201, made.text
        payment_id: str = made.json()["id"]
        paid = await self.call(name, "POST", f"/sandbox/payments/{payment_id}/simulate", json={"outcome": "paid"})
        assert paid.status_code == 200, paid.text
        return payment_id

    async def work(self, seconds: float = 0) -> None:
        """Let the time pass, and do what falls due on the way each second."""
        for left in range(int(seconds), -1, -1):
            await run_due(self.ports)
            if left:
                await self.clock.advance(1)

    async def spoil(self, statement: str) -> None:
        """Write past the program."""
        if self.is_sqlite:
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=10)) as connection, connection:
                connection.execute(statement)
        else:
            server = await asyncpg.connect(self.url)
            await server.execute(statement)
            await server.close()


@asynccontextmanager
async def open_spoilable(
    url: str, folder: Path, *names: str, clock: VirtualClock | None = None
) -> AsyncIterator[Spoilable]:
    """An app on this database, with merchants of these names; one beside another has its `clock`."""
    clock, street = clock or VirtualClock(settle=at_rest), Street()
    settings = Settings(database_url=url, base_url="https://pay.example", data_dir=folder, allow_live_simulators=True)
    async with open_app(settings, clock=clock, ids=SeededIds(), notifier=street) as app:
        with lent_app(app.ports) as face:
            transport = httpx.ASGITransport(face, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
                opened = Spoilable(url, app.ports, clock, client, street)
                for name in names:
                    await opened.merchant(name)
                yield opened
