"""A random history of money at a bank: merchants who pay no attention to faults but repeat with the same key, payers,
refunds, and a provider of whose calls and notifications some go wrong in every way that there is. Each bank's
`history.py` says what is its own."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.refunds.refunds import Refund
from cambist.ports.notifier import Answer, DeliveryResult
from cambist.testing import ProviderFault
from tests.apps import TestApp
from tests.crash_points import CrashPoint, Killed, fused
from tests.invariants import check_books, everything
from tests.providers.bank_app import Cabinet

DAY = 86_400.0
_CREDENTIALS = (ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN)
"""They take the gateway from all merchants, so they are seldom."""


class MoneyHistory(ABC):
    """One merchant in live mode, and the payers."""

    least_refund = 1
    """Kopecks."""

    def __init__(self, app: TestApp, fake: Any, cabinet: Cabinet, random: Random, *, faults: float = 0.05) -> None:
        self.app = app
        self.fake = fake
        self.cabinet = cabinet
        self.random = random
        self.faults = faults
        self.unsure: dict[str, tuple[str, Mapping[str, Any]]] = {}
        """Requests of the merchant without a clear answer, by idempotency key. They are repeated until there is one."""
        self.open: list[str] = []
        """Ids of payments there that wait for their payers."""
        self.paid: list[str] = []
        """Ids of payments that may be refunded."""
        self.refused: Counter[str] = Counter()
        self._seen = 0
        self._late: list[Any] = []
        self._keys = 0

    def spoil(self) -> None:
        """From now on let so many calls fail, by every kind of fault but wrong credentials."""
        kinds = [fault for fault in ProviderFault if fault not in _CREDENTIALS]
        for fault in kinds:
            self._sometimes(fault, self.faults / len(kinds))
        if (limit := self.limit()) is not None:
            self._sometimes(limit, self.faults / len(kinds))
        for fault in _CREDENTIALS:
            self._sometimes(fault, self.faults / 500)

    def _sometimes(self, problem: Any, chance: float) -> None:
        self.fake.next(problem, matching=lambda _: self.random.random() < chance, always=True)

    async def post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> Any:
        """Post as a merchant does: without a clear answer, repeat the request later with the same key. When the bank
        gave no clear answer, the key is used up."""
        if key is None:
            self._keys += 1
            key = str(UUID(int=self.random.getrandbits(64) << 64 | self._keys))
        answer = await self.app.http.post(
            f"/api/v1{path}", json=body, headers=self.app.headers("live", Idempotency_Key=key)
        )
        assert answer.status_code != 429, "a merchant who is quicker than may be: no test of the bank"
        assert answer.status_code < 500 or answer.status_code in (502, 503), answer.text
        said = answer.json()
        if answer.status_code >= 500:
            code = said["error"]["code"]
            self.refused[code] += 1
            self.unsure[key] = (path, body)
            if code == "PROVIDER_ERROR":
                del self.unsure[key]
            return None
        self.unsure.pop(key, None)
        return said if answer.status_code < 400 else None

    async def order(self) -> None:
        amount = self.random.choice((self.random.randint(1_00, 5_000_00), self.random.randint(1_00, 500_000_00)))
        self._keys += 1
        body = {"amount_rub": f"{amount // 100}.{amount % 100:02d}", "external_id": f"order-{self._keys}"}
        await self.post("/payments", body)

    async def repeat(self) -> None:
        """Repeat all requests without a clear answer."""
        for key, (path, body) in list(self.unsure.items()):
            await self.post(path, body, key)

    def limit(self) -> Any:
        """Return the provider's own answer to too many calls, in addition to 429."""
        return None

    @abstractmethod
    def look(self) -> None:
        """Hand the provider's new invoices to their payers (`open`)."""

    @abstractmethod
    async def pay(self, there: str) -> str | None:
        """A payer of `open` pays, is declined or leaves it; the payment of ours, where it is paid."""

    @abstractmethod
    def kopecks_of(self, payment_id: str) -> int:
        """Return the amount of a paid payment, in kopecks."""

    @abstractmethod
    def send_back(self) -> None:
        """Let running refunds end; some of them fail."""

    @abstractmethod
    def due(self) -> list[Any]:
        """The notifications that the provider has to post by now, each once."""

    @abstractmethod
    async def post_notification(self, notification: Any) -> None:
        """Post it, and assert that the service accepts it."""

    @abstractmethod
    def came(self) -> Counter[str]:
        """Return the sums that payers paid at the provider, by our operation."""

    @abstractmethod
    def sent_back(self, refunds: Sequence[Refund]) -> Counter[str]:
        """Return the sums that left the provider or are about to, by our operation."""

    async def refund(self) -> None:
        """Refund a paid payment in part or in full. The amount may exceed the remainder."""
        if not self.paid:
            return
        payment_id = self.random.choice(self.paid)
        body: dict[str, Any] = {"payment_id": payment_id}
        if self.random.random() < 0.6:
            part = max(self.least_refund, self.kopecks_of(payment_id) * self.random.choice((1, 33, 50, 99)) // 100)
            body["amount_rub"] = f"{part // 100}.{part % 100:02d}"
        await self.post("/refunds", body)

    async def tell(self) -> None:
        """Post notifications; some are lost, doubled, late, or in another order."""
        told, self._late = [*self._late, *self.due()], []
        self.random.shuffle(told)
        for notification in told:
            chance = self.random.random() if self.faults else 1.0
            if chance < self.faults:
                continue
            if chance < 2 * self.faults:
                self._late.append(notification)
                continue
            for _ in range(2 if chance < 3 * self.faults else 1):
                await self.post_notification(notification)

    async def _paid_or_left(self) -> None:
        if self.open:
            paid = await self.pay(self.open.pop(self.random.randrange(len(self.open))))
            self.paid += [] if paid is None else [paid]

    async def work(self, seconds: float) -> None:
        """Let time pass; the merchant's receiver fails sometimes."""
        if self.random.random() < self.faults:
            self.app.postman.answers.append(DeliveryResult(answer=Answer.RESPONDED, status=500))
        await self.app.work(seconds)
        self.look()

    async def die(self) -> None:
        """Kill the process before or after one of its commits; the next process continues."""
        whole = self.app.ports
        self.app.ports = fused(whole, CrashPoint(self.random.randint(1, 5), after=self.random.random() < 0.5))
        try:
            with suppress(Killed):
                await self.app.work(self.random.choice((0, 30)))
        finally:
            self.app.ports = whole

    async def end(self) -> None:
        """Stop all faults, and let days pass, until the provider has forgotten its keys."""
        self.fake.recover()
        self.faults = 0.0
        for pause in (60.0, 1200.0, 7200.0, DAY, DAY, DAY):
            await self.repeat()
            await self.work(pause)
            self.send_back()
            await self.tell()
        await self.app.work(DAY)
        assert not self.unsure

    async def live(self, orders: int) -> None:
        """Run so many orders, with everything that happens between them."""
        for _ in range(orders):
            await self.order()
            self.look()
            if self.random.random() < 0.9:
                await self._paid_or_left()
            if self.random.random() < 0.1:
                self.send_back()
            for chance, doing in ((0.2, self.refund), (0.3, self.tell), (0.2, self.repeat), (0.02, self.die)):
                if self.random.random() < chance:
                    await doing()
            await self.work(self.random.choice((0, 0, 1, 5, 30)))

    async def check(self) -> Mapping[str, int]:
        """Check that ledger, provider and webhooks agree to the kopeck, and return the counts for a report."""
        ports = self.app.ports
        await check_books(ports)
        payments = {payment.id: payment for payment in await everything(ports, Payment)}
        told = _last_told(self.app)
        came = self.came()
        for payment_id, payment in payments.items():
            got = payment.actual_amount.kopecks if payment.actual_amount else 0
            assert came[payment_id] == got, (payment_id, payment.status, came[payment_id], got)
            assert got in (0, payment.amount.kopecks), f"{payment_id} was paid twice"
            said = told.get(payment_id, Told(0, "pending", None))
            assert said.status == payment.status, (payment_id, said)
            assert said.amount == (str(payment.actual_amount) if got else None), (payment_id, said)
        assert set(came) <= set(payments), "money came for no payment of ours"
        refunds = await everything(ports, Refund)
        back = self.sent_back(refunds)
        for refund in refunds:
            sent = back.pop(refund.id, 0)
            expected = refund.amount.kopecks if refund.status == "completed" else 0
            assert sent == expected, (refund.id, refund.status, sent, expected)
            said = told[refund.id]
            assert (said.status, said.amount) == (refund.status, str(refund.amount)), (refund.id, said)
        assert not +back, "money went back for no refund of ours"
        return {
            "payments": len(payments),
            "paid": sum(1 for amount in came.values() if amount),
            "refunds": len(refunds),
            "kopecks": sum(came.values()),
            "calls": sum(self.fake.calls.values()),
        }


class Told(NamedTuple):
    """The merchant's receiver's copy of a payment's or refund's state."""

    sequence: int
    status: str
    amount: str | None


def _last_told(app: TestApp) -> dict[str, Told]:
    """The last word of each object, however often and in whatever order its events came."""
    last: dict[str, Told] = {}
    for webhook in app.postman.webhooks:
        body = msgspec.json.decode(webhook.body)
        whose = body.get("refund_id") or body.get("payment_id")
        if whose is None:
            continue  # the webhook is a gateway's
        amount = body["amount_rub"] if "refund_id" in body else body["actual_amount_rub"]
        told = Told(int(webhook.headers["X-Webhook-Sequence"]), body["status"], amount)
        last[whose] = max(last.get(whose, told), told, key=lambda each: each.sequence)
    return last
