"""The sync and the async client, which differ only in how they send a request."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import anyio
import httpx2
import msgspec

from .account import OwnAccount
from .errors import FRAMES_HIDDEN, Answer, NoAnswer, RateLimit
from .events import Events
from .exchanges import Exchanges
from .exports import Exports
from .kyc import Kyc
from .model import Page, Record
from .money import Money
from .operations import Async, Face, Group, Sync, Walker, operation
from .payment_links import PaymentLinks
from .payments import Payments
from .receipts import Receipts
from .refunds import Refunds
from .reports import Reports
from .request_log import RequestLog
from .requests import API, Request, get
from .retries import Course, Retries
from .sandbox import SandboxCalls
from .settlements import Settlements
from .subscriptions import Subscriptions
from .webhook_endpoints import WebhookEndpoints
from .withdrawals import Withdrawals

if TYPE_CHECKING:
    import httpx  # the library that httpx2 continues: a client of it may be passed in

    SyncHttp: TypeAlias = httpx2.Client | httpx.Client
    AsyncHttp: TypeAlias = httpx2.AsyncClient | httpx.AsyncClient

T = TypeVar("T")
__tracebackhide__ = FRAMES_HIDDEN


TIMEOUT = 35.0
"""Default timeout in seconds. POST /payments may wait 25 s for another request with the same key."""
_USUAL = Retries()
_LIBRARIES = ("httpx2", "httpx")
_UNSENT = ("ConnectError", "ConnectTimeout", "PoolTimeout")
"""Exceptions of both libraries for a request that was not sent."""


class Health(Record, frozen=True, kw_only=True):
    """Health of the service."""

    status: str
    timestamp: datetime
    core: str
    degraded: list[str] = msgspec.field(default_factory=list)


class _Keys:
    """Adds the key pair to requests to the service. Its repr hides the secret."""

    def __init__(self, api_key: str, api_secret: str) -> None:
        self.api_key = api_key
        self._api_secret = api_secret

    def __repr__(self) -> str:
        return f"_Keys({self.api_key!r}, ***)"

    def __call__(self, request: Any) -> Any:
        """Authenticate a request of either library, which takes any callable for that."""
        request.headers["X-Api-Key"] = self.api_key
        request.headers["X-Api-Secret"] = self._api_secret
        return request


def _no_auth(request: Any) -> Any:
    return request


def _errors(http: object) -> tuple[type[Exception], tuple[type[Exception], ...]]:
    """Return the library's base class for a request without an answer, and its classes for a request not sent."""
    roots = (each.__module__.partition(".")[0] for each in type(http).__mro__)
    library = import_module(next((root for root in roots if root in _LIBRARIES), "httpx2"))
    return library.RequestError, tuple(getattr(library, name) for name in _UNSENT)


class Merchant(Group[Face], Generic[Face]):
    """Common base of both clients: keys, base URL, and the operations by subject."""

    def __init__(
        self, face: Face, base_url: str, api_key: str, api_secret: str, retries: Retries, http: object
    ) -> None:
        super().__init__(face)
        if not base_url.startswith(("https://", "http://")):
            raise ValueError("base_url is the address of the service: https://…")
        self.base_url = base_url.rstrip("/").removesuffix(API)
        self.rate_limit: RateLimit | None = None
        """Rate limit reported by the last answer."""
        self._keys = _Keys(api_key, api_secret)
        self._retries = retries
        self._no_answer, self._unsent = _errors(http)
        self.payments = Payments(face)
        self.payment_links = PaymentLinks(face)
        self.refunds = Refunds(face)
        self.receipts = Receipts(face)
        self.subscriptions = Subscriptions(face)
        self.exchanges = Exchanges(face)
        self.kyc = Kyc(face)
        self.money = Money(face)
        self.settlements = Settlements(face)
        self.withdrawals = Withdrawals(face)
        self.exports = Exports(face)
        self.reports = Reports(face)
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

    def _packed(self, http: Any, request: Request[T]) -> Any:
        # The client that sends the request builds it, so that its timeouts apply.
        return http.build_request(
            request.method,
            request.url(self.base_url),
            params=request.query or None,
            headers=request.headers,
            content=request.body,
        )

    def _sending(self, request: Request[T]) -> dict[str, Any]:
        """Options of sending. Following a redirect would send the key pair to another server."""
        return {"auth": self._keys if request.is_keyed else _no_auth, "follow_redirects": False}

    def _unpacked(self, response: Any) -> Answer:
        answer = Answer(status=response.status_code, headers=dict(response.headers), body=response.content)
        self.rate_limit = answer.rate_limit or self.rate_limit
        return answer

    def _without_answer(self, request: Request[T], error: Exception) -> NoAnswer:
        told = f"No answer to {request!r}: {type(error).__name__}{f', {error}' if str(error) else ''}"
        return NoAnswer(told, request=request, is_unsent=isinstance(error, self._unsent))


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
        http: "SyncHttp | None" = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """A client of httpx2 or httpx passed as `http`, with your own proxies or certificates, is not closed here, and
        its own timeout replaces `timeout` (seconds)."""
        self._http: Any = http or httpx2.Client(timeout=timeout)
        super().__init__(self, base_url, api_key, api_secret, retries, self._http)
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
            return self._unpacked(self._http.send(sent, **self._sending(request)))
        except self._no_answer as error:
            return self._without_answer(request, error)

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
        http: "AsyncHttp | None" = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """A client of httpx2 or httpx passed as `http`, with your own proxies or certificates, is not closed here, and
        its own timeout replaces `timeout` (seconds)."""
        self._http: Any = http or httpx2.AsyncClient(timeout=timeout)
        super().__init__(self, base_url, api_key, api_secret, retries, self._http)
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
            return self._unpacked(await self._http.send(sent, **self._sending(request)))
        except self._no_answer as error:
            return self._without_answer(request, error)

    async def close(self) -> None:
        """Close the connections."""
        if self._is_own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
