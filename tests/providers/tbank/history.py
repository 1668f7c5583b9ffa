"""A random history of money at T-Bank: as YooKassa's, at a bank that knows no key of ours."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, cast

from cambist.core.domain.refunds.refunds import Refund
from tests.houses import TestHouse
from tests.invariants import everything
from tests.providers.tbank.books import PAID, Payment
from tests.providers.tbank.fake import TBankFake
from tests.providers.tbank.house import Cabinet
from tests.providers.yookassa.history import MoneyHistory

_REASONS = ("1051", "5060", "3009")


class TBankHistory(MoneyHistory):
    """One merchant in live mode, and the payers."""

    def __init__(self, house: TestHouse, fake: TBankFake, cabinet: Cabinet, random: Random) -> None:
        super().__init__(house, cast("Any", fake), cast("Any", cabinet), random)
        self.tbank, self.posts = fake, cabinet
        self._put_off: list[bytes] = []
        self._refunds: list[Refund] = []

    def look(self) -> None:
        """What is new there waits for its payer."""
        payments = list(self.tbank.books.payments)
        self.open += payments[self._seen :]
        self._seen = len(payments)

    def pay(self) -> None:
        if not self.open:
            return
        payment = self.tbank.books.payments[self.open.pop(self.random.randrange(len(self.open)))]
        if payment.status != "FORM_SHOWED":
            return
        chance = self.random.random()
        if chance < 0.9:
            self.tbank.books.pay(payment)
            self.paid.append(f"pay_{payment.order_id}")
        elif chance < 0.95:
            self.tbank.books.reject(payment, self.random.choice(_REASONS))

    async def refund(self) -> None:
        if not self.paid:
            return
        payment_id = self.random.choice(self.paid)
        body: dict[str, Any] = {"payment_id": payment_id}
        if self.random.random() < 0.6:
            whole = self.tbank.payment(payment_id.removeprefix("pay_")).amount
            part = max(1_00, whole * self.random.choice((1, 33, 50, 99)) // 100)
            body["amount_rub"] = f"{part // 100}.{part % 100:02d}"
        await self.post("/refunds", body)

    def send_back(self) -> None:
        """Refunds under way come to an end, of which some fail at the payer's bank."""
        books = self.tbank.books
        books.refunds_later = self.random.random() < 0.5
        for payment in books.payments.values():
            if payment.refunding:
                books.fails_refunds = ["I05043"] if self.random.random() < 0.05 else []
                books.finish_refund(payment)
        books.fails_refunds = []

    async def tell(self) -> None:
        """Notices, of which some are lost, doubled, late, or in another order."""
        moved, self.tbank.books.moved = self.tbank.books.moved, []
        told, self._put_off = [*self._put_off, *map(self.tbank.notice, moved)], []
        self.random.shuffle(told)
        for notice in told:
            chance = self.random.random() if self.faults else 1.0
            if chance < self.faults:
                continue
            if chance < 2 * self.faults:
                self._put_off.append(notice)
                continue
            for _ in range(2 if chance < 3 * self.faults else 1):
                answer = await self.posts.post(notice)
                assert (answer.status_code, answer.text) == (200, "OK")

    def _came(self) -> Counter[str]:
        came: Counter[str] = Counter()
        for payment in self._paid():
            came[f"pay_{payment.order_id}"] += payment.amount
        return came

    async def check(self) -> Mapping[str, int]:
        self._refunds = await everything(self.house.ports, Refund)
        return await super().check()

    def _sent_back(self) -> Counter[str]:
        """By our operation. T-Bank knows none: of one payment what is completed here and what went there are the same
        amounts, as often."""
        gone: dict[str, Counter[int]] = {}
        for payment_id, kopecks in self.tbank.books.sent_back:
            order = self.tbank.books.payments[payment_id].order_id
            gone.setdefault(f"pay_{order}", Counter())[kopecks] += 1
        back: Counter[str] = Counter()
        for refund in self._refunds:
            mine = gone.get(refund.payment_id, Counter())
            if refund.status == "completed" and mine[refund.amount.kopecks]:
                mine[refund.amount.kopecks] -= 1
                back[refund.id] = refund.amount.kopecks
        for payment_id, left in gone.items():
            back[f"of {payment_id}"] = left.total()
        return back

    def _paid(self) -> list[Payment]:
        return [each for each in self.tbank.books.payments.values() if each.status in PAID]
