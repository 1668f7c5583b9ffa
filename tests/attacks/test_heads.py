"""A client without a key cannot make the service keep unbounded input: heads, addresses and trailers are bounded before
they are parsed (docs/limits.md "Sizes")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httptools
import msgspec
import pytest

from cambist.frontends.http.edge.bounded import HEAD, HEADERS
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.tables import table

LINE = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
MUCH = 8 * HEAD


@asynccontextmanager
async def a_service() -> AsyncIterator[int]:
    async with running(Settings(database_url="memory://", port=0), works=False) as service:
        yield int(service.app.settings.base_url.rpartition(":")[2])


async def said(port: int, *parts: bytes) -> bytes:
    """Return all bytes that the service answers until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    except ConnectionError:  # the service closed while we were talking
        return b"closed"
    finally:
        writer.close()


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes parsers were given, in turn: a connection drops its parser between requests."""
    amounts: list[int] = []
    real = httptools.HttpRequestParser

    class Parser:
        """A parser that records its input."""

        def __init__(self, protocol: Any) -> None:
            self._parser = real(protocol)

        def feed_data(self, data: bytes) -> None:
            amounts.append(len(data))
            self._parser.feed_data(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._parser, name)

    monkeypatch.setattr(httptools, "HttpRequestParser", Parser)
    return amounts


@pytest.mark.parametrize(
    "head",
    [
        LINE + b"a:b\r\n" * (MUCH // 5),
        LINE + b"a: " + b"b" * MUCH,
        LINE + b"b" * MUCH,
        b"GET /" + b"b" * MUCH,
    ],
    ids=["many headers", "a long value", "a long name", "a long address"],
)
async def test_a_head_that_does_not_end_is_refused_and_not_kept(fed: list[int], head: bytes) -> None:
    async with a_service() as port:
        answered = await said(port, head)
    assert sum(fed) <= HEAD
    if answered != b"closed":  # the kernel may drop the answer together with unread bytes
        assert answered.startswith(b"HTTP/1.1 431 ")


async def test_a_head_in_small_pieces_counts_as_one_head(fed: list[int]) -> None:
    async with a_service() as port:
        await said(port, LINE, *[b"a: " + b"b" * 1000 + b"\r\n"] * (HEAD // 1000 + 8))
    assert sum(fed) <= HEAD


@pytest.mark.parametrize(
    "tail", [b"0\r\n" + b"a:b\r\n" * (MUCH // 5), b"1;" + b"x" * MUCH], ids=["trailers", "a chunk's extension"]
)
async def test_framing_of_a_body_is_bounded_too(fed: list[int], tail: bytes) -> None:
    async with a_service() as port:
        await said(port, CHUNKED, tail)
    assert sum(fed) <= 2 * HEAD  # bytes that arrive together with the head are parsed with it


async def test_the_refusal_is_the_documented_envelope() -> None:
    over = LINE + b"a: b\r\n" * HEADERS + b"\r\n"  # and Host
    async with a_service() as port:
        head, _, body = (await said(port, over)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert b"Connection: close" in head
    assert b"\r\nX-Request-Id: " in head
    assert b"\r\nCache-Control: no-store\r\n" in head
    assert b'/docs/errors#HEADERS_TOO_LARGE>; rel="help"' in head
    assert msgspec.json.decode(body)["error"]["code"] == "HEADERS_TOO_LARGE"


async def test_a_head_of_just_the_bounds_is_answered() -> None:
    most = LINE + b"a: b\r\n" * (HEADERS - 2) + b"Connection: close\r\n"
    largest = LINE + b"Connection: close\r\na: "
    largest += b"b" * (HEAD - len(largest) - 4)
    async with a_service() as port:
        for head in (most + b"\r\n", largest + b"\r\n\r\n"):
            assert (await said(port, head)).startswith(b"HTTP/1.1 200 ")


async def test_a_large_body_is_no_head() -> None:
    body = b"[" + b" " * (96 * 1024) + b"]"
    request = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    async with a_service() as port:
        assert (await said(port, request + body)).startswith(b"HTTP/1.1 401 ")


async def test_requests_one_after_another_are_counted_each_for_itself(fed: list[int]) -> None:
    """Also if they are sent at once: the size of one is not added to the next."""
    one = LINE + b"a: " + b"b" * 20_000 + b"\r\n\r\n"
    last = LINE + b"Connection: close\r\n\r\n"
    async with a_service() as port:
        assert (await said(port, one, one, one + one + last)).count(b"HTTP/1.1 200 ") == 5
    assert sum(fed) == 4 * len(one) + len(last)


@table(
    "sent",
    [b"\x16\x03\x01\x02\x00", b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / HTTP/9\r\n\r\n"],
)
async def test_malformed_request_is_answered_in_the_documented_form(sent: bytes) -> None:
    async with a_service() as port:
        head, _, body = (await said(port, sent)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Content-Type: application/json\r\n" in head
    assert msgspec.json.decode(body)["error"]["code"] == "VALIDATION_ERROR"
