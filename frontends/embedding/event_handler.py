"""Events heard in the program itself, by a function of its own.

They go the way of every webhook (written with what they tell of, retried by the ladder, seen in GET /events), only that
the last step is a call and not a POST. So a crash loses none, and an event may come twice.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec

from ...core.domain.accounts.accounts import Mode
from ...core.domain.payloads import Payload, read_payload
from ...core.domain.webhooks.events import EventType
from ...core.usecases.webhooks.endpoint import TEST_EVENT
from ...ports.notifier import Answer, DeliveryResult, Notifier, WebhookRequest

_HOST = "in-process.invalid"
"""No address on any network: `.invalid` is reserved."""

LIMIT = 10.0
"""Seconds that a handler may take, as a receiver may (ports/notifier.py)."""

_GOOD = 200
_FAILED = 500

log = logging.getLogger("cambist.embedding")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something happened to an object of an account."""

    id: str
    """The same on every attempt: keep the ids that were handled, for an event may come twice."""
    type: EventType
    account_id: str
    mode: Mode
    sequence: int
    """Rises per object: the order in which things happened, whatever order they arrive in."""
    attempt: int
    payload: Payload
    """By type: PaymentPayload, RefundPayload, SubscriptionPayload and so on."""

    def __repr__(self) -> str:
        return f"Event({self.id!r}, {self.type.value!r}, attempt={self.attempt})"


OnEvent = Callable[[Event], Awaitable[object] | object]
"""Called in the event loop, so a plain function must be quick. An exception has the event come again."""


def address_of(account_id: str) -> str:
    """The webhook address of an account whose events are heard here."""
    return f"https://{_HOST}/{account_id}"


class EventHandler:
    """Fills the port Notifier: calls for webhooks to addresses of ours, and posts all others."""

    def __init__(self, on_event: OnEvent | None, beyond: Notifier) -> None:
        self._on_event = on_event
        self._beyond = beyond

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Hand it over, or post it."""
        address = urlsplit(webhook.url)
        if address.hostname != _HOST:
            return await self._beyond.send(webhook)
        if self._on_event is None:
            return DeliveryResult(
                answer=Answer.CONNECTION, note="nobody hears events: the service was opened without on_event"
            )
        if webhook.headers["X-Webhook-Event"] == TEST_EVENT:
            return DeliveryResult(answer=Answer.RESPONDED, status=_GOOD)
        event = _event(webhook, address.path.removeprefix("/"))
        try:
            async with asyncio.timeout(LIMIT):
                heard = self._on_event(event)
                if inspect.isawaitable(heard):
                    await heard
        except TimeoutError:
            return DeliveryResult(
                answer=Answer.TIMEOUT, note=f"the handler took over {LIMIT:.0f} s, or had a timeout itself"
            )
        except Exception:
            log.exception("event %s was not handled; it comes again", event.id)
            return DeliveryResult(answer=Answer.RESPONDED, status=_FAILED, note="the handler raised")
        return DeliveryResult(answer=Answer.RESPONDED, status=_GOOD)

    async def close(self) -> None:
        """The other's end."""
        await self._beyond.close()


def _event(webhook: WebhookRequest, account_id: str) -> Event:
    kind = EventType(webhook.headers["X-Webhook-Event"])
    return Event(
        id=webhook.headers["X-Webhook-Id"],
        type=kind,
        account_id=account_id,
        mode=Mode.TEST if webhook.open_network else Mode.LIVE,
        sequence=int(webhook.headers["X-Webhook-Sequence"]),
        attempt=int(webhook.headers["X-Webhook-Attempt"]),
        payload=read_payload(kind, webhook.body),
    )
