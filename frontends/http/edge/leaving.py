"""Stop of the server without cutting a request (docs/operations.md "Deployment").

After the signal the server continues for a moment as a lame duck: `/readyz` answers 503, so load balancers stop sending
requests, and every answer has `Connection: close`, which empties clients' pools. Then it closes its listening sockets,
and finally the idle connections.
"""

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

POLL = 0.02
"""Seconds between two checks of the open connections."""

SETTLING = 1.0
"""Seconds that a connection without a complete request stays open after the sockets are closed: its bytes may be in
transit."""

_CLOSE = (b"connection", b"close")

log = logging.getLogger("cambist.serve")


class Departure:
    """Whether the server is stopping. `/readyz` reads it."""

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun = False


class LeavingServer(uvicorn.Server):
    """uvicorn's server, which sets `ready` once it accepts requests, and continues for `lame_duck` seconds after
    SIGTERM. SIGINT or a second signal ends that at once."""

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
        self._edges: list[Entrance] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, with our own listening sockets (entrance.py)."""
        await super().startup([])
        protocol: Any = self.config.http_protocol_class
        kept = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        self._edges = [Entrance(each, partial(protocol, **kept), self._crowd) for each in sockets or []]
        self.ready.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle the signal as uvicorn does, and note whether to skip the lame duck phase."""
        self._hurried = self._hurried or self.should_exit or sig != signal.SIGTERM
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the stop, continue to serve, close the sockets, answer requests on open connections; then shut down
        as uvicorn does."""
        self._departure.begun = True
        for connection in list(self.connections):
            if connection.cycle is not None:
                connection.cycle.keep_alive = False
        await self._serve_on()
        self._say_close()
        for edge in self._edges:
            await edge.close()
        # Payer windows hold their streams for up to half an hour. They reconnect to another process by themselves.
        self._streams.end()
        await self._settle()
        await super().shutdown(sockets)

    async def _serve_on(self) -> None:
        if not self._lame_duck:
            return
        log.info("told to stop: /readyz says so for %.1f s before the edge is closed", self._lame_duck)
        until = self._clock.monotonic() + self._lame_duck
        while self._clock.monotonic() < until:
            if self._hurried:
                return
            await self.on_tick(0)  # updates the Date header
            self._say_close()
            await self._clock.sleep(POLL)

    @property
    def connections(self) -> Iterable[Any]:
        """The open connections: uvicorn's HTTP protocols. The iterable changes with them."""
        return self.server_state.connections

    def _say_close(self) -> None:
        if _CLOSE not in self.server_state.default_headers:
            self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]

    async def _settle(self) -> None:
        """Close the connections that are between two requests and have sent nothing, for at most `SETTLING` seconds. A
        connection with a new request is answered, which closes it."""
        until = self._clock.monotonic() + SETTLING
        while not self.force_exit:
            resting = [each for each in list(self.connections) if _is_resting(each)]
            spoke = _readable(resting)
            waiting = 0
            for connection in resting:
                if connection.idle_since is None or _number(connection) in spoke:
                    waiting += 1
                else:
                    connection.transport.close()
            if not waiting or self._clock.monotonic() >= until:
                return
            await self._clock.sleep(POLL)


def _is_resting(connection: Any) -> bool:
    """Whether a connection (uvicorn's protocol) has no request under way."""
    cycle = connection.cycle
    return (cycle is None or cycle.response_complete) and not connection.transport.is_closing()


def _number(connection: Any) -> int:
    number: int = connection.transport.get_extra_info("socket").fileno()
    return number


def _readable(connections: Iterable[Any]) -> set[int]:
    """Return the file descriptors of connections with unread bytes."""
    poll = select.poll()
    for connection in connections:
        poll.register(_number(connection), select.POLLIN)
    return {number for number, _ in poll.poll(0)}
