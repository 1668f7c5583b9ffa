"""A house whose live bank is YooKassa, by settings as an operator gives them, over the fake; and what the provider
posts, by the house's own HTTP face."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx

from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notice_addresses import list_addresses, make_addresses
from cambist.frontends.provider_options import PROVIDER_OPTIONS
from tests.houses import TestHouse, open_test_house

from .books import Thing
from .fake import GATEWAY, KEY, PAYOUT_KEY, SHOP, YooKassaFake

PEER = "185.71.76.1"
"""One of YooKassa's addresses."""


class Cabinet:
    """What an operator has entered at YooKassa: where it posts."""

    def __init__(self, house: TestHouse, address: str) -> None:
        self.house = house
        self.path = address.removeprefix(house.ports.urls.base_url)
        transport: Any = house.http._transport
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(transport.app, client=(PEER, 443)), base_url="https://pay.example"
        )

    async def post(self, notice: Thing) -> int:
        """One notice, as it is; the status of the answer."""
        answer = await self._http.post(self.path, content=json.dumps(notice).encode())
        return answer.status_code

    async def close(self) -> None:
        await self._http.aclose()


def settings_of(fake: YooKassaFake, **more: str) -> dict[str, Any]:
    """What an operator sets, read as it is read."""
    told = {
        "shop_id": SHOP,
        "secret_key": KEY,
        "payout_id": GATEWAY,
        "payout_key": PAYOUT_KEY,
        "mandates": "true",
        "url": fake.api,
        **more,
    }
    return {f"yookassa_{name}": PROVIDER_OPTIONS[f"yookassa_{name}"].read(value) for name, value in told.items()}


@asynccontextmanager
async def open_yookassa_house(**more: Any) -> AsyncIterator[tuple[TestHouse, YooKassaFake, Cabinet]]:
    """In memory, under the house's clock, which is the fake's, too."""
    clock: list[Callable[[], datetime]] = []
    async with (
        YooKassaFake(lambda: clock[0]()) as fake,
        open_test_house(banks=("yookassa",), providers=settings_of(fake), **more) as house,
    ):
        clock.append(house.clock.now)
        wish = {"refunds": "true", "refund_approval": "auto", "recurring": "true"}
        await set_settings(house.ports, house.account.account_id, wish)
        await make_addresses(house.ports)
        [shown] = await list_addresses(house.ports)
        assert shown.address is not None
        cabinet = Cabinet(house, shown.address)
        yield house, fake, cabinet
        await cabinet.close()
