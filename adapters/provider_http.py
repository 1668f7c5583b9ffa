"""HTTP to a provider: bounded exchanges that end in an answer, or in the fault that says whether anything was sent
(docs/adapters.md "A bank: three ends").

What an answer means (a status, an error's code) is the adapter's to say; no provider is known here.
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
"""For which all parts of an answer are waited for."""
_CONNECT_SECONDS = 5.0
_IDLE_SECONDS = 15.0
"""Shorter than servers usually keep an idle connection: a write on one that is being closed is an unknown outcome."""
_CONNECTIONS = 64
_AT_ONCE = 65_536
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS, sock_connect=None, sock_read=None)
"""Of connecting alone, also of waiting for a place: nothing was sent then. The whole exchange has a limit of ours."""
_WAIT_MAX = 86400.0
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""There was no connection, so there was no request. A server that hangs up later may have read one."""


class AnswerTooLong(Unavailable):
    """The answer to a read is longer than the caller allows."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer. Its repr shows the status alone."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes
    unreadable: type[Fault]
    """What it counts as where it cannot be read: OutcomeUnknown of a write, Unavailable of a read."""
    name: str
    """The provider's."""

    def decoded(self, shape: type[T]) -> T:
        """The body's JSON. Numbers become Decimal straight from the text, where `shape` says so: never by float.

        Raises: OutcomeUnknown or Unavailable, as `unreadable` says, for anything else than this shape.
        """
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self.unreadable(f"{self.name}: the answer is not of the shape known to us") from None

    def retry_after(self, now: datetime | None = None) -> float | None:
        """The seconds of a Retry-After, a day at most. Without `now` one that names a moment is passed over. None: it
        says nothing."""
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
    """Connections to one provider, belonging to the event loop that first uses them.

    Redirects, proxies, cookies and compressed answers are not for us: credentials travel in the headers, and what is
    unpacked has no bound. Answers are parsed in slices (bounded_answers.py). TLS is 1.2 at least. No fault, repr or log
    line has an address's query, a body or a header.
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
        """Opens nothing yet. `limit`: seconds for a whole exchange, to the last byte of the answer; below 20, which is
        when the house gives up. `headers`: of every call. `tls`: other than the system's trust. `clock`: by which
        `clock_skew` is measured.

        Raises: NotConfigured for an address that is neither https nor http of this machine.
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
        to about a second; None: it has not answered, or there is no clock."""

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
        """Ask once; what HTTP calls idempotent (GET, PUT, DELETE) once more where a kept connection was closed.

        `path` follows the base address as it stands, so ids in it have to be quoted; `query` is quoted here. `writes`:
        whether the provider may have done something when no answer comes. `answer_max` in bytes.

        Raises: Unavailable where nothing was sent, and for a read without a whole answer; OutcomeUnknown for a write
        without one.
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
        """GET what may be large, in parts of `_PART` bytes at most. `judge` hears of an answer that is not 200, with
        the beginning of its body, and raises what it means. The time that the caller takes does not count.

        Raises: what `judge` raises; Unavailable for what is no whole answer, is longer than `answer_max` bytes, or
        comes slower than `_PARTS_SECONDS` allow.
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
        """Close all connections. What is under way ends without an answer; nothing can be sent any more."""
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
        """Without TLS none is made: the system's certificates take 60 ms of CPU to read."""
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
    """The same bytes; many of them in the form that is written in parts, so that the event loop is not kept."""
    return body if body is None or len(body) <= _AT_ONCE else BytesIO(body)


def checked_base(name: str, url: str) -> str:
    """The address below which a provider is called, without a slash at the end. Raises: NotConfigured, without quoting
    it, for one that is neither https nor http of this machine, or holds more than host and path."""
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
    """One for all: reading the system's trust takes a tenth of a second."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """The body; None: it is longer than that."""
    body = bytearray()
    while chunk := await response.content.read(most):
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
