"""A random history of money at YooKassa."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cambist.core.domain.refunds.refunds import Refund
from tests.providers.money_history import MoneyHistory

from .checks import kopecks
from .fake import YooKassaFake, too_many


class YooKassaHistory(MoneyHistory):
    """A history at a provider that knows an operation by our key for a day."""

    fake: YooKassaFake

    def limit(self) -> Any:
        return too_many(1500)

    def look(self) -> None:
        for thing in self.fake.books.since(self._seen):
            if thing["_kind"] == "payment":
                self.open.append(thing["id"])
            self._seen += 1

    async def pay(self, there: str) -> str | None:
        thing = self.fake.books.shown(self.fake.books.things[there])
        chance = self.random.random() if thing["status"] == "pending" else 1.0
        if chance < 0.9:
            self.fake.books.pay(there)
            return str(thing["metadata"]["operation"])
        if chance < 0.95:
            self.fake.books.cancel(there, self.random.choice(("general_decline", "insufficient_funds")))
        return None

    def kopecks_of(self, payment_id: str) -> int:
        return kopecks(self.fake.books.of_operation(payment_id)["amount"])

    def send_back(self) -> None:
        for thing in self.fake.books.pending_refunds():
            self.fake.books.refunds_fail = int(self.random.random() < 0.05)
            self.fake.books.finish_refund(thing["id"])
        self.fake.books.refunds_fail = 0

    def due(self) -> list[Any]:
        told = list(self.fake.told)
        self.fake.told.clear()
        return told

    async def post_notification(self, notification: Any) -> None:
        assert (await self.cabinet.post(notification)).status_code == 200

    def came(self) -> Counter[str]:
        came: Counter[str] = Counter()
        for thing in self.fake.books.of_kind("payment"):
            if thing["status"] == "succeeded":
                came[thing["metadata"]["operation"]] += kopecks(thing["amount"])
        return came

    def sent_back(self, refunds: Sequence[Refund]) -> Counter[str]:
        back: Counter[str] = Counter()
        for thing in self.fake.books.of_kind("refund"):
            if thing["status"] != "canceled":
                back[thing["metadata"]["operation"]] += kopecks(thing["amount"], least=1)
        return back
