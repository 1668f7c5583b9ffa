"""One thing that waits for a person, and how finders make it (action_items.py)."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import R, Unit
from ...domain.accounts.accounts import Mode, Owned

MOST = 100
"""Of one kind."""


class ActionItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing for a person to look at."""

    kind: str
    """`mismatch`, `refund`, `gateway`, …: what has to be decided."""
    of: str
    """The kind of object: `payment`, `refund`, …"""
    object_id: str
    text: str
    since: datetime | None = None
    """Null for what has no beginning, an alarm: it comes first."""
    account_id: str | None = None
    mode: Mode | None = None
    urgent: bool = False
    """It may not wait for the morning."""
    brief: str = ""
    """The text without amounts and names, for messages that leave the house; empty: it has none."""


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
    """One about a merchant's object."""
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
    """The first of a kind that meet all criteria, MOST of them at most."""
    return await unit[kind].find(order=order, limit=MOST, readable=True, **criteria)
