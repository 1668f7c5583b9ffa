"""A bank's notification is only a hint, even a genuine one: money counts once, and as the bank's own answer gives it
(docs/adapters.md "Notifications"). Each shipped bank runs the same scenario."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from cambist.core.usecases.refunds.contradictions import contradicted_refunds
from tests.providers.raiffeisen.app import open_raiffeisen_app
from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.tbank.app import open_tbank_app
from tests.providers.tbank.fake import TBankFake
from tests.providers.yookassa.app import open_yookassa_app
from tests.providers.yookassa.fake import YooKassaFake
from tests.tables import table

Posted = tuple[bytes | Mapping[str, Any], Mapping[str, str]]


class Posting(NamedTuple):
    opened: Callable[[], Any]
    pays: Callable[[Any, str], None]
    says_paid: Callable[[Any, str, int], Posted]
    """Its notification, with its signature, that so many kopecks came for a payment, whatever came."""


def _yookassa_says(fake: YooKassaFake, payment: str, kopecks: int) -> Posted:
    notification = fake.notification("payment.succeeded", fake.books.of_operation(payment))
    notification["object"] |= {"status": "succeeded", "amount": {"value": f"{kopecks / 100:.2f}", "currency": "RUB"}}
    return notification, {}


def _tbank_says(fake: TBankFake, payment: str, kopecks: int) -> Posted:
    there = fake.payment(payment.removeprefix("pay_"))
    return fake.notification(there, Status="CONFIRMED", Amount=kopecks), {}


def _raiffeisen_says(bank: Raiffeisen, payment: str, kopecks: int) -> Posted:
    qr = _qr(bank, payment)
    stands, qr["payment"] = qr["payment"], "SUCCESS"
    posted = bank.notification(payment, f"{kopecks / 100:.2f}")
    qr["payment"] = stands
    return posted


def _qr(bank: Raiffeisen, payment: str) -> dict[str, Any]:
    return next(each for each in bank.qrs.values() if each["order"] == payment)


BANKS = {
    "yookassa": Posting(
        open_yookassa_app, lambda fake, each: fake.books.pay(fake.books.of_operation(each)["id"]), _yookassa_says
    ),
    "tbank": Posting(
        open_tbank_app, lambda fake, each: fake.books.pay(fake.payment(each.removeprefix("pay_"))), _tbank_says
    ),
    "raiffeisen": Posting(open_raiffeisen_app, lambda bank, each: bank.pay(_qr(bank, each)["qrId"]), _raiffeisen_says),
}


@table("name", BANKS)
async def test_a_notification_is_a_hint_and_moves_money_once(name: str) -> None:
    """Early, of another amount, doubled, and after all is over."""
    bank = BANKS[name]
    async with bank.opened() as (app, fake, cabinet):

        async def shown() -> tuple[str, str | None]:
            answer = await app.http.get(f"/api/v1/payments/{payment}", headers=app.headers("live"))
            return answer.json()["status"], answer.json()["actual_amount_rub"]

        async def told(kopecks: int) -> None:
            assert (await cabinet.post(*bank.says_paid(fake, payment, kopecks))).status_code == 200
            await app.work()

        made = await app.http.post(
            "/api/v1/payments",
            json={"amount_rub": "490.00"},
            headers=app.headers("live", Idempotency_Key=str(uuid4())),
        )
        payment = made.json()["id"]
        await told(490_00)
        assert await shown() == ("pending", None), "before anybody paid"
        bank.pays(fake, payment)
        for kopecks in (1_00, 490_00, 490_00, 1_000_00):
            await told(kopecks)
            assert await shown() == ("paid", "490.00")
        balance = await app.http.get("/api/v1/balance", headers=app.headers("live"))
        assert balance.json()["pending_rub"] == "490.00"
        assert [each["status"] for each in app.postman.bodies if each.get("payment_id") == payment] == ["paid"]


def _yookassa_fails(fake: YooKassaFake) -> None:
    [refund] = fake.books.of_kind("refund")
    refund |= {"status": "canceled", "cancellation_details": {"party": "yoo_money", "reason": "rejected_by_payee"}}


def _raiffeisen_fails(bank: Raiffeisen) -> None:
    [refund] = bank.refunds.values()
    refund["refundStatus"] = "DECLINED"


def _yookassa_sends(fake: YooKassaFake) -> None:
    for each in fake.books.pending_refunds():
        fake.books.finish_refund(each["id"])


@table(
    ("name", "sends", "fails"),
    [
        ("yookassa", _yookassa_sends, _yookassa_fails),
        ("raiffeisen", Raiffeisen.finish, _raiffeisen_fails),
    ],
)
async def test_a_refund_that_fails_after_it_was_done_is_an_operators(
    name: str, sends: Callable[[Any], None], fails: Callable[[Any], None]
) -> None:
    """T-Bank has no status for this: only the payment's sums show the refunded money."""
    bank = BANKS[name]
    async with bank.opened() as (app, fake, cabinet):

        async def ask(path: str, **body: Any) -> Any:
            headers = app.headers("live", Idempotency_Key=str(uuid4()))
            return (await app.http.post(f"/api/v1{path}", json=body, headers=headers)).json()

        payment = (await ask("/payments", amount_rub="490.00"))["id"]
        bank.pays(fake, payment)
        await cabinet.post(*bank.says_paid(fake, payment, 490_00))
        await app.work()
        refund = (await ask("/refunds", payment_id=payment, amount_rub="90.00"))["id"]
        await app.work(60)
        sends(fake)
        await app.work(3600)
        assert await contradicted_refunds(app.ports) == []
        fails(fake)
        await app.work(2 * 86_400)
        assert [each.id for each in await contradicted_refunds(app.ports)] == [refund]
        assert [each["status"] for each in app.postman.bodies if each.get("refund_id") == refund] == ["completed"]
