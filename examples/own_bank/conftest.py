"""Harness for the shipped contract tests: the adapter, and control of its provider. In this folder:

pip install 'cambist[testing]' pytest-asyncio
pytest --pyargs cambist.conformance.bank
"""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

import cambist
from cambist.conformance import Asked, BankHarness
from cambist.ports import InboundNotification, Invoice, ProviderNote
from examples.own_bank.bank import NAME, ExampleBank
from examples.own_bank.provider import Provider

TOKEN = "a-token-that-must-not-show"  # noqa: S105 - of a fake


class ExampleHarness(BankHarness):
    """The adapter over the fake provider."""

    secrets = (TOKEN,)
    ahead = timedelta(0)
    """Offset of the provider's clock."""

    def __init__(self, tools: cambist.Tools, books: Provider) -> None:
        self.tools = tools
        self.provider = self.books = books
        self.banks: list[ExampleBank] = []
        self.bank = self.made = self.another()

    def another(self) -> ExampleBank:
        self.banks.append(ExampleBank(self.tools, self.books.url, TOKEN))
        return self.banks[-1]

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:  # noqa: ARG002 - the harness's signature
        self.books.pay(operation, kopecks, (self.clock.now() + self.ahead).isoformat())

    async def asked(self, operation: str) -> Asked:
        refund = self.books.refunds.get(operation)
        if refund is not None:
            return Asked(amount_kopecks=refund["amount"])
        invoice = self.books.invoices[operation]
        ends_at = invoice["expires_at"]
        return Asked(
            amount_kopecks=invoice["amount"],
            order=operation,
            purpose=invoice["purpose"],
            expires_at=ends_at and datetime.fromisoformat(ends_at),
        )

    async def decline(self, operation: str, invoice: Invoice) -> None:  # noqa: ARG002 - the harness's signature
        self.books.invoices[operation]["status"] = "declined"

    async def lapse(self, operation: str, invoice: Invoice) -> None:  # noqa: ARG002 - the harness's signature
        self.books.invoices[operation]["status"] = "expired"

    async def take_back(self, operation: str, invoice: Invoice) -> None:  # noqa: ARG002 - the harness's signature
        for transfer in self.books.invoices[operation]["transfers"]:
            transfer["charged_back"] = True

    async def reverse_refund(self, operation: str) -> None:
        self.books.refunds[operation]["status"] = "returned"

    async def say_unknown_status(self, operation: str) -> None:
        {**self.books.invoices, **self.books.refunds}[operation]["status"] = "under_review"

    async def hold_next_refund(self) -> None:
        self.books.next_refund = "in_progress"

    async def fail_next_refund(self) -> None:
        self.books.next_refund = "failed"

    async def finish_refunds(self) -> None:
        for refund in self.books.refunds.values():
            if refund["status"] == "in_progress":
                refund["status"] = "sent"

    async def notification(self, operation: str) -> InboundNotification:
        body, headers = self.books.notification(operation, TOKEN)
        lower = {name.lower(): value for name, value in headers.items()}
        return InboundNotification(headers=lower, body=body, query={}, address="203.0.113.5")

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def skew(self, span: timedelta) -> None:
        self.ahead = span

    async def pass_time(self, span: timedelta) -> None:
        """Do nothing: this provider keeps its keys for ever."""


@pytest.fixture
async def bank_harness() -> AsyncIterator[BankHarness]:
    async with cambist.open() as service, Provider() as books:
        harness = ExampleHarness(service.tools(), books)
        yield harness
        for bank in harness.banks:
            await bank.close()
