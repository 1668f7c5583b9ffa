"""The due deliveries of an endpoint, read page by page instead of one read for each webhook."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from .delivery import AT_ONCE, given_up, is_too_old, put_off
from .events import Delivery, OpenEvent
from .steps import ReadDue

BATCH = 128
"""Deliveries read at once."""


class Ready(msgspec.Struct, frozen=True, gc=False):
    """A delivery ready to be sent, with its event."""

    delivery: Delivery
    event: OpenEvent


class DueQueue:
    """The due deliveries of one endpoint, the oldest first."""

    def __init__(self) -> None:
        self.ready: deque[Ready] = deque()
        """Deliveries to send next."""
        self.unsent: list[Delivery] = []
        """Deliveries that are not sent: given up, or postponed because their event cannot be read or decrypted."""
        self._in_hand: set[str] = set()
        """Ids of all deliveries that were read and not committed: queued, in flight, answered."""
        self.complete = False
        """The last page reached the end of the due deliveries."""
        self.empty = False
        """The last page contained nothing new."""
        self._after: str | None = None
        """Id of the last delivery of the last page, if there are more."""

    def page(self) -> ReadDue:
        """Return the next page to read. While many deliveries are due at once, it continues after the last page.
        Deliveries that become due earlier in the order are read by the final page, which starts over."""
        return ReadDue(BATCH if self._after else BATCH + len(self._in_hand), self._after)

    def fresh(self, found: Sequence[Delivery]) -> list[Delivery]:
        """Return the deliveries of a page that were not read before."""
        return [delivery for delivery in found if delivery.id not in self._in_hand]

    def take(self, page: ReadDue, found: Sequence[Delivery], events: Mapping[str, OpenEvent], now: datetime) -> None:
        """Queue a page that was read at `now`, with the events of it that can be read and decrypted."""
        fresh = self.fresh(found)
        whole = len(found) < page.limit
        self.complete = whole and page.after is None
        self._after = found[-1].id if not whole and found[-1].due == AT_ONCE else None
        self.empty = not fresh
        for delivery in fresh:
            self._in_hand.add(delivery.id)
            event = events.get(delivery.event_id)
            if is_too_old(delivery, now):
                self.unsent.append(given_up(delivery))
            elif event is None:
                self.unsent.append(put_off(delivery, now))
            else:
                self.ready.append(Ready(delivery, event))

    def keep_only(self, chosen: Ready | None) -> None:
        """Drop all queued deliveries except this one; another page will find them again."""
        self._in_hand.difference_update(each.delivery.id for each in self.ready if each is not chosen)
        self.ready.clear()
        self._after = None
        if chosen is not None:
            self.ready.append(chosen)

    def committed(self, deliveries: Iterable[Delivery]) -> None:
        """Release these deliveries: their new state is stored."""
        self.unsent.clear()
        self._in_hand.difference_update(each.id for each in deliveries)
