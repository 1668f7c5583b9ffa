"""A merchant's subscriptions, by pages (docs/subscriptions.md "Making one")."""

from typing import Any

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.errors import shape_error
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus

_NEWEST_FIRST = "-created_at"


class SubscriptionPage(msgspec.Struct, frozen=True):
    """A page of subscriptions, newest first, and how many there are in all."""

    subscriptions: list[Subscription]
    number: int
    size: int
    total: int


async def list_subscriptions(
    ports: Ports, caller: Caller, status: str | None, number: int, size: int
) -> SubscriptionPage:
    """A page of the caller's subscriptions in this mode, as of one moment. Raises: Refusal VALIDATION_ERROR."""
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    if status is not None:
        criteria["status"] = read_status(status)
    async with ports.storage.snapshot() as seen:
        total = await seen[Subscription].total(**criteria)
        found: list[Subscription] = []
        if (number - 1) * size < total:
            found = await seen[Subscription].page(number, size, order=_NEWEST_FIRST, readable=True, **criteria)
    return SubscriptionPage(found, number, size, total)


def read_status(text: str) -> SubscriptionStatus:
    """A status in any case. Raises: Refusal VALIDATION_ERROR that lists them."""
    try:
        return SubscriptionStatus(text.lower())
    except ValueError:
        raise shape_error("status", f"must be one of: {', '.join(SubscriptionStatus)}") from None
