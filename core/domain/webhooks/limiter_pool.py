"""A pool of permits for webhooks. It grants them by the trust in a receiver and in the order of requests. limiter.py
has one pool for all webhooks and one for each host."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import count
from typing import Protocol


class Customer(Protocol):
    """The worker of one endpoint, which takes permits. It is woken when a permit is granted."""

    def stir(self) -> None: ...


class Trust(IntEnum):
    """Trust in a receiver, by its history."""

    PROVEN = 0
    """It has succeeded before."""
    NEW = 1
    """It has never succeeded."""
    SLOW = 2
    """Its last webhook took longer than limiter.LATE, or got no timely answer."""


class Pool:
    """A fixed number of permits. Slow receivers take at most two fifths of them; slow and new receivers together leave
    one fifth to proven ones, however many arrive at once and hang."""

    def __init__(self, permits: int, per_receiver: int) -> None:
        self._permits = permits
        self._per_receiver = per_receiver
        self._most_slow = -(-permits * 2 // 5)
        self._most_unproven = permits - permits // 5
        self._taken = [0, 0, 0]
        """Permits taken, by trust."""
        self._waiting: tuple[dict[Customer, int], ...] = ({}, {}, {})
        """Waiting customers by trust, with the number that orders them."""
        self._granted: dict[Customer, Trust] = {}
        """Customers with a granted permit that they have not taken yet. It counts as taken."""
        self._numbers = count()

    @property
    def empty(self) -> bool:
        """Whether no permit is taken: then no customer waits, either."""
        return not any(self._taken)

    def share(self, trust: Trust, mine: int) -> int:
        """Return how many permits a receiver with `mine` of them may have. Once others have a quarter of all, the limit
        is one, so that as many receivers as possible get some. A receiver that has more keeps them."""
        if trust is Trust.SLOW:
            taken, permits = self._taken[Trust.SLOW], self._most_slow
        else:
            taken, permits = sum(self._taken), self._permits
        return self._per_receiver if 4 * (taken - mine) < permits else 1

    def take(self, customer: Customer, trust: Trust) -> bool:
        """Take a permit. Returns False when there is none for this trust, and queues the customer. A customer that
        waited with another trust must have declined that first."""
        if customer in self._waiting[trust]:
            return False
        if self._granted.get(customer) is trust:
            del self._granted[customer]
            return True
        if self._has_room(trust, self._taken):
            self._taken[trust] += 1
            return True
        self._waiting[trust][customer] = next(self._numbers)
        return False

    def give(self, trust: Trust) -> None:
        """Take a permit back, and grant it to the next customer."""
        self._taken[trust] -= 1
        self._hand_on()

    def slow_down(self, trust: Trust) -> None:
        """Count the holder of a permit as slow, even beyond the limit of slow ones. Slow ones then get no further
        permit until they are below their limit again."""
        self._taken[trust] -= 1
        self._taken[Trust.SLOW] += 1

    def wants_back(self, trust: Trust) -> bool:
        """Return whether a waiting customer could have this permit."""
        without = [*self._taken]
        without[trust] -= 1
        return any(self._waiting[each] and self._has_room(each, without) for each in Trust)

    def decline(self, customer: Customer) -> None:
        """Remove a customer from the queues: it wants no permit now. A permit already granted to it goes to the next
        one."""
        for queue in self._waiting:
            queue.pop(customer, None)
        granted = self._granted.pop(customer, None)
        if granted is not None:
            self.give(granted)

    def _has_room(self, trust: Trust, taken: Sequence[int]) -> bool:
        """Return whether a customer of this trust may have a permit, given the permits taken by trust."""
        proven, new, slow = taken
        if proven + new + slow >= self._permits:
            return False
        if trust is Trust.SLOW and slow >= self._most_slow:
            return False
        return trust is Trust.PROVEN or new + slow < self._most_unproven

    def _hand_on(self) -> None:
        """Grant free permits to the customers that may have them, in the order of their requests."""
        while True:
            first: tuple[int, Trust, Customer] | None = None
            for trust in Trust:
                for customer, number in self._waiting[trust].items():
                    if (first is None or number < first[0]) and self._has_room(trust, self._taken):
                        first = number, trust, customer
                    break
            if first is None:
                return
            _, trust, customer = first
            del self._waiting[trust][customer]
            self._granted[customer] = trust
            self._taken[trust] += 1
            customer.stir()
