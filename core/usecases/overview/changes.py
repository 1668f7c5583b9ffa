"""Whether something has happened in an account, for pages that are open (docs/dashboard.md "Live pages")."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from ....ports.bundle import Ports
from ....ports.storage import Between, Snapshot
from ...domain.accounts.accounts import Caller
from ...domain.accounts.request_log import BATCHES, ids_from
from ...domain.kyc.clients import Client
from ...domain.payments.payments import Payment
from ...domain.settlement.settlement import Settlement
from ...domain.webhooks.events import Delivery, DeliveryStatus, Event

_LOGGED = timedelta(hours=1)
"""Distance from now within which a request counts as new."""


class Watched(StrEnum):
    """What a page shows."""

    TRADE = "trade"
    CLIENTS = "clients"
    SETTLEMENTS = "settlements"
    EVENTS = "events"
    REQUESTS = "requests"


_NEWEST: Mapping[Watched, tuple[tuple[type[Any], str], ...]] = {
    Watched.TRADE: ((Payment, "created_at"), (Event, "created_at")),
    Watched.CLIENTS: ((Client, "created_at"), (Event, "created_at")),
    Watched.SETTLEMENTS: ((Settlement, "started_at"), (Event, "created_at")),
    Watched.EVENTS: ((Event, "created_at"),),
    Watched.REQUESTS: (),
}
"""Records whose newest one shows that something has happened, with the field of their moment."""


async def latest_change(ports: Ports, caller: Caller, watched: Watched = Watched.TRADE) -> tuple[str, ...]:
    """Return a value that changes when something new belongs on the page. It costs a few reads of one row."""
    owner: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    found: list[Any] = []
    async with ports.storage.snapshot() as seen:
        for kind, moment in _NEWEST[watched]:
            found += await seen[kind].find(order=f"-{moment}", limit=1, readable=True, **owner)
        if watched is Watched.EVENTS:
            # The next delivery changes with each attempt; an attempt at once may leave none.
            found += [each for each in [await seen[Delivery].get(each.id) for each in found] if each is not None]
            found += await seen[Delivery].find(
                order="due", limit=1, readable=True, status=DeliveryStatus.PENDING, **owner
            )
        elif watched is Watched.REQUESTS:
            found += await _latest_requests(ports, seen, caller)
    return tuple([f"{each.id}:{each.version}" for each in found])


async def _latest_requests(ports: Ports, seen: Snapshot, caller: Caller) -> list[Any]:
    now = ports.clock.real()  # requests have real time, whatever a test clock says
    span = Between(*(ids_from(caller.account_id, caller.mode, now + each) for each in (-_LOGGED, _LOGGED)))
    return [each for kind in BATCHES for each in await seen[kind].find(order="-id", limit=1, readable=True, id=span)]
