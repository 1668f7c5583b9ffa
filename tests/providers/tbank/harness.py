"""The adapter over the fake, for the suites that are shipped and for tests of our own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from cambist.adapters.bank.tbank.adapter import TBank
from cambist.adapters.bank.tbank.orders import NAME
from cambist.adapters.bank.tbank.references import order_id
from cambist.adapters.bank.tbank.refund_book import QUIET
from cambist.adapters.bank.tbank.terminals import Terminal
from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.conformance import Asked, BankHarness
from cambist.ports import InboundNotification, Invoice, ProviderNote
from cambist.ports.receipts import ReceiptNeed
from cambist.ports.storage import Storage
from cambist.ports.tools import Tools
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.tbank.books import Payment
from tests.providers.tbank.fake import PASSWORD, READS, TERMINAL, TBankFake

WRITES = ("Init", "Cancel", "AddAccountQr", "ChargeQr")


class TBankHarness(BankHarness):
    """The terminal of the fake."""

    secrets = (PASSWORD,)
    asks_to_revoke = False
    pays_twice = False

    def __init__(self, clock: VirtualClock, fake: TBankFake) -> None:
        self.receipts = ReceiptNeed.REQUIRED if fake.wants_receipts else ReceiptNeed.NONE
        self.storage = MemoryStorage(clock)
        self.tools = tools_of(self.storage, clock)
        self.clock = self.virtual = clock
        self.provider = self.fake = fake
        self.books = fake.books
        self.banks: list[TBank] = []
        self.tbank = self.another()
        self.bank = self.tbank

    def another(self) -> TBank:
        terminal = Terminal(key=TERMINAL, password=PASSWORD)
        made = TBank(self.tools, terminal=terminal, base_url=self.fake.url, mandates=True, receipts=self.receipts)
        self.banks.append(made)
        return made

    def is_write(self, request: ProviderRequest) -> bool:
        """All calls are POSTs. The Init of a charge moves nothing: ChargeQr does."""
        method = request.path.rpartition("/")[2]
        return method in WRITES and not (b'"Recurrent"' in request.body and b'"RedirectDueDate"' not in request.body)

    async def spoil_reads(self, fault: ProviderFault) -> None:
        self.fake.next(fault, matching=lambda request: request.path.rpartition("/")[2] in READS, always=True)

    def payment(self, operation: str) -> Payment:
        return self.fake.payment(order_id(operation))

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        self.books.pay(self.payment(operation), kopecks)

    async def notification(self, operation: str) -> InboundNotification:
        return told(self.fake.notification(self.payment(operation)))

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def pass_time(self, span: timedelta) -> None:
        await self.virtual.advance(span.total_seconds())

    async def outlast_lost_calls(self) -> None:
        await self.pass_time(QUIET)

    def forge(self, notification: InboundNotification, operation: str, other: str) -> InboundNotification:
        body = notification.body.replace(order_id(operation).encode(), order_id(other).encode())
        return told(body)

    async def asked(self, operation: str) -> Asked:
        """A refund has no order of its own: the bank only knows the sum of each."""
        if not self._has_order(operation):
            return await super().asked(operation)
        payment = self.payment(operation)
        return Asked(
            amount_kopecks=payment.amount,
            order=payment.order_id,
            purpose=payment.description,
            expires_at=payment.due,
        )

    async def decline(self, operation: str, invoice: Invoice) -> None:
        """Until the deadline the payer may try again."""
        self.books.reject(self.payment(operation))
        await self.lapse(operation, invoice)

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        due = self.payment(operation).due
        await self.pass_time(due - self.clock.now() + timedelta(seconds=1))

    async def say_unknown_status(self, operation: str) -> None:
        if not self._has_order(operation):
            await super().say_unknown_status(operation)
        self.payment(operation).status = "UNDER_REVIEW"

    async def hold_next_refund(self) -> None:
        self.books.refunds_later = True

    async def fail_next_refund(self) -> None:
        self.books.refunds_later = True
        self.books.fails_refunds.append("I05043")

    async def finish_refunds(self) -> None:
        for payment in self.books.payments.values():
            self.books.finish_refund(payment)

    async def confirm(self, operation: str) -> None:
        payment = self._bound(operation)
        if payment is not None:
            self.books.pay(payment)
        self.books.confirm(await self.key(operation))

    async def refuse(self, operation: str) -> None:
        self.books.accounts[await self.key(operation)].status = "INACTIVE"
        payment = self._bound(operation)
        if payment is not None:
            self.books.reject(payment)

    async def lose_mandate(self, operation: str) -> None:
        self.books.accounts[await self.key(operation)].status = "INACTIVE"

    async def restore_mandate(self, operation: str) -> None:
        self.books.accounts[await self.key(operation)].status = "ACTIVE"

    async def hold_next_charge(self) -> None:
        """Every charge waits for `finish_charges` here."""

    async def finish_charges(self) -> None:
        for payment in self.books.payments.values():
            self.books.finish_charge(payment)

    async def fail_next_charge(self) -> None:
        self.books.fails_charges.append("5060")

    def _has_order(self, operation: str) -> bool:
        return bool(self.books.of_order(TERMINAL, order_id(operation)))

    def _bound(self, operation: str) -> Payment | None:
        found = self.books.of_order(TERMINAL, order_id(operation))
        return found[0] if found else None

    async def key(self, operation: str) -> int:
        """The RequestKey of a binding."""
        order = await self.tbank._orders.notes.read(operation)
        assert order is not None
        assert order.request_key is not None
        return int(order.request_key)


def tools_of(storage: Storage, clock: VirtualClock) -> Tools:
    """Return the tools that an app gives an adapter."""
    return Tools(
        storage=storage,
        clock=clock,
        ids=SeededIds(),
        base_url="https://pay.example",
        mode="live",
        files=None,  # type: ignore[arg-type]  # a bank reads none
    )


def told(body: bytes) -> InboundNotification:
    return InboundNotification(
        headers={"content-type": "application/json"}, body=body, query={}, address="91.194.226.12"
    )


@asynccontextmanager
async def open_harness(*, receipts: bool = False) -> AsyncIterator[TBankHarness]:
    """A harness in memory, closed at the end. `receipts`: a cash register is connected."""
    clock = VirtualClock()
    async with TBankFake(clock) as fake:
        fake.wants_receipts = receipts
        harness = TBankHarness(clock, fake)
        yield harness
        for bank in harness.banks:
            await bank.close()
