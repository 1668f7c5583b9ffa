"""YooKassa as an operator sets it up, in real processes: settings name it, its notifications come through a trusted
proxy to the address that `cambist notification list` prints, and a merchant's receiver hears how it went
(docs/providers/yookassa.md).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from tests.providers.yookassa.fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake
from tests.receivers import Receiver
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import Installation, eventually, installation

PEER = "185.71.76.9"


@pytest.fixture
async def fake() -> AsyncIterator[YooKassaFake]:
    async with YooKassaFake(lambda: datetime.now(UTC)) as opened:
        yield opened


@pytest.fixture(params=["live", "test"])
def mode(request: pytest.FixtureRequest) -> str:
    """Live webhooks cannot reach this machine's addresses, so the test reads live mode's events; test mode's webhooks
    arrive."""
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path, fake: YooKassaFake, mode: str) -> Iterator[Installation]:
    secret = tmp_path / "yookassa-key"
    secret.write_text(f"{KEY}\n")
    chosen = {
        "banks" if mode == "live" else "test_banks": "yookassa",
        "yookassa_shop_id": SHOP,
        "yookassa_secret_key_file": str(secret),
        "yookassa_payout_id": GATEWAY,
        "yookassa_payout_key": PAYOUT_KEY,
        "yookassa_url": fake.api,
        "trusted_proxies": "127.0.0.1",
        "allow_loopback_webhooks": "true",
        "log_level": "debug",
    }
    with installation(tmp_path, **chosen) as made:
        yield made


class Told:
    """Reports to the merchant."""

    def __init__(self, mode: str, shop: Merchant, receiver: Receiver) -> None:
        self.mode = mode
        self.shop = shop
        self.receiver = receiver

    async def bodies(self, count: int) -> list[dict[str, Any]]:
        """The first events, once there are so many."""
        if self.mode == "test":
            return [json.loads(request.body) for request in await self.receiver.arrived(count)]
        return await eventually(lambda: self._events(count))

    async def _events(self, count: int) -> list[dict[str, Any]] | None:
        listed = (await self.shop.ask("GET", "/events")).json["data"]
        if len(listed) < count:
            return None
        return [(await self.shop.ask("GET", f"/events/{event['id']}")).json["payload"] for event in reversed(listed)]


async def test_from_the_settings_to_the_refund(place: Installation, fake: YooKassaFake, mode: str) -> None:
    async with Receiver() as receiver:
        account = await place.account(receiver.url)
        async with place.app() as ports:
            await set_settings(ports, account.account_id, {"refunds": "true", "refund_approval": "auto"})
        # In threads: the fake answers by this loop.
        service, base = await asyncio.to_thread(place.serve)
        checking = await asyncio.to_thread(place.call, "provider", "check", "yookassa", "--json")
        [checked] = checking.document["data"]
        assert checked["credentials"] == "taken", checked
        listed = await asyncio.to_thread(place.call, "notification", "list", "--json")
        [row] = listed.document["data"]
        address = f"{base}/{row['address'].split('/', 3)[3]}"
        async with merchant(base, getattr(account, mode)) as shop:
            told = Told(mode, shop, receiver)
            payment = await shop.created(amount_rub="490.00", description="Чай")
            thing = fake.books.of_operation(payment["id"])
            assert (thing["amount"]["value"], thing["description"]) == ("490.00", "Чай")
            async with shop.client.get(f"{base}/p/{payment['id']}") as page:
                assert page.status == 200

            fake.books.pay(thing["id"])
            await tell(fake, address)
            [paid] = await told.bodies(1)
            assert (paid["payment_id"], paid["status"], paid["actual_amount_rub"]) == (payment["id"], "paid", "490.00")

            refund = await shop.ask(
                "POST", "/refunds", key=str(uuid4()), body={"payment_id": payment["id"], "amount_rub": "90.00"}
            )
            assert refund.status == 201, refund.text
            sent = await eventually(lambda: _first(fake))
            fake.books.finish_refund(sent["id"])
            await tell(fake, address)
            _, back = await told.bodies(2)
            assert (back["refund_id"], back["status"]) == (refund.json["refund_id"], "completed")
            assert (await balance(shop))["pending_rub"] == "400.00"
        service.kill()
    for process in place.started:
        for text in (process.out, process.err):
            assert KEY not in text
            assert PAYOUT_KEY not in text


async def _first(fake: YooKassaFake) -> dict[str, Any] | None:
    return next(iter(fake.books.pending_refunds()), None)


async def tell(fake: YooKassaFake, address: str) -> None:
    """Post the due notifications as YooKassa does, through the proxy."""
    async with aiohttp.ClientSession(headers={"X-Forwarded-For": PEER}) as http:
        while fake.told:
            async with http.post(address, json=fake.told.pop(0)) as answer:
                assert answer.status == 200, await answer.text()


async def balance(shop: Merchant) -> dict[str, Any]:
    found: dict[str, Any] = (await shop.ask("GET", "/balance")).json
    return found
