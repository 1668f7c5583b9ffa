"""Shipped banks whose notifications never arrive, on their strict fakes: polling finds the payments that were paid
(docs/adapters.md "How often a provider is asked")."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.gateways.gateways import Gateway, GatewayStatus
from cambist.core.usecases.notification_addresses import silent_banks
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.provider_facts import provider_facts
from cambist.core.usecases.subscriptions.binding_opening import open_binding
from cambist.frontends.app.notification_addresses import judge_notifications
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.apps import TestApp
from tests.invariants import everything
from tests.providers.raiffeisen.app import open_raiffeisen_app
from tests.providers.tbank.app import open_tbank_app
from tests.providers.tbank.fake import READS
from tests.providers.yookassa.app import open_yookassa_app

PROXY = b"<html><body><h1>Access denied</h1></body></html>"


class ShippedBank(msgspec.Struct):
    """A bank of live mode, and what its payer does."""

    open: Callable[[], AbstractAsyncContextManager[tuple[TestApp, Any, Any]]]
    pay: Callable[[Any, str], None]
    bind: Callable[[Any], None]
    """The payer of the only subscription confirms it, and pays its first charge."""
    refund: Callable[[Any], None] = lambda _: None
    """Refunds that are under way reach the payer."""


def _pay_at_raiffeisen(fake: Any, payment_id: str) -> None:
    [qr] = [each for each in fake.qrs.values() if each["order"] == payment_id]
    fake.pay(qr["qrId"])


def _bind_at_raiffeisen(fake: Any) -> None:
    [number] = fake.subscriptions
    fake.subscribe(number)


def _bind_at_tbank(fake: Any) -> None:
    [payment], [account] = fake.books.payments.values(), fake.books.accounts.values()
    fake.books.pay(payment)
    fake.books.confirm(account.key)


def _bind_at_yookassa(fake: Any) -> None:
    [payment] = fake.books.of_kind("payment")
    fake.books.pay(payment["id"])


def _finish_at_yookassa(fake: Any) -> None:
    for refund in fake.books.of_kind("refund"):
        fake.books.finish_refund(refund["id"])


BANKS = {
    "yookassa": ShippedBank(
        open_yookassa_app,
        lambda fake, payment_id: fake.books.pay(fake.books.of_operation(payment_id)["id"]),
        _bind_at_yookassa,
        _finish_at_yookassa,
    ),
    "tbank": ShippedBank(
        open_tbank_app,
        lambda fake, payment_id: fake.books.pay(fake.payment(payment_id.removeprefix("pay_"))),
        _bind_at_tbank,
    ),
    "raiffeisen": ShippedBank(open_raiffeisen_app, _pay_at_raiffeisen, _bind_at_raiffeisen, lambda fake: fake.finish()),
}


class Shop:
    """The merchant, whose bank notifies nobody."""

    def __init__(self, bank: ShippedBank, app: TestApp, fake: Any) -> None:
        self.app, self.fake, self.bank = app, fake, bank

    async def post(self, path: str, **body: Any) -> str:
        """Make an object, and return its id."""
        headers = self.app.headers("live", Idempotency_Key=str(uuid4()))
        answer = await self.app.http.post(f"/api/v1{path}", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        made: str = answer.json()["id"]
        return made

    async def create(self) -> str:
        return await self.post("/payments", amount_rub="490.00")

    async def shown(self, path: str) -> str:
        """The status of an object as merchants see it."""
        found: str = (await self.app.get(path, mode="live")).json()["status"]
        return found

    def pay(self, payment_id: str) -> None:
        self.bank.pay(self.fake, payment_id)

    async def status(self, payment_id: str) -> str:
        return (await self.app.payment(payment_id)).status.value

    def spoil_reads(self, problem: ProviderFault | ProviderAnswer, **more: Any) -> None:
        self.fake.next(problem, matching=_is_read, always=True, **more)


def _is_read(request: ProviderRequest) -> bool:
    return request.method == "GET" or request.path.rpartition("/")[2] in READS


@pytest.fixture(params=BANKS)
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    bank = BANKS[request.param]
    async with bank.open() as (app, fake, _):
        yield Shop(bank, app, fake)


@pytest.mark.parametrize("paid_at", [5, 45, 61, 200, 700])
async def test_payment_is_seen_within_75_seconds_of_its_money(shop: Shop, paid_at: int) -> None:
    """The bank never notified, so this holds at any age of the payment."""
    payment_id = await shop.create()
    await shop.app.work(paid_at)
    shop.pay(payment_id)
    await shop.app.work(75)
    assert await shop.status(payment_id) == "paid"


@pytest.mark.parametrize("bound_at", [5, 100, 700])
async def test_binding_is_seen_within_75_seconds_of_its_confirmation(shop: Shop, bound_at: int) -> None:
    terms = {"amount_rub": "300.00", "interval": "month", "description": "Coffee club"}
    subscription_id = await shop.post("/subscriptions", **terms)
    await open_binding(shop.app.ports, subscription_id)
    await shop.app.work(bound_at)
    assert await shop.shown(f"/subscriptions/{subscription_id}") == "pending_binding"
    shop.bank.bind(shop.fake)
    await shop.app.work(75)
    assert await shop.shown(f"/subscriptions/{subscription_id}") == "active"


async def test_refund_without_notification_is_seen_by_its_own_schedule(shop: Shop) -> None:
    payment_id = await shop.create()
    shop.pay(payment_id)
    await shop.app.work(60)
    refund_id = await shop.post("/refunds", payment_id=payment_id)
    await shop.app.work(50)
    shop.bank.refund(shop.fake)
    await shop.app.work(1000)
    assert await shop.shown(f"/refunds/{refund_id}") == "completed"


@pytest.mark.parametrize("fault", [ProviderFault.BUSY, ProviderFault.OVERLOADED])
async def test_bank_that_asks_for_ten_minutes_is_polled_each_minute(shop: Shop, fault: ProviderFault) -> None:
    payment_id = await shop.create()
    shop.spoil_reads(fault, retry_after=600)
    await shop.app.work(100)
    shop.pay(payment_id)
    shop.fake.recover()
    await shop.app.work(75)
    assert await shop.status(payment_id) == "paid"


@pytest.mark.parametrize("status", [401, 403])
async def test_denial_by_a_proxy_is_no_wrong_password(shop: Shop, status: int) -> None:
    """The payment is polled again, and the gateway is not down at once, as it is for wrong credentials."""
    payment_id = await shop.create()
    shop.spoil_reads(ProviderAnswer(status=status, body=PROXY, headers={"Content-Type": "text/html"}))
    await shop.app.work(31)
    down = [each.id for each in await everything(shop.app.ports, Gateway) if each.status is GatewayStatus.DOWN]
    assert down == []
    shop.pay(payment_id)
    shop.fake.recover()
    await shop.app.work(60)
    assert await shop.status(payment_id) == "paid"


@pytest.mark.parametrize("status", [401, 403])
async def test_creation_denied_by_a_proxy_takes_no_gateway_down(shop: Shop, status: int) -> None:
    """The merchant may repeat the request, and finds the bank in service."""
    shop.fake.next(ProviderAnswer(status=status, body=PROXY, headers={"Content-Type": "text/html"}))
    headers = shop.app.headers("live", Idempotency_Key=str(uuid4()))
    answer = await shop.app.http.post("/api/v1/payments", json={"amount_rub": "490.00"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "PAYMENT_ROUTE_UNAVAILABLE")
    await shop.create()


@pytest.mark.parametrize("fault", [ProviderFault.UNAUTHORIZED, ProviderFault.FORBIDDEN])
async def test_denial_by_the_bank_itself_takes_its_gateway_down(shop: Shop, fault: ProviderFault) -> None:
    await shop.create()
    shop.spoil_reads(fault)
    await shop.app.work(31)
    down = [each for each in await everything(shop.app.ports, Gateway) if each.status is GatewayStatus.DOWN]
    assert len(down) == 1


async def test_bank_that_never_notified_is_named_once_payments_were_paid(shop: Shop) -> None:
    """`cambist doctor` and `cambist provider check`: the address was never entered at the bank."""
    ports = shop.app.ports
    payment_id = await shop.create()
    assert (await judge_notifications(ports)).level is Level.OK
    shop.pay(payment_id)
    await shop.app.work(60)
    assert await silent_banks(ports) == {}, "the notification may still be on its way"
    await shop.app.work(660)
    [(name, last)] = (await silent_banks(ports)).items()
    assert last is None
    finding = await judge_notifications(ports)
    assert (finding.level, finding.message.startswith(f"{name} never notified")) == (Level.WARNING, True)
    [facts] = await provider_facts(ports, name)
    assert facts.is_silent


async def test_bank_that_stopped_notifying_is_named() -> None:
    bank = BANKS["tbank"]
    async with bank.open() as (app, fake, cabinet):
        shop = Shop(bank, app, fake)
        payment_id = await shop.create()
        shop.pay(payment_id)
        there = fake.payment(payment_id.removeprefix("pay_"))
        assert (await cabinet.post(fake.notification(there))).status_code == 200
        await app.work(1000)
        assert await shop.status(payment_id) == "paid"
        assert await silent_banks(app.ports) == {}
        assert (await judge_notifications(app.ports)).level is Level.OK
        later = await shop.create()
        shop.pay(later)
        await app.work(3600)
        assert list(await silent_banks(app.ports)) == ["tbank"]
        finding = await judge_notifications(app.ports)
        assert finding.message.startswith("tbank has not notified since 2026-01-01T00:00:00")
