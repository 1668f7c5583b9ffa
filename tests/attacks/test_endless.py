"""One connection that sends without end costs less than 1 MB of memory and delays nobody by 50 ms (docs/limits.md
"Sizes").

The full form sends 100 MB of each kind and looks at how long others wait; the short one, beside other tests on the same
cores, sends less and looks at memory alone, all of it at one service. Some of a form is sent first, so that what the
first of a kind takes for good is not counted."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import chain, repeat
from pathlib import Path

import pytest

from benchmarks.processes import resident_mib
from tests.stories.processes import Service, installation

FULL = os.environ.get("CAMBIST_ATTACKS") == "full"
BYTES = (100 if FULL else 6) * 1_000_000
BYTES_OF_REQUESTS = BYTES if FULL else 2_000_000
"""They are answered, each: a hundred thousand of the shortest."""
WARM_UP = 10_000_000
"""Bytes sent in each form, at most, before memory is measured."""
BLOCK = 1_000_000
MEMORY = 1.0 if FULL else 2.0
"""MiB. A page more or less of the interpreter's own is nearly nothing of 100 MB, and is something of 6."""
STALL = 0.05
"""Seconds that others may wait for an answer."""

GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
SMALL = b"POST /api/v1/payments HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n"


def endless(first: bytes, again: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: chain([first], repeat(again * (BLOCK // len(again))))


FORMS = {
    "header lines": endless(HEAD, b"a: b\r\n"),
    "one header": endless(HEAD + b"a: ", b"b"),
    "a header's name": endless(HEAD, b"b"),
    "address": endless(b"GET /", b"b"),
    "trailers": endless(CHUNKED + b"0\r\n", b"a: b\r\n"),
    "body": endless(LONG, b" "),
    "body in chunks": endless(CHUNKED, b"4000\r\n" + b" " * 0x4000 + b"\r\n"),
    "body in chunks of a byte": endless(CHUNKED, b"1\r\n \r\n"),
    "chunk extensions": endless(CHUNKED, b"1;" + b"x" * 1000 + b"\r\n \r\n"),
    "one chunk extension": endless(CHUNKED + b"1;", b"x"),
    "pipelined requests": endless(b"", GET),
    "the shortest pipelined requests": endless(b"", b"GET / HTTP/1.1\r\n\r\n"),
    "pipelined requests with bodies": endless(b"", SMALL + b"{" * 90_000),
    "pipelined requests after a body": endless(SMALL + b" " * 90_000, b"GET / HTTP/1.1\r\n\r\n"),
    "upgrades": endless(b"", b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    "empty lines": endless(b"", b"\r\n"),
    "nothing of HTTP": endless(b"", b"\x16\x03\x01\x02"),
}
"""Endless streams, by their content."""


async def attack(port: int, form: Callable[[], Iterator[bytes]], most: int) -> int:
    """Send it repeatedly, also after the service closes, and discard the answers. Return the number of bytes sent."""
    sent = 0
    while sent < most:
        before = sent
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answers = asyncio.create_task(_thrown_away(reader))
        try:
            for block in form():
                writer.write(block)
                await writer.drain()
                sent += len(block)
                if sent >= most or answers.done():
                    break
        except ConnectionError:
            sent = max(sent, before + BLOCK)  # some of the last block was sent
        finally:
            answers.cancel()
            await asyncio.wait([answers])
            writer.transport.abort()
    return sent


async def _thrown_away(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1 << 20):
            pass
    except ConnectionError:
        pass


class Others:
    """Somebody else, on a connection of his own, and the memory meanwhile."""

    def __init__(self, port: int, pid: int) -> None:
        self._port = port
        self._pid = pid
        self.slowest = 0.0
        self.most = 0.0

    @asynccontextmanager
    async def at_it(self) -> AsyncIterator[None]:
        asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    def look(self) -> None:
        """Measure the memory."""
        self.most = max(self.most, resident_mib(self._pid))

    async def _ask(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while True:
                began = time.monotonic()
                writer.write(GET)
                await reader.readuntil(b'{"status":"ok"}')
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.look()
                await asyncio.sleep(0.002)
        finally:
            writer.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service of all kinds in the short form."""
    yield from started(tmp_path_factory.mktemp("endless"))


def started(folder: Path) -> Iterator[Service]:
    """A service, which ends well."""
    with installation(folder, True, database_url="memory://", log_level="warning") as place:
        service, _ = place.serve()
        yield service
        assert service.terminate() == 0
        assert "Traceback" not in service.err


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    if FULL:
        yield from started(tmp_path)
    else:
        yield request.getfixturevalue("shared")


@pytest.mark.timeout(3600 if FULL else 600)  # a hundred megabytes of short requests are five million of them
@pytest.mark.parametrize("name", FORMS)
async def test_one_connection_costs_less_than_a_megabyte_and_stalls_nobody(service: Service, name: str) -> None:
    port = int(service.ready().rpartition(":")[2])
    most = BYTES_OF_REQUESTS if "requests" in name else BYTES
    async with Others(port, service.pid).at_it():
        await attack(port, FORMS[name], min(most // 2, WARM_UP))
    before = resident_mib(service.pid)
    others = Others(port, service.pid)
    async with others.at_it():
        sent = await attack(port, FORMS[name], most)
        others.look()
    print(f"{name}: {sent / 1e6:.0f} MB, {others.most - before:+.2f} MiB, others {others.slowest * 1000:.0f} ms")
    assert others.most - before < MEMORY
    assert not FULL or others.slowest < STALL
    assert not service.ended
