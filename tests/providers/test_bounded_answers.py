"""No provider holds the event loop: the reader parses answers in slices, and gives up an answer that is mostly form."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cambist.adapters import bounded_answers
from cambist.adapters.bounded_answers import SLICE, BoundedAnswers
from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.rpc import Node
from cambist.adapters.provider_http import ProviderHttp
from cambist.ports import OutcomeUnknown, Unavailable
from tests.tables import table

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
TINY = b"1\r\na\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
MEGABYTES = 16 * 1024 * 1024
"""More than sockets hold."""

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Test server. It answers each request by a given function, and counts connections and bytes of a flood."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self.url = ""
        self.connections = 0
        self.written = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ength:" in line), 0)
                await reader.readexactly(length)
                await self._answering(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def flood(self, writer: asyncio.StreamWriter, head: bytes, piece: bytes) -> None:
        """Write pieces without end, at most so many megabytes."""
        writer.write(head)
        many = piece * (64 * 1024 // len(piece))
        while self.written < MEGABYTES:
            writer.write(many)
            await writer.drain()
            self.written += len(many)


@asynccontextmanager
async def serving(answering: Answering) -> AsyncIterator[tuple[Server, ProviderHttp]]:
    made = Server(answering)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    http = ProviderHttp("desk", made.url, limit=10)
    yield made, http
    await http.close()
    server.close()


async def whole(writer: asyncio.StreamWriter, *parts: bytes) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()


class Wire(asyncio.Transport):
    """A transport that says whether it is read, and is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read, self.is_closed = True, False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
async def protocol(wire: Wire) -> BoundedAnswers:
    made = BoundedAnswers(asyncio.get_running_loop())
    made.connection_made(wire)
    made.set_response_params(read_until_eof=True, auto_decompress=False)
    return made


class TestTurns:
    """Measured in turns of the event loop, and not in time."""

    async def test_one_turn_parses_one_slice(self, wire: Wire, protocol: BoundedAnswers) -> None:
        body = b"x" * (20 * SLICE)
        protocol.data_received(OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        _, content = await protocol.read()
        assert not wire.is_read, "while there is a backlog nothing more is taken"
        turns, before = 0, content.total_bytes
        while not content.is_eof():
            await asyncio.sleep(0)
            turns += 1
            assert content.total_bytes - before <= SLICE
            before = content.total_bytes
        assert turns >= 20
        assert await content.read() == body
        await asyncio.sleep(0)
        assert wire.is_read

    async def test_small_chunks_are_parsed_slice_by_slice(self, wire: Wire, protocol: BoundedAnswers) -> None:
        protocol.data_received(CHUNKED + TINY * 10_000 + b"0\r\n\r\n")
        _, content = await protocol.read()
        before, turns = content.total_bytes, 0
        while not content.is_eof():
            await asyncio.sleep(0)
            turns += 1
            assert content.total_bytes - before <= SLICE // len(TINY) + 1
            before = content.total_bytes
        assert turns >= 10_000 * len(TINY) // SLICE
        assert await content.read() == b"a" * 10_000

    async def test_an_end_of_the_connection_waits_for_what_came_before(
        self, wire: Wire, protocol: BoundedAnswers
    ) -> None:
        body = b"y" * (5 * SLICE)
        protocol.data_received(OK + b"Connection: close\r\n\r\n" + body)
        protocol.connection_lost(None)
        _, content = await protocol.read()
        assert await content.read() == body

    async def test_a_close_of_ours_waits_for_nothing(self, wire: Wire, protocol: BoundedAnswers) -> None:
        protocol.data_received(OK + b"Connection: close\r\n\r\n" + b"y" * (5 * SLICE))
        ended = protocol.closed
        protocol.connection_lost(None)
        protocol.close()
        assert ended is not None
        assert ended.done()
        assert not protocol._backlog

    async def test_a_slow_reader_gets_all_of_it(self, wire: Wire, protocol: BoundedAnswers) -> None:
        """Flow control pauses the parsing, and reading resumes it."""
        protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=SLICE)
        body = bytes(range(256)) * 512
        protocol.data_received(OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        _, content = await protocol.read()
        for _ in range(100):
            await asyncio.sleep(0)
        assert content.total_bytes <= 4 * SLICE, "nobody reads, so nothing is parsed"
        got = bytearray()
        while part := await content.read(1000):
            got += part
        assert bytes(got) == body

    async def test_bytes_after_an_answer_close_the_connection(self, wire: Wire, protocol: BoundedAnswers) -> None:
        head = OK + b"Content-Length: 8000\r\n\r\n"
        protocol.data_received((head + b"y" * 8000).ljust(SLICE, b"\r") + b"z" * (3 * SLICE))
        await protocol.read()
        assert protocol.should_close


class TestFloods:
    @table(("head", "piece"), [(b"", INTERIM), (CHUNKED, TINY), (CHUNKED, b"2;name=value\r\nab\r\n")], ids=str)
    async def test_an_answer_without_end_is_given_up(self, head: bytes, piece: bytes) -> None:
        async def answering(writer: asyncio.StreamWriter) -> None:
            await server.flood(writer, head, piece)

        async with serving(answering) as (server, http):
            with pytest.raises(Unavailable, match="Unreasonable"):
                await http.call("GET", "/", writes=False)
            with pytest.raises(OutcomeUnknown, match="Unreasonable"):
                await http.call("POST", "/", writes=True, body=b"{}")
            assert server.written < MEGABYTES

    async def test_a_node_that_floods_is_one_that_gives_no_answer(self) -> None:
        async def answering(writer: asyncio.StreamWriter) -> None:
            await server.flood(writer, CHUNKED, TINY)

        async with serving(answering) as (server, _):
            node = Node("bsc node 1", server.url, VirtualClock())
            with pytest.raises(Unavailable, match="Unreasonable"):
                await node.ask("eth_chainId", str)
            with pytest.raises(Unavailable, match="left alone"):
                await node.ask("eth_chainId", str)
            await node.close()

    async def test_the_loop_turns_on_while_a_provider_floods(self) -> None:
        """For each slice that is parsed others have a turn."""
        parsed, turns = list[int](), 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async def answering(writer: asyncio.StreamWriter) -> None:
            await whole(writer, CHUNKED, TINY * 10_000, b"0\r\n\r\n")

        parse = BoundedAnswers._parse

        def counted(self: BoundedAnswers, part: bytes) -> None:
            parsed.append(turns)
            parse(self, part)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BoundedAnswers, "_parse", counted)
            async with serving(answering) as (_, http):
                ticking = asyncio.create_task(others())
                answer = await http.call("GET", "/", writes=False)
                ticking.cancel()
        assert answer.body == b"a" * 10_000
        assert len(parsed) == len(set(parsed)), "two slices in one turn"
        assert len(parsed) >= 7

    @table("count", [0, 1, bounded_answers.INTERIM_MOST])
    async def test_some_interim_answers_are_passed_over(self, count: int) -> None:
        async with serving(lambda writer: whole(writer, INTERIM * count, OK, b"Content-Length: 2\r\n\r\n{}")) as (
            _,
            http,
        ):
            for _ in range(3):
                assert (await http.call("GET", "/", writes=False)).body == b"{}"

    async def test_a_body_that_drips_is_read_to_its_end(self) -> None:
        body = b'{"id": "t-1"}'
        pieces = [OK, b"Content-Length: %d\r\n\r\n" % len(body), *(bytes((each,)) for each in body)]
        async with serving(lambda writer: whole(writer, *pieces)) as (_, http):
            assert (await http.call("GET", "/", writes=False)).body == body


class TestLargeAnswers:
    BODY = bytes(range(256)) * (4 * 4096)

    @table("form", ["length", "chunks", "close"])
    async def test_a_large_answer_is_whole(self, form: str) -> None:
        async def answering(writer: asyncio.StreamWriter) -> None:
            if form == "length":
                await whole(writer, OK, b"Content-Length: %d\r\n\r\n" % len(self.BODY), self.BODY)
            elif form == "chunks":
                parts = [self.BODY[at : at + 1000] for at in range(0, len(self.BODY), 1000)]
                await whole(writer, CHUNKED, *(b"%x\r\n%b\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n")
            else:
                await whole(writer, OK, b"Connection: close\r\n\r\n", self.BODY)
                writer.close()

        async with serving(answering) as (server, http):
            for _ in range(2):
                answer = await http.call("GET", "/", writes=False, answer_max=len(self.BODY))
                assert answer.body == self.BODY
            assert server.connections == (2 if form == "close" else 1), "it is kept where that may be"

    async def test_parts_of_a_large_answer_are_whole(self) -> None:
        head = b"Content-Length: %d\r\n\r\n" % len(self.BODY)
        async with serving(lambda writer: whole(writer, OK, head, self.BODY)) as (_, http):
            got = [part async for part in http.parts("/", headers={}, answer_max=len(self.BODY), judge=lambda _: None)]
        assert b"".join(got) == self.BODY
