"""Parsing of HTTP answers in bounded slices, so that no server can block the event loop.

aiohttp parses everything read from a socket at once, reads interim answers (1xx) without limit, and creates an object
for every chunk. A server that sends tiny chunks or interim answers as fast as possible would block the whole process.
Here each turn of the event loop parses one slice, and an answer that consists mostly of framing is aborted.
"""

import asyncio
from typing import Any

import aiohttp

from .aiohttp_insides import INSIDES, ResponseHandler, make_connections, set_exception

SLICE = 8 * 1024
"""Bytes that one turn of the event loop parses."""
INTERIM_MOST = 8
"""Maximum interim answers before the final one."""
FORM_MOST = 64 * 1024
"""Maximum bytes of heads, chunk sizes and line ends, in addition to one for each byte of the body. A chunk of one byte
has five."""


class Unreasonable(aiohttp.ClientPayloadError):
    """The answer has too many interim answers, or consists mostly of framing."""


class BoundedAnswers(ResponseHandler):
    """Connection protocol that parses received data slice by slice."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._backlog = bytearray()
        """Received bytes that are not parsed yet. The transport is paused meanwhile."""
        self._feeding = False
        self._lost: tuple[BaseException | None] | None = None
        """Error of the closed connection, while data received before is still to be parsed."""
        self._parsed = 0
        self._interim = 0

    @property
    def should_close(self) -> bool:
        """Report whether the connection must not be reused, for example because unrequested bytes follow the answer."""
        return bool(self._backlog) or super().should_close

    def set_response_params(self, **given: Any) -> None:
        """Start another answer."""
        self._parsed = self._interim = 0
        super().set_response_params(**given)

    def data_received(self, data: bytes) -> None:
        """Parse one slice now and the rest in later turns. aiohttp calls this without data when the reader can take
        more of the backlog."""
        if not data:
            super().data_received(data)
            self._go_on()
            return
        if self._backlog:
            self._backlog += data
            return
        self._parse(data[:SLICE])
        if len(data) > SLICE and self.transport is not None:
            self._backlog += data[SLICE:]
            self._pause_reading_for_buffer()
            self._go_on()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Process the end of the connection after the data received before it; at once if we closed the connection."""
        if self._backlog and self.transport is not None:
            self._lost = (exc,)
            self._go_on()
            return
        self._backlog.clear()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close the connection and discard unparsed data."""
        super().close()
        self._end()

    def abort(self) -> None:
        """Abort the connection and discard unparsed data."""
        super().abort()
        self._end()

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Pass on the head of an answer, unless there were too many interim answers."""
        code = data[0].code
        if 100 <= code <= 199 and code != 101:
            self._interim += 1
            if self._interim > INTERIM_MOST:
                self._give_up("interim answers without end")
                return
        super().feed_data(data, size)

    def _go_on(self) -> None:
        if self._backlog and not self._feeding and not self._reading_paused:
            self._feeding = True
            self._loop.call_soon(self._feed)

    def _feed(self) -> None:
        self._feeding = False
        if not self._reading_paused:
            part = bytes(self._backlog[:SLICE])
            del self._backlog[:SLICE]
            self._parse(part)
        if self._backlog:
            self._go_on()
            return
        if self._buffer_paused:
            self._resume_reading_for_buffer()
        self._end()

    def _parse(self, part: bytes) -> None:
        self._parsed += len(part)
        super().data_received(part)
        body = getattr(self._payload, "total_bytes", 0)
        if self._parsed > FORM_MOST + 2 * body and self.transport is not None:
            self._give_up("an answer that is mostly form")

    def _end(self) -> None:
        """Discard unparsed data, and process a delayed end of the connection."""
        self._backlog.clear()
        if self._lost is not None:
            (exc,), self._lost = self._lost, None
            super().connection_lost(exc)

    def _give_up(self, why: str) -> None:
        fault = Unreasonable(why)
        if self._payload is not None:
            set_exception(self._payload, fault)
        self.set_exception(fault)
        if self.transport is not None:
            self.transport.abort()
        self._end()


class BoundedConnector(aiohttp.TCPConnector):
    """Connector whose connections parse answers in slices."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        make_connections(self, BoundedAnswers)


CONNECTOR: type[aiohttp.TCPConnector] = BoundedConnector if INSIDES.is_known else aiohttp.TCPConnector
"""A version of aiohttp that was not tested parses answers by itself."""
