"""Requests that are sent without waiting for answers (frontends/http/edge/bounded.py, gated.py)."""

import asyncio
import gc
import weakref
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from cambist.frontends.http.edge.bounded import STEP
from cambist.frontends.http.edge.gated import GatedProtocol
from cambist.frontends.http.edge.parse_budget import TURN
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from tests.patience import HANGS

SHORTEST = b"GET / HTTP/1.1\r\n\r\n"
SEEN: ContextVar[int | None] = ContextVar("SEEN", default=None)


class Answers:
    """An application that records the context of each request."""

    def __init__(self) -> None:
        self.seen: list[int | None] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(SEEN.get())
        SEEN.set(len(self.seen))
        more = True
        while more:
            more = (await receive()).get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def asgi(monkeypatch: pytest.MonkeyPatch) -> Answers:
    made = Answers()
    monkeypatch.setattr("cambist.frontends.server.server.create_app", lambda *_, **__: made)
    return made


async def ask(said: bytes, count: int) -> None:
    """Send all of it at once; so many answers come."""
    async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
        port = int(service.app.settings.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        for _ in range(count):
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_thousands_of_pipelined_requests_exist_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, asgi: Answers
) -> None:
    waiting: list[int] = []

    class Noted(GatedProtocol):
        def on_message_complete(self) -> None:
            super().on_message_complete()
            waiting.append(len(self.pipeline))

    monkeypatch.setattr("cambist.frontends.server.server.GatedProtocol", Noted)
    await ask(SHORTEST * 5000, 5000)
    assert max(waiting) <= STEP // len(SHORTEST) + 1


@pytest.mark.parametrize("method", [b"GET", b"POST"], ids=["reads", "new work, which the intake begins"])
async def test_none_is_answered_in_the_context_of_another(asgi: Answers, method: bytes) -> None:
    """A chain of contexts would keep what each of them held, and name the wrong request in a log line."""
    await ask(method + b" / HTTP/1.1\r\nContent-Length: 0\r\n\r\n" + SHORTEST.replace(b"GET", method) * 300, 1)
    assert set(asgi.seen) == {None}


async def test_a_body_and_what_comes_after_it_are_read_in_their_order(asgi: Answers) -> None:
    body = b"POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + b"\r\n\r\n" * 75_000
    await ask((body + SHORTEST) * 3, 6)
    assert len(asgi.seen) == 6


async def test_no_turn_of_the_loop_parses_much_of_one_connection(
    monkeypatch: pytest.MonkeyPatch, asgi: Answers
) -> None:
    """Chunks cost most, because the parser reports each of them."""
    turns: list[int] = []

    class Noted(GatedProtocol):
        def data_received(self, data: bytes) -> None:
            turns.append(0)
            super().data_received(data)

        def read_on(self) -> None:
            turns.append(0)
            super().read_on()

        def on_body(self, body: bytes) -> None:
            turns[-1] += 1
            super().on_body(body)

    monkeypatch.setattr("cambist.frontends.server.server.GatedProtocol", Noted)
    chunk = b"40\r\n" + b"x" * 64 + b"\r\n"
    await ask(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 10_000 + b"0\r\n\r\n", 1)
    assert sum(turns) >= 10_000
    assert max(turns) <= 2 * TURN // len(chunk)


async def test_a_connection_that_has_ended_is_gone_without_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[weakref.ref[GatedProtocol]] = []

    class Noted(GatedProtocol):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            known.append(weakref.ref(self))

    monkeypatch.setattr("cambist.frontends.server.server.GatedProtocol", Noted)
    gc.disable()
    try:
        async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
            port = int(service.app.settings.base_url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /" + b"b" * 100_000)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
            while known[0]() is not None:
                await asyncio.sleep(0)
    finally:
        gc.enable()
