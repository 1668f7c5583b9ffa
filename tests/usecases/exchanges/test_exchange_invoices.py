"""Invoices of exchanges: they end with the bank's, and are closed once the exchange is over (docs/adapters.md "Fields
of an invoice")."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange
from cambist.frontends.app.compose import Adapters, FurtherBank
from cambist.ports.bank import BankCapabilities, Invoice, InvoiceRequest, InvoiceStatus
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from tests.exchange_app import ExchangeApp, open_exchange_app

NAME = "simulator-test"
MINUTE = 60


class Closing:
    """An app whose bank closes invoices, with the references that it had to close."""

    def __init__(self, app: ExchangeApp) -> None:
        self.app = app
        self.closed: list[str] = []
        self.fault: Fault | None = None
        self.ends_after: timedelta | None = None
        bank: Any = app.ports.banks.named(NAME)._adapter  # type: ignore[attr-defined]
        close, create = bank.cancel_invoice, bank.create_invoice

        async def cancel_invoice(reference: str) -> None:
            self.closed.append(reference)
            if self.fault is not None:
                raise self.fault
            await close(reference)

        async def create_invoice(request: InvoiceRequest) -> Invoice:
            # As a bank whose invoices live for an hour, whatever was wished.
            longer = msgspec.structs.replace(request, expires_at=request.expires_at + timedelta(minutes=45))
            made: Invoice = await create(longer)
            if self.ends_after is None:
                return made
            return msgspec.structs.replace(made, expires_at=app.app.clock.now() + self.ends_after)

        bank.cancel_invoice, bank.create_invoice = cancel_invoice, create_invoice

    async def status(self, exchange_id: str) -> str:
        return (await self.app.exchange(exchange_id)).status

    async def at_bank(self, reference: str | None) -> InvoiceStatus:
        return (await self.app.ports.banks.named(NAME).invoice_state(reference or "")).status


@pytest.fixture
async def closing() -> AsyncIterator[Closing]:
    bank = FurtherBank(name=NAME, capabilities=BankCapabilities(simulated=True, cancels_invoices=True))
    async with open_exchange_app(adapters=Adapters(banks={Mode.TEST: []}), further_banks=[bank]) as opened:
        yield Closing(opened)


async def test_invoice_of_an_expired_exchange_is_closed_once(closing: Closing) -> None:
    made = await closing.app.bought()
    await closing.app.app.work(15 * MINUTE - 1)
    assert closing.closed == []
    await closing.app.app.work(7 * 3600)
    assert (await closing.status(made.id), closing.closed) == ("expired", [made.invoice_reference])
    assert await closing.at_bank(made.invoice_reference) is InvoiceStatus.CANCELLED


async def test_invoice_of_a_cancelled_exchange_is_closed(closing: Closing) -> None:
    made = await closing.app.bought()
    await cancel_any_exchange(closing.app.ports, made.id)
    await closing.app.app.work(5 * MINUTE)
    assert (await closing.status(made.id), closing.closed) == ("cancelled", [made.invoice_reference])


@pytest.mark.parametrize("fault", [Unavailable("away"), OutcomeUnknown("cut"), Refused("no", reason="state")], ids=str)
async def test_failed_closing_of_an_invoice_is_repeated_at_a_later_poll(closing: Closing, fault: Fault) -> None:
    closing.fault = fault
    made = await closing.app.bought()
    await closing.app.app.work(15 * MINUTE + 1)
    assert (await closing.status(made.id), closing.closed) == ("expired", [made.invoice_reference])
    closing.fault = None
    await closing.app.app.work(3600)
    assert closing.closed == [made.invoice_reference] * 2


async def test_paid_invoice_is_not_closed(closing: Closing) -> None:
    made = await closing.app.bought()
    await closing.app.pay(made.id)
    await closing.app.app.work(7 * 3600)
    assert (await closing.status(made.id), closing.closed) == ("completed", [])


@pytest.mark.parametrize(("minutes", "lives"), [(5, 5), (60, 15)])
async def test_an_exchange_ends_with_its_invoice_where_that_ends_earlier(
    closing: Closing, minutes: int, lives: int
) -> None:
    closing.ends_after = timedelta(minutes=minutes)
    made = await closing.app.bought()
    assert made.expires_at - closing.app.app.clock.now() == timedelta(minutes=lives)
    await closing.app.app.work(lives * MINUTE - 1)
    assert await closing.status(made.id) == "awaiting_rub"
    await closing.app.app.work(1)
    assert await closing.status(made.id) == "expired"
