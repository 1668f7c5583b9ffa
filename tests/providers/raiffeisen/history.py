"""A random history of money at Raiffeisenbank, with receipts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.receipts.receipts import FiscalReceipt
from cambist.core.domain.refunds.refunds import Refund
from tests.invariants import everything
from tests.providers.money_history import MoneyHistory
from tests.providers.raiffeisen.fake import Raiffeisen

_MOVED = ("paid", "partially_refunded", "refunded")


class RaiffeisenHistory(MoneyHistory):
    """A history at a bank that knows our numbers for ever, and registers a second QR for an unpaid order."""

    fake: Raiffeisen

    def look(self) -> None:
        qrs = list(self.fake.qrs)
        self.open += qrs[self._seen :]
        self._seen = len(qrs)

    async def pay(self, there: str) -> str | None:
        """A payer has the QR alone that the window shows."""
        qr = self.fake.qrs[there]
        payment = await self.app.ports.storage.get(Payment, qr["order"])
        is_shown = payment is not None and payment.qr_payload == qr["payload"]
        chance = self.random.random() if is_shown and self.fake.shown(qr) == "NEW" else 1.0
        if chance < 0.9:
            self.fake.pay(there)
            self._late.append(self.fake.notification(qr["order"]))
            return str(qr["order"])
        if chance < 0.95:
            self.fake.decline(there)
        return None

    def kopecks_of(self, payment_id: str) -> int:
        return self.came()[payment_id]

    def send_back(self) -> None:
        self.fake.next_refund = "DECLINED" if self.random.random() < 0.05 else ""
        self.fake.finish()

    def due(self) -> list[Any]:
        return []  # a payment's alone, which waits since it was paid

    async def post_notification(self, notification: tuple[bytes, dict[str, str]]) -> None:
        assert (await self.cabinet.post(*notification)).status_code == 200

    def came(self) -> Counter[str]:
        came: Counter[str] = Counter()
        for qr in self.fake.qrs.values():
            if qr["payment"] == "SUCCESS":
                came[qr["order"]] += _kopecks(qr["amount"])
        return came

    def sent_back(self, refunds: Sequence[Refund]) -> Counter[str]:
        gone = {number: each for number, each in self.fake.refunds.items() if each["end"] != "DECLINED"}
        return Counter({number: _kopecks(each["amount"]) for number, each in gone.items()})

    async def check(self) -> Mapping[str, int]:
        """The cash register has one receipt of each payment that was paid, and of each refund that went, too."""
        found = await super().check()
        records = await everything(self.app.ports, FiscalReceipt)
        of = {each.operation: each.refund_id or each.payment_id for each in records}
        written = {(side, of[number]): each["registered"] for (side, number), each in self.fake.receipts.items()}
        moved = [("sell", each) for each, kopecks in self.came().items() if kopecks]
        refunds = [each for each in await everything(self.app.ports, Refund) if each.status == "completed"]
        assert written == dict.fromkeys([*moved, *(("refund", each.id) for each in refunds)], 1)
        return {**found, "receipts": len(written)}


def _kopecks(amount: Decimal) -> int:
    return int(amount * 100)
