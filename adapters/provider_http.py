"""HTTP to a provider. Each bounded exchange ends in an answer, or in a fault that says whether the request may have
been sent (docs/adapters.md "A bank: three outcomes").

The adapter interprets the answer's status and error codes; this module knows no provider.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from io import BytesIO
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from aiohttp import hdrs
from yarl import URL

from ..ports.clock import Clock
from ..ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from .bounded_answers import CONNECTOR

T = TypeVar("T")

_ANSWER_MAX = 1024 * 1024
_PART = 256 * 1024
_PARTS_SECONDS = 120.0
"""Seconds for receiving all parts of an answer."""
_CONNECT_SECONDS = 5.0
_IDLE_SECONDS = 15.0
"""Shorter than servers usually keep an idle connection, because a write on a closing connection has an unknown
outcome."""
_CONNECTIONS = 64
_AT_ONCE = 65_536
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS, sock_connect=None, sock_read=None)
"""Limits only connecting, including the wait for a free connection, when nothing has been sent yet. The whole exchange
has a separate limit."""
_WAIT_MAX = 86400.0
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors without a connection, so no request was sent. A server that hangs up later may have read the request."""


class AnswerTooLong(Unavailable):
    """The answer to a read is longer than the caller allows."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer. The repr shows only the status."""

    status: int
    headers: Mapping[str, str]
    """Header values by lower-case names."""
    body: bytes
    unreadable: type[Fault]
    """Fault of an unreadable answer: OutcomeUnknown after a write, Unavailable after a read."""
    name: str
    """Name of the provider."""

    def decoded(self, shape: type[T]) -> T:
        """Decode the JSON body. Where `shape` says so, numbers are decoded directly to Decimal, never by way of float.

        Raises: the fault in `unreadable`, OutcomeUnknown or Unavailable, if the body does not have this shape.
        """
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self.unreadable(f"{self.name}: the answer is not of the shape known to us") from None

    def retry_after(self, now: datetime | None = None) -> float | None:
        """Return the seconds of a Retry-After header, at most a day, or None. Without `now` a header with a date is
        ignored."""
        said = self.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return min(float(said[:9]), _WAIT_MAX)
        if now is None:
            return None
        try:
            seconds = (parsedate_to_datetime(said) - now).total_seconds()
        except (ValueError, TypeError):
            return None
        return min(max(seconds, 0.0), _WAIT_MAX)

    def __repr__(self) -> str:
        return f"<answer {self.status}>"


class ProviderHttp:
    """Connections to one provider. They belong to the event loop that uses them first.

    Redirects, proxies, cookies and compressed answers are disabled, because headers contain credentials, and
    decompressed data have no size limit. Answers are parsed in slices (bounded_answers.py). TLS is 1.2 or later.
    Faults, reprs and log lines never contain an address's query, a body or a header.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        limit: float,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open no connections yet.

        `limit`: seconds for a whole exchange, up to the last byte of the answer; below 20, when the app gives up.
        `headers`: sent with every call. `tls`: replaces the system's trust store. `clock`: used to measure
        `clock_skew`. Raises: NotConfigured unless the address uses https, or http on this machine.
        """
        self.name = name
        self._base = checked_base(name, base_url)
        self._limit = limit
        self._headers = dict(headers or {})
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._clock = clock
        self._closed = False
        self.clock_skew: float | None = None
        """Seconds by which the provider's clock was ahead of ours at its last answer (ports/checking.py: `TellsTime`),
        accurate to about a second. None: no answer yet, or no clock."""

    def __repr__(self) -> str:
        return f"<ProviderHttp {self.name}>"

    async def call(
        self,
        method: str,
        path: str,
        *,
        writes: bool,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        answer_max: int = _ANSWER_MAX,
    ) -> Answer:
        """Send one request. If a kept connection was closed, idempotent methods (GET, PUT, DELETE) are sent once more.

        `path` is appended to the base address unchanged, so ids in it must be quoted; `query` is quoted here. `writes`:
        whether the provider may have executed the request when no answer arrives. `answer_max`: bytes. Raises:
        Unavailable if nothing was sent, and for a read without a complete answer; OutcomeUnknown for a write without
        one.
        """
        lost: type[Fault] = OutcomeUnknown if writes else Unavailable
        session = self._opened()
        asked = f"?{urlencode(query, quote_via=quote, safe='')}" if query else ""
        try:
            async with (
                asyncio.timeout(self._limit),
                session.request(
                    method,
                    URL(f"{self._base}{path}{asked}", encoded=True),
                    data=_sendable(body),
                    headers={**self._headers, **(headers or {})},
                    allow_redirects=False,
                ) as response,
            ):
                read = await _read(response, answer_max)
        except _NEVER_SENT as error:
            raise Unavailable(f"{self.name}: no connection ({type(error).__name__})") from None
        except TimeoutError:
            raise lost(f"{self.name}: no whole answer within {self._limit:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise lost(f"{self.name}: {type(error).__name__}") from None
        if read is None:
            raise (OutcomeUnknown if writes else AnswerTooLong)(f"{self.name}: the answer is too long")
        self._compare_clocks(response)
        return self._answer(response, read, lost)

    def _answer(self, response: aiohttp.ClientResponse, body: bytes, unreadable: type[Fault]) -> Answer:
        return Answer(
            status=response.status,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=body,
            unreadable=unreadable,
            name=self.name,
        )

    async def parts(
        self, path: str, *, headers: Mapping[str, str], answer_max: int, judge: Callable[[Answer], None]
    ) -> AsyncIterator[bytes]:
        """GET a possibly large answer in parts of at most `_PART` bytes. For any status other than 200 `judge` gets the
        answer with the beginning of its body, and raises its fault. Time spent in the caller does not count.

        Raises: the faults of `judge`; Unavailable for an answer that is incomplete, longer than `answer_max` bytes, or
        slower than `_PARTS_SECONDS` allow.
        """
        loop, left, length = asyncio.get_running_loop(), _PARTS_SECONDS, 0
        session = self._opened()
        url = URL(f"{self._base}{path}", encoded=True)
        try:
            async with asyncio.timeout(self._limit):
                response = await session.get(url, headers={**self._headers, **headers}, allow_redirects=False)
            async with response:
                self._compare_clocks(response)
                if response.status != HTTPStatus.OK:
                    async with asyncio.timeout(self._limit):
                        body = await response.content.read(_PART)
                    judge(self._answer(response, body, Unavailable))
                    raise Unavailable(f"{self.name}: status {response.status}")
                while True:
                    began = loop.time()
                    async with asyncio.timeout(min(left, self._limit)):
                        part = await response.content.read(_PART)
                    left -= loop.time() - began
                    if not part:
                        return
                    length += len(part)
                    if length > answer_max or left <= 0:
                        raise Unavailable(f"{self.name}: the answer is too long, or too slow")
                    yield part
        except TimeoutError:
            raise Unavailable(f"{self.name}: no answer within {self._limit:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unavailable(f"{self.name}: {type(error).__name__}") from None

    async def close(self) -> None:
        """Close all connections. Requests in progress end without an answer, and no further ones can be sent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _compare_clocks(self, response: aiohttp.ClientResponse) -> None:
        if self._clock is None:
            return
        with suppress(ValueError, TypeError):
            theirs = parsedate_to_datetime(response.headers.get(hdrs.DATE, ""))
            self.clock_skew = (theirs - self._clock.now()).total_seconds()

    def _context(self) -> ssl.SSLContext | bool:
        """Create the TLS context only if it is needed, because reading the system's certificates takes 60 ms of CPU."""
        if self._tls is None and not self._base.startswith("https:"):
            return True
        return self._tls or _modern_tls()

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise Unavailable(f"{self.name}: closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=CONNECTOR(ssl=self._context(), limit=_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_TIMEOUT,
                trust_env=False,
                auto_decompress=False,
                skip_auto_headers=(hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
            )
        return self._session


def _sendable(body: bytes | None) -> bytes | BytesIO | None:
    """Wrap a large body so that it is written in parts and does not block the event loop."""
    return body if body is None or len(body) <= _AT_ONCE else BytesIO(body)


def checked_base(name: str, url: str) -> str:
    """Return the provider's base address without a slash at the end. Raises: NotConfigured, without quoting the
    address, unless it uses https, or http on this machine, and consists of host and path only."""
    parts = urlsplit(url)
    try:
        port_fits = parts.port != 0
    except ValueError:
        port_fits = False
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))
    if not (is_allowed and port_fits and parts.hostname) or any(mark in url for mark in "@?# ") or not url.isascii():
        raise NotConfigured(f"{name}: its address must be https://host/path, or http:// of this machine")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _modern_tls() -> ssl.SSLContext:
    """Create one context for all, because reading the system's trust store takes a tenth of a second."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Read the body; None if it is longer than `most` bytes."""
    body = bytearray()
    while chunk := await response.content.read(most):
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
