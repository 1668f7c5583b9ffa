"""Stops the server without cutting a request (docs/operations.md "Deployment").

Told to stop, it serves on for a moment as a lame duck: `/readyz` answers 503, which sends balancers elsewhere, and
every answer says `Connection: close`, which empties clients' pools. Then it closes its listening sockets, and last the
connections on which nothing more comes."""

import asyncio
import logging
import select
import signal
import socket
from collections.abc import Iterable
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from ....ports.clock import Clock
from .crowd import Crowd
from .entrance import Entrance
from .streams import WindowStreams

LOOK = 0.02
"""Seconds between two looks at the open connections."""

SETTLING = 1.0
"""Seconds that a connection without a whole request is left open after the sockets were closed: its bytes may be on
their way."""

_CLOSE = (b"connection", b"close")

log = logging.getLogger("cambist.serve")


class Departure:
    """Whether the server was told to stop: what `/readyz` goes by."""

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun = False


class LeavingServer(uvicorn.Server):
    """uvicorn's server, which sets `ready` once it accepts requests, and serves on for `lame_duck` seconds after
    SIGTERM. SIGINT, or a second signal, ends that at once."""

    def __init__(
        self,
        config: uvicorn.Config,
        crowd: Crowd,
        streams: WindowStreams,
        departure: Departure,
        clock: Clock,
        lame_duck: float,
    ) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._crowd = crowd
        self._streams = streams
        self._departure = departure
        self._clock = clock
        self._lame_duck = lame_duck
        self._hurried = False
        self._doors: list[Entrance] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As the server's, with listening sockets of ours (entrance.py)."""
        await super().startup([])
        protocol: Any = self.config.http_protocol_class
        kept = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        self._doors = [Entrance(each, partial(protocol, **kept), self._crowd) for each in sockets or []]
        self.ready.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As the server's; note whether there is time to serve on."""
        self._hurried = self._hurried or self.should_exit or sig != signal.SIGTERM
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the stop, serve on, close the sockets, answer what comes on open connections; then as the
        server's."""
        self._departure.begun = True
        for connection in self._connections():
            if connection.cycle is not None:
                connection.cycle.keep_alive = False
        await self._serve_on()
        self._say_close()
        for door in self._doors:
            await door.close()
        # Payer windows listen for half an hour: they come back to another process by themselves.
        self._streams.end()
        await self._settle()
        await super().shutdown(sockets)

    async def _serve_on(self) -> None:
        if not self._lame_duck:
            return
        log.info("told to stop: /readyz says so for %.1f s before the door is closed", self._lame_duck)
        until = self._clock.monotonic() + self._lame_duck
        while self._clock.monotonic() < until:
            if self._hurried:
                return
            await self.on_tick(0)  # a new Date
            self._say_close()
            await self._clock.sleep(LOOK)

    def _connections(self) -> list[Any]:
        """The open connections: uvicorn's protocols, of HTTP only."""
        return list(self.server_state.connections)

    def _say_close(self) -> None:
        if _CLOSE not in self.server_state.default_headers:
            self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]

    async def _settle(self) -> None:
        """Close the connections that are between two requests and have sent nothing, for `SETTLING` seconds at most.
        One that asks now is answered, which closes it."""
        until = self._clock.monotonic() + SETTLING
        while not self.force_exit:
            resting = [each for each in self._connections() if _is_resting(each)]
            spoke = _readable(resting)
            waiting = 0
            for connection in resting:
                if connection.idle_since is None or _number(connection) in spoke:
                    waiting += 1
                else:
                    connection.transport.close()
            if not waiting or self._clock.monotonic() >= until:
                return
            await self._clock.sleep(LOOK)


def _is_resting(connection: Any) -> bool:
    """Whether a connection of the server (uvicorn's protocol) has no request under way."""
    cycle = connection.cycle
    return (cycle is None or cycle.response_complete) and not connection.transport.is_closing()


def _number(connection: Any) -> int:
    number: int = connection.transport.get_extra_info("socket").fileno()
    return number


def _readable(connections: Iterable[Any]) -> set[int]:
    """The file descriptors of those that sent bytes which were not read yet."""
    poll = select.poll()
    for connection in connections:
        poll.register(_number(connection), select.POLLIN)
    return {number for number, _ in poll.poll(0)}
