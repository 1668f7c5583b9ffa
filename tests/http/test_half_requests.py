"""A connection with half a request, or without a next one, is closed (docs/limits.md "Times"). A connection that waits
for our answer is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cambist.frontends.http.edge.half_requests import BODY, GRACE, HEAD, IDLE, LEAST, HalfRequests
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings

HALF_HEAD = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nX-Api-Key: "
HALF_BODY = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{"
WHOLE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


class Edge:
    """A served socket that checks its connections when the test says so."""

    def __init__(self, port: int, connections: set[object]) -> None:
        self._port = port
        self._connections = connections
        self.polls = HalfRequests(connections)

    async def call(self, *said: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send this; return once the server has read it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for part in said:
            writer.write(part)
        await self.settled()
        return reader, writer

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        # A request on another connection is answered only after the earlier bytes were read.
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(WHOLE)
        await reader.readuntil(b'{"status":"ok"}')
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def a_edge(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Edge]:
    found: list[set[object]] = []

    class Noted(HalfRequests):
        def __init__(self, connections: set[object]) -> None:
            found.append(connections)
            super().__init__(())  # the test checks the connections itself

    monkeypatch.setattr("cambist.frontends.server.server.HalfRequests", Noted)
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        yield Edge(int(service.app.settings.base_url.rpartition(":")[2]), found[0])


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Return whether the server closed the connection without an answer."""
    return await reader.read() == b""


@pytest.mark.parametrize(
    ("said", "patience"),
    [((), HEAD), ((HALF_HEAD,), HEAD), ((HALF_BODY,), GRACE + 1 / LEAST)],
    ids=["nothing", "half a head", "half a body"],
)
async def test_incomplete_request_is_closed_after_its_time(
    monkeypatch: pytest.MonkeyPatch, said: tuple[bytes, ...], patience: float
) -> None:
    async with a_edge(monkeypatch) as edge:
        reader, writer = await edge.call(*said)
        for moment in (0.0, 1.0, patience - 0.001):
            edge.polls.look(moment)
        await edge.settled()
        assert not reader.at_eof()
        edge.polls.look(patience)
        assert await is_closed(reader)
        writer.close()


async def test_half_a_head_after_a_whole_request_has_a_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_edge(monkeypatch) as edge:
        reader, writer = await edge.call(WHOLE)
        await reader.readuntil(b'{"status":"ok"}')
        edge.polls.look(0.0)
        writer.write(HALF_HEAD)
        await edge.settled()
        edge.polls.look(HEAD)  # seen half for the first time
        await edge.settled()
        assert not reader.at_eof()
        edge.polls.look(2 * HEAD)
        assert await is_closed(reader)
        writer.close()


async def test_a_connection_is_closed_on_which_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_edge(monkeypatch) as edge:
        reader, writer = await edge.call(WHOLE)
        await reader.readuntil(b'{"status":"ok"}')
        for moment in (0.0, IDLE - 0.001):
            edge.polls.look(moment)
        writer.write(WHOLE)
        await reader.readuntil(b'{"status":"ok"}')
        for moment in (IDLE, 2 * IDLE - 0.001):  # it was idle for the first time again
            edge.polls.look(moment)
        await edge.settled()
        assert not reader.at_eof()
        edge.polls.look(2 * IDLE)
        assert await is_closed(reader)
        writer.close()


async def test_a_body_that_goes_on_to_the_next_part_in_time_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_edge(monkeypatch) as edge:
        reader, writer = await edge.call(HALF_BODY)
        edge.polls.look(0.0)
        edge.polls.look(GRACE)
        writer.write(b"}\r\n0\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 401")
        writer.close()


@pytest.mark.parametrize(
    ("size", "patience"), [(5 * LEAST, GRACE + 5), (90_000, BODY)], ids=["each piece gives time", "up to the whole"]
)
async def test_a_body_has_the_time_that_its_bytes_give_it(
    monkeypatch: pytest.MonkeyPatch, size: int, patience: float
) -> None:
    head = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n"
    async with a_edge(monkeypatch) as edge:
        reader, writer = await edge.call(head, b"x" * size)
        edge.polls.look(0.0)
        edge.polls.look(patience - 0.001)
        await edge.settled()
        assert not reader.at_eof()
        edge.polls.look(patience)
        assert await is_closed(reader)
        writer.close()
