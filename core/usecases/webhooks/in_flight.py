"""The endpoint's breaker, including results that are not committed yet. It decides how many webhooks may be in
flight."""

from collections.abc import Iterable

from ....ports.notifier import Answer
from ...domain.webhooks.breaker import Breaker, after_delivery, new_breaker, room
from ...domain.webhooks.delivery import Outcome
from ...domain.webhooks.events import Delivery
from ...domain.webhooks.limiter_pool import Trust
from .results import EndpointKey, Sent


class InFlightBreaker:
    """`most` webhooks are under way at once while all is well."""

    def __init__(self, endpoint: EndpointKey, most: int) -> None:
        self._endpoint = endpoint
        self._most = most
        self.stored: Breaker | None = None
        """The breaker as the storage has it, read or committed last; None while there is none."""
        self.take(None)

    def take(self, stored: Breaker | None, yet: Iterable[Sent] = ()) -> None:
        """Take over the breaker that the storage has now. The results in `yet` are still to be committed."""
        self.stored = stored
        self._expect(stored or new_breaker(self._endpoint.account_id, self._endpoint.mode))
        for each in yet:
            self.note(each.delivery, each.outcome)

    def note(self, delivery: Delivery, outcome: Outcome) -> None:
        """Take the result of one webhook."""
        # Of good ones in a row the next changes nothing.
        if not outcome.good or self.expected.failures:
            self._expect(after_delivery(self.expected, delivery, outcome)[0])

    def trust(self, *, slow: bool) -> Trust:
        """How far the limiter trusts this receiver. `slow` says that a webhook was late since this process began; a
        timeout that is stored says it for earlier times and other processes."""
        breaker = self.expected
        if slow or (breaker.failures and breaker.last_answer == Answer.TIMEOUT):
            return Trust.SLOW
        good, reset = breaker.last_success_at, breaker.reset_at
        return Trust.NEW if good is None or (reset is not None and good < reset) else Trust.PROVEN

    def _expect(self, breaker: Breaker) -> None:
        self.expected = breaker
        self.room = room(breaker, self._most)
        """How many webhooks may be under way."""
