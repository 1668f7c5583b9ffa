"""Apps with subscriptions that are bound already, and what tests of charges do in them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.adapters.bank.simulator.pages import InvoiceEntry
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Account, Caller, Mode, Scheme
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.charges import ChargeOrder
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operations.engine import bring, receive
from cambist.core.usecases.payments.tallies import check_tallies
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.core.usecases.subscriptions.charge_progress import CHARGES
from cambist.core.usecases.subscriptions.charges import ChargeAnswer, create_charge
from cambist.core.usecases.subscriptions.subscriptions import create_subscription
from cambist.ports.bundle import Ports
from cambist.ports.mandates import ChargeSimulation, ChargeStatus, MandateEvent, MandateSimulation
from tests.apps import TestApp, open_test_app
from tests.invariants import everything, noted

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
UNKNOWN = "sub_00000000-0000-4000-8000-000000000001"


def told(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, response.json()["error"]["code"]


async def ask_again(ports: Ports, payment: Payment) -> Payment:
    """As the charge's job does."""
    subject = (await bring(CHARGES, ports, payment.id)).subject
    return payment if subject is None else subject.payment


async def look(ports: Ports, payment: Payment) -> Payment:
    """As after a notification."""
    subject = (await receive(CHARGES, ports, payment.id)).subject
    return payment if subject is None else subject.payment


class ChargeApp:
    """An app whose merchant has payers' mandates."""

    def __init__(self, app: TestApp) -> None:
        self.app = app
        self.ports = app.ports
        self.clock = app.clock
        self.told_before: dict[str, int] = {}
        """How many events there were of a subscription once it was bound."""

    async def caller(self, mode: Mode = Mode.TEST) -> Caller:
        async with self.ports.storage.unit() as unit:
            account = await unit[Account].get(self.app.account.account_id)
        assert account is not None
        return Caller(account=account, mode=mode, key_id="a-key")

    async def set(self, **texts: str) -> None:
        """Settings of the account."""
        await accounts.set_settings(self.ports, self.app.account.account_id, texts)

    def bank(self, mode: str = "test") -> SimulatedBank:
        """The simulated bank of a mode."""
        bank = self.ports.banks.named(f"simulator-{mode}")
        assert isinstance(bank, SimulatedBank)
        return bank

    async def subscribed(
        self,
        interval: Interval = Interval.MONTH,
        count: int = 1,
        *,
        scheme: Scheme = Scheme.WINDOW,
        mode: Mode = Mode.TEST,
        **fields: Any,
    ) -> str:
        """Create a subscription of 100 RUB, bound just now and without a first charge, and return its id. Other fields
        than merchants can set it are generated."""
        await self.set(subscription_scheme=scheme.value)
        order = SubscriptionOrder(
            amount_rub="100.00",
            interval=interval.value,
            interval_count=count,
            description="Tea",
            external_id="tea-club",
            binding_charge="none",
        )
        made = await create_subscription(self.ports, await self.caller(mode), str(uuid4()), lambda: order, lambda: None)
        subscription_id = made.resource.id
        await open_binding(self.ports, subscription_id)
        operation = await self.binding(subscription_id)
        simulation = MandateSimulation(event=MandateEvent.CONFIRM)
        for notification in await self.bank(mode.value).simulate_mandate(operation, simulation):
            await on_notification(self.ports, notification)
        assert (await self.subscription(subscription_id)).can_be_charged
        self.told_before[subscription_id] = len(await self.app.events(subscription_id))
        if fields:
            await self.change(subscription_id, **fields)
        return subscription_id

    async def binding(self, subscription_id: str) -> str:
        """The operation of the subscription's present binding."""
        binding = (await self.subscription(subscription_id)).binding
        assert binding is not None
        return binding.operation

    async def change(self, subscription_id: str, **fields: Any) -> None:
        """Let a subscription stand so."""
        async with self.ports.storage.unit() as unit:
            found = await unit[Subscription].get(subscription_id)
            assert found is not None
            unit[Subscription].save(msgspec.structs.replace(found, **fields))
            await unit.commit()

    async def put(self, subscription: Subscription) -> None:
        """Save it as a function of the domain left it, telling nobody."""
        async with self.ports.storage.unit() as unit:
            unit[Subscription].save(subscription)
            await unit.commit()

    async def open_next(self, subscription_id: str) -> None:
        """Let the time pass until the next period opens, with all that is due on the way."""
        after = (await self.window(subscription_id))["next_allowed_at"]
        await self.app.work((msgspec.convert(after, type=type(self.clock.now())) - self.clock.now()).total_seconds())

    async def post(
        self,
        subscription_id: str,
        body: Any = None,
        *,
        key: str | None = None,
        mode: str = "test",
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """POST /subscriptions/{id}/charges, of 100 RUB unless `body` says otherwise, with a fresh key unless one is
        given."""
        sent = self.app.headers(mode, Idempotency_Key=key or str(uuid4())) if headers is None else headers
        return await self.app.http.post(
            f"/api/v1/subscriptions/{subscription_id}/charges",
            json={"amount_rub": "100.00", "external_id": "tea-1"} if body is None else body,
            headers=sent,
        )

    async def charged(self, subscription_id: str) -> str:
        """A new charge that the bank took; its id."""
        response = await self.post(subscription_id)
        assert response.status_code == 201, response.text
        payment_id: str = response.json()["id"]
        return payment_id

    async def charge(self, subscription_id: str, *, key: str | None = None, ports: Ports | None = None) -> ChargeAnswer:
        """The same by the use case."""
        order = ChargeOrder(amount_rub="100.00", external_id="tea-1")
        return await create_charge(
            ports or self.ports, await self.caller(), subscription_id, key or str(uuid4()), lambda: order
        )

    async def together(self, *works: Awaitable[Any]) -> list[Any]:
        """Run the coroutines concurrently, advancing time while they wait for each other, and return what each returned
        or raised."""
        everyone = asyncio.gather(*works, return_exceptions=True)
        while not everyone.done():
            await asyncio.wait({everyone}, timeout=0.01)
            await self.clock.advance(0.02)
        return await everyone

    async def next(self, subscription_id: str, result: str | None = None, *, executed: bool = True) -> None:
        """Set the bank's answer to the next charge. `executed` matters only for results that the sandbox cannot
        produce."""
        await self.bank().simulate_next_charge(await self.binding(subscription_id), result or "paid", executed=executed)

    async def end(self, payment_id: str, status: ChargeStatus, failure: str | None = None, **more: Any) -> None:
        """Let the bank end a charge with this status, and handle its notification."""
        simulation = ChargeSimulation(status=status, failure=failure, **more)
        for notification in await self.bank().simulate_charge(payment_id, simulation):
            await on_notification(self.ports, notification)

    async def subscription(self, subscription_id: str) -> Subscription:
        async with self.ports.storage.unit() as unit:
            found = await unit[Subscription].get(subscription_id)
        assert found is not None
        return found

    async def payments(self, subscription_id: str) -> list[Payment]:
        """Its charges, without the binding, the oldest first."""
        found = [
            each
            for each in await everything(self.ports, Payment)
            if each.subscription_id == subscription_id and each.is_charge
        ]
        return sorted(found, key=lambda each: (each.created_at, each.id))

    async def payment(self, payment_id: str) -> Payment:
        async with self.ports.storage.unit() as unit:
            found = await unit[Payment].get(payment_id)
        assert found is not None
        return found

    async def statuses(self, subscription_id: str) -> list[str]:
        return [payment.status.value for payment in await self.payments(subscription_id)]

    async def window(self, subscription_id: str) -> dict[str, Any]:
        """GET /subscriptions/{id}/charge-window."""
        response = await self.app.get(f"/subscriptions/{subscription_id}/charge-window")
        assert response.status_code == 200, response.text
        shown: dict[str, Any] = response.json()
        return shown

    async def events(self, object_id: str) -> list[dict[str, Any]]:
        """The events of an object, of a subscription those after its binding."""
        return (await self.app.events(object_id))[self.told_before.get(object_id, 0) :]

    async def told(self, object_id: str) -> list[str]:
        """Return the events of the object, in order: each a status, or the abandonment of a period."""
        return [
            "exhausted" if event["event"] == "subscription.charge_exhausted" else event["status"]
            for event in await self.events(object_id)
        ]

    async def debits(self) -> Counter[str]:
        """Count the bank's charges by period. Only charges count that took money and were not reversed, or may still
        take it."""
        of_period = {payment.id: payment.period_ref for payment in await everything(self.ports, Payment)}
        found: Counter[str] = Counter()
        for note in await noted(self.ports):
            if note.provider.startswith("simulator-") and b'"charge":{' in note.body:
                entry = msgspec.json.decode(note.body, type=InvoiceEntry)
                gone = sum(refund.amount_kopecks for refund in entry.refunds if refund.keeps_money)
                if entry.status != "failed" and gone < entry.amount_kopecks:
                    found[of_period.get(entry.operation) or f"? {entry.operation}"] += 1
                assert len(entry.transfers) <= 1
        return found


@asynccontextmanager
async def open_charge_app(**more: Any) -> AsyncIterator[ChargeApp]:
    """An app with subscriptions; at the end the tallies and the books are held against the objects, and no period was
    charged twice at the bank."""
    async with open_test_app(**more) as app:
        opened = ChargeApp(app)
        yield opened
        assert await check_tallies(app.ports) == []
        assert not [ref for ref, number in (await opened.debits()).items() if number > 1]


async def due_subscription(charges: ChargeApp, interval: Interval = Interval.MONTH, count: int = 1, **more: Any) -> str:
    """A subscription whose second period has just opened; its id."""
    subscription_id = await charges.subscribed(interval, count, **more)
    await charges.open_next(subscription_id)
    return subscription_id
