"""A scenario for each final status of an exchange, in both directions, as a merchant sees it over HTTP
(docs/exchanges.md "How it ends"): the answer of GET, the one webhook, and the client's freedom to start another."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange
from tests.exchange_house import ExchangeHouse, open_exchange_house

FINAL = ("completed", "expired", "failed", "cancelled")


@pytest.fixture
async def house() -> AsyncIterator[ExchangeHouse]:
    async with open_exchange_house() as opened:
        yield opened


async def told_once(house: ExchangeHouse, exchange_id: str) -> dict[str, Any]:
    """The one webhook about an exchange, which verifies and agrees with GET."""
    house.house.check_signatures()
    [webhook] = [body for body in house.house.postman.bodies if body.get("exchange_id") == exchange_id]
    shown = await house.shown(exchange_id)
    assert webhook["event"] == "exchange.status_changed"
    for name in set(webhook) & set(shown):
        assert webhook[name] == shown[name], name
    return webhook


@pytest.mark.parametrize("end", FINAL)
async def test_usdt_to_rub(house: ExchangeHouse, end: str) -> None:
    made = await house.created(external_id="order-7")
    await house.house.work(60)
    if end == "completed":
        await house.send(made["id"], "40")
        await house.house.work(30)
        assert (await house.shown(made["id"]))["status"] == "partial"
        await house.send(made["id"], "60", final=False)
        await house.house.work(90)
    elif end == "expired":
        await house.send(made["id"], "99")
        await house.house.work(840)
    elif end == "failed":
        house.house.script.remit.append(Twist(ending=Ending.REFUSED, reason="recipient"))
        await house.send(made["id"])
        await house.house.work(30)
    else:
        assert (await house.cancel(made["id"])).json()["status"] == "cancelled"
        await house.house.work(1)
    webhook = await told_once(house, made["id"])
    assert (webhook["status"], webhook["external_id"], webhook["direction"]) == (end, "order-7", "usdt_to_rub")
    received = {"completed": "100", "expired": "99", "failed": "100", "cancelled": "0"}[end]
    assert webhook["amount_usdt_received"] == f"{received}.00000000"
    assert (await house.post()).status_code == 201


@pytest.mark.parametrize("end", FINAL)
async def test_rub_to_usdt(house: ExchangeHouse, end: str) -> None:
    made = await house.bought()
    assert (await house.shown(made.id))["status"] == "awaiting_rub"
    if end == "completed":
        await house.pay(made.id, 4_000_00)
        assert (await house.shown(made.id))["status"] == "partial"
        await house.pay(made.id, 6_000_00, again=True)
        await house.house.work(299)
        assert (await house.shown(made.id))["status"] == "rub_received"
        await house.house.work(1)
        assert (await house.shown(made.id))["status"] == "usdt_sending"
        await house.house.work(30)
    elif end == "expired":
        await house.pay(made.id, 9_999_99)
        await house.house.work(900)
    elif end == "failed":
        house.sender.script.sign.append(Twist(ending=Ending.REFUSED, reason="address"))
        await house.pay(made.id)
        await house.house.work(310)
    else:
        await cancel_any_exchange(house.ports, made.id)
        await house.house.work(1)
    webhook = await told_once(house, made.id)
    assert (webhook["status"], webhook["direction"], webhook["crypto_deposit_address"]) == (end, "rub_to_usdt", None)
    assert webhook["amount_usdt_received"] == (str(made.amount_usdt) if end == "completed" else "0.00000000")
    assert (await house.post()).status_code == 201
