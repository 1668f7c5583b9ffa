"""Sending of webhooks over HTTP with aiohttp (docs/webhooks.md "When you do not answer")."""

import os
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from ...ports.clock import Clock
from ...ports.notifier import RETRY_AFTER_MAX, Answer, DeliveryResult, WebhookRequest
from .connections import ATTEMPT, Attempt, HeadTooLarge, NeverFinal, make_connector
from .deadlines import Deadlines
from .exchanges import EXCHANGE, Exchange
from .guard import AddressBlocked, BadAddress, SocketGuard, check_url
from .host_limit import Host, HostLimit
from .resolver import ThreadResolver

_NOTE_MAX = 200
_DNS_SECONDS = 10
"""Seconds for which a lookup is cached. It may be outdated or false: the guard checks the connected address."""
_DNS_THREADS = 256
_CHECKED = 10_000
"""Addresses whose text check is cached, because its result never changes.

Every connection passes the other check, at the socket, again.
"""


class HttpNotifier:
    """Notifier that sends each webhook once, without redirects, proxies, cookies and compressed answers.

    Live webhooks and test webhooks (`open_network`) have separate connections, so that a webhook never uses a
    connection that was allowed for the other kind.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        loopback: bool = False,
        limit: float = 10.0,
        per_host: int = 64,
        keep_alive: float = 30.0,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
        exchange: Callable[[aiohttp.TCPConnector], Exchange] = EXCHANGE,
    ) -> None:
        """Set up the notifier without connecting.

        `loopback`: test webhooks may go to this machine itself, where other services may listen. `limit`: seconds
        for a whole exchange, from connecting to the last byte of the answer. `per_host`: concurrent webhooks of
        each kind to one host and port; further ones wait, which is not charged to the receiver. The caller limits
        the total (core/domain/webhooks/limiter.py). `keep_alive`: seconds an idle connection is kept. `tls`: other
        than the system's trust, for receivers with a private authority. `exchange`: the way to send over
        connections (exchanges.py).
        """
        self._clock = clock
        self._loopback = loopback
        self._limit = limit
        self._keep_alive = keep_alive
        self._tls = tls
        self._resolver = resolver or ThreadResolver(_DNS_THREADS)
        self._make_exchange = exchange
        self._host_limit = {kind: HostLimit(per_host) for kind in (False, True)}
        self._checked: dict[tuple[str, bool], tuple[URL, Host]] = {}
        self._exchanges: dict[bool, Exchange] = {}
        self._deadlines: Deadlines | None = None
        self._closed = False

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Send a webhook once. A failure of the receiver or the network is a result, never an error.

        Raises RuntimeError if the notifier was closed before the webhook was sent.
        """
        try:
            url, host = self._address(webhook)
        except BadAddress as error:
            return DeliveryResult(answer=Answer.BLOCKED, note=str(error))
        limit = self._host_limit[webhook.open_network]
        await limit.enter(host)
        try:
            exchange = self._exchange(webhook.open_network)
            started = self._clock.monotonic()
            attempt = Attempt()
            answer, status, note = await self._attempt(exchange, url, webhook, attempt)
            took = self._clock.monotonic() - started
        finally:
            limit.leave(host)
        return DeliveryResult(
            answer=answer,
            status=status,
            note=note[:_NOTE_MAX],
            took_ms=round(took * 1000),
            retry_after=self._pause(attempt.retry_after) if attempt.retry_after else None,
        )

    def _pause(self, headers: Mapping[bytes, bytes]) -> int | None:
        """Return the seconds that an answer tells us to wait, an hour at most; None if it gives none that we can read.

        A date counts from the answer's own Date, because the clocks of both sides may differ.
        """
        asked = headers.get(b"retry-after", b"").decode("latin-1")
        if asked.isascii() and asked.isdigit():
            return min(int(asked), RETRY_AFTER_MAX)
        until = _http_date(asked)
        if until is None:
            return None
        now = _http_date(headers.get(b"date", b"").decode("latin-1")) or self._clock.now()
        return max(0, min(round((until - now).total_seconds()), RETRY_AFTER_MAX))

    async def close(self) -> None:
        """Close all connections.

        Webhooks under way end as broken connections, or at their limit; new ones are refused.
        """
        self._closed = True
        exchanges = list(self._exchanges.values())
        self._exchanges.clear()
        for exchange in exchanges:
            await exchange.close()
        await self._resolver.close()

    def _address(self, webhook: WebhookRequest) -> tuple[URL, Host]:
        """Return the webhook's address and its host, checked once for many webhooks: reading it takes a fifth of the
        time of sending.

        Raises: BadAddress.
        """
        asked = webhook.url, webhook.open_network
        known = self._checked.get(asked)
        if known is None:
            url = check_url(webhook.url, plain_http=webhook.open_network)
            if len(self._checked) >= _CHECKED:
                self._checked.clear()
            known = self._checked[asked] = url, (url.raw_host or "", url.port or 0)
        return known

    async def _attempt(
        self, exchange: Exchange, url: URL, webhook: WebhookRequest, attempt: Attempt
    ) -> tuple[Answer, int | None, str]:
        """Return the result, the status, and a note on the cause.

        A complete head with a final status is the answer, even if the body breaks or does not end in time.
        """
        ATTEMPT.set(attempt)
        try:
            with (self._deadlines or self._first_deadlines()).begin():
                return Answer.RESPONDED, await self._exchanged(exchange, url, webhook, attempt), ""
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if attempt.status is not None:
                return Answer.RESPONDED, attempt.status, ""
            return self._fault(error)

    async def _exchanged(self, exchange: Exchange, url: URL, webhook: WebhookRequest, attempt: Attempt) -> int:
        """Send the webhook; send it again, on a new connection, if a kept one broke before any byte came back.

        Most likely the receiver closed the idle connection at that moment, which says nothing about the webhook.
        """
        try:
            return await exchange.send(url, webhook)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError) or not attempt.was_stale or self._closed:
                raise
        attempt.fresh = True
        return await exchange.send(url, webhook)

    def _fault(self, error: Exception) -> tuple[Answer, None, str]:
        if isinstance(error, TimeoutError):
            return Answer.TIMEOUT, None, f"no answer within {self._limit:g} s"
        if isinstance(error, aiohttp.InvalidURL):
            return Answer.BLOCKED, None, "not a URL"
        if isinstance(error, aiohttp.ClientSSLError):
            return Answer.TLS, None, _tls_note(error)
        if isinstance(error, aiohttp.ClientConnectorError):
            if isinstance(error.os_error, AddressBlocked):
                return Answer.BLOCKED, None, AddressBlocked.WHY
            return Answer.CONNECTION, None, _connection_note(error)
        return Answer.CONNECTION, None, _broken_note(error)

    def _first_deadlines(self) -> Deadlines:
        self._deadlines = Deadlines(self._limit)
        return self._deadlines

    def _exchange(self, open_network: bool) -> Exchange:
        """Return the exchange for a kind of webhook. It is made inside the running loop, to which it then belongs."""
        if self._closed:
            raise RuntimeError("the notifier is closed")
        exchange = self._exchanges.get(open_network)
        if exchange is None:
            exchange = self._exchanges[open_network] = self._make_exchange(self._connector(open_network))
        return exchange

    def _connector(self, open_network: bool) -> aiohttp.TCPConnector:
        return make_connector(
            self._keep_alive,
            limit=0,
            ttl_dns_cache=_DNS_SECONDS,
            resolver=self._resolver,
            ssl=True if self._tls is None else self._tls,
            socket_factory=SocketGuard(loopback=open_network and self._loopback),
        )


def _http_date(text: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(text)
    except ValueError:
        return None
    # RFC 9110 allows only GMT; "-0000" parses as no zone.
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _tls_note(error: aiohttp.ClientSSLError) -> str:
    """Return a note on the cause only, because aiohttp's own texts contain the address."""
    cause = error.os_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate: {cause.verify_message}"
    return f"TLS: {getattr(cause, 'reason', None) or type(cause).__name__}"


def _connection_note(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the host's name was not found"
    # The cause's own text may contain the address; its number does not. Without a number, several addresses failed
    # differently.
    return f"no connection: {os.strerror(cause.errno) if cause.errno else type(cause).__name__}"


def _broken_note(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        return "the answer is not HTTP"
    if isinstance(error, HeadTooLarge):
        return "the head of the answer is longer than 64 KB or 200 lines"
    if isinstance(error, NeverFinal):
        return "interim answers, and no final one"
    return f"the connection broke off: {type(error).__name__}"
