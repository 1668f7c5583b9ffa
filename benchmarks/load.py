"""HTTP load generator on open connections. It uses raw sockets and httptools, to leave the two cores of a small machine
to the measured service: aiohttp or httpx would need more time per request than the service."""

import asyncio
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import httptools
import msgspec
import uvloop

from cambist.core.usecases.accounts.accounts import KeyPair


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one load."""

    seconds: float
    latencies: list[float]
    """Seconds from each request to its answer, ascending."""

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds

    @property
    def p99(self) -> float:
        """Seconds within which 99 of 100 answers arrive."""
        return self.latencies[int(len(self.latencies) * 0.99)]


class _Connection(asyncio.Protocol):
    """A connection that sends the next request after each answer, until no requests are left."""

    def __init__(
        self, requests: Iterator[bytes], status: int, took: list[float], ended: "asyncio.Future[None]"
    ) -> None:
        self._requests = requests
        self._status = status
        self._took = took
        self._ended = ended
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport behaves like asyncio.Transport without being its subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._took.append(perf_counter() - self._sent_at)
        if self._parser.get_status_code() == self._status:
            self._send()
        else:
            self._end(AssertionError(f"answered {self._parser.get_status_code()}, not {self._status}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError("closed before the answer"))

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._end(None)
            self._transport.close()
            return
        self._sent_at = perf_counter()
        self._transport.write(request)

    def _end(self, fault: Exception | None) -> None:
        if not self._ended.done():
            if fault is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(fault)


async def _load(base: str, requests: Sequence[bytes], at_once: int, status: int) -> Outcome:
    loop = asyncio.get_running_loop()
    place = urlsplit(base)
    waiting, took = iter(requests), list[float]()
    ends = [loop.create_future() for _ in range(at_once)]
    started = perf_counter()
    for end in ends:
        await loop.create_connection(
            lambda end=end: _Connection(waiting, status, took, end),  # type: ignore[misc] # a default binds it now
            place.hostname or "127.0.0.1",
            place.port or 80,
        )
    await asyncio.gather(*ends)
    seconds = perf_counter() - started
    assert len(took) == len(requests)
    return Outcome(seconds=seconds, latencies=sorted(took))


def load(base: str, requests: Sequence[bytes], *, status: int, at_once: int = 32) -> Outcome:
    """Send all requests to the server at `base`, `at_once` at a time. Raises: AssertionError on any other `status`."""
    return uvloop.run(_load(base, requests, at_once, status))


def request(method: str, path: str, pair: KeyPair, source: str, body: bytes = b"", **headers: str) -> bytes:
    """Encode one request whose trusted proxy reports the client address `source`."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"X-Api-Key: {pair.api_key}",
        f"X-Api-Secret: {pair.api_secret}",
        f"X-Forwarded-For: {source}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
