"""A backup of any moment is safe: each story runs to its end, the database is restored to the state after one of its
commits, and the story runs again. Every payment out happened once (ARCHITECTURE.md "Three outcomes")."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import invoice_operation
from cambist.core.domain.exchanges.orders import ExchangeOrder
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.refunds.orders import RefundOrder
from cambist.core.domain.settlement.withdrawals import WithdrawalStatus
from cambist.core.domain.subscriptions.charges import ChargeOrder
from cambist.core.usecases.exchanges.creation import create_exchange, create_rub_usdt
from cambist.core.usecases.exchanges.exchanges import cancel_exchange
from cambist.core.usecases.exchanges.returns import list_suspended, return_money
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.refunds.refunds import create_refund
from cambist.core.usecases.refunds.suspense_return import return_suspense
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.core.usecases.subscriptions.charges import create_charge
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.storage import Unit
from tests.exchange_app import BANK_ID, PHONE
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.race_barriers import OtherCommit
from tests.restored import App, Copy, World

KEY = str(UUID(int=7))
DAY = 24 * 3600
LEASES_ARE_OVER = 90
"""Seconds after which no job of the process before is held."""


class Copying:
    """A storage that is copied after each commit."""

    def __init__(self, storage: Any, world: World) -> None:
        self._storage = storage
        self._world = world
        self.copies: list[Copy] = [world.copy()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Unit]:
        async with self._storage.unit() as unit:

            async def commit() -> None:
                await unit.commit()
                self.copies.append(self._world.copy())

            yield OtherCommit(unit, commit)


class Story:
    """A story: `begin` runs before every copy, `tell` may run again, and `went` returns all money that left the
    system."""

    async def begin(self, app: App) -> None:
        raise NotImplementedError

    async def tell(self, app: App) -> None:
        raise NotImplementedError

    async def went(self, world: World) -> int:
        raise NotImplementedError


async def paid(app: App) -> str:
    """A payment that was paid, two days ago by now."""
    order = PaymentOrder(amount_rub="1000.00")
    made = await create_payment(app.ports, await app.caller(), app.ports.ids.uuid(), lambda: order)
    await app.pay(made.resource)
    await app.world.clock.advance(2 * DAY)
    return made.resource.id


class ARefund(Story):
    async def begin(self, app: App) -> None:
        self.payment_id = await paid(app)

    async def tell(self, app: App) -> None:
        order = RefundOrder(payment_id=self.payment_id, amount_rub="100.00")
        await create_refund(app.ports, await app.caller(), KEY, lambda: order)
        await app.work(60)

    async def went(self, world: World) -> int:
        return len(await world.refunded())


class ASettlement(Story):
    async def begin(self, app: App) -> None:
        await paid(app)

    async def tell(self, app: App) -> None:
        await settle_now(app.ports, Mode.LIVE)
        await app.work(60)
        assert [each.status for each in await app.withdrawals()] == [WithdrawalStatus.COMPLETED]

    async def went(self, world: World) -> int:
        return len(await world.paid_out())


class ACharge(Story):
    async def begin(self, app: App) -> None:
        self.subscription_id = await app.bound()

    async def tell(self, app: App) -> None:
        # A repeat waits for a request that holds the key, and nothing advances the clock in this test.
        await app.work(60)
        order = ChargeOrder(amount_rub="100.00")
        await create_charge(app.ports, await app.caller(), self.subscription_id, KEY, lambda: order)
        await app.work(60)

    async def went(self, world: World) -> int:
        return len(await world.debited())


class AnExchangeOfUsdt(Story):
    async def begin(self, app: App) -> None:
        await app.know_client(PHONE)

    async def tell(self, app: App) -> None:
        present = await app.exchanges()
        if not present or not present[0].is_final:
            order = ExchangeOrder(amount_usdt="100", client_phone=PHONE, client_bank_id=BANK_ID)
            made = (await create_exchange(app.ports, await app.caller(), KEY, lambda: order)).resource
            address = made.crypto_deposit_address or ""
            if not await app.world.deposits.deposits(address):
                await app.world.deposits.simulate_deposit(address, made.amount_usdt.units)
        await app.work(120)
        assert [each.status for each in await app.exchanges()] == ["completed"]

    async def went(self, world: World) -> int:
        return len(await world.remitted())


class AnExchangeOfRub(Story):
    """An operator began it, so it has no key: it is there before."""

    async def begin(self, app: App) -> None:
        await app.know_client(PHONE)
        made = await create_rub_usdt(
            app.ports, app.world.account_id, Mode.LIVE, amount_rub="5000.00", client_phone=PHONE, address=WALLET
        )
        self.exchange_id = made.id

    async def tell(self, app: App) -> None:
        operation = invoice_operation(self.exchange_id)
        for notification in await app.world.bank.simulate(operation, Simulation(status=InvoiceStatus.PAID)):
            await on_notification(app.ports, notification)
        await app.work(600)
        assert [each.status for each in await app.exchanges()] == ["completed"]

    async def went(self, world: World) -> int:
        return len(await world.paid_out())


class AReturn(Story):
    """Return money in suspense to the payer who paid twice."""

    async def begin(self, app: App) -> None:
        order = PaymentOrder(amount_rub="1000.00")
        made = await create_payment(app.ports, await app.caller(), app.ports.ids.uuid(), lambda: order)
        await app.pay(made.resource)
        await app.pay(made.resource, again=True)

    async def tell(self, app: App) -> None:
        for money in await list_suspense(app.ports):
            await return_suspense(app.ports, money.id)
        await app.work(60)
        assert await list_suspense(app.ports) == []

    async def went(self, world: World) -> int:
        return len(await world.refunded())


class AReturnOfUsdt(Story):
    """A return of USDT that arrived for a cancelled exchange."""

    async def begin(self, app: App) -> None:
        await app.know_client(PHONE)
        caller = await app.caller()
        order = ExchangeOrder(amount_usdt="100", client_phone=PHONE, client_bank_id=BANK_ID)
        made = (await create_exchange(app.ports, caller, KEY, lambda: order)).resource
        self.exchange_id = made.id
        await cancel_exchange(app.ports, caller, made.id)
        await app.world.deposits.simulate_deposit(made.crypto_deposit_address or "", made.amount_usdt.units)
        await app.work(600)

    async def tell(self, app: App) -> None:
        if await list_suspended(app.ports):
            with suppress(Refusal):  # it is on its way by now
                await return_money(app.ports, self.exchange_id, OTHER_WALLET)
        await app.work(60)
        assert await list_suspended(app.ports) == []

    async def went(self, world: World) -> int:
        return len(await world.paid_out())


STORIES = (ARefund, ASettlement, ACharge, AnExchangeOfUsdt, AnExchangeOfRub, AReturn, AReturnOfUsdt)


@pytest.mark.parametrize("story_type", STORIES)
async def test_a_backup_of_any_moment_sends_nothing_twice(story_type: type[Story], tmp_path: Path) -> None:
    at, copies = 0, 1
    while at < copies:
        world, story = World("memory", tmp_path), story_type()
        async with world.opened() as app:
            await story.begin(app)
            copying = Copying(app.ports.storage, world)
            app.ports = msgspec.structs.replace(app.ports, storage=copying)
            await story.tell(app)
            await app.check()
            copies = len(copying.copies)
        assert await story.went(world) == 1
        await world.clock.advance(LEASES_ARE_OVER)
        async with world.opened(copying.copies[at]) as app:
            await story.tell(app)
            await app.check()
        assert await story.went(world) == 1, f"the backup after commit {at} of {copies - 1}"
        at += 1
    assert copies > 4
