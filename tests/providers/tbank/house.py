"""A house whose live bank is T-Bank, by settings as an operator gives them, over the fake; and what T-Bank posts, by
the house's own HTTP face."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx

from cambist.adapters.clock import VirtualClock
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notice_addresses import list_addresses, make_addresses
from cambist.frontends.provider_options import PROVIDER_OPTIONS
from tests.houses import TestHouse, open_test_house
from tests.providers.tbank.fake import PASSWORD, TERMINAL, TBankFake

PEER = "91.194.226.12"
"""One of T-Bank's addresses."""


class Cabinet:
    """What an operator has entered at T-Bank: where it posts."""

    def __init__(self, house: TestHouse, address: str) -> None:
        self._path = address.removeprefix(house.ports.urls.base_url)
        transport: Any = house.http._transport
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(transport.app, client=(PEER, 443)), base_url="https://pay.example"
        )

    async def post(self, notice: bytes) -> httpx.Response:
        """One notice, as it is."""
        return await self._http.post(self._path, content=notice, headers={"Content-Type": "application/json"})

    async def close(self) -> None:
        await self._http.aclose()


class _LaterClock(VirtualClock):
    """The house's, once there is one."""

    house: TestHouse | None = None

    def now(self) -> datetime:
        return super().now() if self.house is None else self.house.clock.now()


def settings_of(url: str, **more: str) -> dict[str, Any]:
    """What an operator sets, read as it is read."""
    told = {"terminal_key": TERMINAL, "password": PASSWORD, "mandates": "true", "url": url, **more}
    return {f"tbank_{name}": PROVIDER_OPTIONS[f"tbank_{name}"].read(value) for name, value in told.items()}


@asynccontextmanager
async def open_tbank_house(**more: Any) -> AsyncIterator[tuple[TestHouse, TBankFake, Cabinet]]:
    """In memory, under the house's clock, which is the fake's, too."""
    clock = _LaterClock()
    async with (
        TBankFake(clock) as fake,
        open_test_house(banks=("tbank",), providers=settings_of(fake.url), **more) as house,
    ):
        clock.house = house
        wish = {"refunds": "true", "refund_approval": "auto", "recurring": "true"}
        await set_settings(house.ports, house.account.account_id, wish)
        await make_addresses(house.ports)
        [shown] = await list_addresses(house.ports)
        assert shown.address is not None
        cabinet = Cabinet(house, shown.address)
        yield house, fake, cabinet
        await cabinet.close()
