"""A merchant's subscriptions in pages (docs/subscriptions.md "Making one")."""

from typing import Any

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.errors import read_choice
from ...domain.subscriptions.orders import TEXT_LONGEST
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ..common.keyset import Cursor, Listed, listing_of, read_listing
from ..common.long_lists import LongList, long_page
from ..common.paging import ListFilter, Page, list_newest


class SubscriptionFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /subscriptions; None when absent."""

    status: str | None = None


async def browse_subscriptions(
    ports: Ports, caller: Caller, asked: SubscriptionFilter, cursor: Cursor | None, size: int
) -> Listed[Subscription]:
    """Return a page of the caller's subscriptions by cursor, newest first. Raises: Refusal VALIDATION_ERROR."""
    wanted = listing_of(Subscription, _read(caller, asked), ("external_id", "status"))
    return await read_listing(ports, wanted, cursor, size)


async def list_subscriptions(
    ports: Ports, caller: Caller, asked: SubscriptionFilter, number: int, size: int
) -> Page[Subscription]:
    """Return a page of the caller's subscriptions in this mode, as of one moment. Raises: Refusal VALIDATION_ERROR."""
    criteria = _read(caller, asked)
    if asked.status is None and asked.external_id is None:
        long = LongList(kind=Subscription, caller=caller, name="subscriptions", made=asked.made())
        return await long_page(ports, long, number, size)
    return await list_newest(ports, Subscription, number, size, **criteria)


def _read(caller: Caller, asked: SubscriptionFilter) -> dict[str, Any]:
    """Return the criteria of the filter. Raises: Refusal VALIDATION_ERROR."""
    criteria = {"account_id": caller.account_id, "mode": caller.mode, **asked.criteria(TEXT_LONGEST)}
    if asked.status is not None:
        criteria["status"] = read_choice("status", asked.status, SubscriptionStatus)
    return criteria
