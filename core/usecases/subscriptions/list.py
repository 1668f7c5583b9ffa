"""A merchant's subscriptions, by pages (docs/subscriptions.md "Making one")."""

from typing import Any

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.errors import read_choice
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ..paging import Page, list_newest


async def list_subscriptions(
    ports: Ports, caller: Caller, status: str | None, number: int, size: int
) -> Page[Subscription]:
    """A page of the caller's subscriptions in this mode, as of one moment. Raises: Refusal VALIDATION_ERROR."""
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    if status is not None:
        criteria["status"] = read_choice("status", status, SubscriptionStatus)
    return await list_newest(ports, Subscription, number, size, **criteria)
