"""The notifier posts webhooks to merchants' receivers and reports what became of each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

RETRY_AFTER_MAX = 3600
"""Seconds that a receiver can lengthen a pause to."""


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One POST. `open_network` lets it go to plain http and, where the installation permits it
    (`allow_loopback_webhooks`), to loopback addresses: test mode only."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    open_network: bool = False


class Answer(StrEnum):
    """How an attempt ended."""

    RESPONDED = "responded"
    """The receiver sent a status; whether it is good is the core's to judge."""
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    TLS = "tls"
    BLOCKED = "blocked"
    """Not sent: the address is one that we never post to."""


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a webhook. `status` only with RESPONDED; `note` is a short cause for operators."""

    answer: Answer
    status: int | None = None
    note: str = ""
    took_ms: int = 0
    retry_after: int | None = None
    """Seconds that a 429 or 503 asks us to wait (Retry-After), at most RETRY_AFTER_MAX."""


class Notifier(Protocol):
    """Posts webhooks. No redirect is followed, the whole exchange takes at most 10 seconds."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Send it once. Never raises for what the receiver or the network does: that is the result."""
        ...

    async def close(self) -> None: ...
