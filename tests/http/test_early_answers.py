"""A body that continues after its request was answered is bounded (docs/limits.md "Sizes", docs/security.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cambist.frontends.http.edge.bounded import DRAIN, SMALL_CHUNK, SMALL_CHUNKS
from cambist.frontends.http.edge.half_requests import REST, HalfRequests
from cambist.frontends.http.edge.intake import Intake
from cambist.frontends.http.edge.parse_budget import ALL, TURN, ParseBudget
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS
from tests.tables import table

HEAD = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b'{"status":"ok"}'

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def line() -> AsyncIterator[Line]:
    """Yield one connection to a service of its own."""
    async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield reader, writer
        writer.close()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Read one refusal, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [row for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")]
    await reader.readexactly(int(length.partition(b":")[2]))
    return head.partition(b"\r\n")[0]


async def closed(reader: asyncio.StreamReader) -> None:
    """Wait until the server closes."""
    try:
        while await reader.read(65536):
            pass
    except ConnectionError:
        pass


async def test_body_that_ends_after_its_refusal_keeps_the_connection() -> None:
    """Clients send head and body apart, and the refusal may overtake the body."""
    async with line() as (reader, writer):
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert b" 401 " in await answer(reader)
        writer.write(b" " * 1000 + GET)
        assert OK in await reader.readuntil(OK)
        writer.write(GET)
        assert OK in await reader.readuntil(OK)


@table("framing", [b"Content-Length: 99999999999", b"Transfer-Encoding: chunked"])
async def test_body_without_end_is_dropped_after_256_kb(framing: bytes) -> None:
    async with line() as (reader, writer):
        chunk = b" " * 4096 if b"Length" in framing else b"1000\r\n" + b" " * 4096 + b"\r\n"
        writer.write(HEAD + framing + b"\r\n\r\n" + chunk * (102_400 // 4096 + 1))
        assert b" 413 " in await answer(reader)
        sent = 0
        ended = asyncio.create_task(closed(reader))
        while not ended.done():
            writer.write(chunk)
            sent += len(chunk)
            try:
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0)
            assert sent < DRAIN + (16 << 20), "what the buffers of two sockets take, and no more"
        await ended


async def test_rest_of_an_answered_body_has_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[object]] = []

    class Noted(HalfRequests):
        def __init__(self, connections: set[object]) -> None:
            found.append(connections)
            super().__init__(())  # the test checks the connections itself

    monkeypatch.setattr("cambist.frontends.server.server.HalfRequests", Noted)
    async with line() as (reader, writer):
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n ")
        assert b" 401 " in await answer(reader)
        polls = HalfRequests(found[0])
        polls.look(0.0)
        polls.look(REST - 0.001)
        await asyncio.sleep(0)
        assert not reader.at_eof()
        polls.look(REST)
        await closed(reader)


@table(
    ("size", "count", "status"),
    [(1, SMALL_CHUNKS + 3, b" 400 "), (SMALL_CHUNK // 2, 3 * SMALL_CHUNKS, b" 400 "), (SMALL_CHUNK, 1500, b" 401 ")],
)
async def test_chunks_below_64_bytes_are_refused_beyond_a_hundred(size: int, count: int, status: bytes) -> None:
    chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
    async with line() as (reader, writer):
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * count + b"0\r\n\r\n")
        assert status in await answer(reader)


async def test_large_chunk_earns_no_more_than_a_hundred_small_ones() -> None:
    async with line() as (reader, writer):
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + b" " * 0x10000 + b"\r\n")
        writer.write(b"1\r\n \r\n" * (SMALL_CHUNKS + 3))
        assert b" 400 " in await answer(reader)
        await closed(reader)


async def test_small_chunks_before_the_hundredth_are_taken() -> None:
    async with line() as (reader, writer):
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * SMALL_CHUNKS + b"0\r\n\r\n")
        assert b" 401 " in await answer(reader)


async def test_refusal_of_overload_reads_no_more_than_256_kb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Intake, "take", lambda intake, line, cycle, _app: intake._refuse(line, cycle))
    async with line() as (reader, writer):
        writer.write(HEAD + b"Content-Length: 99999999999\r\n\r\n" + b" " * (DRAIN + 1))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"connection: close" in head.lower()
        await closed(reader)


class Loop:
    """The part of an event loop that the budget uses."""

    def __init__(self) -> None:
        self.due: list[Any] = []

    def call_soon(self, call: Any, *given: Any) -> None:
        self.due.append((call, given))

    def turn(self) -> None:
        due, self.due = self.due, []
        for call, given in due:
            call(*given)


class Held:
    """A connection that holds bytes and parses a turn's worth of them at a time."""

    def __init__(self, budget: ParseBudget, loop: Any, size: int) -> None:
        self._budget, self._loop, self._left = budget, loop, size
        self.turns = 0

    def read_on(self) -> None:
        self.turns += 1
        parsed = min(self._left, TURN)
        self._left -= parsed
        self._budget.spend(self._loop, parsed)
        if self._left:
            self._budget.later(self._loop, self)


def test_all_connections_share_one_budget_in_the_order_they_came() -> None:
    loop: Any = Loop()
    budget = ParseBudget()
    lines = [Held(budget, loop, 3 * TURN) for _ in range(20)]
    for each in lines:
        budget.later(loop, each)
    at_once = ALL // TURN
    loop.turn()
    assert [each.turns for each in lines] == [1] * at_once + [0] * (20 - at_once)
    loop.turn()
    loop.turn()
    assert [each.turns for each in lines] == [2] * (3 * at_once - 20) + [1] * (40 - 3 * at_once)
    while loop.due:
        loop.turn()
    assert {each.turns for each in lines} == {3}


def test_parse_budget_is_spent_for_one_turn_only() -> None:
    loop: Any = Loop()
    budget = ParseBudget()
    budget.spend(loop, ALL)
    assert budget.is_spent
    loop.turn()
    assert not budget.is_spent
    assert not loop.due, "nothing runs while nothing is parsed"
