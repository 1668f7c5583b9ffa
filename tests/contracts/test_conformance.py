"""Our own bank and notifier keep the contract that we ship for adapters of others (frontends/conformance)."""

from collections.abc import AsyncIterator

import pytest

from cambist.adapters.bank.script import Ending, Twist
from cambist.adapters.clock import SystemClock
from cambist.adapters.notifier.http import HttpNotifier
from cambist.frontends.conformance import bank as of_banks
from cambist.frontends.conformance import notifier as of_notifiers
from cambist.frontends.conformance.benches import BankBench, NotifierBench
from cambist.ports.bank import Invoice, InvoiceStatus, Pretence
from tests.contracts.bank_kit import World
from tests.receivers import Receiver

_TURNS = 3
"""How many calls find a bank away: more than any test makes."""


class SimulatedBench(BankBench):
    """The simulated bank, which plays everything."""

    def __init__(self) -> None:
        self.world = World()
        self.clock = self.world.clock
        self.simulated = self.world.bank()
        self.bank = self.simulated

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        await self.simulated.pretend(operation, Pretence(status=InvoiceStatus.PAID, amount_kopecks=kopecks))

    async def lose_next_answer(self, *, done: bool) -> None:
        twist = Twist(ending=Ending.UNKNOWN_DONE if done else Ending.UNKNOWN_NOT_DONE)
        # A test that makes a refund next has made an invoice before.
        refunds = await self.bank.find_invoice(of_banks.OPERATION) is not None
        (self.world.script.refund if refunds else self.world.script.create).append(twist)

    async def be_away(self) -> None:
        for calls in (self.world.script.create, self.world.script.find):
            calls.extend(Twist(ending=Ending.UNAVAILABLE) for _ in range(_TURNS))


class PostedBench(NotifierBench):
    """The HTTP notifier and a receiver on a real socket."""

    def __init__(self, receiver: Receiver, notifier: HttpNotifier) -> None:
        self.receiver = receiver
        self.notifier = notifier
        self.url = receiver.url

    async def received(self) -> list[bytes]:
        return [request.body for request in self.receiver.requests]

    async def answer(self, status: int) -> None:
        self.receiver.answer_with(status)

    async def be_away(self) -> None:
        await self.receiver.__aexit__(None)


class TestSimulatedBank:
    @pytest.fixture
    def bench(self) -> BankBench:
        return SimulatedBench()

    class TestInvoices(of_banks.TestInvoices): ...

    class TestRefunds(of_banks.TestRefunds): ...

    class TestWhatItSays(of_banks.TestWhatItSays): ...


class TestHttpNotifier(of_notifiers.TestNotifier):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[NotifierBench]:
        async with Receiver() as receiver:
            notifier = HttpNotifier(SystemClock())
            yield PostedBench(receiver, notifier)
            await notifier.close()
