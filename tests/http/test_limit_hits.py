"""Refused requests are counted for operators, and a flood of them does not become a flood of writes (docs/decisions.md
"Lists and search")."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import msgspec
import pytest

from cambist.core.domain.accounts.limit_hits import LimitHits
from cambist.core.usecases.accounts import limit_hits
from cambist.core.usecases.accounts.limit_hits import read_hits
from cambist.core.usecases.accounts.rate_limits import Counted, admit_stranger
from cambist.frontends.http.edge.edge import Edge
from cambist.frontends.telemetry.limit_hits import EVERY, hits_kept
from cambist.frontends.telemetry.requests import RequestWatch
from cambist.ports.faults import Unavailable
from tests.apps import TestApp
from tests.invariants import everything


class Storage:
    """The app's, which counts the units that are begun, and may be away."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.units = 0
        self.away = False
        self.answers = asyncio.Event()
        self.answers.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def unit(self) -> Any:
        if self.away:
            raise Unavailable("no connection")
        self.units += 1
        return self._slow_unit()

    @asynccontextmanager
    async def _slow_unit(self) -> AsyncIterator[Any]:
        await self.answers.wait()
        async with self._storage.unit() as unit:
            yield unit


class Client:
    """The edge of a process, with nothing behind it."""

    def __init__(self, app: TestApp) -> None:
        self.storage = Storage(app.ports.storage)
        self.ports = msgspec.structs.replace(app.ports, storage=self.storage)
        self.watch = RequestWatch(app.ports.clock)
        self.edge: Any = Edge(_answer, self.ports, (), self.watch)

    async def ask(
        self, times: int, key: str | None = "nobody", *, ip: str = "192.0.2.1", way: str = "GET"
    ) -> list[int]:
        headers = {} if key is None else {"X-Api-Key": key}
        transport = httpx.ASGITransport(self.edge, client=(ip, 1))
        async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as http:
            return [(await http.request(way, "/api/v1/payments", headers=headers)).status_code for _ in range(times)]

    @contextmanager
    def gone(self) -> Iterator[None]:
        self.storage.away = True
        yield
        self.storage.away = False


async def _answer(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def rows(app: TestApp) -> dict[str, int]:
    return {each.id: each.count for each in await everything(app.ports, LimitHits)}


async def test_a_thousand_refused_requests_are_three_writes(app: TestApp) -> None:
    client = Client(app)
    async with hits_kept(client.ports, client.watch.hits):
        assert await client.ask(60) == [200] * 60
        for _ in range(2):
            assert set(await client.ask(120)) == {429}
            await app.clock.advance(EVERY)
        assert set(await client.ask(760)) == {429}
        assert client.storage.units == 2
    assert client.storage.units == 3
    assert sum((await rows(app)).values()) == 1000
    # Past 300 it is the address's limit that refuses.
    assert sorted(each.counter for each in await everything(app.ports, LimitHits)) == ["general:ip", "general:key"]


async def test_requests_that_are_let_in_write_nothing(app: TestApp) -> None:
    client = Client(app)
    async with hits_kept(client.ports, client.watch.hits):
        await client.ask(60)
        await app.clock.advance(10 * EVERY)
    assert client.storage.units == 0


async def test_written_hits_are_not_written_again(app: TestApp) -> None:
    client = Client(app)
    async with hits_kept(client.ports, client.watch.hits):
        await client.ask(61)
        await app.clock.advance(10 * EVERY)
    assert client.storage.units == 1


async def test_each_of_the_four_limits_is_counted_apart_and_by_minute(app: TestApp) -> None:
    """Two buckets, each with a counter per key and one per IP (docs/limits.md "Requests")."""
    client = Client(app)
    begun = app.clock.now()
    async with hits_kept(client.ports, client.watch.hits):
        await client.ask(61)
        await app.clock.advance(60)
        await client.ask(303, None)
        await client.ask(122, None, way="POST")
        await app.clock.advance(60)
        for ip in ("192.0.2.1", "192.0.2.2"):
            await client.ask(62, way="POST", ip=ip)
    found = await everything(app.ports, LimitHits)
    assert {(each.counter, (each.minute - begun).total_seconds() // 60, each.count) for each in found} == {
        ("general:key", 0, 1),
        ("general:ip", 1, 3),
        ("money:ip", 1, 2),
        ("money:key", 2, 4),
    }


async def test_client_without_a_key_is_counted_by_the_minute(app: TestApp) -> None:
    begun = int(app.clock.now().timestamp())
    await app.clock.advance(42)
    found = [await admit_stranger(app.ports, "pages:ip", "192.0.2.1", 2) for _ in range(3)]
    assert found == [Counted(over=over, minute=begun, wait=18) for over in (False, False, True)]


async def test_requests_are_answered_and_counts_kept_without_storage(
    app: TestApp,
) -> None:
    client = Client(app)
    begun = app.clock.now()
    async with hits_kept(client.ports, client.watch.hits):
        with client.gone():
            assert (await client.ask(62))[-2:] == [429, 429]
            await app.clock.advance(10 * EVERY)
        assert await rows(app) == {}
        await app.clock.advance(EVERY)
        [written] = await everything(app.ports, LimitHits)
    assert (written.count, written.minute) == (2, begun.replace(second=0, microsecond=0))


async def test_hits_counted_during_a_write_are_written_at_the_end(app: TestApp) -> None:
    client = Client(app)
    async with hits_kept(client.ports, client.watch.hits):
        await client.ask(62)
        client.storage.answers.clear()
        await app.clock.advance(EVERY)
        await client.ask(1)
        asyncio.get_running_loop().call_soon(client.storage.answers.set)
    assert list((await rows(app)).values()) == [3]


async def test_waiting_hits_are_bounded_and_the_newest_stay(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_hits, "WAITING", 3)
    client = Client(app)
    now = int(app.clock.now().timestamp())
    for back in range(5, 0, -1):
        client.watch.hits.add("general:key", now - back * 60)
    await client.watch.hits.flush(client.ports)
    async with app.ports.storage.snapshot() as seen:
        assert (await read_hits(seen, app.clock.now())).hour[-6:] == [0, 0, 1, 1, 1, 0]
