"""The adapter over the fake of Raiffeisenbank, and a hand on both."""

from datetime import timedelta
from typing import Any, cast

import cambist
from cambist.adapters.bank.raiffeisen.adapter import RaiffeisenBank
from cambist.adapters.bank.raiffeisen.merchants import NAME, Merchants, Pair, PayoutPair
from cambist.adapters.bank.raiffeisen.register import Register
from cambist.adapters.bank.raiffeisen.wire import number_of
from cambist.adapters.ids import SeededIds
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.conformance import Asked, BankHarness
from cambist.ports import (
    Clock,
    FileStore,
    InboundNotification,
    Invoice,
    ProviderNote,
    ReceiptNeed,
    short_operation,
    tiny_operation,
)
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import ACCOUNT, MERCHANT, PAYOUT_SECRET, SECRET


def new_tools(clock: Clock) -> cambist.Tools:
    """An empty storage in memory."""
    return cambist.Tools(
        storage=MemoryStorage(clock),
        clock=clock,
        ids=SeededIds(),
        base_url="https://pay.merchant.example",
        mode="live",
        files=cast("FileStore", None),  # no bank reads any
    )


REGISTER = Register(need=ReceiptNeed.OPTIONAL, email="receipts@shop.example")


def adapter(tools: cambist.Tools, books: Raiffeisen, register: Register = REGISTER) -> RaiffeisenBank:
    """An adapter that can do everything, for one merchant."""
    return RaiffeisenBank(
        tools,
        merchants=Merchants(Pair(MERCHANT, SECRET), {}),
        base_url=f"{books.url}/api",
        payouts=PayoutPair(ACCOUNT, PAYOUT_SECRET),
        subscriptions=True,
        register=register,
    )


def arrived(posted: tuple[bytes, dict[str, str]]) -> InboundNotification:
    """Build the notification that the adapter receives from a posted request."""
    body, headers = posted
    lower = {name.lower(): value for name, value in headers.items()}
    return InboundNotification(headers=lower, body=body, query={}, address="193.28.44.23")


class RaiffeisenHarness(BankHarness):
    """The bank reports no reason of a decline, no refusal of a subscription, and no temporary loss of a mandate."""

    secrets = (SECRET, PAYOUT_SECRET)
    bank_id = "bank100000000007"
    asks_to_revoke = False
    pays_twice = pays_other_amounts = False

    def __init__(self, tools: cambist.Tools, books: Raiffeisen, register: Register = REGISTER) -> None:
        self.tools = tools
        self.register = register
        self.provider = self.books = books
        self.banks: list[RaiffeisenBank] = []
        self.bank = self.another()

    def another(self) -> RaiffeisenBank:
        self.banks.append(adapter(self.tools, self.books, self.register))
        return self.banks[-1]

    async def lose_next_answer(self, *, done: bool) -> None:
        """Our HTTP client repeats a DELETE without an answer, so that answer is lost as well."""
        await super().lose_next_answer(done=done)
        lost = ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE
        self.books.next(lost, matching=self._is_sent_again)

    def _is_sent_again(self, request: ProviderRequest) -> bool:
        before = [(each.method, each.path) for each in self.books.requests][:-1]
        return request.method == "DELETE" and before[-1:] == [(request.method, request.path)]

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        qr = self._qr(invoice)
        assert qr["amount"] * 100 == kopecks, "a dynamic QR is paid with what it says"
        self.books.pay(qr["qrId"])

    async def notification(self, operation: str) -> InboundNotification:
        return arrived(self.books.notification(number_of(operation)))

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def skew(self, span: timedelta) -> None:
        self.books.now = lambda: self.clock.now() + span

    async def pass_time(self, span: timedelta) -> None:
        """Advance the clock; the bank forgets no numbers."""

    async def asked(self, operation: str) -> Asked:
        books, number = self.books, number_of(operation)
        if number in books.refunds:
            return Asked(amount_kopecks=round(books.refunds[number]["amount"] * 100), order=number)
        payout = books.payouts.get(tiny_operation(operation))
        if payout is not None:
            person = payout["payoutParams"]
            return Asked(
                amount_kopecks=round(payout["amount"] * 100),
                order=payout["id"],
                phone=f"+{person['phone']}",
                bank_id=self.bank_id if person["bankAlias"] == "RAIFFEISEN" else person["bankAlias"],
            )
        subscribed = books.subscriptions.get(short_operation(operation))
        if subscribed is not None:
            number = books.qrs[subscribed["qr"]["id"]]["order"]
        [qr] = [each for each in books.qrs.values() if each["order"] == number]
        return Asked(
            amount_kopecks=round(qr["amount"] * 100),
            order=number,
            purpose=books.charges.get(number, qr)["paymentDetails"],
            expires_at=qr["expires"],
        )

    async def decline(self, operation: str, invoice: Invoice) -> None:
        """Until the deadline the payer may try again."""
        self.books.decline(self._qr(invoice)["qrId"])
        await self.lapse(operation, invoice)

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        self._qr(invoice)["status"] = "EXPIRED"

    async def say_unknown_status(self, operation: str) -> None:
        number = number_of(operation)
        if number in self.books.refunds:
            self.books.refunds[number]["refundStatus"] = "UNDER_REVIEW"
        if number in self.books.charges:
            self.books.charges[number]["paymentStatus"] = "UNDER_REVIEW"
        payout = self.books.payouts.get(tiny_operation(operation))
        if payout is not None:
            payout["status"] = {**payout["status"], "value": "UNDER_REVIEW"}
        for qr in self.books.qrs.values():
            if qr["order"] == number:
                qr["payment"] = "UNDER_REVIEW"

    async def hold_next_refund(self) -> None:
        self.books.is_swift = False

    async def finish_refunds(self) -> None:
        self.books.finish()

    async def fail_next_refund(self) -> None:
        self.books.next_refund = "DECLINED"

    async def confirm(self, operation: str) -> None:
        self.books.subscribe(short_operation(operation))

    async def hold_next_charge(self) -> None:
        self.books.is_swift = False

    async def finish_charges(self) -> None:
        self.books.finish()

    async def hold_next_remittance(self) -> None:
        self.books.is_swift = False

    async def fail_next_remittance(self) -> None:
        self.books.next_payout = "BANK_DECLINED"

    async def finish_remittances(self) -> None:
        self.books.finish()

    def _qr(self, invoice: Invoice) -> dict[str, Any]:
        return self.books.qrs[invoice.reference.split("/")[2]]

    async def remitted(self) -> int:
        ended = [each for each in self.books.payouts.values() if each["end"]["value"] != "DECLINED"]
        return sum(int(each["amount"] * 100) for each in ended)
