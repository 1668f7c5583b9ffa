"""Receives a sandbox's webhooks: verifies and stores them, and passes them to the merchant's own receiver, if there is
one."""

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import anyio.to_thread
import httpx2
import msgspec

from ...core.domain.webhooks.endpoints import WebhookEndpoint
from ...core.domain.webhooks.signing import NotVerified, Signer, headers
from ...core.usecases.common.encrypted import open_webhook_secret
from ...ports.bundle import Ports
from ...ports.notifier import Answer, DeliveryResult, WebhookRequest
from ..client.webhooks import Webhook, verify_webhook

Receiver = Callable[[Mapping[str, str], bytes], int | None]
"""Takes headers and raw body, and returns the HTTP status; None means 200, an exception 500. Runs in a separate thread,
so it may call the sandbox's client."""

_GOOD = 200
_FAILED = 500

log = logging.getLogger("cambist.testing")


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook request and the receiver's answer. Each attempt is a separate delivery."""

    url: str
    """URL of the endpoint."""
    webhook: Webhook
    headers: Mapping[str, str]
    body: bytes
    status: int
    error: BaseException | None = None
    """Exception raised by the merchant's receiver."""

    def __repr__(self) -> str:
        return f"Delivery({self.webhook.event.event!r}, status={self.status}, error={self.error!r})"


class InApp:
    """A receiver inside an ASGI application."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx2.ASGITransport(app)

    async def post(self, url: str, shown: Mapping[str, str], body: bytes) -> int:
        """Post the webhook and return the status of the answer."""
        response = await self._transport.handle_async_request(
            httpx2.Request("POST", url, headers=dict(shown), content=body)
        )
        await response.aread()
        return response.status_code


class Postbox:
    """Implements the port Notifier."""

    def __init__(self, secret: str, now: Callable[[], datetime], machine_time: Callable[[], datetime] | None) -> None:
        """`machine_time`: the clock of the merchant's receiver, if it differs from `now`."""
        self.deliveries: list[Delivery] = []
        self.receiver: Receiver | InApp | None = None
        self.ports: Ports | None = None
        """Set later; used to read the secrets of additional endpoints."""
        self._secret = secret
        self._now = now
        self._machine_time = machine_time

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Verify the webhook, pass it to the receiver, and store it."""
        verified, secret = await self._verified(webhook)
        shown = self._at_receivers_time(webhook, verified, secret)
        error: BaseException | None = None
        try:
            status = await self._hand_over(webhook.url, shown, webhook.body)
        except Exception as raised:
            log.exception("the merchant's receiver raised")
            status, error = _FAILED, raised
        kept = Delivery(url=webhook.url, webhook=verified, headers=shown, body=webhook.body, status=status, error=error)
        self.deliveries.append(kept)
        return DeliveryResult(answer=Answer.RESPONDED, status=status)

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def _hand_over(self, url: str, shown: Mapping[str, str], body: bytes) -> int:
        if self.receiver is None:
            return _GOOD
        if isinstance(self.receiver, InApp):
            return await self.receiver.post(url, shown, body)
        status = await anyio.to_thread.run_sync(self.receiver, shown, body)
        return _GOOD if status is None else status

    async def _verified(self, request: WebhookRequest) -> tuple[Webhook, str]:
        """Return the webhook and the secret that signed it. Raises: NotVerified."""
        for secret in await self._further_secrets():
            with contextlib.suppress(NotVerified):
                return verify_webhook(request.headers, request.body, [secret], now=self._now), secret
        return verify_webhook(request.headers, request.body, [self._secret], now=self._now), self._secret

    async def _further_secrets(self) -> list[str]:
        """Return the secrets of all additional endpoints, including replaced ones that still sign."""
        if self.ports is None:
            return []
        found = [each async for batch in self.ports.storage.scan(WebhookEndpoint) for each in batch]
        sealed = [(each.id, one) for each in found for one in (each.secret, each.previous_secret) if one is not None]
        return [open_webhook_secret(self.ports.vault, endpoint_id, one) for endpoint_id, one in sealed]

    def _at_receivers_time(self, request: WebhookRequest, webhook: Webhook, secret: str) -> Mapping[str, str]:
        """Return headers signed for the machine's time, because a receiver compares the timestamp with its own clock
        and not with the sandbox's."""
        if self._machine_time is None:
            return request.headers
        return headers(
            Signer(secret),
            event_id=webhook.id,
            event=webhook.event.event,
            sequence=webhook.sequence,
            attempt=webhook.attempt,
            timestamp=int(self._machine_time().timestamp()),
            body=request.body,
        )
