"""Merchants' servers that take webhooks, and what of events is known beside them."""

import hmac
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.ports.bundle import Ports
from cambist.ports.notifier import WebhookRequest

_ATTEMPTS = 10
"""Before which nothing is given up (docs/webhooks.md "When you do not answer")."""


@dataclass
class Told:
    """A webhook, as it arrived for the first time."""

    event: str
    sequence: int
    body: dict[str, Any]
    raw: bytes
    at: datetime
    times: int = 1


class Receiver:
    """A merchant's server, which takes webhooks and remembers them."""

    def __init__(
        self, number: int, secret: str | None, wrong: Callable[[str], None], trace: Callable[[str], None]
    ) -> None:
        self.number = number
        self.secrets = [] if secret is None else [secret]
        """Any of which has to sign: one, but around the end of a rotation, which clocks may see at another moment."""
        self.told: dict[str, Told] = {}
        """By X-Webhook-Id."""
        self.posted: Counter[str] = Counter()
        """How often each was sent here, whether it arrived or not."""
        self._wrong = wrong
        self._trace = trace

    def take(self, webhook: WebhookRequest, now: datetime) -> int:
        """The status that is answered."""
        headers = webhook.headers
        signed = headers["X-Webhook-Timestamp"].encode() + b"." + webhook.body
        signatures = {"sha256=" + hmac.digest(each.encode(), signed, "sha256").hex() for each in self.secrets}
        if signatures and headers["X-Webhook-Signature"] not in signatures:
            self._wrong(f"receiver {self.number}: a webhook with another signature")
        event_id, sequence = headers["X-Webhook-Id"], int(headers["X-Webhook-Sequence"])
        self._trace(f"receiver {self.number} takes {event_id} {headers['X-Webhook-Event']} {webhook.body.decode()}")
        known = self.told.get(event_id)
        if known is None:
            body = msgspec.json.decode(webhook.body)
            self.told[event_id] = Told(headers["X-Webhook-Event"], sequence, body, webhook.body, now)
        else:
            known.times += 1
            if (known.raw, known.sequence) != (webhook.body, sequence):
                self._wrong(f"receiver {self.number}: {event_id} came twice, and says something else")
        return 200

    def of(self, name: str, object_id: str) -> list[Told]:
        """Return the webhooks of an object in the order of its sequence."""
        prefix = name.removesuffix("_id")
        found = [
            each for each in self.told.values() if each.body.get(name) == object_id and each.event.startswith(prefix)
        ]
        return sorted(found, key=lambda told: told.sequence)


async def given_up(office: Ports, object_id: str, taken: Collection[int]) -> set[int]:
    """Return the events of an object that a receiver rejected in ten attempts. Events that move no money are then not
    retried for days (docs/webhooks.md). `taken` holds the numbers of the events accepted after all."""
    async with office.storage.unit() as unit:
        events = await unit[Event].find(object_id=object_id)
        sent = [(event, await unit[Delivery].get(event.id)) for event in events]
    failed = ((event, each) for event, each in sent if each is not None and each.status is DeliveryStatus.FAILED)
    # A test clock may jump by more than the week for which an event is tried at all.
    return {event.sequence for event, each in failed if each.attempts >= _ATTEMPTS or each.mode is Mode.TEST} - {*taken}
