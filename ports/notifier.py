"""The port that posts webhooks to merchants' receivers and reports the result of each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

RETRY_AFTER_MAX = 3600
"""Longest pause that a receiver can request, in seconds."""


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One POST. `open_network` allows plain http and, if the installation permits it (`allow_loopback_webhooks`),
    loopback addresses: test mode only."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    open_network: bool = False


class Answer(StrEnum):
    """Outcome of an attempt."""

    RESPONDED = "responded"
    """The receiver sent a status; the core decides whether it means success."""
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    TLS = "tls"
    BLOCKED = "blocked"
    """Not sent: we never post to this address."""


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result of a webhook. `status` is set only with RESPONDED; `note` is a short cause for operators."""

    answer: Answer
    status: int | None = None
    note: str = ""
    took_ms: int = 0
    retry_after: int | None = None
    """Pause that a 429 or 503 requests (Retry-After), in seconds, at most RETRY_AFTER_MAX."""


class Notifier(Protocol):
    """Posts webhooks. It follows no redirects, and the whole exchange takes at most 10 seconds."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        """Send it once. Never raises for errors of the receiver or the network: they are the result."""
        ...

    async def close(self) -> None: ...
