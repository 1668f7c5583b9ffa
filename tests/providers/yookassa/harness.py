"""The adapter over the fake, for the suites that are shipped."""

import json
from datetime import timedelta
from decimal import Decimal

from cambist.adapters.bank.yookassa.adapter import YooKassaBank
from cambist.adapters.bank.yookassa.core import NAME
from cambist.adapters.bank.yookassa.shops import Shop, Shops
from cambist.adapters.clock import VirtualClock
from cambist.conformance import Asked, BankHarness
from cambist.frontends.conformance.operation_ids import binding_id
from cambist.ports import InboundNotification, Invoice, ProviderNote
from cambist.ports.tools import Tools

from .books import LIFETIME, Thing
from .fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake


def bank_of(tools: Tools, fake: YooKassaFake, **more: object) -> YooKassaBank:
    """An adapter with the fake's shop, its gateway, and mandates."""
    told = {"gateway": Shop(id=GATEWAY, key=PAYOUT_KEY), "mandates": True, "base_url": fake.api, **more}
    return YooKassaBank(tools, Shops(Shop(id=SHOP, key=KEY), {}), **told)  # type: ignore[arg-type]


class YooKassaHarness(BankHarness):
    """YooKassa with payers who pay as soon as they are told to."""

    secrets = (KEY, PAYOUT_KEY, SHOP, GATEWAY)
    bank_id = "bank100000000111"
    signs_notifications = False
    asks_to_revoke = False
    pays_twice = pays_other_amounts = False

    def __init__(self, tools: Tools, clock: VirtualClock, fake: YooKassaFake, **more: object) -> None:
        """Build the harness. `more` holds further arguments of the adapter."""
        self.more = more
        self.tools = tools
        self.clock = clock
        self.provider = self.fake = fake
        fake.page = self.page
        self.banks: list[YooKassaBank] = []
        self.bank = self.another()

    def another(self) -> YooKassaBank:
        self.banks.append(bank_of(self.tools, self.fake, **self.more))
        return self.banks[-1]

    async def pay(self, operation: str, invoice: Invoice, kopecks: int) -> None:
        self.fake.books.pay(invoice.reference)

    async def notification(self, operation: str) -> InboundNotification:
        told = self.fake.notification("payment.succeeded", self.fake.books.of_operation(operation))
        return InboundNotification(headers={}, body=json.dumps(told).encode(), query={}, address="185.71.76.1")

    async def forget(self) -> None:
        async with self.tools.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider=NAME):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def skew(self, span: timedelta) -> None:
        self.fake.skew = span

    async def pass_time(self, span: timedelta) -> None:
        await self._advance(span)

    async def _advance(self, span: timedelta) -> None:
        assert isinstance(self.clock, VirtualClock)
        await self.clock.advance(span.total_seconds())

    async def asked(self, operation: str) -> Asked:
        thing = self.fake.books.of_operation(operation)
        person = thing.get("payout_destination", {})
        return Asked(
            amount_kopecks=round(Decimal(thing["amount"]["value"]) * 100),
            order=thing["metadata"]["operation"],
            purpose=thing.get("description"),
            return_url=thing.get("confirmation", {}).get("return_url"),
            phone=f"+{person.get('phone')}",
            bank_id=f"bank{person.get('bank_id')}",
        )

    async def decline(self, operation: str, invoice: Invoice) -> None:
        self.fake.books.cancel(invoice.reference, "payment_method_limit_exceeded")

    async def lapse(self, operation: str, invoice: Invoice) -> None:
        await self._advance(LIFETIME)

    async def say_unknown_status(self, operation: str) -> None:
        self.fake.books.of_operation(operation)["status"] = "under_review"

    async def hold_next_refund(self) -> None:
        """Every refund waits for `finish_refunds` here."""

    async def finish_refunds(self) -> None:
        for refund in self.fake.books.of_kind("refund"):
            self.fake.books.finish_refund(refund["id"])

    async def fail_next_refund(self) -> None:
        self.fake.books.refunds_fail = 1

    async def confirm(self, operation: str) -> None:
        bound = self.fake.books.of_operation(operation)
        if bound["_kind"] == "payment":
            self.fake.books.pay(bound["id"])
        else:
            self.fake.books.confirm(bound["id"])

    async def refuse(self, operation: str) -> None:
        self.fake.books.cancel(self.fake.books.of_operation(operation)["id"], "general_decline")

    async def lose_mandate(self, operation: str) -> None:
        self.fake.books.lose(self._method(operation)["id"])

    async def restore_mandate(self, operation: str) -> None:
        self.fake.books.lose(self._method(operation)["id"], lost=False)

    async def fail_next_charge(self) -> None:
        self.fake.books.declines.append("insufficient_funds")

    async def hold_next_charge(self) -> None:
        self.fake.books.charges_wait = True

    async def finish_charges(self) -> None:
        for payment in self.fake.books.of_kind("payment"):
            if payment["status"] == "pending" and "confirmation" not in payment:
                self.fake.books.pay(payment["id"])

    async def hold_next_remittance(self) -> None:
        """Every payout waits for `finish_remittances` here."""

    async def fail_next_remittance(self) -> None:
        self.fake.books.payouts_fail = 1

    async def finish_remittances(self) -> None:
        for payout in self.fake.books.of_kind("payout"):
            self.fake.books.finish_payout(payout["id"])

    async def remitted(self) -> int:
        gone = [each for each in self.fake.books.of_kind("payout") if each["status"] != "canceled"]
        return sum(int(each["amount"]["value"].replace(".", "")) for each in gone)

    def _method(self, operation: str = binding_id(1)) -> Thing:
        bound = self.fake.books.of_operation(operation)
        return bound if bound["_kind"] == "payment_method" else self.fake.books.things[bound["payment_method"]["id"]]
