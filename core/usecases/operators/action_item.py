"""An item that waits for an operator, and the helpers by which finders create items (action_items.py)."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import R, Unit
from ...domain.accounts.accounts import Mode, Owned

MOST = 100
"""Maximum number of items of one kind."""


class ActionItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item for an operator to handle."""

    kind: str
    """The decision to take: `mismatch`, `refund`, `gateway`, …"""
    of: str
    """Kind of object: `payment`, `refund`, …"""
    object_id: str
    text: str
    since: datetime | None = None
    """None for an item without a beginning, such as an alarm. These come first."""
    account_id: str | None = None
    mode: Mode | None = None
    urgent: bool = False
    """It must not wait until morning."""
    brief: str = ""
    """The text without amounts and names, for messages that leave the service. Empty when there is no such text."""


def item(
    kind: str,
    of: str,
    row: Owned,
    text: str,
    since: datetime | None,
    *,
    object_id: str | None = None,
    urgent: bool = False,
    brief: str = "",
) -> ActionItem:
    """Create an item about a merchant's object."""
    return ActionItem(
        kind=kind,
        of=of,
        object_id=object_id or row.id,
        text=text,
        since=since,
        account_id=row.account_id,
        mode=row.mode,
        urgent=urgent,
        brief=brief,
    )


Finder = Callable[[Ports, Unit], Awaitable[list[ActionItem]]]


async def first(unit: Unit, kind: type[R], order: str, **criteria: Any) -> list[R]:
    """Return the first records of a kind that meet all criteria, at most MOST of them."""
    return await unit[kind].find(order=order, limit=MOST, readable=True, **criteria)
