"""What the shipped contract asks of whoever runs it: the adapter, and a hand on its provider.

In a project of yours, beside pyproject.toml (own_package shows a whole one):

    pytest -o asyncio_mode=auto --pyargs cambist.conformance.bank
"""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import cambist
from cambist.conformance import BankBench
from cambist.ports import InboundNotice, Invoice, ProviderNote
from examples.own_bank.bank import NAME, ExampleBank
from examples.own_bank.provider import Provider

TOKEN = "a-token-that-must-not-show"  # noqa: S105 - of a fake


class ExampleBench(BankBench):
    """The adapter over the fake provider."""

    secrets = (TOKEN,)

    def __init__(self, tools: cambist.Tools) -> None:
        self.tools = tools
        self.provider = Provider()
        self.bank = self.made = ExampleBank(tools, "https://bank.example", TOKEN, transport=self.provider)

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:  # noqa: ARG002 - the bench's signature
        self.provider.pay(operation, kopecks, self.clock.now().isoformat())

    async def notice(self, operation: str) -> InboundNotice:
        body, headers = self.provider.notice(operation, TOKEN)
        lower = {name.lower(): value for name, value in headers.items()}
        return InboundNotice(headers=lower, body=body, query={}, address="203.0.113.5")

    async def lose_next_answer(self, *, done: bool) -> None:
        self.provider.lose = done

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def pass_time(self, span: timedelta) -> None:
        """This provider keeps its keys for ever."""

    async def refuse_credentials(self) -> None:
        self.provider.revoked = True

    async def be_away(self) -> None:
        self.provider.away = True


@pytest.fixture
async def bank_bench() -> AsyncIterator[BankBench]:
    async with cambist.open() as service:
        bench = ExampleBench(service.tools())
        yield bench
        await bench.made.close()
