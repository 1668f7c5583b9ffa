"""A merchant takes money by T-Bank over real HTTP: the service named it by settings, T-Bank's fake has the payer, and
what T-Bank posts comes to the address that its cabinet was told (docs/providers/tbank.md)."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cambist.adapters.clock import SystemClock
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.notification_addresses import list_addresses
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.providers.tbank.app import settings_of
from tests.providers.tbank.books import Payment
from tests.providers.tbank.fake import TBankFake
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import eventually


class Shop:
    """A merchant at the running service, and the bank."""

    def __init__(self, edge: Merchant, fake: TBankFake, address: str) -> None:
        self.edge, self.fake, self.address = edge, fake, address

    async def told(self, payment: Payment, *, genuine: bool = True) -> tuple[int, str]:
        """Let T-Bank post the payment's state."""
        body = self.fake.notification(payment)
        async with (
            aiohttp.ClientSession() as client,
            client.post(self.address, data=body if genuine else body.replace(b"true", b"false")) as answer,
        ):
            return answer.status, await answer.text()

    async def told_merchant(self, kind: str) -> dict[str, Any]:
        """The event of this kind. Live webhooks go to https addresses of others alone, so it is read from the feed;
        that they arrive, tests/providers/tbank/test_story.py says."""

        async def look() -> str | None:
            listed = (await self.edge.ask("GET", f"/events?type={kind}")).json["data"]
            return listed[0]["id"] if listed else None

        event = await eventually(look)
        payload: dict[str, Any] = (await self.edge.ask("GET", f"/events/{event}")).json["payload"]
        return payload


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with TBankFake(SystemClock()) as fake:
        settings = Settings(
            database_url="memory://",
            data_dir=tmp_path,
            port=0,
            banks=("tbank",),
            providers=settings_of(fake.url),
            notification_networks={"tbank": (ip_network("127.0.0.0/8"),)},
        )
        async with running(settings) as service:
            ports = service.app.ports
            account = await create_account(ports, "Coffee House")
            await set_settings(ports, account.account_id, {"refunds": "true", "refund_approval": "auto"})
            [address] = [each.address for each in await list_addresses(ports) if each.adapter == "tbank"]
            assert address is not None
            async with merchant(service.app.settings.base_url, account.live) as edge:
                yield Shop(edge, fake, address)


async def test_a_payer_pays_by_qr_and_gets_the_money_back(shop: Shop) -> None:
    payment = await shop.edge.created(external_id="order-1")
    there = shop.fake.payment(payment["id"].removeprefix("pay_"))
    async with aiohttp.ClientSession() as payer, payer.get(payment["payment_url"]) as page:
        assert page.status == 200
        assert there.qr is not None
        assert there.qr.replace("&", "&amp;") in (await page.text()).replace("&#38;", "&amp;")
    shop.fake.books.pay(there)
    assert (await shop.told(there, genuine=False))[0] == 403
    assert await shop.told(there) == (200, "OK")
    paid = await shop.told_merchant("payment.status_changed")
    assert (paid["status"], paid["actual_amount_rub"]) == ("paid", "100.00")
    body = {"payment_id": payment["id"], "amount_rub": "40.00"}
    refund = (await shop.edge.ask("POST", "/refunds", key=payment["id"].removeprefix("pay_"), body=body)).json
    assert await shop.told(there) == (200, "OK")
    back = await shop.told_merchant("refund.completed")
    assert (back["refund_id"], back["amount_rub"]) == (refund["id"], "40.00")
    assert shop.fake.books.sent_back == [(there.id, 40_00)]
