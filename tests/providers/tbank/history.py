"""A random history of money at T-Bank."""

from collections import Counter
from collections.abc import Sequence

from cambist.core.domain.refunds.refunds import Refund
from tests.providers.money_history import MoneyHistory
from tests.providers.tbank.books import PAID
from tests.providers.tbank.fake import TBankFake

_REASONS = ("1051", "5060", "3009")


class TBankHistory(MoneyHistory):
    """A history at a bank without idempotency keys."""

    fake: TBankFake
    least_refund = 1_00

    def look(self) -> None:
        payments = list(self.fake.books.payments)
        self.open += payments[self._seen :]
        self._seen = len(payments)

    async def pay(self, there: str) -> str | None:
        payment = self.fake.books.payments[there]
        chance = self.random.random() if payment.status == "FORM_SHOWED" else 1.0
        if chance < 0.9:
            self.fake.books.pay(payment)
            return f"pay_{payment.order_id}"
        if chance < 0.95:
            self.fake.books.reject(payment, self.random.choice(_REASONS))
        return None

    def kopecks_of(self, payment_id: str) -> int:
        return self.fake.payment(payment_id.removeprefix("pay_")).amount

    def send_back(self) -> None:
        books = self.fake.books
        books.refunds_later = self.random.random() < 0.5
        for payment in books.payments.values():
            if payment.refunding:
                books.fails_refunds = ["I05043"] if self.random.random() < 0.05 else []
                books.finish_refund(payment)
        books.fails_refunds = []

    def due(self) -> list[bytes]:
        moved, self.fake.books.moved = self.fake.books.moved, []
        return [self.fake.notification(payment) for payment in moved]

    async def post_notification(self, notification: bytes) -> None:
        answer = await self.cabinet.post(notification)
        assert (answer.status_code, answer.text) == (200, "OK")

    def came(self) -> Counter[str]:
        came: Counter[str] = Counter()
        for payment in self.fake.books.payments.values():
            if payment.status in PAID:
                came[f"pay_{payment.order_id}"] += payment.amount
        return came

    def sent_back(self, refunds: Sequence[Refund]) -> Counter[str]:
        """T-Bank does not know our operations. For each payment, our completed refunds and T-Bank's must have the same
        amounts, equally often."""
        gone: dict[str, Counter[int]] = {}
        for payment_id, kopecks in self.fake.books.sent_back:
            order = self.fake.books.payments[payment_id].order_id
            gone.setdefault(f"pay_{order}", Counter())[kopecks] += 1
        back: Counter[str] = Counter()
        for refund in refunds:
            mine = gone.get(refund.payment_id, Counter())
            if refund.status == "completed" and mine[refund.amount.kopecks]:
                mine[refund.amount.kopecks] -= 1
                back[refund.id] = refund.amount.kopecks
        for payment_id, left in gone.items():
            back[f"of {payment_id}"] = left.total()
        return back
