"""A service behind a proxy with the configuration that is deployed, and clients at addresses of their own."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from uuid import uuid4

import httpx

from cambist.core.domain.accounts.rate_limit import networks
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.accounts.accounts import NewAccount
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS


class Proxy(Protocol):
    """A running proxy."""

    base: str

    @property
    def errors(self) -> list[str]:
        """The lines of its log about errors."""
        ...


OwnProxy = Callable[[Path, list[str]], AbstractContextManager[Proxy]]
"""Start a proxy with its files in a folder, before processes at these addresses (`host:port`)."""
Own = TypeVar("Own", bound=Proxy)


@dataclass
class Flooded:
    """Number of answers by status, and the last answer of each."""

    statuses: Counter[int] = field(default_factory=Counter)
    last: dict[int, str] = field(default_factory=dict)


class Front(Generic[Own]):
    """A service behind a proxy, and a merchant."""

    def __init__(self, proxy: Own, account: NewAccount) -> None:
        self.proxy = proxy
        self.port = int(proxy.base.rpartition(":")[2])
        self._keys = {"X-Api-Key": account.test.api_key, "X-Api-Secret": account.test.api_secret}

    def client(self, address: str = "127.0.0.2") -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(local_address=address)
        return httpx.AsyncClient(base_url=self.proxy.base, headers=self._keys, transport=transport, timeout=HANGS)

    async def payment(self) -> str:
        async with self.client("127.0.0.9") as merchant:
            made = await merchant.post(
                "/api/v1/payments", json={"amount_rub": "100.00"}, headers={"Idempotency-Key": str(uuid4())}
            )
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    async def flood(self, count: int, path: str = "/nothing") -> "Flooded":
        """So many requests from 127.0.0.2 as fast as they go."""
        flooded = Flooded()

        async def burst(number: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=("127.0.0.2", 0))
            one = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()
            writer.write(one * (number - 1) + one[:-2] + b"Connection: close\r\n\r\n")
            said = (await reader.read()).decode()
            writer.close()
            for answer in said.split("HTTP/1.1 ")[1:]:
                flooded.statuses[int(answer[:3])] += 1
                flooded.last[int(answer[:3])] = answer

        await asyncio.gather(*(burst(250) for _ in range(count // 250)))
        return flooded


@asynccontextmanager
async def fronted(
    folder: Path, own_proxy: Callable[[Path, list[str]], AbstractContextManager[Own]]
) -> AsyncIterator[Front[Own]]:
    """A service on memory behind this proxy, which has it twice as its upstream."""
    settings = Settings(database_url="memory://", port=0, trusted_proxies=networks(["127.0.0.1"]))
    async with running(settings, works=False) as service:
        account = await accounts.create_account(service.app.ports, "Merchant")
        upstream = service.app.settings.base_url.removeprefix("http://")
        with own_proxy(folder / "proxy", [upstream, upstream]) as proxy:
            yield Front(proxy, account)
