"""An app that is counted and traced: in memory, under a virtual clock, with its HTTP face, its reader and its
scrape."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from litestar.types import ASGIApp
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Script
from cambist.core.usecases.accounts import accounts
from cambist.frontends.app.compose import Adapters, open_app
from cambist.frontends.server.app import create_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.telemetry.exposition import registry_of
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.frontends.telemetry.signs import Reader
from cambist.frontends.telemetry.telemetry import Telemetry
from cambist.frontends.telemetry.tracing import Tracing
from cambist.frontends.worker.loop import Worker
from cambist.ports.bundle import Ports
from tests.alarm_kit import Listener
from tests.apps import WEBHOOK_SECRET, WEBHOOK_URL, Postman

Sample = tuple[str, tuple[tuple[str, str], ...]]
"""A time series: its name, and its labels in order."""


def sample(name: str, **labels: str) -> Sample:
    return f"cambist_{name}", tuple(sorted(labels.items()))


def samples(text: str) -> dict[Sample, float]:
    """A scrape, read as Prometheus reads it."""
    return {
        (found.name, tuple(sorted(found.labels.items()))): found.value
        for family in text_string_to_metric_families(text)
        for found in family.samples
    }


@dataclass
class Traced:
    ports: Ports
    telemetry: Telemetry
    reader: Reader
    clock: VirtualClock
    postman: Postman
    script: Script
    http: httpx.AsyncClient
    account: accounts.NewAccount

    def headers(self, **more: str) -> dict[str, str]:
        pair = self.account.test
        return {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret, **more}

    async def pay(self, amount: str = "100.00", **headers: str) -> httpx.Response:
        """POST /payments."""
        key = {"Idempotency-Key": self.ports.ids.uuid()}
        headers = self.headers(**key, **headers)
        return await self.http.post("/api/v1/payments", json={"amount_rub": amount}, headers=headers)

    async def simulate(self, payment_id: str, **body: Any) -> httpx.Response:
        path = f"/api/v1/sandbox/payments/{payment_id}/simulate"
        return await self.http.post(path, json=body, headers=self.headers())

    async def work(self) -> None:
        """Run the due jobs, as a worker does."""
        worker = Worker(self.ports, telemetry=self.telemetry)
        while claimed := await self.ports.storage.claim(100, 60.0):
            for job in claimed:
                await worker._do(job)

    async def scrape(self) -> dict[Sample, float]:
        """Read, and scrape."""
        await self.reader.read()
        return samples(generate_latest(registry_of(self.telemetry, self.reader)).decode())


@asynccontextmanager
async def traced_app(tracing: Tracing | None = None, *, access_log: str = "off") -> AsyncIterator[Traced]:
    clock, postman, script = VirtualClock(), Postman(), Script()
    telemetry = Telemetry(clock, tracing)
    settings = Settings(database_url="memory://", base_url="https://pay.example", allow_live_simulators=True)
    async with open_app(
        settings,
        clock=clock,
        ids=SeededIds(),
        notifier=postman,
        script=script,
        telemetry=telemetry,
        adapters=Adapters(alarms=[Listener()]),
    ) as app:
        account = await accounts.create_account(app.ports, "Merchant")
        wish = {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
        await accounts.set_settings(app.ports, account.account_id, wish)
        asgi: list[ASGIApp] = []

        async def late(scope: Any, receive: Any, send: Any) -> None:
            """The HTTP face, put up at the first request: it takes longer than all the rest."""
            if not asgi:
                asgi.append(create_app(app.ports, watch=RequestWatch(clock, telemetry, access_log)))
            await asgi[0](scope, receive, send)

        transport = httpx.ASGITransport(late, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
            yield Traced(app.ports, telemetry, Reader(app.ports), clock, postman, script, client, account)
