"""The server's edge (frontends/http/edge/entrance.py)."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from cambist.adapters.ids import SystemIds
from cambist.frontends.http.edge import entrance
from cambist.frontends.http.edge.crowd import Crowd
from cambist.frontends.http.edge.entrance import Entrance
from tests.patience import HANGS
from tests.tables import table


class Guests:
    """A listening socket, its pending connections, and the admitted ones."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.entered: list[asyncio.BaseTransport] = []
        self.knocked: list[socket.socket] = []

    def knock(self, count: int) -> None:
        self.knocked += [socket.create_connection(self.address) for _ in range(count)]

    def open(self, listener: Any = None, crowd: Crowd | None = None) -> Entrance:
        guests = self

        class Protocol(asyncio.Protocol):
            ended: Callable[[], None] | None = None

            def connection_lost(self, exc: Exception | None) -> None:
                assert self.ended is not None
                self.ended()

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                guests.entered.append(transport)

        return Entrance(listener or self.listener, Protocol, crowd or Crowd(1024, 1024, SystemIds()))

    def leave(self) -> None:
        for transport in self.entered:
            transport.abort()  # type: ignore[attr-defined]  # a socket's has it
        for one in self.knocked:
            one.close()


@table("run", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def test_all_who_wait_are_let_in_within_some_turns_of_the_loop(run: Any) -> None:
    """uvloop's own server lets in one in a turn."""

    async def arrive() -> None:
        guests = Guests()
        edge = guests.open()
        guests.knock(100)
        for _ in range(8):
            await asyncio.sleep(0)
        assert len(guests.entered) == 100
        option = guests.entered[0].get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert option, "small answers leave at once"
        guests.leave()
        await edge.close()

    run(arrive())


async def test_a_edge_that_closes_lets_in_who_had_knocked_and_nobody_after() -> None:
    guests = Guests()
    edge = guests.open()
    guests.knock(3 + entrance.AT_ONCE)
    await edge.close()
    assert len(guests.entered) == 3 + entrance.AT_ONCE
    with pytest.raises(ConnectionRefusedError):
        guests.knock(1)
    guests.leave()


async def test_listener_pauses_without_free_files_and_then_resumes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(entrance, "PAUSE", 0.0)
    guests, tries = Guests(), 0

    class Exhausted:
        """The listener, without files for the first two."""

        def __getattr__(self, name: str) -> Any:
            return getattr(guests.listener, name)

        def accept(self) -> Any:
            nonlocal tries
            tries += 1
            if tries <= 2:
                raise OSError(errno.EMFILE, "Too many open files")
            return guests.listener.accept()

    edge = guests.open(Exhausted())
    guests.knock(1)
    async with asyncio.timeout(HANGS):
        while not guests.entered:
            await asyncio.sleep(0)
    assert caplog.text.count("no connection can be let in") == 2
    guests.leave()
    await edge.close()


@table("run", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def test_client_without_room_is_refused_and_enters_when_another_leaves(run: Any) -> None:
    async def arrive() -> None:
        guests, crowd = Guests(), Crowd(most=8, of_an_address=2, ids=SystemIds(), base_url="https://pay.example")
        edge = guests.open(crowd=crowd)
        guests.knock(3)
        async with asyncio.timeout(HANGS):
            while len(guests.entered) < 2:
                await asyncio.sleep(0)
            refused = guests.knocked.pop()
            told = refused.recv(4096)
            assert told.startswith(b"HTTP/1.1 503 ")
            assert b'link: <https://pay.example/docs/errors#PROVIDER_UNAVAILABLE>; rel="help"\r\n' in told
            assert b"\r\nX-Request-Id: " in told
            refused.close()
            guests.knocked.pop().close()
            while crowd.count == 2:
                await asyncio.sleep(0)
            guests.knock(1)
            while len(guests.entered) < 3:
                await asyncio.sleep(0)
        guests.leave()
        await edge.close()

    run(arrive())


async def test_client_gone_before_it_is_served_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    guests, crowd, tried = Guests(), Crowd(most=8, of_an_address=1, ids=SystemIds()), 0

    async def gone(*_: Any, **__: Any) -> None:
        nonlocal tried
        tried += 1
        raise ConnectionResetError

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", gone)
    edge = guests.open(crowd=crowd)
    for count in (1, 2):
        guests.knock(1)
        async with asyncio.timeout(HANGS):
            while tried < count or crowd.count > 0:
                await asyncio.sleep(0)
    guests.leave()
    await edge.close()
