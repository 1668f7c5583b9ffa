"""Apps whose merchant exchanges, and what tests of exchanges do in them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.deposits.simulator import SimulatedDeposits
from cambist.adapters.payouts.simulator import SimulatedSender
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.ledger import SERVICE, BalanceType
from cambist.core.domain.money import Usdt
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.exchanges import return_progress
from cambist.core.usecases.exchanges.creation import create_exchange, create_rub_usdt
from cambist.core.usecases.exchanges.progress import progress
from cambist.core.usecases.exchanges.rub_return import RUB_RETURNS
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.kyc.clients import set_blocked
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operations import engine
from cambist.ports.bank import InvoiceStatus, RefundState
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.remittances import RemittanceStatus
from tests.apps import TestApp, open_test_app
from tests.invariants import balances, everything, noted

PHONE = "+70000000001"
"""Verified in test mode."""
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
BANK_ID = "bank100000000004"
RUB_100 = 9065_00
"""Kopecks for 100 USDT at the simulated market rate of 92.50 and the default markup of 2 %."""
EARNED_100 = 2_00000000
"""The merchant's markup in it, in units of USDT."""


def told(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, response.json()["error"]["code"]


async def carry(ports: Ports, transfer_id: str) -> None:
    """Bring a return as far as it goes now."""
    transfer = await ports.storage.get(ExchangeTransfer, transfer_id)
    if transfer is not None:
        await return_progress.carry(ports, transfer)


async def conclude(ports: Ports, _transfer_id: str, operation: str, state: RefundState) -> None:
    """Report this state of returned RUB, as the bank would."""
    await engine.conclude(RUB_RETURNS, ports, operation, state)


class ExchangeApp:
    """An app with one merchant that has exchanges enabled."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.ports = app.ports

    async def set(self, **texts: str) -> None:
        """Settings of the account."""
        await accounts.set_settings(self.ports, self.app.account.account_id, texts)

    async def caller(self, mode: Mode = Mode.TEST) -> Caller:
        async with self.ports.storage.unit() as unit:
            account = await unit[Account].get(self.app.account.account_id)
        assert account is not None
        return Caller(account=account, mode=mode, key_id="a-key")

    def order(self, amount: str = "100", phone: str = PHONE, **more: Any) -> ExchangeOrder:
        return ExchangeOrder(amount_usdt=amount, client_phone=phone, client_bank_id=BANK_ID, **more)

    async def made(self, amount: str = "100", phone: str = PHONE, *, key: str | None = None) -> Exchange:
        """A new exchange, by the use case."""
        order = self.order(amount, phone)
        return (await create_exchange(self.ports, await self.caller(), key or str(uuid4()), lambda: order)).resource

    async def post(self, body: Any = None, *, key: str | None = None, mode: str = "test") -> httpx.Response:
        """POST /exchanges of 100 USDT, unless `body` says otherwise, with a fresh key unless one is given."""
        sent = {"amount_usdt": "100", "client_phone": PHONE, "client_bank_id": BANK_ID, **(body or {})}
        headers = self.app.headers(mode, Idempotency_Key=str(uuid4()) if key is None else key)
        return await self.app.http.post("/api/v1/exchanges", json=sent, headers=headers)

    async def created(self, **body: Any) -> dict[str, Any]:
        """The answer of POST /exchanges."""
        response = await self.post(body)
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def action(self, path: str, body: Any = None, *, mode: str = "test") -> httpx.Response:
        """POST a path below /api/v1, without a key."""
        return await self.app.http.post(f"/api/v1{path}", json=body, headers=self.app.headers(mode))

    async def simulate(self, exchange_id: str, outcome: str, **more: Any) -> httpx.Response:
        return await self.action(f"/sandbox/exchanges/{exchange_id}/simulate", {"outcome": outcome, **more})

    async def cancel(self, exchange_id: str, mode: str = "test") -> httpx.Response:
        return await self.action(f"/exchanges/{exchange_id}/cancel", mode=mode)

    async def shown(self, exchange_id: str) -> dict[str, Any]:
        """GET /exchanges/{id}."""
        response = await self.app.get(f"/exchanges/{exchange_id}")
        assert response.status_code == 200, response.text
        shown: dict[str, Any] = response.json()
        return shown

    def bank(self, mode: str = "test") -> SimulatedBank:
        bank = self.ports.banks.named(f"simulator-{mode}")
        assert isinstance(bank, SimulatedBank)
        return bank

    @property
    def watcher(self) -> SimulatedDeposits:
        """Return the simulated deposits of test mode."""
        watcher = self.ports.deposits.of_mode("test")
        assert isinstance(watcher, SimulatedDeposits)
        return watcher

    async def exchange(self, exchange_id: str) -> Exchange:
        async with self.ports.storage.unit() as unit:
            found = await unit[Exchange].get(exchange_id)
        assert found is not None
        return found

    async def status(self, exchange_id: str) -> str:
        return (await self.exchange(exchange_id)).status.value

    async def send(self, exchange_id: str, amount: str = "100", **more: Any) -> str:
        """Send USDT from the client, before the service polls the chain, and return the transaction's hash."""
        address = (await self.exchange(exchange_id)).crypto_deposit_address
        assert address is not None
        return await self.watcher.simulate_deposit(address, Usdt.parse(amount).units, **more)

    async def look(self, exchange_id: str) -> str:
        """Advance the exchange as far as possible now, and return its status."""
        paying = await progress(self.ports, await self.exchange(exchange_id))
        assert paying is not None
        return paying.exchange.status.value

    async def at_bank(self, operation: str, status: RemittanceStatus, failure: str | None = None) -> None:
        """Let the bank change the payout so, and handle its notification."""
        for notification in await self.bank().simulate_remittance(operation, status, failure):
            await on_notification(self.ports, notification)

    async def bought(self, amount: str = "10000.00", phone: str = PHONE) -> Exchange:
        """A new exchange of RUB to USDT, as an operator makes it."""
        return await create_rub_usdt(
            self.ports,
            self.app.account.account_id,
            Mode.TEST,
            amount_rub=amount,
            client_phone=phone,
            address=WALLET,
        )

    async def pay(self, exchange_id: str, kopecks: int | None = None, **more: Any) -> None:
        """Let the client pay the invoice, and handle the bank's notification."""
        simulation = Simulation(status=InvoiceStatus.PAID, amount_kopecks=kopecks, **more)
        for notification in await self.bank().simulate(invoice_operation(exchange_id), simulation):
            await on_notification(self.ports, notification)

    @property
    def sender(self) -> SimulatedSender:
        """The wallet of test mode."""
        sender = self.ports.senders.of_mode("test")
        assert isinstance(sender, SimulatedSender)
        return sender

    async def on_chain(self) -> list[dict[str, Any]]:
        """The chain's notes of transfers that moved USDT."""
        found = [note for note in await noted(self.ports) if note.provider == self.sender.name]
        notes: list[dict[str, Any]] = [msgspec.json.decode(note.body) for note in found]
        return [note for note in notes if note.get("state") in ("in_block", "final")]

    async def remitted(self) -> dict[str, int]:
        """Kopecks of every remittance in the bank's books that is done or may be."""
        notes = self.bank()._remittances
        found: dict[str, int] = {}
        for exchange in await everything(self.ports, Exchange):
            for part in exchange.parts:
                page = await notes.read(part.operation)
                if page is not None and page.status is not RemittanceStatus.FAILED:
                    found[part.operation] = page.amount_kopecks
        return found

    async def transfers(self) -> Sequence[ExchangeTransfer]:
        return await everything(self.ports, ExchangeTransfer)

    async def balance_types(self, *wanted: BalanceType) -> list[int]:
        """Running balances of the merchant or the service in test mode."""
        found = await balances(self.ports)
        owners = (self.app.account.account_id, SERVICE)
        return [sum(found[owner, Mode.TEST, balance_type] for owner in owners) for balance_type in wanted]

    async def said(self, exchange_id: str) -> list[str]:
        """Return the statuses that events reported, in order."""
        return [event["status"] for event in await self.app.events(exchange_id)]

    async def block(self, client_id: str, *, blocked: bool = True) -> None:
        await set_blocked(self.ports, client_id, blocked)

    async def run_due(self) -> None:
        await run_due(self.ports)


@asynccontextmanager
async def open_exchange_app(**settings: Any) -> AsyncIterator[ExchangeApp]:
    """An app whose merchant may exchange; at the end the books hold."""
    async with open_test_app(**settings) as app:
        exchanges = ExchangeApp(app)
        await exchanges.set(exchange="true")
        yield exchanges
        # When a test replaced the app's ports, check the books through the new ports.
        app.ports = exchanges.ports
