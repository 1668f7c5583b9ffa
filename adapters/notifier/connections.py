"""Connections of the notifier. They remember the status line of an answer, even if aiohttp's parser rejects the rest.

A merchant's receiver has answered once a complete head with a final status has arrived (docs/webhooks.md "What a
receiver does"). aiohttp drops the head if a broken body arrived in the same bytes.
"""

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, cast

import aiohttp

from ..aiohttp_insides import INSIDES, ClientRequest, Connection, ResponseHandler, make_connections

HEAD_MAX = 64 * 1024
"""Bytes of an answer's head, including interim answers."""
HEADERS_MAX = 200
_INTERIM_MAX = 8
"""Interim answers (1xx) before the final one. The limit keeps us from reading without end."""
_POOLED = 65
"""Connections to one host tried for a webhook: up to 64 in the pool, and a new one."""

_NO_HEADERS: Mapping[bytes, bytes] = {}
_HEAD_END = re.compile(rb"\n\r?\n")
_RETRY_AFTER = re.compile(rb"\n(retry-after|date)[ \t]*:[ \t]*([^\r\n]{1,64})", re.IGNORECASE)
_ASKS_TO_WAIT = (429, 503)
_WAITING = (b"retry-after", b"date")
_VALUE_MAX = 64
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?=[ \r\n])")


class NeverFinal(aiohttp.ClientError):
    """The receiver sends only interim answers."""


class HeadTooLarge(aiohttp.ClientError):
    """The head of an answer has more bytes or lines than we read."""


class Attempt:
    """One exchange: its answer, its connection, and whether that must be a new one."""

    __slots__ = ("fresh", "protocol", "retry_after", "status")

    def __init__(self) -> None:
        self.fresh = False
        self.protocol: HeadReader | None = None
        self.status: int | None = None
        """Final status of the answer, once its complete head was read."""
        self.retry_after: Mapping[bytes, bytes] = _NO_HEADERS
        """Headers Retry-After and Date of an answer that may tell us to wait, by name in lower case."""

    def read(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Note a complete head with a final status."""
        self.status = status
        if status in _ASKS_TO_WAIT:
            named = ((name.lower(), value) for name, value in headers if len(value) <= _VALUE_MAX)
            self.retry_after = {name: value.strip() for name, value in named if name in _WAITING}

    @property
    def was_stale(self) -> bool:
        """Whether it used a kept connection on which no byte came back."""
        return self.protocol is not None and self.protocol.requests > 1 and not self.protocol.answering


ATTEMPT: ContextVar[Attempt] = ContextVar("attempt")
"""Exchange of the current task. aiohttp's session passes no data of ours to its connector."""


class HeadReader(ResponseHandler):
    """aiohttp's protocol, which also reads the status line of the current answer itself."""

    attempt: Attempt
    """The current exchange."""
    requests = 0
    """Requests on this connection, including the current one."""
    answering = False
    """Whether a byte of the current answer arrived."""

    def set_response_params(self, **options: Any) -> None:
        """Start a request: its answer begins with the next byte."""
        self.requests += 1
        self.answering = False
        self._head, self._searched, self._interim = bytearray(), 0, 0
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        """Read heads until the final one, then leave the bytes to aiohttp."""
        if self.requests and self.attempt.status is None:
            self.answering = True
            try:
                self._read_heads(data)
            except aiohttp.ClientError as error:
                self.set_exception(error)
                if self.transport is not None:
                    self.transport.abort()
                return
        super().data_received(data)

    def _read_heads(self, data: bytes) -> None:
        self._head += data
        start = 0
        while end := _HEAD_END.search(self._head, max(start, self._searched)):
            line = _STATUS_LINE.match(self._head, start)
            if end.end() > HEAD_MAX or self._head.count(b"\n", start, end.start()) > HEADERS_MAX:
                raise HeadTooLarge
            if line is None:
                break  # not an answer of HTTP/1: aiohttp's parser reports it
            code = int(line[1])
            if code >= 200 or code == 101:
                found = _RETRY_AFTER.findall(self._head, start, end.end()) if code in _ASKS_TO_WAIT else ()
                self.attempt.read(code, [(bytes(name), bytes(value)) for name, value in found])
                self._head = bytearray()
                return
            self._interim += 1
            if self._interim > _INTERIM_MAX:
                raise NeverFinal
            start = end.end()
            self._searched = start
        if start:
            del self._head[:start]
        # The end of a head may be split between two reads.
        self._searched = max(0, len(self._head) - 2)
        if len(self._head) > HEAD_MAX:
            raise HeadTooLarge


class Connector(aiohttp.TCPConnector):
    """Pool of such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make_connections(self, HeadReader)

    async def connect(
        self,
        req: ClientRequest,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        """Return a connection without unrequested bytes, which would count as the answer to this webhook.

        A `fresh` attempt gets a new one. Raises aiohttp's errors.
        """
        attempt = ATTEMPT.get()
        for _ in range(_POOLED):
            connection = await super().connect(req, traces, timeout)
            protocol = cast("HeadReader | None", connection.protocol)
            if protocol is not None and not protocol.should_close and not (attempt.fresh and protocol.requests):
                attempt.protocol, protocol.attempt = protocol, attempt
                return connection
            give_up(connection)
        raise aiohttp.ClientConnectionResetError("the receiver answers before it is asked")


def make_connector(keep_alive: float, **options: Any) -> aiohttp.TCPConnector:
    """Return a pool of connections, which keeps idle ones for some seconds.

    With a version of aiohttp that was not tested, it keeps none: a kept connection may hold unrequested bytes, which
    only our own connections notice.
    """
    if INSIDES.is_known:
        return Connector(keepalive_timeout=keep_alive, **options)
    return aiohttp.TCPConnector(force_close=True, **options)


def give_up(connection: Connection) -> None:
    """Close the connection at once. Unsent bytes would keep it open for as long as the receiver does not read."""
    if connection.transport is not None:
        connection.transport.abort()
    connection.close()
