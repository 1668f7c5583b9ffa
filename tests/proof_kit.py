"""Kit for tests of delivery proofs: live payments through an exchange terminal, a chain whose content the test sets,
and the merchant's calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.adapters.chain.simulator import SimulatedChain
from cambist.adapters.script import ChainScript
from cambist.core.domain.accounts.terminals import TerminalWish
from cambist.core.domain.money import Usdt
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.proofs import DeliveryProof
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.terminals import create_terminal
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.chain import Network, TokenMove, TransactionState
from cambist.ports.jobs import Job
from tests.apps import TestApp, open_test_app
from tests.planting import beneath

HASH = "a" * 64
OTHER_HASH = "b" * 64
THIRD_HASH = "c" * 64
USDT = 100_000_000
"""One USDT in the chain port's units."""
CREDIT = Usdt(100 * USDT)
"""Amount credited for a settled payment in these tests."""
DAY = 24 * 3600


class Merchant:
    """An account with its keys and an exchange terminal."""

    def __init__(self, account: accounts.NewAccount, method_id: str) -> None:
        self.account = account
        self.method_id = method_id

    def headers(self, mode: str = "live") -> dict[str, str]:
        pair = getattr(self.account, mode)
        return {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}


class Exchange:
    """An app whose merchant takes payments by an exchange terminal."""

    def __init__(self, app: TestApp, merchant: Merchant, script: ChainScript) -> None:
        self.app = app
        self.merchant = merchant
        self.script = script

    @property
    def chain(self) -> SimulatedChain:
        chain = self.app.ports.chain
        assert isinstance(chain, SimulatedChain)
        return chain

    async def mined(self, tx_hash: str = HASH, *, usdt: float = 100, network: Network = Network.TRON) -> None:
        """The transaction is final, and moved so much."""
        moves = [TokenMove(round(usdt * USDT))]
        await self.chain.simulate(network, tx_hash, TransactionState.FINAL, moves)

    async def created(self, merchant: Merchant | None = None, *, mode: str = "live", **body: Any) -> str:
        """The id of a new payment by the exchange terminal."""
        merchant = merchant or self.merchant
        wanted = {"amount_rub": "10000.00", "method_id": merchant.method_id, **body}
        response = await self.app.http.post(
            "/api/v1/payments",
            json={name: value for name, value in wanted.items() if value is not None},
            headers={**merchant.headers(mode), "Idempotency-Key": str(uuid4())},
        )
        assert response.status_code == 201, response.text
        payment_id: str = response.json()["id"]
        return payment_id

    async def paid(self, merchant: Merchant | None = None, **body: Any) -> str:
        """The id of a payment that has just been paid."""
        payment_id = await self.created(merchant, **body)
        await simulate_payment(self.app.ports, await self.payment(payment_id), Simulation(status=InvoiceStatus.PAID))
        return payment_id

    async def settled(self, merchant: Merchant | None = None) -> str:
        """The id of a payment that is paid and settled for CREDIT."""
        payment_id = await self.paid(merchant)
        await self.settle(payment_id)
        return payment_id

    async def settle(self, payment_id: str) -> None:
        await self.change(payment_id, status=PaymentStatus.SETTLED, amount_usdt=CREDIT, settled_at=self.app.clock.now())

    async def change(self, payment_id: str, **changes: Any) -> None:
        """Change the payment as another room of the app would."""
        self.app.made_up = True
        async with beneath(self.app.ports).unit() as unit:
            payment = await unit[Payment].get(payment_id)
            assert payment is not None
            unit[Payment].save(msgspec.structs.replace(payment, **changes))
            await unit.commit()

    async def payment(self, payment_id: str) -> Payment:
        async with self.app.ports.storage.unit() as unit:
            payment = await unit[Payment].get(payment_id)
        assert payment is not None
        return payment

    async def record(self, payment_id: str) -> DeliveryProof:
        async with self.app.ports.storage.unit() as unit:
            proof = await unit[DeliveryProof].get(payment_id)
        assert proof is not None
        return proof

    async def jobs(self, kind: str) -> list[Job]:
        async with self.app.ports.storage.unit() as unit:
            return [job for job in await unit[Job].find() if job.kind == kind]

    async def post(
        self, payment_id: str, body: Any, *, merchant: Merchant | None = None, mode: str = "live"
    ) -> httpx.Response:
        """POST /payments/{id}/delivery-proof."""
        headers = (merchant or self.merchant).headers(mode)
        return await self.app.http.post(f"/api/v1/payments/{payment_id}/delivery-proof", json=body, headers=headers)

    async def submit(
        self, payment_id: str, tx_hash: str = HASH, network: str = "TRC20", *, merchant: Merchant | None = None
    ) -> dict[str, Any]:
        """Submit a hash that is taken; the answer."""
        response = await self.post(payment_id, {"network": network, "tx_hash": tx_hash}, merchant=merchant)
        assert response.status_code == 200, response.text
        answered: dict[str, Any] = response.json()
        return answered

    async def read(self, payment_id: str, *, merchant: Merchant | None = None, mode: str = "live") -> httpx.Response:
        """GET /payments/{id}/delivery-proof."""
        headers = (merchant or self.merchant).headers(mode)
        return await self.app.http.get(f"/api/v1/payments/{payment_id}/delivery-proof", headers=headers)

    async def status(self, payment_id: str, *, merchant: Merchant | None = None) -> tuple[str, str | None]:
        """Status and reason, as the merchant reads them."""
        response = await self.read(payment_id, merchant=merchant)
        assert response.status_code == 200, response.text
        body = response.json()
        return body["status"], body.get("reason")

    async def another_merchant(self) -> Merchant:
        account = await accounts.create_account(self.app.ports, "Another")
        return Merchant(account, await exchange_terminal(self.app, account.account_id))

    async def reminders(self, payment_id: str) -> list[dict[str, Any]]:
        """The payloads of the reminders written so far."""
        events = await self.app.events(payment_id)
        return [event for event in events if event["event"] == "payment.delivery_proof_reminder"]

    async def set(self, **settings: str) -> None:
        """Set the merchant's settings."""
        await accounts.set_settings(self.app.ports, self.merchant.account.account_id, settings)

    async def work_to_hour(self, payment_id: str, hours: float) -> None:
        """Let the app work until so many hours after the payment was paid."""
        payment = await self.payment(payment_id)
        assert payment.paid_at is not None
        end = payment.paid_at + timedelta(hours=hours)
        await self.app.work((end - self.app.clock.now()).total_seconds())


async def exchange_terminal(app: TestApp, account_id: str, kind: str = "exchange") -> str:
    """Terminals on, and one of this kind: its method_id."""
    await accounts.set_settings(app.ports, account_id, {"terminals": "true"})
    return (await create_terminal(app.ports, account_id, TerminalWish(label=kind, kind=kind))).id


@asynccontextmanager
async def open_exchange(**settings: Any) -> AsyncIterator[Exchange]:
    """An app in memory with such a merchant, and a simulated chain, unless the settings name another."""
    async with open_test_app(**settings) as app:
        script = ChainScript()
        if "chain" not in settings:
            chain = SimulatedChain(app.ports.storage, app.clock, script=script)
            app.ports = msgspec.structs.replace(app.ports, chain=chain)
        method_id = await exchange_terminal(app, app.account.account_id)
        await run_due(app.ports)
        yield Exchange(app, Merchant(app.account, method_id), script)
