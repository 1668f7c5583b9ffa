"""A receiver's breaker for whoever serves it: as it is stored, and as it will be with the outcomes that are not entered
yet, by which letters begin or wait."""

from collections.abc import Iterable

from ....ports.notifier import Answer
from ...domain.webhooks.breaker import Breaker, after_delivery, new_breaker, room
from ...domain.webhooks.delivery import Outcome
from ...domain.webhooks.events import Delivery
from .limiter_pool import Trust
from .results import Lane, Sent


class Outlook:
    """`most` letters are under way at once while all is well."""

    def __init__(self, lane: Lane, most: int) -> None:
        self._lane = lane
        self._most = most
        self.stored: Breaker | None = None
        """As it was read or entered last; None where there is none yet."""
        self.take(None)

    def take(self, stored: Breaker | None, yet: Iterable[Sent] = ()) -> None:
        """It stands so now; what came of `yet` is to be entered."""
        self.stored = stored
        self._expect(stored or new_breaker(self._lane.account_id, self._lane.mode))
        for each in yet:
            self.note(each.delivery, each.outcome)

    def note(self, delivery: Delivery, outcome: Outcome) -> None:
        """What came of a letter."""
        # Of good ones in a row the next changes nothing.
        if not outcome.good or self.expected.failures:
            self._expect(after_delivery(self.expected, delivery, outcome)[0])

    def trust(self, *, slow: bool) -> Trust:
        """What is known of the receiver. `slow`: a letter was late since this process began; before that, and at other
        processes, one that got no answer in time tells it."""
        breaker = self.expected
        if slow or (breaker.failures and breaker.last_answer == Answer.TIMEOUT):
            return Trust.SLOW
        good, reset = breaker.last_success_at, breaker.reset_at
        return Trust.NEW if good is None or (reset is not None and good < reset) else Trust.PROVEN

    def _expect(self, breaker: Breaker) -> None:
        self.expected = breaker
        self.room = room(breaker, self._most)
        """How many letters may be under way."""
