"""One write for each answer: the server writes head and body apart, each a system call (and a packet) of its own.

What is written in one turn of the loop leaves together at its end: half of the writes, a tenth of what a
`GET /payments/{id}` costs. Streams are not held up: what they send leaves in the same turn, too.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class CorkedProtocol(HttpToolsProtocol):
    """uvicorn's protocol over a transport that gathers what is written."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """As the server's, over the corked transport."""
        super().connection_made(cast("asyncio.Transport", _Corked(transport, self.loop)))


class _Corked:
    """Stands for a transport: all but what writes or closes is the transport's own."""

    __slots__ = ("_loop", "_transport", "_waiting")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep it until the end of this turn."""
        if not self._waiting:
            self._loop.call_soon(self._uncork)
        self._waiting.append(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        """As the transport's."""
        self.write(b"".join(parts))

    def close(self) -> None:
        """Close once what waits is written."""
        self._uncork()
        self._transport.close()

    def _uncork(self) -> None:
        waiting = self._waiting
        if not waiting:
            return
        self._waiting = []
        if not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))
