"""What is due at an endpoint, taken in hand page by page: nothing is read for each webhook."""

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
    """A delivery whose turn comes, with what it delivers."""

    delivery: Delivery
    event: OpenEvent


class DueQueue:
    """The deliveries of one endpoint that are due, the oldest first."""

    def __init__(self) -> None:
        self.ready: deque[Ready] = deque()
        """Those whose turn comes."""
        self.unsent: list[Delivery] = []
        """Those that are not sent: given up, or put off, because their event cannot be read or decrypted."""
        self._in_hand: set[str] = set()
        """All that were read and not committed: queued, under way, answered."""
        self.complete = False
        """The last page held the end of what is due."""
        self.empty = False
        """The last page held nothing that was not in hand."""
        self._after: str | None = None
        """Where the last page ended when there is more."""

    def page(self) -> ReadDue:
        """The next page. In a long row of what is due at once it begins where the last one ended; what comes due behind
        that is for the last page, which begins at the start."""
        return ReadDue(BATCH if self._after else BATCH + len(self._in_hand), self._after)

    def fresh(self, found: Sequence[Delivery]) -> list[Delivery]:
        """Those of a page that are not in hand."""
        return [delivery for delivery in found if delivery.id not in self._in_hand]

    def take(self, page: ReadDue, found: Sequence[Delivery], events: Mapping[str, OpenEvent], now: datetime) -> None:
        """Queue a page that was read at `now`, with those of its events that can be read and decrypted."""
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
        """Forget what is queued but for this one; another page finds the others again."""
        self._in_hand.difference_update(each.delivery.id for each in self.ready if each is not chosen)
        self.ready.clear()
        self._after = None
        if chosen is not None:
            self.ready.append(chosen)

    def committed(self, deliveries: Iterable[Delivery]) -> None:
        """What became of these is stored: they are in hand no more."""
        self.unsent.clear()
        self._in_hand.difference_update(each.id for each in deliveries)
