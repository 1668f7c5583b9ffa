"""What operators meet on the screens of subscriptions, exchanges, clients, webhooks, suspense and gateways: one of
each, made as merchants, payers and banks make them."""

import msgspec

from cambist.core.domain.clients import Client
from cambist.core.domain.events import Delivery, DeliveryStatus
from cambist.core.domain.payments import Suspense
from cambist.core.usecases.operations import list_suspense
from cambist.core.usecases.payment_progress import on_notice
from cambist.ports.bank import InvoiceStatus, Pretence
from cambist.ports.notifier import Answer, Receipt
from tests.books import everything
from tests.exchange_house import ExchangeHouse
from tests.refund_house import RefundHouse
from tests.subscription_house import bound

PHONE = "+70000000002"
"""Verified in test mode."""
BAD = Receipt(answer=Answer.RESPONDED, status=500, note="Internal Server Error", took_ms=12)


class Seeded(msgspec.Struct, frozen=True):
    """The ids of what there is."""

    subscription: str
    open_exchange: str
    late_exchange: str
    client: str
    failed_event: str
    suspense: str


async def seed(refunds: RefundHouse) -> Seeded:
    """A subscription with a charge; an exchange that awaits USDT, and one that was paid after it was called off; a
    client; a webhook that was given up after ten attempts; 30 RUB too much for a payment."""
    house = refunds.house
    exchanges = ExchangeHouse(house)
    await exchanges.set(exchange="true")
    payment = await refunds.paid(client_phone="+79005551234", external_id="order-7")
    await house.work()
    subscription = (await bound(house, external_id="club-1"))["id"]
    await house.work()
    house.postman.answers.extend([BAD] * 10)
    late = await exchanges.made()
    await exchanges.cancel(late.id)
    await house.work(600)
    await exchanges.send(late.id, "7")
    await exchanges.look(late.id)
    awaiting = await exchanges.made(phone=PHONE)
    body = {"phone": "+79005557788", "kyc_status": "verified"}
    made = await house.http.post("/api/v1/sandbox/exchange-clients", json=body, headers=house.headers())
    assert made.status_code in (200, 201), made.text
    more = Pretence(status=InvoiceStatus.PAID, amount_kopecks=30_00, again=True)
    for notice in await refunds.bank().pretend(payment, more):
        await on_notice(refunds.ports, notice)
    await house.work()
    [failed] = [each for each in await everything(refunds.ports, Delivery) if each.status is DeliveryStatus.FAILED]
    [client] = await everything(refunds.ports, Client)
    [money] = await list_suspense(refunds.ports)
    assert isinstance(client, Client)
    assert isinstance(money, Suspense)
    return Seeded(subscription, awaiting.id, late.id, client.id, failed.id, money.id)
