"""Two ways to send a webhook over aiohttp's connections. Both use aiohttp's TLS, DNS, pool and parser.

`ClientSession` prepares every request for redirects, cookies, proxies, middlewares and streamed bodies. A webhook
is a few bytes to an address that is checked already. So `DirectExchange` takes a connection from the connector,
writes everything at once and reads the answer, at half the cost of the session (docs/performance.md).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

import aiohttp
from aiohttp import hdrs
from yarl import URL

from ...ports.notifier import WebhookRequest
from ..aiohttp_insides import INSIDES, ClientRequest, Connection, ConnectionKey, HttpProcessingError
from .connections import ATTEMPT, HEAD_MAX, HEADERS_MAX, give_up
from .guard import request_target

_ANSWER_MAX = 4 * 1024
"""Bytes of an answer that are read.

Their content is unused, but reading a short answer to its end keeps the connection.
"""
_NO_LIMITS = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""No limits of aiohttp: the notifier limits the whole exchange."""
_UNPACKED = "identity"
"""Header that asks for answers without compression."""
_ADDRESSES = 10_000
"""Addresses whose request is cached."""


class Exchange(Protocol):
    """Sender of webhooks over the connections of its connector, which it owns."""

    async def send(self, url: URL, webhook: WebhookRequest) -> int:
        """Return the status, once the answer was read to its end or to our limit.

        Raises the errors of aiohttp and sockets, also if only the body is broken (`Attempt.status` is then known).
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class SessionExchange:
    """Exchange over a session.

    It uses only aiohttp's documented features, and so works with any version. aiohttp handles receivers that send
    unrequested answers or do not read.
    """

    def __init__(self, connector: aiohttp.TCPConnector) -> None:
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_LIMITS,
            trust_env=False,
            auto_decompress=False,
            max_line_size=HEAD_MAX,
            max_field_size=HEAD_MAX,
            max_headers=HEADERS_MAX,
        )

    async def send(self, url: URL, webhook: WebhookRequest) -> int:
        """Send a webhook, as Exchange defines it."""
        headers = {hdrs.ACCEPT_ENCODING: _UNPACKED, **webhook.headers}
        async with self._session.post(url, data=webhook.body, headers=headers, allow_redirects=False) as response:
            ATTEMPT.get().read(response.status, response.raw_headers)
            await _read(response.content)
            return response.status  # leaving the block drops a connection whose answer goes on

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


class DirectExchange:
    """Exchange directly on the connections."""

    def __init__(self, connector: aiohttp.TCPConnector) -> None:
        self._connector = connector
        self._addresses: dict[str, _Address] = {}
        """Requests by the text of the address: URLs with different spellings may be equal."""

    async def send(self, url: URL, webhook: WebhookRequest) -> int:
        """Send a webhook, as Exchange defines it. Raises ValueError for a header that is not one line of ASCII."""
        address = self._addresses.get(webhook.url) or self._address(url, webhook.url)
        whole = b"%b%b\r\n%b" % (address.head, _lines(webhook.headers, len(webhook.body)), webhook.body)
        connection = await self._connector.connect(address, [], _NO_LIMITS)
        try:
            status = await _exchanged(connection, whole, address)
        except BaseException:
            give_up(connection)
            raise
        transport = connection.transport
        if transport is not None and transport.get_write_buffer_size():
            # A receiver that answers without reading would let unsent webhooks pile up here.
            give_up(connection)
        else:
            connection.release()  # closes a connection whose answer goes on
        return status

    async def close(self) -> None:
        """Close all connections."""
        await self._connector.close()

    def _address(self, url: URL, text: str) -> "_Address":
        if len(self._addresses) >= _ADDRESSES:
            self._addresses.clear()
        made = self._addresses[text] = _Address("POST", url)
        made.target = request_target(text)
        return made


class _Address(ClientRequest):
    """Request data that the connector needs, the same for all webhooks to an address."""

    _key: ConnectionKey | None = None
    target = "/"
    """Path and query, as the merchant wrote them."""

    @property
    def connection_key(self) -> ConnectionKey:
        """Key of its connections, computed once."""
        if self._key is None:
            self._key = super().connection_key
        return self._key

    @cached_property
    def head(self) -> bytes:
        """First lines of every webhook to this address."""
        host = self.headers[hdrs.HOST]
        lines = f"POST {self.target} HTTP/1.1", f"Host: {host}", f"Accept-Encoding: {_UNPACKED}", "Accept: */*"
        return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def _lines(headers: Mapping[str, str], length: int) -> bytes:
    for value in headers.values():
        if "\n" in value or "\r" in value or not value.isascii():
            raise ValueError("a header that is not one line of ASCII")
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return f"{''.join(lines)}Content-Length: {length}\r\n".encode("ascii")


async def _exchanged(connection: Connection, whole: bytes, address: _Address) -> int:
    """Send a request, and return the status of its final answer."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        raise aiohttp.ClientConnectionResetError("the connection was closed")
    protocol.set_response_params(
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=HEAD_MAX,
        max_field_size=HEAD_MAX,
        max_headers=HEADERS_MAX,
    )
    transport.write(whole)
    try:
        message, content = await protocol.read()
        while 100 <= message.code <= 199 and message.code != 101:
            message, content = await protocol.read()
    except HttpProcessingError as error:
        raise aiohttp.ClientResponseError(address.request_info, (), status=error.code) from error
    if not content.at_eof():
        await _read(content)
    return message.code


async def _read(content: aiohttp.StreamReader) -> None:
    room = _ANSWER_MAX
    while room and (chunk := await content.read(room)):
        room -= len(chunk)


EXCHANGE: type[DirectExchange] | type[SessionExchange] = DirectExchange if INSIDES.is_known else SessionExchange
"""The way to send with the installed version of aiohttp. The contract tests run with both."""
