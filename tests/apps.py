"""Apps for tests: wired by the composition root, in memory, under a virtual clock, and with the ways in that a
merchant, a payer and a bank have."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Script
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Event
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.common.encrypted import open_event_body
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.app.compose import Adapters, FurtherBank, open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.clock import Ids
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from tests.app_pool import LentApp, lent_app
from tests.invariants import check_books
from tests.payload_checks import check_body, check_webhook
from tests.quiesce import at_rest

WEBHOOK_SECRET = "a-webhook-secret-of-the-tests"
WEBHOOK_URL = "https://merchant.example/hooks"


class Postman:
    """A notifier that records every webhook and answers as scripted, by default with 200."""

    def __init__(self) -> None:
        self.webhooks: list[WebhookRequest] = []
        self.answers: list[DeliveryResult] = []

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.webhooks.append(webhook)
        return self.answers.pop(0) if self.answers else DeliveryResult(answer=Answer.RESPONDED, status=200)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The payloads, in the order sent."""
        return [msgspec.json.decode(webhook.body) for webhook in self.webhooks]


class TestApp:
    """An app, a merchant in it, and an HTTP client with the merchant's test keys."""

    __test__ = False

    def __init__(
        self,
        ports: Ports,
        clock: VirtualClock,
        postman: Postman,
        script: Script,
        client: httpx.AsyncClient,
        account: accounts.NewAccount,
        face: LentApp | None = None,
    ) -> None:
        self.ports = ports
        self.face = face
        self.clock = clock
        self.postman = postman
        self.script = script
        self.http = client
        self.account = account
        self.made_up = False
        """A test has written objects as no request could, so the books cannot agree with them."""

    def headers(self, mode: str = "test", **more: str) -> dict[str, str]:
        """The key pair of a mode, and further headers with `_` for `-`."""
        pair = getattr(self.account, mode)
        return {
            "X-Api-Key": pair.api_key,
            "X-Api-Secret": pair.api_secret,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }

    def connect(self, **ports: Any) -> None:
        """Replace ports of the running service."""
        self.ports = msgspec.structs.replace(self.ports, **ports)
        if self.face is not None:
            self.face.serve(self.ports)

    async def create(
        self, body: Mapping[str, Any] | None = None, *, key: str | None = None, mode: str = "test"
    ) -> httpx.Response:
        """POST /payments, for 100 RUB unless `body` says otherwise, with a fresh key unless one is given."""
        return await self.http.post(
            "/api/v1/payments",
            json={"amount_rub": "100.00", **(body or {})},
            headers=self.headers(mode, Idempotency_Key=key or str(uuid4())),
        )

    async def created(self, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A new payment's object."""
        response = await self.create(body)
        assert response.status_code == 201, response.text
        payment: dict[str, Any] = response.json()
        return payment

    async def get(self, path: str, *, mode: str = "test") -> httpx.Response:
        """GET a path below /api/v1."""
        return await self.http.get(f"/api/v1{path}", headers=self.headers(mode))

    async def simulate(self, payment_id: str, **body: Any) -> httpx.Response:
        """POST /sandbox/payments/{id}/simulate."""
        return await self.http.post(
            f"/api/v1/sandbox/payments/{payment_id}/simulate", json=body, headers=self.headers()
        )

    async def payment(self, payment_id: str) -> Payment:
        """A payment's record."""
        async with self.ports.storage.unit() as unit:
            found = await unit[Payment].get(payment_id)
        assert found is not None
        return found

    async def told(self, payment: str | Payment, simulation: Simulation) -> None:
        """Simulate this at the payment's bank, and handle the notification."""
        record = payment if isinstance(payment, Payment) else await self.payment(payment)
        await simulate_payment(self.ports, record, simulation)

    async def work(self, seconds: float = 0) -> None:
        """Let the time pass and do every job that falls due on the way, at its time."""
        end = self.clock.now().timestamp() + seconds
        while True:
            await run_due(self.ports)
            due = await self.ports.storage.next_due()
            if due is None or due.timestamp() > end:
                break
            await self.clock.advance(max(0.0, (due - self.clock.now()).total_seconds()))
        await self.clock.advance(max(0.0, end - self.clock.now().timestamp()))

    async def events(self, object_id: str) -> list[dict[str, Any]]:
        """The payloads of an object's events, in order, sent or not; each is of its schema."""
        async with self.ports.storage.unit() as unit:
            found = await unit[Event].find(object_id=object_id, order="sequence")
        bodies = [open_event_body(self.ports.vault, event) for event in found]
        for event, body in zip(found, bodies, strict=True):
            check_body(event.type, body)
        return [msgspec.json.decode(body) for body in bodies]

    async def check_payloads(self) -> None:
        """Every event there is, and every webhook sent so far, is of its schema."""
        async for batch in self.ports.storage.scan(Event):
            for event in batch:
                check_body(event.type, open_event_body(self.ports.vault, event))
        for webhook in self.postman.webhooks:
            check_webhook(webhook.headers, webhook.body)

    def check_signatures(self) -> None:
        """Every webhook sent so far verifies with the merchant's secret."""
        for webhook in self.postman.webhooks:
            sent = int(webhook.headers["X-Webhook-Timestamp"])
            event = verify_signature(webhook.headers, webhook.body, [WEBHOOK_SECRET], sent)
            assert event == webhook.headers["X-Webhook-Id"]


@asynccontextmanager
async def open_test_app(
    *,
    receiver: bool = True,
    further_banks: Sequence[FurtherBank] = (),
    adapters: Adapters | None = None,
    ids: Ids | None = None,
    **settings: Any,
) -> AsyncIterator[TestApp]:
    """An app in memory; with `receiver`, the merchant's webhook address and secret are set. Its `script` is that of
    each mode's first bank; `further_banks` bring their own. At the end every event and webhook is held against its
    schema, and the books against the objects."""
    clock, postman, script = VirtualClock(settle=at_rest), Postman(), Script()
    wanted = Settings(
        **{
            "database_url": "memory://",
            "base_url": "https://pay.example",
            "allow_live_simulators": True,
            "allow_loopback_webhooks": True,
            **settings,
        }
    )
    async with open_app(
        wanted,
        clock=clock,
        ids=ids or SeededIds(),
        notifier=postman,
        script=script,
        further_banks=further_banks,
        adapters=adapters or Adapters(),
    ) as app:
        account = await accounts.create_account(app.ports, "Merchant")
        if receiver:
            wish = {"webhook_url": WEBHOOK_URL, "webhook_secret": WEBHOOK_SECRET}
            await accounts.set_settings(app.ports, account.account_id, wish)
            await run_due(app.ports)
        with lent_app(app.ports) as face:
            transport = httpx.ASGITransport(face, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
                opened = TestApp(app.ports, clock, postman, script, client, account, face)
                yield opened
            await opened.check_payloads()
            if not opened.made_up:
                await check_books(app.ports)
