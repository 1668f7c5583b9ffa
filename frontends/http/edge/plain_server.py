"""The server for a version of uvicorn that was not tested: uvicorn's own, by its documented interface alone.

It serves and stops like the usual server, and lacks the edge's limits: heads have no limit of size, idle and slow
connections have uvicorn's timeouts, nothing is refused under load, and there is no lame duck phase. The log and
`cambist doctor` say so (docs/operations.md "Versions of uvicorn and aiohttp").
"""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

import uvicorn

from ....ports.clock import Clock
from .leaving import POLL, Departure
from .streams import WindowStreams


class PlainServer(uvicorn.Server):
    """uvicorn's server, which sets `ready` once it accepts requests."""

    connections: Iterable[Any] = ()
    """Connections whose pauses are limited: none."""

    def __init__(self, config: uvicorn.Config, streams: WindowStreams, departure: Departure, clock: Clock) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._streams = streams
        self._departure = departure
        self._clock = clock

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve as uvicorn does. Once it stops, `/readyz` says so and the streams of payer windows end."""
        watching = asyncio.create_task(self._watch())
        try:
            await super().serve(sockets)
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while not self.started:
            await self._clock.sleep(POLL)
        self.ready.set()
        while not self.should_exit:
            await self._clock.sleep(POLL)
        self._departure.begun = True
        self._streams.end()
