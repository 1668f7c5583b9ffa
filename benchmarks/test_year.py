"""A year of a test account at once: its clock advances over a thousand objects of all kinds on SQLite, at full
durability, with a receiver in a separate process.

The results are the seconds of the advance, the CPU time of the service, the executed jobs, the written events, and the
answered webhooks. Payments expire, fail, are paid, refunded and settled; exchanges of both directions expire or are
paid out; mandates are polled. All objects are created within some minutes, spaced out by the rate limits, so that few
jobs are due in the same second.
"""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
import uvloop
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.test_deliveries import receivers
from cambist.adapters.clock import VirtualClock
from cambist.adapters.script import Script
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.sandbox_clock import ClockWish
from cambist.core.domain.webhooks.events import Attempt
from cambist.core.usecases.accounts.accounts import NewAccount, create_account, set_settings
from cambist.core.usecases.common.account_time import living_with
from cambist.core.usecases.jobs import do, run_due
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.clock import ClockStanding, advance
from cambist.core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from cambist.frontends.app.compose import migrate, open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from tests.app_pool import lent_app
from tests.apps import WEBHOOK_SECRET, Postman, TestApp
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.subscription_app import bound

__all__ = ["receivers"]

PAYMENTS, SUBSCRIPTIONS, REFUNDS, EXCHANGES = 900, 50, 40, 100
ENDS = ("paid",) * 7 + (None,) * 2 + ("failed",)
APART = 0.5
"""Seconds between two objects."""
MINUTE = 61.0
"""After this time the limits per minute start anew."""
IN_ONE = 14
"""Exchanges within one minute's limit, including their further calls."""

pytestmark = pytest.mark.benchmark(group="sandbox")


async def caller_of(ports: Ports, account_id: str) -> Caller:
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(account_id)
    assert account is not None
    return Caller(account=account, mode=Mode.TEST, key_id="a-key")


class Making:
    """Create the account's objects as its merchant would."""

    def __init__(self, app: TestApp) -> None:
        self._app = app
        self._ports = app.ports
        self._id = app.account.account_id

    async def all(self) -> None:
        for _ in range(SUBSCRIPTIONS):
            await bound(self._app)
            await self._pass()
        paid = [each for each in [await self._payment(number) for number in range(PAYMENTS)] if each is not None]
        await self._app.clock.advance(MINUTE)
        for number in range(REFUNDS):
            await self._post("/refunds", payment_id=paid[number], amount_rub="500.00" if number % 2 else "100.00")
            await self._pass(work=False)
        for number in range(EXCHANGES):
            if number % IN_ONE == 0:
                await self._app.clock.advance(MINUTE)
            await self._exchange(number)
            await self._pass(work=False)
        await run_due(self._ports)

    async def _pass(self, *, work: bool = True) -> None:
        if work:
            await run_due(self._ports)
        await self._app.clock.advance(APART)

    async def _payment(self, number: int) -> str | None:
        """Create a payment by the use case, because the API's limits would delay payments most. Return its id if it is
        paid."""
        outcome = ENDS[number % len(ENDS)]
        caller = await caller_of(self._ports, self._id)
        async with living_with(self._ports, self._id, Mode.TEST):
            made = await create_payment(self._ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="500.00"))
            if outcome is not None:
                await simulate(self._ports, caller, made.resource.id, PaymentSimulation(outcome=outcome))
        await self._pass()
        return made.resource.id if outcome == "paid" else None

    async def _exchange(self, number: int) -> None:
        """Create an exchange. The four cases alternate: USDT or RUB, with or without received money."""
        phone = f"+70000000{number:03}"
        await self._post("/sandbox/exchange-clients", phone=phone, kyc_status="verified")
        amount = {"amount_usdt": "100", "client_bank_id": "bank100000000004"} if number % 4 < 2 else {}
        begun = await self._post("/sandbox/exchanges", client_phone=phone, **(amount or {"amount_rub": "9065.00"}))
        if number % 2:
            outcome = "usdt_received" if amount else "rub_received"
            answer = await ExchangeApp(self._app).simulate(begun["id"], outcome)
            assert answer.status_code == 200, answer.text

    async def _post(self, path: str, **body: Any) -> Any:
        headers = self._app.headers(Idempotency_Key=str(uuid4()))
        answer = await self._app.http.post(f"/api/v1{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


async def make(settings: Settings, address: str) -> NewAccount:
    """Create the account with its objects, some minutes before now."""
    clock = VirtualClock(datetime.now(UTC) - timedelta(minutes=30))
    wanted = {
        "webhook_url": address,
        "webhook_secret": WEBHOOK_SECRET,
        "payout_wallet": WALLET,
        **dict.fromkeys(("recurring", "refunds", "exchange"), "true"),
    }
    await migrate(settings)
    postman = Postman()
    async with open_app(settings, clock=clock, notifier=postman) as app:
        account = await create_account(app.ports, "Merchant")
        await set_settings(app.ports, account.account_id, wanted)
        with lent_app(app.ports) as face:
            transport = httpx.ASGITransport(face)
            async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
                await Making(TestApp(app.ports, clock, postman, Script(), client, account)).all()
    return account


async def a_year(settings: Settings, account_id: str) -> tuple[ClockStanding, float, int]:
    """Advance the clock, and return its standing, the CPU seconds used, and the number of answered webhooks."""
    async with open_app(settings) as app:
        before = len(await everything(app.ports, Attempt))
        caller, began = await caller_of(app.ports, account_id), time.process_time()
        stands = await advance(app.ports, caller, ClockWish(seconds=365 * 86_400), do)
        took = time.process_time() - began
        return stands, took, len(await everything(app.ports, Attempt)) - before


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as opened:
        yield opened


def test_year(benchmark: BenchmarkFixture, runner: asyncio.Runner, receivers: list[str], tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, base_url="http://127.0.0.1:8080")  # its receivers are on loopback
    account = runner.run(make(settings, receivers[0]))
    found = cast("Any", benchmark.pedantic)(lambda: runner.run(a_year(settings, account.account_id)), rounds=1)
    stands, cpu, webhooks = found
    assert stands.target is None, "it answered before it was done"
    assert webhooks == stands.events_emitted
    benchmark.extra_info.update(
        cpu_seconds=round(cpu, 2), jobs=stands.jobs_run, events=stands.events_emitted, webhooks=webhooks
    )
