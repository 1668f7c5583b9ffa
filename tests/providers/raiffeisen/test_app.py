"""A whole app in live mode, under a virtual clock, whose settings name Raiffeisenbank as its bank: webhooks to
merchants, the charge a month later, and a QR that nobody pays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from tests.apps import TestApp
from tests.providers.bank_app import Cabinet
from tests.providers.raiffeisen.app import open_raiffeisen_app
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.subscription_app import press

MONTH = 32 * 86_400


@dataclass
class Shop:
    app: TestApp
    bank: Raiffeisen
    cabinet: Cabinet

    async def ask(self, method: str, path: str, **body: Any) -> Any:
        headers = self.app.headers("live", Idempotency_Key=str(uuid4()))
        answer = await self.app.http.request(method, f"/api/v1{path}", json=body or None, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def tell(self, posted: tuple[bytes, dict[str, str]]) -> int:
        """The bank posts this from its own network."""
        answered = (await self.cabinet.post(*posted)).status_code
        await self.app.work()
        return answered

    def told(self, object_id: str) -> list[str]:
        """Return the statuses of an object that webhooks reported, in order."""
        bodies = [each for each in self.app.postman.bodies if object_id in each.values()]
        return [each["status"] for each in bodies if "status" in each]


@asynccontextmanager
async def open_shop(own: dict[str, str] | None = None, **settings: Any) -> AsyncIterator[Shop]:
    """`own`: further settings of the bank."""
    async with open_raiffeisen_app(own, **settings) as (app, bank, cabinet):
        bank.is_swift = True
        yield Shop(app, bank, cabinet)


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as made:
        yield made


async def test_payment_is_notified_paid_and_refunded(shop: Shop) -> None:
    payment = await shop.ask("POST", "/payments", amount_rub="490.00")
    [qr] = shop.bank.qrs.values()
    shop.bank.pay(qr["qrId"])
    body, headers = shop.bank.notification(payment["id"])
    assert await shop.tell((body.replace(b"490", b"491"), headers)) == 403
    assert await shop.tell((body, headers)) == 200
    assert shop.told(payment["id"]) == ["paid"]
    refund = await shop.ask("POST", "/refunds", payment_id=payment["id"], amount_rub="90.00")
    await shop.app.work(60)
    assert (await shop.ask("GET", f"/refunds/{refund['id']}"))["status"] == "completed"
    assert [str(each["amount"]) for each in shop.bank.refunds.values()] == ["90.00"]
    shop.app.check_signatures()


async def test_unpaid_payment_expires_with_its_qr(shop: Shop) -> None:
    """It makes the calls that docs/providers/raiffeisen.md lists."""
    first = await shop.ask("POST", "/payments", amount_rub="490.00")
    assert await shop.tell(shop.bank.notification(first["id"])) == 200
    await shop.app.work(86_400)
    shop.bank.requests.clear()
    payment = await shop.ask("POST", "/payments", amount_rub="490.00", ttl_minutes=15)
    await shop.app.work(8 * 3600)
    assert shop.told(payment["id"]) == ["expired"]
    assert [shop.bank.shown(qr) for qr in shop.bank.qrs.values()] == ["EXPIRED", "EXPIRED"]
    assert len(shop.bank.requests) == 20


async def test_a_notification_that_is_lost_is_made_up_for_at_the_deadline(shop: Shop) -> None:
    payment = await shop.ask("POST", "/payments", amount_rub="490.00")
    [qr] = shop.bank.qrs.values()
    shop.bank.pay(qr["qrId"])
    await shop.app.work(3600)
    assert shop.told(payment["id"]) == ["paid"]


async def test_with_the_bank_away_the_next_takes_over() -> None:
    async with open_shop(banks=("raiffeisen", "simulator")) as two:
        two.bank.be_away()
        payment = await two.ask("POST", "/payments", amount_rub="490.00")
        assert payment["status"] == "pending"
        assert not two.bank.qrs


async def test_a_mandate_is_charged_a_month_later(shop: Shop) -> None:
    made = await shop.ask("POST", "/subscriptions", amount_rub="300.00", interval="month", description="Coffee club")
    assert (await press(shop.app, made["id"])).status_code == 200
    [number] = shop.bank.subscriptions
    shop.bank.subscribe(number)
    assert await shop.tell(shop.bank.notification(f"1-{number}")) == 200
    path = f"/subscriptions/{made['id']}"
    assert (await shop.ask("GET", path))["status"] == "active"
    await shop.app.work(MONTH)
    charge = await shop.ask("POST", f"{path}/charges", amount_rub="300.00")
    await shop.app.work(60)
    assert (await shop.ask("GET", f"/payments/{charge['id']}"))["status"] == "paid"
    assert [str(each["amount"]) for each in shop.bank.charges.values()] == ["300.00"]
    shop.bank.subscriptions[number]["status"] = "UNSUBSCRIBED"
    await shop.app.work(MONTH)
    assert (await shop.ask("GET", path))["status"] != "active"
