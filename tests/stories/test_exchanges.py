"""A scenario for each final status of an exchange, in both directions, as a merchant sees it over HTTP
(docs/exchanges.md "How it ends"): the answer of GET, the one webhook, and the client's freedom to start another."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.usecases.exchanges.exchanges import cancel_any_exchange
from tests.exchange_app import ExchangeApp, open_exchange_app

FINAL = ("completed", "expired", "failed", "cancelled")


@pytest.fixture
async def app() -> AsyncIterator[ExchangeApp]:
    async with open_exchange_app() as opened:
        yield opened


async def told_once(app: ExchangeApp, exchange_id: str) -> dict[str, Any]:
    """The one webhook about an exchange, which verifies and agrees with GET."""
    app.app.check_signatures()
    [webhook] = [body for body in app.app.postman.bodies if body.get("exchange_id") == exchange_id]
    shown = await app.shown(exchange_id)
    assert webhook["event"] == "exchange.status_changed"
    for name in set(webhook) & set(shown):
        assert webhook[name] == shown[name], name
    return webhook


@pytest.mark.parametrize("end", FINAL)
async def test_usdt_to_rub(app: ExchangeApp, end: str) -> None:
    made = await app.created(external_id="order-7")
    await app.app.work(60)
    if end == "completed":
        await app.send(made["id"], "40")
        await app.app.work(30)
        assert (await app.shown(made["id"]))["status"] == "partial"
        await app.send(made["id"], "60", final=False)
        await app.app.work(90)
    elif end == "expired":
        await app.send(made["id"], "99")
        await app.app.work(840)
    elif end == "failed":
        app.app.script.remit.append(Twist(ending=Ending.REFUSED, reason="recipient"))
        await app.send(made["id"])
        await app.app.work(30)
    else:
        assert (await app.cancel(made["id"])).json()["status"] == "cancelled"
        await app.app.work(1)
    webhook = await told_once(app, made["id"])
    assert (webhook["status"], webhook["external_id"], webhook["direction"]) == (end, "order-7", "usdt_to_rub")
    received = {"completed": "100", "expired": "99", "failed": "100", "cancelled": "0"}[end]
    assert webhook["amount_usdt_received"] == f"{received}.00000000"
    assert (await app.post()).status_code == 201


@pytest.mark.parametrize("end", FINAL)
async def test_rub_to_usdt(app: ExchangeApp, end: str) -> None:
    made = await app.bought()
    assert (await app.shown(made.id))["status"] == "awaiting_rub"
    if end == "completed":
        await app.pay(made.id, 4_000_00)
        assert (await app.shown(made.id))["status"] == "partial"
        await app.pay(made.id, 6_000_00, again=True)
        await app.app.work(299)
        assert (await app.shown(made.id))["status"] == "rub_received"
        await app.app.work(1)
        assert (await app.shown(made.id))["status"] == "usdt_sending"
        await app.app.work(30)
    elif end == "expired":
        await app.pay(made.id, 9_999_99)
        await app.app.work(900)
    elif end == "failed":
        app.sender.script.sign.append(Twist(ending=Ending.REFUSED, reason="address"))
        await app.pay(made.id)
        await app.app.work(310)
    else:
        await cancel_any_exchange(app.ports, made.id)
        await app.app.work(1)
    webhook = await told_once(app, made.id)
    assert (webhook["status"], webhook["direction"], webhook["crypto_deposit_address"]) == (end, "rub_to_usdt", None)
    assert webhook["amount_usdt_received"] == (str(made.amount_usdt) if end == "completed" else "0.00000000")
    assert (await app.post()).status_code == 201
