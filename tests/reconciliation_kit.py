"""Days at a live bank, with the events that reconciliation may see on a day."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Script
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.exchanges.exchanges import Exchange, invoice_operation
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.reconciliation.reconciliation import Reconciliation, ReconciliationStatus
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.subscriptions.orders import SubscriptionOrder
from cambist.core.domain.subscriptions.subscriptions import Subscription
from cambist.core.usecases.exchanges.creation import create_exchange, create_rub_usdt
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.reconciliation.discrepancies import list_differences
from cambist.core.usecases.reconciliation.nightly import COMPARE
from cambist.core.usecases.reconciliation.reconciliation import reconcile
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.refunds.refunds import create_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.core.usecases.subscriptions.subscriptions import create_subscription
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import BankCapabilities, InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.jobs import Job
from cambist.ports.mandates import MandateEvent, MandateSimulation
from cambist.ports.reporting import ReportedEntry, ReportedKind, ReportedState
from tests.exchange_app import BANK_ID, PHONE, WALLET
from tests.invariants import everything
from tests.refund_app import RefundApp, open_refund_app
from tests.restored import App

BANK = "simulator-live"
Make = Callable[[App], Awaitable[set[str]]]
"""Makes something happen, and returns the ids of the day's records of it."""


class Day:
    """A Moscow day at a live bank, from its noon on."""

    def __init__(self, live: RefundApp) -> None:
        self.live = live
        self.ports = live.ports
        self.clock = live.app.clock
        self.day = self.clock.now().astimezone(MOSCOW).date() + timedelta(days=1)

    async def at(self, hours: float, day: int = 0) -> None:
        """Set the clock to so many hours after the day's midnight in Moscow."""
        midnight = datetime.combine(self.day + timedelta(days=day), datetime.min.time(), MOSCOW)
        await self.clock.advance((midnight + timedelta(hours=hours) - self.clock.now()).total_seconds())

    @property
    def told(self) -> Any:
        """Entries in which the bank's list differs from the bank's own books."""
        return self.live.app.script.entries

    async def over(self) -> None:
        await self.at(4, day=1)

    async def compared(self, day: date | None = None) -> Reconciliation:
        [one] = await reconcile(self.ports, day or self.day, BANK)
        assert one.result is not None
        return one.result

    async def found(self) -> list[tuple[str, str | None]]:
        """Open differences: in what, and about which object of ours."""
        return [(each.difference.value, each.object_id) for each in await list_differences(self.ports)]


@asynccontextmanager
async def open_day() -> AsyncIterator[Day]:
    """An app whose merchant refunds without anybody's approval, at noon."""
    async with open_refund_app() as live:
        made = Day(live)
        await live.set(refund_approval="auto")
        await made.at(12)
        yield made


class RealBank(SimulatedBank):
    """Says that it is no simulator."""

    @property
    def capabilities(self) -> BankCapabilities:
        return msgspec.structs.replace(super().capabilities, simulated=False)


class RealApp:
    """An app with a bank of live mode that is no simulator, as far as it says."""

    def __init__(self, live: RefundApp, bank: SimulatedBank, script: Script) -> None:
        self.live = live
        self.ports = live.ports
        self.bank = bank
        self.script = script

    async def paid(self) -> str:
        """A payment that was paid; its id."""
        made = await self.live.app.payment((await self.live.app.create(mode="live")).json()["id"])
        paid = Simulation(status=InvoiceStatus.PAID)
        for notification in await self.bank.simulate(made.id, paid, reference=made.bank_reference):
            await on_notification(self.ports, notification)
        return made.id

    async def jobs(self) -> list[Job]:
        return [each for each in await everything(self.ports, Job) if each.kind == COMPARE.kind]


@asynccontextmanager
async def open_real_app() -> AsyncIterator[RealApp]:
    script, clock = Script(), VirtualClock()
    bank = RealBank("real", MemoryStorage(clock), clock, SeededIds(), script=script)
    async with open_refund_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as live:
        bank._clock = live.app.clock
        await start_recurring_jobs(live.ports)
        yield RealApp(live, bank, script)


def entry(name: str, moment: datetime, **fields: Any) -> ReportedEntry:
    """A payment in the bank's list, of no operation unless one is given."""
    return ReportedEntry(
        **{
            "id": name,
            "kind": ReportedKind.PAYMENT,
            "state": ReportedState.DONE,
            "moment": moment,
            "amount_kopecks": 100_00,
            **fields,
        }
    )


async def at(day: Day, hours: float) -> datetime:
    """So many hours after the day's midnight in Moscow."""
    return datetime.combine(day.day, datetime.min.time(), MOSCOW) + timedelta(hours=hours)


async def at_noon(app: App) -> date:
    """The next noon in Moscow, and its day."""
    now = app.world.clock.now().astimezone(MOSCOW)
    noon = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), MOSCOW) + timedelta(hours=12)
    await app.work((noon - now).total_seconds())
    return noon.date()


async def compared(app: App, day: date) -> ReconciliationStatus:
    end = datetime.combine(day, datetime.min.time(), MOSCOW) + timedelta(hours=28)
    await app.work(max(0.0, (end - app.world.clock.now()).total_seconds()))
    [one] = await reconcile(app.ports, day, "bank")
    assert one.result is not None
    return one.result.status


async def paid(app: App, *, waits: float = 1) -> Payment:
    key = app.ports.ids.uuid()
    made = await create_payment(app.ports, await app.caller(), key, lambda: PaymentOrder(amount_rub="1000.00"))
    await app.pay(made.resource)
    await app.work(waits)
    return made.resource


async def with_payment_and_refund(app: App) -> set[str]:
    payment = await paid(app)
    order = RefundOrder(payment_id=payment.id, amount_rub="100.00")
    made = await create_refund(app.ports, await app.caller(), app.ports.ids.uuid(), lambda: order)
    await app.work(60)
    return {payment.id, made.resource.id}


async def with_money_sent_back(app: App) -> set[str]:
    payment = await paid(app)
    await app.pay(payment, again=True)
    [money] = [each for each in await list_suspense(app.ports) if each.payment_id == payment.id]
    await return_suspense(app.ports, money.id)
    await app.work(60)
    return {payment.id, money.id}


async def with_binding(app: App, charge: str) -> set[str]:
    """The payer confirms; `charge`: `first`, or `none`."""
    caller = await app.caller()
    order = SubscriptionOrder(
        amount_rub="100.00", interval="month", interval_count=1, description="Tea", binding_charge=charge
    )
    made = await create_subscription(app.ports, caller, app.ports.ids.uuid(), lambda: order, lambda: None)
    await open_binding(app.ports, made.resource.id)
    found = await app.ports.storage.get(Subscription, made.resource.id)
    assert found is not None
    assert found.binding is not None
    simulation = MandateSimulation(event=MandateEvent.CONFIRM)
    for notification in await app.world.bank.simulate_mandate(found.binding.operation, simulation):
        await on_notification(app.ports, notification)
    await app.work(60)
    return {each.id for each in await everything(app.ports, Payment)}


async def with_first_charge(app: App) -> set[str]:
    return await with_binding(app, "first")


async def with_exchange_of_usdt(app: App) -> set[str]:
    """The client gets RUB in one part or more."""
    await app.know_client("+79990000002")
    order = ExchangeOrder(amount_usdt="100", client_phone="+79990000002", client_bank_id=BANK_ID)
    key = app.ports.ids.uuid()
    made = (await create_exchange(app.ports, await app.caller(), key, lambda: order)).resource
    assert made.crypto_deposit_address is not None
    await app.world.deposits.simulate_deposit(made.crypto_deposit_address, made.amount_usdt.units)
    await app.work(300)
    present = await app.ports.storage.get(Exchange, made.id)
    assert present is not None
    assert present.status == "completed"
    return {made.id}


async def with_exchange_of_rub(app: App) -> set[str]:
    """The client pays late; it goes back."""
    await app.know_client(PHONE)
    made = await create_rub_usdt(
        app.ports, app.world.account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET
    )
    await app.work(1000)
    for notification in await app.world.bank.simulate(
        invoice_operation(made.id), Simulation(status=InvoiceStatus.PAID)
    ):
        await on_notification(app.ports, notification)
    [unapplied] = await return_money(app.ports, made.id)
    await app.work(60)
    return {made.id, unapplied.id}


async def with_two_exchanges_of_rub(app: App) -> set[str]:
    return await with_exchange_of_rub(app) | await with_exchange_of_rub(app)


async def with_late_money(app: App) -> set[str]:
    """The payment has expired long ago."""
    key = app.ports.ids.uuid()
    order = PaymentOrder(amount_rub="700.00")
    made = (await create_payment(app.ports, await app.caller(), key, lambda: order)).resource
    await app.work(6.5 * 3600)
    await app.pay(made)
    await app.work(60)
    [money] = [each for each in await list_suspense(app.ports) if each.payment_id == made.id]
    assert money.reason == "too_late"
    return {made.id}


KINDS = (
    with_late_money,
    with_payment_and_refund,
    with_money_sent_back,
    with_first_charge,
    with_two_exchanges_of_rub,
    with_exchange_of_usdt,
)
