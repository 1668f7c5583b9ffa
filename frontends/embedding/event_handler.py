"""Events handled by a function of the embedding program.

They are processed like webhooks (stored with the change that caused them, retried with the backoff schedule, listed by
GET /events), but the last step is a function call instead of a POST. A crash therefore loses none, and an event may
arrive twice.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec

from ...core.domain.accounts.accounts import Mode
from ...core.usecases.webhooks.endpoint import TEST_EVENT
from ...ports.notifier import Answer, DeliveryResult, Notifier, WebhookRequest
from ..client.events import EventType
from ..client.webhooks import WebhookEvent, read_event

_HOST = "in-process.invalid"
"""Host of in-process addresses: `.invalid` is a reserved domain."""

LIMIT = 10.0
"""Time limit of a handler in seconds, the same as of a receiver (ports/notifier.py)."""

_GOOD = 200
_FAILED = 500

log = logging.getLogger("cambist.embedding")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an account's object."""

    id: str
    """The same on every attempt. Store the ids of handled events, because an event may arrive twice."""
    type: EventType
    account_id: str
    mode: Mode
    sequence: int
    """Increases per object, in the order of the changes, even if events arrive in another order."""
    attempt: int
    payload: WebhookEvent
    """Its class depends on the type: PaymentStatusChanged, RefundChanged, SubscriptionStatusChanged and so on, as for a
    webhook."""

    def __repr__(self) -> str:
        return f"Event({self.id!r}, {self.type.value!r}, attempt={self.attempt})"


OnEvent = Callable[[Event], Awaitable[object] | object]
"""Called in the event loop, so a plain function must be quick. After an exception the event is sent again."""


def address_of(account_id: str) -> str:
    """Return the webhook address of an account whose events are handled in-process."""
    return f"https://{_HOST}/{account_id}"


class EventHandler:
    """Implements the port Notifier: calls the handler for in-process addresses, and posts to all others."""

    def __init__(self, on_event: OnEvent | None, beyond: Notifier) -> None:
        self._on_event = on_event
        self._beyond = beyond

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Call the handler, or post the webhook."""
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
        """Close the wrapped notifier."""
        await self._beyond.close()


def _event(webhook: WebhookRequest, account_id: str) -> Event:
    return Event(
        id=webhook.headers["X-Webhook-Id"],
        type=EventType(webhook.headers["X-Webhook-Event"]),
        account_id=account_id,
        mode=Mode.TEST if webhook.open_network else Mode.LIVE,
        sequence=int(webhook.headers["X-Webhook-Sequence"]),
        attempt=int(webhook.headers["X-Webhook-Attempt"]),
        payload=read_event(webhook.body),
    )
