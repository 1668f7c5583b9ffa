"""Connections of the notifier. They remember the status line of an answer, whatever aiohttp's parser makes of the rest.

A merchant's receiver has answered once a whole head with a final status is there (docs/webhooks.md "What a receiver
does"). aiohttp drops the head when the body behind it is broken and came in the same bytes.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection

HEAD_MAX = 64 * 1024
"""Bytes of an answer's head, interim answers included."""
HEADERS_MAX = 200
_INTERIM_MAX = 8
"""Interim answers (1xx) before the final one. More of them would have us read on without end."""
_POOLED = 65
"""Connections to one host tried for a webhook: the 64 that the pool keeps at most, and a new one."""

_NO_HEADERS: Mapping[bytes, bytes] = {}
_HEAD_END = re.compile(rb"\n\r?\n")
_RETRY_AFTER = re.compile(rb"\n(retry-after|date)[ \t]*:[ \t]*([^\r\n]{1,64})", re.IGNORECASE)
_ASKS_TO_WAIT = (429, 503)
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?=[ \r\n])")


class NeverFinal(aiohttp.ClientError):
    """The receiver sends interim answers only."""


class HeadTooLarge(aiohttp.ClientError):
    """The head of an answer has more bytes or more lines than we read."""


class Attempt:
    """One exchange: what came back, over which connection, and whether that has to be a new one."""

    __slots__ = ("fresh", "protocol", "retry_after", "status")

    def __init__(self) -> None:
        self.fresh = False
        self.protocol: HeadReader | None = None
        self.status: int | None = None
        """The final status of the answer, once its whole head was read."""
        self.retry_after: Mapping[bytes, bytes] = _NO_HEADERS
        """Headers Retry-After and Date of an answer that may ask us to wait, by name in lower case."""

    @property
    def was_stale(self) -> bool:
        """Whether it went over a kept connection on which no byte came back."""
        return self.protocol is not None and self.protocol.requests > 1 and not self.protocol.answering


ATTEMPT: ContextVar[Attempt] = ContextVar("attempt")
"""The exchange of the present task. aiohttp's session hands nothing of ours down to its connector."""


class HeadReader(ResponseHandler):
    """aiohttp's protocol, which also reads the status line of the present answer by itself."""

    attempt: Attempt
    """The present exchange."""
    requests = 0
    """How many requests this connection carried, the present one included."""
    answering = False
    """Whether a byte of the present answer came."""

    def set_response_params(self, **options: Any) -> None:
        """Begin with a request: its answer is read from the next byte on."""
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
                break  # no answer of HTTP/1: aiohttp's parser says so
            code = int(line[1])
            if code >= 200 or code == 101:
                self.attempt.status = code
                if code in _ASKS_TO_WAIT:
                    found = _RETRY_AFTER.findall(self._head, start, end.end())
                    self.attempt.retry_after = {bytes(name).lower(): bytes(value).strip() for name, value in found}
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
    """A pool of such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(HeadReader, loop=self._loop))

    async def connect(
        self,
        req: ClientRequest,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        """Return a connection on which nothing came unasked: that would be taken for the answer to this webhook. An
        attempt that has to be `fresh` gets a new one. Raises what aiohttp raises."""
        attempt = ATTEMPT.get()
        for _ in range(_POOLED):
            connection = await super().connect(req, traces, timeout)
            protocol = cast("HeadReader | None", connection.protocol)
            if protocol is not None and not protocol.should_close and not (attempt.fresh and protocol.requests):
                attempt.protocol, protocol.attempt = protocol, attempt
                return connection
            give_up(connection)
        raise aiohttp.ClientConnectionResetError("the receiver answers before it is asked")


def give_up(connection: Connection) -> None:
    """Close it at once: bytes that are not sent yet would keep it open for as long as the receiver does not read."""
    if connection.transport is not None:
        connection.transport.abort()
    connection.close()
