"""What is due at a receiver, taken in hand some at a time: nothing is read for each webhook."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime

import msgspec

from ....ports.storage import AtLeast, AtMost, OneOf, Unit
from ...domain.webhooks.delivery import AT_ONCE, is_too_old
from ...domain.webhooks.events import Delivery, Event
from .results import EndpointKey

BATCH = 128
"""Deliveries read at once."""


class Ready(msgspec.Struct, frozen=True, gc=False):
    """A delivery whose turn comes, with what it delivers."""

    delivery: Delivery
    event: Event


class DueQueue:
    """The deliveries of one receiver that are due, the oldest first."""

    def __init__(self, endpoint: EndpointKey) -> None:
        self._endpoint = endpoint
        self.queue: deque[Ready] = deque()
        """Those whose turn comes."""
        self.too_old: list[Delivery] = []
        """Those that are to be given up."""
        self.unreadable: list[Delivery] = []
        """Those whose event cannot be read: they are to be put off."""
        self._known: set[str] = set()
        """All in hand: in the queue, under way, not entered yet."""
        self.complete = False
        """The last look found all there was."""
        self.empty = False
        """The last look found nothing that was not in hand."""
        self._after: str | None = None
        """Where it ended when it did not find all."""

    async def look(self, unit: Unit, now: datetime) -> None:
        """Take what is due into the queue. In a long row of what is due at once, a look goes on where the one before
        ended; what is behind that is for the last one, which sees all. What cannot be read is passed by."""
        after = self._after
        if after is None:
            limit, where = BATCH + len(self._known), self._endpoint.pending(due=AtMost(now))
        else:
            limit, where = BATCH, self._endpoint.pending(due=AT_ONCE, id=AtLeast(f"{after}!"))
        found = await unit[Delivery].find(order="due", limit=limit, quick=True, readable=True, **where)
        fresh = [delivery for delivery in found if delivery.id not in self._known]
        events = await _events_of(unit, fresh)
        whole = len(found) < limit
        self.complete = whole and after is None
        self._after = found[-1].id if not whole and found[-1].due == AT_ONCE else None
        self.empty = not fresh
        self._known.update(delivery.id for delivery in fresh)
        self.too_old += [delivery for delivery in fresh if is_too_old(delivery, now)]
        self.unreadable += [
            delivery for delivery in fresh if delivery.id not in events and not is_too_old(delivery, now)
        ]
        self.queue += [
            Ready(delivery, events[delivery.id])
            for delivery in fresh
            if delivery.id in events and not is_too_old(delivery, now)
        ]

    def keep_only(self, chosen: Ready | None) -> None:
        """Forget the queue but for this one; another look finds the others again."""
        self._known.difference_update(each.delivery.id for each in self.queue if each is not chosen)
        self.queue.clear()
        self._after = None
        if chosen is not None:
            self.queue.append(chosen)

    def entered(self, deliveries: Iterable[Delivery]) -> None:
        """What became of these is stored: they are in hand no more."""
        self._known.difference_update(each.id for each in deliveries)


async def _events_of(unit: Unit, deliveries: list[Delivery]) -> dict[str, Event]:
    ids = tuple(delivery.id for delivery in deliveries)
    return {
        event.id: event for event in await unit[Event].find(id=OneOf(ids), limit=len(ids), quick=True, readable=True)
    }
