"""Apps whose merchant may refund, and what tests of refunds do in them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.refunds.refunds import Refund
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.ledger.balance import Balance, read_balance
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operations import engine
from cambist.core.usecases.payments.tallies import check_tallies
from cambist.core.usecases.refunds.progress import REFUNDS, Refunding
from cambist.core.usecases.refunds.refunds import create_refund
from cambist.core.usecases.refunds.suspense_progress import SUSPENSE_RETURNS
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.ports.bank import InvoiceStatus, Notification, RefundState, RefundStatus
from cambist.ports.bank_simulator import BankSimulator, Simulation
from cambist.ports.bundle import Ports
from tests.apps import TestApp, open_test_app
from tests.planting import beneath

SETTLED_100 = 1_04864864
"""100 RUB at the simulated market rate of 92.50 and the default markup of 0.03, in units of USDT; rounded down."""
MARKET_100 = 1_08108108
"""100 RUB at the market rate: the amount that a refund debits after settlement."""


def told(response: httpx.Response) -> tuple[int, str]:
    """Return status and code of a refusal."""
    return response.status_code, response.json()["error"]["code"]


def _refund(subject: Refunding | None) -> Refund | None:
    return None if subject is None else subject.refund


async def begin(ports: Ports, refund_id: str) -> tuple[Refund | None, bool]:
    """The refund with its money taken; whether that was done just now."""
    begun = await engine.begin(REFUNDS, ports, refund_id)
    return _refund(begun.subject), begun.is_new


async def send(ports: Ports, refund_id: str) -> Refund | None:
    """Send the refund, as its job would."""
    return _refund((await engine.bring(REFUNDS, ports, refund_id)).subject)


async def conclude(ports: Ports, refund_id: str, state: RefundState) -> Refund | None:
    """Apply this answer of the bank to a refund."""
    return _refund((await engine.conclude(REFUNDS, ports, refund_id, state)).subject)


async def receive(ports: Ports, refund_id: str) -> Refund | None:
    """Poll the bank as after a notification."""
    return _refund((await engine.receive(REFUNDS, ports, refund_id)).subject)


async def conclude_return(ports: Ports, operation: str, state: RefundState) -> None:
    """Apply this answer of the bank to a return of money in suspense."""
    await engine.conclude(SUSPENSE_RETURNS, ports, operation, state)


class RefundApp:
    """An app with a merchant who may refund."""

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

    async def paid(self, amount: str = "100.00", *, mode: str = "test", **body: Any) -> str:
        """A payment that was paid; its id."""
        made = await self.app.create({"amount_rub": amount, **body}, mode=mode)
        assert made.status_code == 201, made.text
        payment_id: str = made.json()["id"]
        await self.app.told(payment_id, Simulation(status=InvoiceStatus.PAID))
        return payment_id

    def bank(self, mode: str = "test") -> SimulatedBank:
        """The simulated bank of a mode."""
        bank = self.ports.banks.named(f"simulator-{mode}")
        assert isinstance(bank, SimulatedBank)
        assert isinstance(bank, BankSimulator)
        return bank

    async def settled(self, amount: str = "100.00") -> str:
        """A payment of test mode that was settled, with all others that were paid; its id."""
        payment_id = await self.paid(amount)
        await self.app.clock.advance(1)
        await self.settle()
        return payment_id

    async def post(self, body: Any, *, key: str | None = None, mode: str = "test", **headers: str) -> httpx.Response:
        """POST /refunds, with a fresh key unless one is given."""
        sent = self.app.headers(mode, Idempotency_Key=str(uuid4()) if key is None else key, **headers)
        return await self.app.http.post("/api/v1/refunds", json=body, headers=sent)

    async def apply(self, payment_id: str, amount: str | None = None, *, mode: str = "test", **more: Any) -> str:
        """A new refund application, by the API; its id."""
        body = {"payment_id": payment_id, **({} if amount is None else {"amount_rub": amount}), **more}
        response = await self.post(body, mode=mode)
        assert response.status_code == 201, response.text
        refund_id: str = response.json()["id"]
        return refund_id

    async def processing(self, amount: str | None = None) -> tuple[str, str]:
        """A payment of 100 RUB, and a refund of it that is at the bank; their ids."""
        payment_id = await self.paid()
        refund_id = await self.apply(payment_id, amount)
        await self.app.work(2)
        assert await self.status(refund_id) == "processing"
        return payment_id, refund_id

    async def completed(self, amount: str | None = None) -> tuple[str, str]:
        """The same, and the payer has the money."""
        payment_id, refund_id = await self.processing(amount)
        await self.app.work(5)
        assert await self.status(refund_id) == "completed"
        return payment_id, refund_id

    async def action(self, path: str, body: Any = None, *, mode: str = "test") -> httpx.Response:
        """POST a path below /api/v1, without a key."""
        return await self.app.http.post(f"/api/v1{path}", json=body, headers=self.app.headers(mode))

    async def simulate(self, refund_id: str, outcome: str) -> httpx.Response:
        return await self.action(f"/sandbox/refunds/{refund_id}/simulate", {"outcome": outcome})

    async def tell(self, refund_id: str, status: RefundStatus, failure: str | None = None) -> None:
        """Let the bank set this state, and handle its notification."""
        for notification in await self.bank().simulate_refund(refund_id, status, failure):
            await on_notification(self.ports, notification)

    async def notification(self, operation: str) -> None:
        await on_notification(self.ports, Notification(operation=operation))

    async def refund(self, refund_id: str) -> Refund:
        async with self.ports.storage.unit() as unit:
            found = await unit[Refund].get(refund_id)
        assert found is not None
        return found

    async def payment(self, payment_id: str) -> Payment:
        async with self.ports.storage.unit() as unit:
            found = await unit[Payment].get(payment_id)
        assert found is not None
        return found

    async def status(self, refund_id: str) -> str:
        return (await self.refund(refund_id)).status.value

    async def settle(self) -> None:
        """Settle what test mode was paid, now."""
        await settle_own(self.ports, await self.caller())

    async def balance(self) -> Balance:
        return await read_balance(self.ports, await self.caller())

    async def said(self, object_id: str) -> list[str]:
        """Return the statuses of an object that events reported, in order."""
        return [event["status"] for event in await self.app.events(object_id)]

    async def left_at_bank(self, payment_id: str, mode: str = "test") -> int:
        """Kopecks of a payment that the bank has not sent back."""
        entry = await self.bank(mode)._pages.read(payment_id)
        assert entry is not None
        came = sum(transfer.amount_kopecks for transfer in entry.transfers)
        return came - sum(refund.amount_kopecks for refund in entry.refunds if refund.keeps_money)

    async def make(self, payment_id: str, amount: str | None = None) -> Refund:
        """An application by the use case."""
        order = RefundOrder(payment_id=payment_id, amount_rub=amount)
        made = await create_refund(self.ports, await self.caller(), str(uuid4()), lambda: order)
        return made.resource

    async def change(self, payment_id: str, **fields: Any) -> None:
        """Let a payment stand so."""
        async with beneath(self.ports).unit() as unit:
            payment = await unit[Payment].get(payment_id)
            assert payment is not None
            unit[Payment].save(msgspec.structs.replace(payment, **fields))
            await unit.commit()


@asynccontextmanager
async def open_refund_app(*, made_up: bool = False, **more: Any) -> AsyncIterator[RefundApp]:
    """An app with refunds on; at the end the tallies and the books are held against the objects, unless some of
    these were made up."""
    async with open_test_app(**more) as app:
        app.made_up = made_up
        opened = RefundApp(app)
        await opened.set(refunds="true")
        await app.clock.advance(2)
        yield opened
        if not made_up:
            assert await check_tallies(app.ports) == []
