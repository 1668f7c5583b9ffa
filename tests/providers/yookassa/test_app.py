"""An app whose live bank is YooKassa: merchants, payers and the provider act, from the order to the settled balance
(docs/providers/yookassa.md)."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.usecases.settlement.settlement import settle_own
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from tests.apps import TestApp
from tests.providers.bank_app import Cabinet

from .app import open_yookassa_app
from .fake import YooKassaFake


class Shop:
    """The merchant in live mode, with the provider at hand."""

    def __init__(self, app: TestApp, fake: YooKassaFake, cabinet: Cabinet) -> None:
        self.app = app
        self.fake = fake
        self.cabinet = cabinet

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        headers = self.app.headers("live", Idempotency_Key=str(uuid4()))
        answer = await self.app.http.post(f"/api/v1{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.app.get(path, mode="live")).json()
        return found

    async def tell(self) -> None:
        """Deliver all due notifications, and do the work that they cause."""
        told = list(self.fake.told)
        self.fake.told.clear()
        for notification in told:
            assert (await self.cabinet.post(notification)).status_code == 200
        await self.app.work(3)

    async def paid(self, amount: str = "490.00") -> dict[str, Any]:
        made = await self.post("/payments", amount_rub=amount)
        self.fake.books.pay(self.fake.books.of_operation(made["id"])["id"])
        await self.tell()
        return await self.get(f"/payments/{made['id']}")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_yookassa_app() as (app, fake, cabinet):
        yield Shop(app, fake, cabinet)


async def test_a_payment_that_is_paid_costs_three_calls(shop: Shop) -> None:
    """docs/providers/yookassa.md "Calls": made, read after its notification, and once more for money that came
    twice."""
    payment = await shop.paid()
    assert payment["status"] == "paid"
    await shop.app.work(86_400)
    assert shop.fake.calls == {"POST /v3/payments": 1, "GET /v3/payments/{id}": 2}


async def test_unpaid_payment_costs_twelve_calls(shop: Shop) -> None:
    """docs/providers/yookassa.md "Calls": made, polled eight times until its deadline, and three times for late
    money."""
    await shop.paid()
    await shop.app.work(86_400)
    shop.fake.calls.clear()
    await shop.post("/payments", amount_rub="490.00")
    await shop.app.work(2 * 86_400)
    assert shop.fake.calls == {"POST /v3/payments": 1, "GET /v3/payments/{id}": 11}


async def test_unpaid_payment_costs_twenty_calls_before_the_first_notification(shop: Shop) -> None:
    await shop.post("/payments", amount_rub="490.00")
    await shop.app.work(2 * 86_400)
    assert shop.fake.calls == {"POST /v3/payments": 1, "GET /v3/payments/{id}": 19}


async def test_a_refund_costs_its_sending_a_search_and_a_read(shop: Shop) -> None:
    """A refund that no process of today sent is searched for before it is sent."""
    payment = await shop.paid()
    before = dict(shop.fake.calls)
    await shop.post("/refunds", payment_id=payment["id"])
    await shop.app.work(3)
    [sent] = shop.fake.books.pending_refunds()
    shop.fake.books.finish_refund(sent["id"])
    await shop.tell()
    made = {name: count - before.get(name, 0) for name, count in shop.fake.calls.items()}
    assert {name: count for name, count in made.items() if count} == {"POST /v3/refunds": 1, "GET /v3/refunds": 1}


async def test_money_comes_goes_back_and_is_settled(shop: Shop) -> None:
    payment = await shop.paid("490.00")
    refund = await shop.post("/refunds", payment_id=payment["id"], amount_rub="90.00")
    await shop.app.work(3)
    [sent] = shop.fake.books.pending_refunds()
    shop.fake.books.finish_refund(sent["id"])
    await shop.tell()
    assert (await shop.get(f"/refunds/{refund['refund_id']}"))["status"] == "completed"
    assert (await shop.get("/balance"))["pending_rub"] == "400.00"
    async with shop.app.ports.storage.unit() as unit:
        account = await unit[Account].get(shop.app.account.account_id)
    assert account is not None
    await settle_own(shop.app.ports, Caller(account=account, mode=Mode.LIVE, key_id="a-key"))
    assert (await shop.get(f"/payments/{payment['id']}"))["status"] == "settled"
    assert (await shop.get("/balance"))["pending_rub"] == "0.00"


@pytest.mark.parametrize("first", ["first", "none"])
async def test_a_payer_binds_and_is_charged_and_ends_it_in_the_bank(shop: Shop, first: str) -> None:
    made = await shop.post(
        "/subscriptions", amount_rub="490.00", interval="month", description="Club", binding_charge=first
    )
    subscription = made["id"]
    await open_binding(shop.app.ports, subscription)
    if first == "first":
        [waiting] = shop.fake.books.of_kind("payment")
        shop.fake.books.pay(waiting["id"])
    else:
        [waiting] = shop.fake.books.of_kind("payment_method")
        shop.fake.books.confirm(waiting["id"])
    await shop.tell()
    assert (await shop.get(f"/subscriptions/{subscription}"))["status"] == "active"

    await shop.app.work(32 * 86_400)
    charge = await shop.post(f"/subscriptions/{subscription}/charges", amount_rub="490.00", external_id="second")
    await shop.tell()
    charges = (await shop.get(f"/subscriptions/{subscription}/charges"))["data"]
    assert [each["status"] for each in charges if each["id"] == charge["id"]] == ["paid"]

    [method] = [thing for thing in shop.fake.books.of_kind("payment_method") if thing["saved"]]
    shop.fake.books.lose(method["id"])
    await shop.app.work(32 * 86_400)
    headers = shop.app.headers("live", Idempotency_Key=str(uuid4()))
    refused = await shop.app.http.post(
        f"/api/v1/subscriptions/{subscription}/charges", json={"amount_rub": "490.00"}, headers=headers
    )
    assert refused.status_code in (409, 502), refused.text
    came = [thing for thing in shop.fake.books.of_kind("payment") if thing["status"] == "succeeded"]
    assert len(came) == (2 if first == "first" else 1)


async def test_a_notification_that_comes_before_the_answer_or_twice_is_harmless(shop: Shop) -> None:
    """It races the call that made it; and it is posted for a day."""
    made = await shop.post("/payments", amount_rub="490.00")
    thing = shop.fake.books.of_operation(made["id"])
    early = shop.fake.notification("payment.succeeded", thing)
    assert (await shop.cabinet.post(early)).status_code == 200
    await shop.app.work(3)
    assert (await shop.get(f"/payments/{made['id']}"))["status"] == "pending"
    shop.fake.books.pay(thing["id"])
    for _ in range(3):
        assert (await shop.cabinet.post(shop.fake.told[0])).status_code == 200
    await shop.tell()
    assert (await shop.get(f"/payments/{made['id']}"))["status"] == "paid"
    assert (await shop.get("/balance"))["pending_rub"] == "490.00"


async def test_notification_from_another_network_is_not_believed(shop: Shop) -> None:
    """YooKassa signs nothing: its networks and the address's secret are what there is."""
    made = await shop.post("/payments", amount_rub="490.00")
    notification = shop.fake.notification("payment.succeeded", shop.fake.books.of_operation(made["id"]))
    stranger = await shop.app.http.post(shop.cabinet.path, json=notification)
    assert stranger.status_code == 403
    wrong = await shop.app.http.post(f"{shop.cabinet.path[:-1]}x", json=notification)
    assert wrong.status_code == 404
