"""Rolling restarts (docs/operations.md "Upgrades"): two `cambist api` behind nginx or HAProxy as deployed, under load;
one after the other gets SIGTERM, is replaced, and is ready before the next goes. No request is cut.

The merchants send nothing twice: one answer that is not the wanted one, or none, is one request cut.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from cambist.core.domain.payments.payments import Payment
from cambist.core.usecases.accounts.accounts import NewAccount
from tests.fronts import OwnProxy
from tests.haproxy import own_haproxy
from tests.invariants import check_books, everything
from tests.nginx import own_nginx
from tests.patience import HANGS, drill_of, promised
from tests.redis_servers import own_redis
from tests.servers import _free_port, own_postgres
from tests.stories.merchant import Merchant
from tests.stories.processes import installation

RESTARTS = 10
MERCHANTS = 96
"""Each at an address of its own, and slow enough for the limits: they shall be no reason to refuse anything."""
PAUSE = 1.2
"""Seconds between two requests of one merchant."""
ENDS_WITHIN = 10.0


@dataclass
class Load:
    """Merchants who create and read payments, each one request at a time, on connections that the proxy keeps."""

    base: str
    answers: Counter[str] = field(default_factory=Counter)
    created: list[str] = field(default_factory=list)
    slowest: float = 0.0
    stopping: bool = False

    @asynccontextmanager
    async def at_work(self, shops: list[NewAccount]) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for number, shop in enumerate(shops):
                group.create_task(self._trade(number, shop))
            try:
                yield
            finally:
                self.stopping = True

    async def _trade(self, number: int, shop: NewAccount) -> None:
        connector = aiohttp.TCPConnector(local_addr=(f"127.0.1.{number + 1}", 0))
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=HANGS)) as client:
            edge = Merchant(client, self.base, shop.test, None)
            await asyncio.sleep(PAUSE * number / MERCHANTS)
            while not self.stopping:
                before = len(self.created)
                await self._ask(edge, None)
                if len(self.created) > before:
                    await self._ask(edge, self.created[-1])
                await asyncio.sleep(PAUSE)

    async def _ask(self, edge: Merchant, payment_id: str | None) -> None:
        began = time.monotonic()
        try:
            if payment_id is None:
                answer = await edge.create()
                if answer.status == 201:
                    self.created.append(answer.json["id"])
            else:
                answer = await edge.ask("GET", f"/payments/{payment_id}")
            self.answers[str(answer.status)] += 1
        except (aiohttp.ClientError, OSError, TimeoutError) as lost:
            self.answers[type(lost).__name__] += 1
        self.slowest = max(self.slowest, time.monotonic() - began)


@pytest.mark.drill
@drill_of("tests/stories/test_operating.py")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("own_proxy", [own_nginx, own_haproxy])
async def test_a_rolling_restart_cuts_no_request(tmp_path: Path, own_proxy: OwnProxy) -> None:
    async with AsyncExitStack() as stack:
        postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
        place = stack.enter_context(
            installation(
                tmp_path,
                database_url=postgres.url,
                redis_url=redis.url,
                vault_key=secrets.token_hex(32),
                vault_pepper=secrets.token_hex(32),
                trusted_proxies="127.0.0.1/32",
            )
        )
        await place.migrate()
        shops = await place.accounts(MERCHANTS)
        ports = [_free_port(), _free_port()]
        proxy = stack.enter_context(own_proxy(tmp_path / "proxy", [f"127.0.0.1:{port}" for port in ports]))
        apis = [place.start_api("--port", str(port)) for port in ports]
        for api in apis:
            await asyncio.to_thread(api.ready)
        load, took = Load(proxy.base), []
        async with load.at_work(shops):
            for number in range(RESTARTS):
                await asyncio.sleep(1)
                leaving, which = apis[number % 2], number % 2
                began = time.monotonic()
                assert await asyncio.to_thread(leaving.terminate) == 0, leaving.err
                took.append(time.monotonic() - began)
                apis[which] = place.start_api("--port", str(ports[which]))
                await asyncio.to_thread(apis[which].ready)
            await asyncio.sleep(1)
        print(
            f"{RESTARTS} restarts, {load.answers.total()} requests, {dict(load.answers)}; the slowest answer took "
            f"{load.slowest:.2f} s, the longest end {max(took):.1f} s"
        )
        assert set(load.answers) <= {"200", "201"}, proxy.errors[-5:]
        assert max(took) <= promised(ENDS_WITHIN)
        assert not any("Traceback" in process.err for process in place.started)
        async with place.app() as inside:
            assert sorted(payment.id for payment in await everything(inside, Payment)) == sorted(load.created)
            await check_books(inside)
