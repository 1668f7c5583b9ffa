"""A merchant at T-Bank, by its settings, from the first payment to the settlement: a notification is posted, the
merchant's receiver hears of it, two refunds of one payment go one after another, and a subscription is charged."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.operators.review import list_suspense
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from tests.apps import TestApp
from tests.providers.bank_app import Cabinet
from tests.providers.tbank.app import open_tbank_app
from tests.providers.tbank.books import Payment
from tests.providers.tbank.fake import TBankFake


class Story:
    def __init__(self, app: TestApp, fake: TBankFake, cabinet: Cabinet) -> None:
        self.app, self.fake, self.cabinet = app, fake, cabinet

    async def post(self, path: str, body: dict[str, Any], status: int = 201) -> Any:
        headers = self.app.headers("live", Idempotency_Key=str(uuid4()))
        answer = await self.app.http.post(f"/api/v1{path}", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def get(self, path: str) -> Any:
        answer = await self.app.get(path, mode="live")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def tell(self) -> None:
        """Let T-Bank post each change twice."""
        moved, self.fake.books.moved = self.fake.books.moved, []
        for payment in moved:
            for _ in range(2):
                answer = await self.cabinet.post(self.fake.notification(payment))
                assert (answer.status_code, answer.text) == (200, "OK")
        await self.app.work(0)

    async def paid(self, rub: str = "490.00") -> tuple[dict[str, Any], Payment]:
        made = await self.post("/payments", {"amount_rub": rub, "external_id": "order-1"})
        there = self.fake.payment(made["id"].removeprefix("pay_"))
        self.fake.books.pay(there)
        await self.tell()
        return await self.get(f"/payments/{made['id']}"), there

    def events(self, name: str) -> list[dict[str, Any]]:
        bodies = [msgspec.json.decode(webhook.body) for webhook in self.app.postman.webhooks]
        return [body for body in bodies if body["event"] == name]


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    async with open_tbank_app() as opened:
        yield Story(*opened)


async def test_payer_who_tries_again_after_a_rejection_has_paid(story: Story) -> None:
    made = await story.post("/payments", {"amount_rub": "490.00"})
    there = story.fake.payment(made["id"].removeprefix("pay_"))
    story.fake.books.reject(there)
    await story.tell()
    assert (await story.get(f"/payments/{made['id']}"))["status"] == "pending"
    await story.app.work(600)
    story.fake.books.pay(there)
    await story.tell()
    assert (await story.get(f"/payments/{made['id']}"))["status"] == "paid"


async def test_rejected_payment_fails_at_its_deadline_and_late_money_is_suspense(story: Story) -> None:
    made = await story.post("/payments", {"amount_rub": "490.00"})
    there = story.fake.payment(made["id"].removeprefix("pay_"))
    story.fake.books.reject(there)
    await story.app.work(15 * 60)
    failed = await story.get(f"/payments/{made['id']}")
    assert (failed["status"], failed["failure_reason"]) == ("failed", "insufficient_funds")
    story.fake.books.pay(there)
    await story.tell()
    assert (await story.get(f"/payments/{made['id']}"))["status"] == "failed"
    [waiting] = await list_suspense(story.app.ports)
    assert (waiting.payment_id, str(waiting.amount), waiting.reason) == (made["id"], "490.00", "after_failed")


async def test_a_payment_is_paid_once_t_bank_posts_it(story: Story) -> None:
    payment, there = await story.paid()
    assert (payment["status"], payment["actual_amount_rub"]) == ("paid", "490.00")
    assert there.qr
    assert [each["status"] for each in story.events("payment.status_changed")] == ["paid"]
    forged = story.fake.notification(there).replace(b"CONFIRMED", b"REJECTED")
    assert (await story.cabinet.post(forged)).status_code == 403


async def test_two_refunds_at_once_go_one_after_another_and_no_more_than_came(story: Story) -> None:
    story.fake.books.refunds_later = True
    payment, there = await story.paid()
    first = await story.post("/refunds", {"payment_id": payment["id"], "amount_rub": "200.00"})
    second = await story.post("/refunds", {"payment_id": payment["id"], "amount_rub": "200.00"})
    await story.post("/refunds", {"payment_id": payment["id"], "amount_rub": "100.00"}, status=400)
    await story.app.work(60)
    assert there.refunding == 200_00
    for _ in range(2):
        story.fake.books.finish_refund(there)
        await story.tell()
        await story.app.work(3600)
    assert story.fake.books.sent_back == [(there.id, 200_00)] * 2
    for refund in (first, second):
        assert (await story.get(f"/refunds/{refund['id']}"))["status"] == "completed"
    assert [each["amount_rub"] for each in story.events("refund.completed")] == ["200.00"] * 2


async def test_a_refund_that_the_payer_s_bank_does_not_take_fails(story: Story) -> None:
    story.fake.books.refunds_later = True
    payment, there = await story.paid()
    refund = await story.post("/refunds", {"payment_id": payment["id"]})
    await story.app.work(0)
    story.fake.books.fails_refunds.append("I05043")
    story.fake.books.finish_refund(there)
    await story.tell()
    assert (await story.get(f"/refunds/{refund['id']}"))["status"] == "failed"
    assert story.fake.books.sent_back == []


async def test_a_payer_binds_with_a_first_charge_and_is_charged(story: Story) -> None:
    plan = {"amount_rub": "300.00", "interval": "day", "description": "Coffee club", "client_phone": "+79990000001"}
    made = await story.post("/subscriptions", {**plan, "binding_charge": "first"})
    await open_binding(story.app.ports, made["id"])  # the payer opens the page
    [there] = [each for each in story.fake.books.payments.values() if each.recurrent]
    assert there.request_key is not None
    story.fake.books.pay(there)
    story.fake.books.confirm(there.request_key)
    await story.tell()
    answer = await story.cabinet.post(story.fake.binding_notification(there.request_key))
    assert answer.text == "OK"
    await story.app.work(0)
    assert (await story.get(f"/subscriptions/{made['id']}"))["status"] == "active"
    await story.app.work(2 * 86_400)
    charge = await story.post(f"/subscriptions/{made['id']}/charges", {"amount_rub": "300.00", "external_id": "2"})
    [(_, charged)] = [(each.id, each) for each in story.fake.books.payments.values() if each.charged]
    story.fake.books.finish_charge(charged)
    await story.tell()
    shown = await story.get(f"/payments/{charge.get('payment_id', charge.get('id'))}")
    assert (shown["status"], shown["payment_method"]) == ("paid", "recurring")
    assert [kopecks for _, kopecks in story.fake.books.debited] == [300_00]


async def test_payment_is_settled_the_next_day(story: Story) -> None:
    payment, _ = await story.paid()
    await story.app.work(34 * 3600)
    await settle_now(story.app.ports, Mode.LIVE)
    assert (await story.get(f"/payments/{payment['id']}"))["status"] == "settled"
