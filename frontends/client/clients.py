"""The sync and the async client, which differ only in how they send a request."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from datetime import datetime
from typing import Generic, Self, TypeVar

import anyio
import httpx
import msgspec

from .account import OwnAccount
from .errors import FRAMES_HIDDEN, Answer, NoAnswer, RateLimit
from .events import Events
from .exchanges import Exchanges
from .kyc import Kyc
from .model import Page, Record
from .money import Money
from .operations import Async, Face, Group, Sync, Walker, operation
from .payments import Payments
from .refunds import Refunds
from .request_log import RequestLog
from .requests import API, Request, get
from .retries import Course, Retries
from .sandbox import SandboxCalls
from .settlements import Settlements
from .subscriptions import Subscriptions
from .webhook_endpoints import WebhookEndpoints
from .withdrawals import Withdrawals

T = TypeVar("T")
__tracebackhide__ = FRAMES_HIDDEN

TIMEOUT = 35.0
"""Default timeout in seconds. POST /payments may wait 25 s for another request with the same key."""
_USUAL = Retries()
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Health(Record, frozen=True, kw_only=True):
    """Health of the service."""

    status: str
    timestamp: datetime
    core: str
    degraded: list[str] = msgspec.field(default_factory=list)


class _Keys(httpx.Auth):
    """Adds the key pair to requests to the service. Its repr hides the secret."""

    def __init__(self, api_key: str, api_secret: str) -> None:
        self.api_key = api_key
        self._api_secret = api_secret

    def __repr__(self) -> str:
        return f"_Keys({self.api_key!r}, ***)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["X-Api-Key"] = self.api_key
        request.headers["X-Api-Secret"] = self._api_secret
        yield request


class Merchant(Group[Face], Generic[Face]):
    """Common base of both clients: keys, base URL, and the operations by subject."""

    def __init__(self, face: Face, base_url: str, api_key: str, api_secret: str, retries: Retries) -> None:
        super().__init__(face)
        if not base_url.startswith(("https://", "http://")):
            raise ValueError("base_url is the address of the service: https://…")
        self.base_url = base_url.rstrip("/").removesuffix(API)
        self.rate_limit: RateLimit | None = None
        """Rate limit reported by the last answer."""
        self._keys = _Keys(api_key, api_secret)
        self._retries = retries
        self.payments = Payments(face)
        self.refunds = Refunds(face)
        self.subscriptions = Subscriptions(face)
        self.exchanges = Exchanges(face)
        self.kyc = Kyc(face)
        self.money = Money(face)
        self.settlements = Settlements(face)
        self.withdrawals = Withdrawals(face)
        self.events = Events(face)
        self.webhook_endpoints = WebhookEndpoints(face)
        self.request_log = RequestLog(face)
        self.account = OwnAccount(face)
        self.sandbox = SandboxCalls(face)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r}, {self._keys.api_key!r})"

    @operation
    def health(self) -> Request[Health]:
        """Return the health of the service. A degraded service answers 503, which raises CambistError
        `UNEXPECTED_ANSWER`."""
        return get("/health", Health)

    def _packed(self, http: httpx.Client | httpx.AsyncClient, request: Request[T]) -> httpx.Request:
        # The httpx client builds the request, so that its timeouts apply.
        return http.build_request(
            request.method,
            request.url(self.base_url),
            params=request.query or None,
            headers=request.headers,
            content=request.body,
        )

    def _auth(self, request: Request[T]) -> httpx.Auth:
        return self._keys if request.is_keyed else httpx.Auth()

    def _unpacked(self, response: httpx.Response) -> Answer:
        answer = Answer(status=response.status_code, headers=dict(response.headers), body=response.content)
        self.rate_limit = answer.rate_limit or self.rate_limit
        return answer


def _no_answer(request: Request[T], error: httpx.RequestError) -> NoAnswer:
    is_unsent = isinstance(error, _UNSENT)
    told = f"No answer to {request!r}: {type(error).__name__}{f', {error}' if str(error) else ''}"
    return NoAnswer(told, request=request, is_unsent=is_unsent)


class Client(Merchant[Sync], Sync):
    """A merchant's client. Safe to share between threads; close it, or use it with `with`.

    with Client("https://pay.example", api_key, api_secret) as client:
        payment = client.payments.create(amount_rub="100.00", external_id="order-1")
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        api_secret: str,
        *,
        retries: Retries = _USUAL,
        timeout: float = TIMEOUT,
        http: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A client passed as `http`, with your own proxies or certificates, is not closed here, and its own timeout
        replaces `timeout` (seconds)."""
        super().__init__(self, base_url, api_key, api_secret, retries)
        self._http = http or httpx.Client(timeout=timeout)
        self._is_own = http is None
        self._sleep = sleep

    def send(self, request: Request[T]) -> T:
        """Send a request, with as many retries as `retries` allows. Raises: CambistError."""
        course = Course(request, self._retries)
        while True:
            answer = self._once(course.request)
            pause = course.pause(answer)
            if pause is None:
                return course.result()
            self._sleep(pause)

    def walk(self, request: Request[Page[T]]) -> Iterator[T]:
        """Yield all elements of a list, page after page. Raises: CambistError."""
        walker = Walker(request)
        while walker.request is not None:
            yield from walker.take(self.send(walker.request))

    def _once(self, request: Request[T]) -> Answer | NoAnswer:
        try:
            sent = self._packed(self._http, request)
            # Following a redirect would send the key pair to another server.
            return self._unpacked(self._http.send(sent, auth=self._auth(request), follow_redirects=False))
        except httpx.RequestError as error:
            return _no_answer(request, error)

    def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Merchant[Async], Async):
    """Async version of `Client`, for asyncio and trio.

    async with AsyncClient("https://pay.example", api_key, api_secret) as client:
        payment = await client.payments.create(amount_rub="100.00", external_id="order-1")
        async for each in client.payments.iterate(status="paid"):
            ...
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        api_secret: str,
        *,
        retries: Retries = _USUAL,
        timeout: float = TIMEOUT,
        http: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """A client passed as `http`, with your own proxies or certificates, is not closed here, and its own timeout
        replaces `timeout` (seconds)."""
        super().__init__(self, base_url, api_key, api_secret, retries)
        self._http = http or httpx.AsyncClient(timeout=timeout)
        self._is_own = http is None
        self._sleep = sleep

    async def send(self, request: Request[T]) -> T:
        """Send a request, with as many retries as `retries` allows. Raises: CambistError."""
        course = Course(request, self._retries)
        while True:
            answer = await self._once(course.request)
            pause = course.pause(answer)
            if pause is None:
                return course.result()
            await self._sleep(pause)

    async def walk(self, request: Request[Page[T]]) -> AsyncIterator[T]:
        """Yield all elements of a list, page after page. Raises: CambistError."""
        walker = Walker(request)
        while walker.request is not None:
            for element in walker.take(await self.send(walker.request)):
                yield element

    async def _once(self, request: Request[T]) -> Answer | NoAnswer:
        try:
            sent = self._packed(self._http, request)
            return self._unpacked(await self._http.send(sent, auth=self._auth(request), follow_redirects=False))
        except httpx.RequestError as error:
            return _no_answer(request, error)

    async def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
