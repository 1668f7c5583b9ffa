"""The bank of sunrise.py keeps the whole contract, so a failure of a planted bug is the bug's. So do banks that differ
in what the contract leaves open, and harnesses that play little: the suites raise no false alarm."""

from collections.abc import AsyncIterator
from datetime import timedelta, timezone
from typing import Any

import msgspec
import pytest

import cambist
from cambist.conformance import BankHarness
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.ports import (
    BankCapabilities,
    Invoice,
    InvoiceKind,
    InvoiceRequest,
    InvoiceStatus,
    RefundState,
    RefundStatus,
    Transfer,
    Unavailable,
)
from tests.contracts.sunrise import Bill, Came, Sunrise, SunriseBank, SunriseHarness
from tests.providers.bank_suites import suites


class CautiousBank(SunriseBank):
    """Answers correctly in every other way that the contract allows."""

    capabilities = BankCapabilities(min_kopecks=100_00, max_kopecks=1_000_000_00)

    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        purpose = f"Shop 1: {request.purpose}"[:140]
        return {**super().bill(request, order), "note": purpose, "till": None, "back": request.return_url}

    def invoice(self, bill: Bill) -> Invoice:
        return Invoice(reference=f"shop/{bill.id}", kind=InvoiceKind.PAGE, link=bill.qr)

    def transfer(self, came: Came, bill: Bill) -> Transfer:
        at = came.at.astimezone(timezone(timedelta(hours=3)))
        transfer = msgspec.structs.replace(super().transfer(came, bill), id=f"{bill.id}-{came.no}", at=at)
        return msgspec.structs.replace(transfer, fee_kopecks=1, payer_name="Ivan P.")

    def status(self, word: str) -> InvoiceStatus:
        if word == "declined":
            return InvoiceStatus.CANCELLED
        if word == "under_review":
            raise Unavailable("sunrise shows a status that is new to us")
        return super().status(word)

    def refund_status(self, word: str) -> RefundStatus:
        if word == "under_review":
            raise Unavailable("sunrise shows a status that is new to us")
        return super().refund_status(word)

    async def read(self, path: str, kind: type[Any]) -> Any:
        return await super().read(path.replace("shop/", ""), kind)

    def back(self, request: Any, number: str) -> dict[str, Any]:
        short = msgspec.structs.replace(
            request,
            reference=request.reference.removeprefix("shop/"),
            transfer=request.transfer and request.transfer.rpartition("-")[2],
        )
        return super().back(short, number)

    async def refund(self, request: Any) -> RefundState:
        """The first answer is never the last."""
        await super().refund(request)
        return RefundState(status=RefundStatus.PROCESSING, check_after=60.0)


class CautiousHarness(SunriseHarness):
    """The harness of CautiousBank."""

    async def asked(self, operation: str) -> Any:
        asked = await super().asked(operation)
        bill = self.books.orders.get(str(asked.order))
        return asked if bill is None else msgspec.structs.replace(asked, return_url=bill.get("back"))

    def _bill(self, invoice: Invoice) -> dict[str, Any]:
        return super()._bill(msgspec.structs.replace(invoice, reference=invoice.reference.removeprefix("shop/")))


class BareHarness(CautiousHarness):
    """Plays payers alone."""

    pays_twice = pays_other_amounts = limits_calls = False
    asked, decline, lapse = BankHarness.asked, BankHarness.decline, BankHarness.lapse
    say_unknown_status, notification = BankHarness.say_unknown_status, BankHarness.notification
    hold_next_refund, fail_next_refund = BankHarness.hold_next_refund, BankHarness.fail_next_refund
    take_back, reverse_refund = BankHarness.take_back, BankHarness.reverse_refund
    forget, skew, pass_time = BankHarness.forget, BankHarness.skew, BankHarness.pass_time


async def _opened(kind: type[SunriseHarness], adapter: type[SunriseBank]) -> AsyncIterator[BankHarness]:
    async with cambist.open() as service, Sunrise() as provider:
        harness = kind(service.tools(), provider, adapter)
        yield harness
        for bank in harness.banks:
            await bank.close()


@pytest.fixture
async def bank_harness() -> AsyncIterator[BankHarness]:
    async for harness in _opened(SunriseHarness, SunriseBank):
        yield harness


globals().update(suites("invoices", "invoices at faults", "refunds at faults"))


@pytest.mark.parametrize("bank_harness", [CautiousHarness, BareHarness], indirect=True)
class TestNoFalseAlarm:
    @pytest.fixture
    async def bank_harness(self, request: pytest.FixtureRequest) -> AsyncIterator[BankHarness]:
        async for harness in _opened(request.param, CautiousBank):
            yield harness

    class TestRequests(of_banks.TestRequests): ...

    class TestInvoices(of_banks.TestInvoices): ...

    class TestPayments(of_banks.TestPayments): ...

    class TestRefunds(of_banks.TestRefunds): ...

    class TestExtremes(of_banks.TestExtremes): ...

    class TestNotifications(of_banks.TestNotifications): ...
