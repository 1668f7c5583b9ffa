"""A merchant's sandbox for one test: a whole service in memory, a clock under the test's control, and an account.

It runs in the stage's thread, and every method here may be called from any other: from plain tests, from tests on an
event loop, and from the merchant's receiver. After each method and each request all due jobs run, so webhooks arrive at
once and no test has to wait.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import anyio.to_thread
import httpx2
import msgspec

from ...core.usecases.accounts import accounts
from ...core.usecases.jobs import run_due
from ...core.usecases.recurring_jobs import start_recurring_jobs
from ...ports.bundle import Ports
from ..app.compose import open_app, system_clock, virtual_time
from ..client.clients import AsyncClient, Client
from ..client.payments import FailureReason, Payment
from ..client.requests import Amount
from ..client.subscriptions import Subscription
from ..client.webhooks import Webhook, WebhookEvent
from ..settings.settings import Settings
from .clock import Advance, Clock, pass_time
from .receivers import Delivery, InApp, Postbox, Receiver
from .runtime import BASE_URL, Answered, Asked, Runtime
from .transports import AsyncSandboxTransport, SandboxApp, SandboxTransport

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=WebhookEvent)

_GOOD = 200

WEBHOOK_SECRET = "sandbox-webhook-secret"  # noqa: S105 - of nothing but tests
_FEATURES = {"refunds": "true", "exchange": "true", "recurring": "true", "direct_links": "true"}


class SandboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a sandbox."""

    start: datetime = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
    """Initial time of the clock. It is fixed, so that tests do not depend on the date."""
    settings: Mapping[str, str] = {}
    """Account settings, as in `cambist account set`. Refunds, exchanges, charges and direct links are on by default."""
    webhook_url: str = "https://merchant.test/webhooks"
    """URL of the receiver in an application (see `Sandbox.deliver_to_app`)."""
    receiver_time: Literal["machine", "sandbox"] = "machine"
    """Clock for webhook signatures: a receiver refuses old timestamps. Use `sandbox` for a receiver that reads its time
    from `sandbox.clock`."""


class Sandbox:
    """A merchant's sandbox; see the module's docstring."""

    def __init__(
        self, stage: Runtime, ports: Ports, advance: Advance, account: accounts.NewAccount, postbox: Postbox
    ) -> None:
        self._stage = stage
        self._ports = ports
        self._advance = advance
        self._account = account
        self._postbox = postbox
        self._passed = 0
        self.base_url = BASE_URL
        self.webhook_secret = WEBHOOK_SECRET
        self.clock = Clock(ports.clock.now, self._move)
        self.asgi = SandboxApp(self._ask)
        """The service for other HTTP clients; send `headers` with each request."""
        pair = account.test
        http, async_http = self.http(), self.async_http()
        self.client = Client(BASE_URL, pair.api_key, pair.api_secret, http=http, sleep=self._move)
        """The merchant's client. Its pauses between attempts use the sandbox's clock."""
        self.async_client = AsyncClient(
            BASE_URL, pair.api_key, pair.api_secret, http=async_http, sleep=self._move_elsewhere
        )

    def __repr__(self) -> str:
        return f"Sandbox({self.account_id!r}, {self.clock.now().isoformat()})"

    @property
    def account_id(self) -> str:
        return self._account.account_id

    @property
    def shop_id(self) -> str:
        """Id of the default shop."""
        return self._account.default_shop_id

    @property
    def api_key(self) -> str:
        return self._account.test.api_key

    @property
    def api_secret(self) -> str:
        return self._account.test.api_secret

    @property
    def headers(self) -> dict[str, str]:
        """The key pair as headers for other HTTP clients."""
        return {"X-Api-Key": self.api_key, "X-Api-Secret": self.api_secret}

    def http(self) -> httpx2.Client:
        """Return a plain httpx2 client for the sandbox, without keys."""
        return httpx2.Client(transport=SandboxTransport(self._ask), base_url=BASE_URL)

    def async_http(self) -> httpx2.AsyncClient:
        """Return a plain async httpx2 client for the sandbox, without keys."""
        return httpx2.AsyncClient(transport=AsyncSandboxTransport(self._ask), base_url=BASE_URL)

    @property
    def deliveries(self) -> list[Delivery]:
        """All webhook requests in order, including repeats, to all endpoints (`Delivery.url`)."""
        return list(self._postbox.deliveries)

    @property
    def webhooks(self) -> list[Webhook]:
        """The same webhooks, verified and decoded."""
        return [delivery.webhook for delivery in self._postbox.deliveries]

    @overload
    def events(self) -> list[WebhookEvent]: ...
    @overload
    def events(self, kind: type[E]) -> list[E]: ...
    def events(self, kind: type[WebhookEvent] = WebhookEvent) -> list[Any]:
        """Return the events of the webhooks, optionally of one type (`PaymentStatusChanged`)."""
        return [webhook.event for webhook in self.webhooks if isinstance(webhook.event, kind)]

    def deliver_to(self, receiver: Receiver | None) -> None:
        """Pass webhooks to the merchant's own receiver from now on and use its status. None: accept all webhooks."""
        self._postbox.receiver = receiver

    def deliver_to_app(self, app: Any) -> None:
        """Pass webhooks to an ASGI application at `SandboxOptions.webhook_url`. It runs on the sandbox's event loop, so
        its async code must use the async client."""
        self._postbox.receiver = InApp(app)

    def deliver_now(self, receiver: Receiver) -> list[int]:
        """Pass the webhooks since the last call to a receiver, in this thread, and return its answers: for receivers
        that must see the test's own database transaction. They are not sent again; an exception of the receiver is
        raised here."""
        answers = []
        while self._passed < len(self._postbox.deliveries):
            delivery = self._postbox.deliveries[self._passed]
            self._passed += 1
            answers.append(receiver(delivery.headers, delivery.body) or _GOOD)
        return answers

    def repeat_webhooks(self) -> None:
        """Let the next `deliver_now` begin with the first webhook again, because webhooks may come twice."""
        self._passed = 0

    def clear_webhooks(self) -> None:
        """Delete the webhooks received so far."""
        self._postbox.deliveries.clear()
        self._passed = 0

    def pay(self, payment_id: str, *, amount_rub: Amount | None = None, payer_name: str | None = None) -> Payment:
        """Simulate a payer who pays the full amount, or another amount, which leads to `amount_mismatch`."""
        return self.client.sandbox.simulate_payment(
            payment_id, "paid", actual_amount_rub=amount_rub, payer_name=payer_name
        )

    def fail(self, payment_id: str, reason: FailureReason | str | None = None) -> Payment:
        """Simulate a refusal by the bank."""
        return self.client.sandbox.simulate_payment(payment_id, "failed", failure_reason=reason)

    def expire(self, payment_id: str) -> Payment:
        """Simulate a payment that expires unpaid."""
        return self.client.sandbox.simulate_payment(payment_id, "expired")

    def confirm(self, subscription_id: str) -> Subscription:
        """Simulate a payer who opens the link and confirms."""
        return self.client.sandbox.simulate_subscription(subscription_id, "confirm")

    def run(self, usecase: Callable[Concatenate[Ports, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case of the core, as an operator would, and everything that becomes due by it."""

        async def work() -> T:
            done = await usecase(self._ports, *args, **kwargs)
            await run_due(self._ports)
            return done

        return self._stage.call(work)

    def _ask(self, asked: Asked) -> Answered:
        async def work() -> Answered:
            answered = await self._stage.answer(self._ports, asked)
            await run_due(self._ports)
            return answered

        return self._stage.call(work)

    def _move(self, seconds: float) -> None:
        self._stage.call(pass_time, self._ports, self._advance, seconds)

    async def _move_elsewhere(self, seconds: float) -> None:
        await anyio.to_thread.run_sync(self._move, seconds)


async def _account(ports: Ports, options: SandboxOptions) -> accounts.NewAccount:
    await start_recurring_jobs(ports)
    account = await accounts.create_account(ports, "Merchant")
    receiver = {"webhook_url": options.webhook_url, "webhook_secret": WEBHOOK_SECRET}
    await accounts.set_settings(ports, account.account_id, {**_FEATURES, **receiver, **options.settings})
    await run_due(ports)
    return account


@contextmanager
def open_on(stage: Runtime, options: SandboxOptions) -> Iterator[Sandbox]:
    """Open a sandbox on a stage."""
    clock, ids, advance = virtual_time(options.start)
    own_time = system_clock().now if options.receiver_time == "machine" else None
    postbox = Postbox(WEBHOOK_SECRET, clock.now, own_time)
    settings = Settings(
        database_url="memory://", base_url=BASE_URL, data_dir=stage.new_folder(), allow_live_simulators=True
    )
    opening = open_app(settings, clock=clock, ids=ids, notifier=postbox)
    with stage.within(opening) as app:
        postbox.ports = app.ports
        yield Sandbox(stage, app.ports, advance, stage.call(_account, app.ports, options), postbox)
