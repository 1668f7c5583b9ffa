"""Raiffeisenbank in live mode, from `cambist serve` on, over real HTTP: a payment by QR that a notification tells of, a
refund, and a mandate (docs/providers/raiffeisen.md). Webhooks and charges: tests/providers/raiffeisen/test_app.py,
since live webhooks do not go to this machine, and a charge takes a month."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from tests.providers.raiffeisen.fake import Raiffeisen
from tests.providers.raiffeisen.fake_rules import MERCHANT, SECRET
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import eventually, installation


@dataclass
class Shop:
    """A merchant in live mode, and the bank."""

    edge: Merchant
    bank: Raiffeisen
    notifications: str
    """Where the bank posts."""

    async def becomes(self, path: str, status: str) -> dict[str, Any]:
        """The object, once it has this status."""

        async def look() -> dict[str, Any] | None:
            shown: dict[str, Any] = (await self.edge.ask("GET", path)).json

            return shown if shown.get("status") == status else None

        return await eventually(look, every=0.2)

    async def made(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.edge.ask("POST", path, key=str(uuid4()), body=body)
        assert answer.status == 201, answer.text
        made: dict[str, Any] = answer.json
        return made

    async def posted(self, order: str) -> int:
        """Post the bank's notification about this order, and return the status of the answer."""
        return await self.bank.post(self.notifications, *self.bank.notification(order))


@asynccontextmanager
async def open_shop(folder: Path) -> AsyncIterator[Shop]:
    async with Raiffeisen() as bank:
        bank.is_swift = True
        settings = {
            "banks": "raiffeisen",
            "raiffeisen_merchant_id": MERCHANT,
            "raiffeisen_secret_key": SECRET,
            "raiffeisen_url": f"{bank.url}/api",
            "raiffeisen_subscriptions": "true",
            "raiffeisen_notification_networks": "127.0.0.1",
        }
        with installation(folder, **settings) as place:
            service, base = place.serve()
            account = await place.account()
            place.call("account", "set", account.account_id, "refunds=true", "refund_approval=auto", "recurring=true")
            [row] = place.call("notification", "list", "--json").document["data"]
            notifications = f"{base}{urlsplit(row['address']).path}"
            async with merchant(base, account.live) as edge:
                yield Shop(edge, bank, notifications)
            assert service.terminate() == 0
            for process in place.started:
                assert SECRET not in process.out + process.err


async def test_payers_pay_get_it_back_and_bind(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await _pays_and_gets_it_back(shop)
        await _binds(shop)


async def _pays_and_gets_it_back(shop: Shop) -> None:
    payment = await shop.made("/payments", amount_rub="490.00", description="Кофе «Ёлка»")
    *_, qr = shop.bank.qrs.values()
    assert (qr["order"], payment["status"]) == (payment["id"], "pending")
    shop.bank.pay(qr["qrId"])
    body, headers = shop.bank.notification(payment["id"])
    assert await shop.bank.post(shop.notifications, body.replace(b"490.00", b"491.00"), headers) == 403
    assert await shop.posted(payment["id"]) == 200
    await shop.becomes(f"/payments/{payment['id']}", "paid")
    assert await shop.posted(payment["id"]) == 200  # the notification comes twice, the payment is paid once
    assert (await shop.edge.ask("GET", "/balance")).json["pending_rub"] == "490.00"
    refund = await shop.made("/refunds", payment_id=payment["id"], amount_rub="90.00")
    await shop.becomes(f"/refunds/{refund['id']}", "completed")
    [back] = [each for each in shop.bank.refunds.values() if each["order"] == payment["id"]]
    assert str(back["amount"]) == "90.00"


async def _binds(shop: Shop) -> None:
    """The payer presses the button of our page, and subscribes in the bank's application."""
    wish = {"amount_rub": "300.00", "interval": "month", "description": "Coffee club", "binding_charge": "none"}
    subscription = await shop.made("/subscriptions", **wish)
    path = urlsplit(subscription["binding_url"]).path
    async with shop.edge.client.post(f"{shop.edge.base}{path}/open", data={"amount": "300.00"}) as page:
        assert page.status == 200

    async def asked() -> str | None:
        return next(iter(shop.bank.subscriptions), None)

    number = await eventually(asked)
    shop.bank.subscribe(number)
    told = shop.bank.subscription_notification(number)
    assert await shop.bank.post(shop.notifications, *told) == 200
    await shop.becomes(f"/subscriptions/{subscription['id']}", "active")
