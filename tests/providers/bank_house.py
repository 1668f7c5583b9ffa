"""An app whose live bank is a shipped one, over that bank's fake and with settings as an operator gives them. The bank
posts to the app's own HTTP interface. Each bank's `house.py` holds the details of that bank."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import httpx

from cambist.adapters.clock import VirtualClock
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notice_addresses import list_addresses, make_addresses
from cambist.frontends.provider_options import PROVIDER_OPTIONS
from tests.houses import TestHouse, open_test_house

F = TypeVar("F")

_JSON = {"Content-Type": "application/json"}


class Cabinet:
    """The address that an operator registers at the bank. The bank posts to it from its own address (`peer`)."""

    def __init__(self, house: TestHouse, address: str, peer: str) -> None:
        self.house = house
        self.path = address.removeprefix(house.ports.urls.base_url)
        transport: Any = house.http._transport
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(transport.app, client=(peer, 443)), base_url="https://pay.example"
        )

    async def post(self, notice: bytes | Mapping[str, Any], headers: Mapping[str, str] | None = None) -> httpx.Response:
        """One notice, as it is."""
        body = notice if isinstance(notice, bytes) else json.dumps(notice).encode()
        return await self._http.post(self.path, content=body, headers={**_JSON, **(headers or {})})

    async def close(self) -> None:
        await self._http.aclose()


class _LaterClock(VirtualClock):
    """The house's, once there is one."""

    house: TestHouse | None = None

    def now(self) -> datetime:
        return super().now() if self.house is None else self.house.clock.now()


def read_settings(adapter: str, told: Mapping[str, str]) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    return {f"{adapter}_{name}": PROVIDER_OPTIONS[f"{adapter}_{name}"].read(value) for name, value in told.items()}


@asynccontextmanager
async def open_bank_house(
    adapter: str,
    peer: str,
    fake_by: Callable[[VirtualClock], AbstractAsyncContextManager[F]],
    settings_of: Callable[[F], Mapping[str, Any]],
    **more: Any,
) -> AsyncIterator[tuple[TestHouse, F, Cabinet]]:
    """In memory, under the house's clock, which is the fake's, too. The merchant may refund and bind."""
    clock = _LaterClock()
    async with (
        fake_by(clock) as fake,
        open_test_house(**{"banks": (adapter,), "providers": settings_of(fake), **more}) as house,
    ):
        clock.house = house
        wish = {"refunds": "true", "refund_approval": "auto", "recurring": "true"}
        await set_settings(house.ports, house.account.account_id, wish)
        await make_addresses(house.ports)
        [shown] = await list_addresses(house.ports)
        assert shown.address is not None
        cabinet = Cabinet(house, shown.address, peer)
        yield house, fake, cabinet
        await cabinet.close()
