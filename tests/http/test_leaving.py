"""How the server stops (docs/operations.md "Upgrades"): it reports that it is stopping and continues to serve, then
closes the listening socket, and cuts off no accepted connection."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
import uvicorn

from cambist.frontends.http.edge.leaving import SETTLING, LeavingServer
from cambist.frontends.server.server import running
from cambist.frontends.settings.settings import Settings
from cambist.ports.clock import Alarm
from tests.patience import HANGS

LAME_DUCK = 3.0
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
READYZ = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"


class Clock:
    """A clock that advances only on request. `meanwhile` runs once, during the next sleep."""

    def __init__(self) -> None:
        self.time = 0.0
        self.meanwhile: Callable[[], None] | None = None

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        action, self.meanwhile = self.meanwhile, None
        if action is not None:
            action()

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        raise NotImplementedError


class Line:
    """A client's connection, whose sends reach the system before anything else happens in this process."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setblocking(False)

    def send(self, said: bytes) -> None:
        assert self._socket.send(said) == len(said)

    async def answer(self) -> bytes:
        """Return head and body of the next answer; b"" if the connection was closed instead."""
        loop, heard = asyncio.get_running_loop(), b""
        while b"}" not in heard:
            part = await loop.sock_recv(self._socket, 4096)
            if not part:
                return heard
            heard += part
        return heard

    async def ask(self, said: bytes) -> bytes:
        self.send(said)
        return await self.answer()

    def close(self) -> None:
        self._socket.close()


class Served:
    """A service as several of an installation are, whose time is the test's."""

    def __init__(self, port: int, server: LeavingServer, clock: Clock, stopped: "asyncio.Task[None]") -> None:
        self.port = port
        self.server = server
        self.clock = clock
        self.stopped = stopped
        self.lines: list[Line] = []

    def line(self) -> Line:
        self.lines.append(Line(self.port))
        return self.lines[-1]

    async def told(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal, and return once the server has handled it."""
        self.server.handle_exit(number, None)
        while not self.server._departure.begun:
            await asyncio.sleep(0.01)

    async def is_closed(self) -> bool:
        """Whether nobody listens any more."""
        try:
            Line(self.port).close()
        except ConnectionRefusedError:
            return True
        return False

    def over(self) -> None:
        """The lame duck's time is over."""
        self.clock.time = LAME_DUCK


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    async with serving(monkeypatch) as it:
        yield it


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    clock, made = Clock(), []

    class Noted(LeavingServer):
        def __init__(self, config: uvicorn.Config, crowd: Any, streams: Any, departure: Any, *_: Any) -> None:
            super().__init__(config, crowd, streams, departure, clock, LAME_DUCK)
            made.append(self)

        def capture_signals(self) -> Any:  # the test's process keeps its own
            return nullcontext()

    monkeypatch.setattr("cambist.frontends.server.server.LeavingServer", Noted)
    async with asyncio.timeout(HANGS), running(Settings(database_url="memory://", port=0), works=False) as service:
        it = Served(int(service.app.settings.base_url.rpartition(":")[2]), made[0], clock, service.stopped)
        try:
            yield it
        finally:
            for line in it.lines:
                line.close()
            clock.time += LAME_DUCK + SETTLING


async def test_lame_duck_serves_but_fails_readyz_and_closes_after_each_answer(
    served: Served,
) -> None:
    kept, idle = served.line(), served.line()
    for line in (kept, idle):
        assert b"connection: close" not in await line.ask(LIVEZ)
    assert (await served.line().ask(READYZ)).startswith(b"HTTP/1.1 200")
    await served.told()
    assert not await served.is_closed()
    not_ready = await served.line().ask(READYZ)
    assert not_ready.startswith(b"HTTP/1.1 503")
    assert b'{"status":"leaving"}' in not_ready
    last = await kept.ask(LIVEZ)
    assert last.startswith(b"HTTP/1.1 200")
    assert b"connection: close\r\n" in last
    assert await kept.answer() == b""
    assert not served.stopped.done()
    served.over()
    assert await idle.answer() == b"", "what rests is closed with the edge"
    await served.stopped
    assert await served.is_closed()


async def test_connection_made_before_the_edge_closed_is_served(served: Served) -> None:
    """The system accepts connections before the process does: they must not be reset with the listening socket."""
    await served.told()
    knocked: list[Line] = []

    def knock() -> None:
        knocked.extend(served.line() for _ in range(3))
        for line in knocked[:2]:
            line.send(LIVEZ)
        served.over()

    served.clock.meanwhile = knock
    while not knocked:
        await asyncio.sleep(0)
    for line in knocked[:2]:
        assert (await line.answer()).startswith(b"HTTP/1.1 200")
    knocked[2].send(LIVEZ)  # its request came a little later than its connection
    assert (await knocked[2].answer()).startswith(b"HTTP/1.1 200")
    await served.stopped


async def test_request_on_a_kept_connection_at_closing_time_is_answered(served: Served) -> None:
    kept = served.line()
    await kept.ask(LIVEZ)
    await served.told()

    def ask() -> None:
        kept.send(LIVEZ)
        served.over()

    served.clock.meanwhile = ask
    assert b"connection: close\r\n" in await kept.answer()
    await served.stopped


async def test_a_connection_that_says_nothing_holds_the_end_up_for_a_moment_only(served: Served) -> None:
    silent = served.line()
    await served.line().ask(LIVEZ)
    await served.told()
    served.over()
    while not await served.is_closed():
        await asyncio.sleep(0)
    assert not served.stopped.done()
    ended = asyncio.create_task(silent.answer())
    while not ended.done():
        served.clock.time += SETTLING / 100
        await asyncio.sleep(0)
    assert ended.result() == b""
    await served.stopped


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=["Ctrl-C", "twice"])
async def test_second_signal_skips_the_lame_duck_period(served: Served, signals: tuple[signal.Signals, ...]) -> None:
    for number in signals:
        await served.told(number)
    await served.stopped


async def test_single_process_has_no_lame_duck_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nobody who could take over: the sooner it is gone, the sooner its successor comes."""
    asked: list[float] = []

    class Noted(LeavingServer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            asked.append(given[-1])

    monkeypatch.setattr("cambist.frontends.server.server.LeavingServer", Noted)
    async with running(Settings(database_url="memory://", port=0, lame_duck_seconds=600), works=False):
        pass
    assert asked == [0.0]
