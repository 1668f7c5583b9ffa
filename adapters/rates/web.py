"""Reading JSON of a source over HTTP. Everything that can go wrong with a read is Unavailable."""

import asyncio
import ssl
from collections.abc import Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import TypeVar

import aiohttp
import msgspec
from aiohttp import hdrs

from ...ports.faults import NotConfigured, Unavailable

T = TypeVar("T")

_ANSWER_MAX = 1024 * 1024
_NO_LIMITS = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""The one limit is ours, over the whole exchange."""
_WAIT_MAX = 3600
_PRICE_MAX = Decimal(1_000_000_000)


class WebReader:
    """Connections to one source. Redirects, proxies and cookies are not for us: a key travels in the headers."""

    def __init__(self, name: str, *, limit: float, tls: ssl.SSLContext | None = None) -> None:
        """Opens nothing yet. `limit`: seconds for a whole exchange, to the last byte of the answer. `tls`: other than
        the system's trust."""
        self._name = name
        self._limit = limit
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def read(self, url: str, shape: type[T], headers: Mapping[str, str] | None = None) -> T:
        """The answer's JSON. Numbers become Decimal straight from the text, where `shape` says so: never by float.

        Raises: NotConfigured for 401; Unavailable for everything else that is no whole answer of this shape.
        """
        try:
            async with asyncio.timeout(self._limit):
                body = await self._get(url, headers or {})
        except TimeoutError:
            raise Unavailable(f"{self._name}: no whole answer within {self._limit:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unavailable(f"{self._name}: {type(error).__name__}") from None
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Unavailable(f"{self._name}: the answer is not of the shape known to us") from None

    async def close(self) -> None:
        """Close all connections. What is under way ends as Unavailable; nothing can be read any more."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _get(self, url: str, headers: Mapping[str, str]) -> bytes:
        async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
            if response.status == HTTPStatus.UNAUTHORIZED:
                raise NotConfigured(f"{self._name}: the key is not taken")
            if response.status != HTTPStatus.OK:
                raise Unavailable(f"{self._name}: status {response.status}", retry_after=_wait(response))
            body = bytearray()
            while chunk := await response.content.read(_ANSWER_MAX):
                body += chunk
                if len(body) > _ANSWER_MAX:
                    raise Unavailable(f"{self._name}: the answer is too long")
            return bytes(body)

    def _opened(self) -> aiohttp.ClientSession:
        """The session, opened inside the running loop, which it then belongs to."""
        if self._closed:
            raise Unavailable(f"{self._name}: closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=True if self._tls is None else self._tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_LIMITS,
                trust_env=False,
                auto_decompress=False,
                skip_auto_headers=(hdrs.ACCEPT_ENCODING,),
            )
        return self._session


def price(name: str, value: Decimal) -> Decimal:
    """A price as it came, when it is one. Raises: Unavailable for zero, less, no number, or one beyond all prices."""
    if not (value.is_finite() and 0 < value < _PRICE_MAX):
        raise Unavailable(f"{name}: not a price")
    return value


def _wait(response: aiohttp.ClientResponse) -> float | None:
    """Seconds of a Retry-After; its other form, a date, is passed over."""
    text = response.headers.get(hdrs.RETRY_AFTER, "")
    return float(min(int(text), _WAIT_MAX)) if text.isascii() and text.isdigit() and len(text) < 10 else None
