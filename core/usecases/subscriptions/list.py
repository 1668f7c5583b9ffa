"""A merchant's subscriptions in pages (docs/subscriptions.md "Making one")."""

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.errors import read_choice
from ...domain.subscriptions.orders import TEXT_LONGEST
from ...domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from ..long_lists import LongList, long_page
from ..paging import ListFilter, Page, list_newest


class SubscriptionFilter(ListFilter, frozen=True, kw_only=True):
    """Raw query values of GET /subscriptions; None when absent."""

    status: str | None = None


async def list_subscriptions(
    ports: Ports, caller: Caller, asked: SubscriptionFilter, number: int, size: int
) -> Page[Subscription]:
    """Return a page of the caller's subscriptions in this mode, as of one moment. Raises: Refusal VALIDATION_ERROR."""
    criteria = {"account_id": caller.account_id, "mode": caller.mode, **asked.criteria(TEXT_LONGEST)}
    if asked.status is not None:
        criteria["status"] = read_choice("status", asked.status, SubscriptionStatus)
    elif asked.external_id is None:
        long = LongList(kind=Subscription, caller=caller, name="subscriptions", made=asked.made())
        return await long_page(ports, long, number, size)
    return await list_newest(ports, Subscription, number, size, **criteria)
