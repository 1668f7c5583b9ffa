"""An app whose live bank is a shipped one, over that bank's fake and with settings as an operator gives them. The bank
posts to the app's own HTTP interface. Each bank's `app.py` holds the details of that bank."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import httpx

from cambist.adapters.clock import VirtualClock
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.notification_addresses import list_addresses, make_addresses
from cambist.frontends.settings.options import ALL_OPTIONS
from tests.apps import TestApp, open_test_app

F = TypeVar("F")

_JSON = {"Content-Type": "application/json"}


class Cabinet:
    """The address that an operator registers at the bank. The bank posts to it from its own address (`peer`)."""

    def __init__(self, app: TestApp, address: str, peer: str) -> None:
        self.app = app
        self.path = address.removeprefix(app.ports.urls.base_url)
        transport: Any = app.http._transport
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(transport.app, client=(peer, 443)), base_url="https://pay.example"
        )

    async def post(
        self, notification: bytes | Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Post one notification unchanged."""
        body = notification if isinstance(notification, bytes) else json.dumps(notification).encode()
        return await self._http.post(self.path, content=body, headers={**_JSON, **(headers or {})})

    async def close(self) -> None:
        await self._http.aclose()


class _LaterClock(VirtualClock):
    """The app's, once there is one."""

    app: TestApp | None = None

    def now(self) -> datetime:
        return super().now() if self.app is None else self.app.clock.now()


def read_settings(adapter: str, told: Mapping[str, str]) -> dict[str, Any]:
    """Read an operator's settings as the app reads them."""
    return {f"{adapter}_{name}": ALL_OPTIONS[f"{adapter}_{name}"].read(value) for name, value in told.items()}


@asynccontextmanager
async def open_bank_app(
    adapter: str,
    peer: str,
    fake_by: Callable[[VirtualClock], AbstractAsyncContextManager[F]],
    settings_of: Callable[[F], Mapping[str, Any]],
    **more: Any,
) -> AsyncIterator[tuple[TestApp, F, Cabinet]]:
    """Open an app in memory with the fake's clock. The merchant may refund and bind."""
    clock = _LaterClock()
    async with (
        fake_by(clock) as fake,
        open_test_app(**{"banks": (adapter,), "providers": settings_of(fake), **more}) as app,
    ):
        clock.app = app
        wish = {"refunds": "true", "refund_approval": "auto", "recurring": "true"}
        await set_settings(app.ports, app.account.account_id, wish)
        await make_addresses(app.ports)
        [shown] = await list_addresses(app.ports)
        assert shown.address is not None
        cabinet = Cabinet(app, shown.address, peer)
        yield app, fake, cabinet
        await cabinet.close()
