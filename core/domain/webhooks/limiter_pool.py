"""A pool of permits for webhooks. It decides who gets one, by the trust in a receiver and by turns. limiter.py has one
pool for all webhooks and one for each host."""

from collections.abc import Sequence
from enum import IntEnum
from itertools import count
from typing import Protocol


class Customer(Protocol):
    """The worker of one endpoint, which takes permits. It is told when its turn has come."""

    def stir(self) -> None: ...


class Trust(IntEnum):
    """How a receiver is trusted with permits, by what is known of it."""

    PROVEN = 0
    """It answered well."""
    NEW = 1
    """It never answered well yet."""
    SLOW = 2
    """Its last webhook took longer than limiter.LATE, or got no answer in time."""


class Pool:
    """A fixed number of permits. Slow receivers take at most two fifths of them; slow and new receivers together leave
    one fifth to proven ones, however many come at once and hang."""

    def __init__(self, permits: int, per_receiver: int) -> None:
        self._permits = permits
        self._per_receiver = per_receiver
        self._most_slow = -(-permits * 2 // 5)
        self._most_unproven = permits - permits // 5
        self._taken = [0, 0, 0]
        """By trust."""
        self._waiting: tuple[dict[Customer, int], ...] = ({}, {}, {})
        """By trust: who waits, and the number that it drew."""
        self._granted: dict[Customer, Trust] = {}
        """Their turn came, and they have not taken their permit yet. It counts as taken."""
        self._numbers = count()

    @property
    def empty(self) -> bool:
        """Whether nobody has a permit: then nobody waits for one."""
        return not any(self._taken)

    def share(self, trust: Trust, mine: int) -> int:
        """The most permits that a receiver with `mine` of them may have. Once others have a quarter of all it is one,
        so that as many receivers as possible get some. A receiver that has more keeps them."""
        if trust is Trust.SLOW:
            taken, permits = self._taken[Trust.SLOW], self._most_slow
        else:
            taken, permits = sum(self._taken), self._permits
        return self._per_receiver if 4 * (taken - mine) < permits else 1

    def take(self, customer: Customer, trust: Trust) -> bool:
        """Take a permit. Returns False when there is none for this trust, and queues the customer for one. Who asked as
        another one before, and turned out slow or well again, has declined that."""
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
        """Take a permit back, and hand it on."""
        self._taken[trust] -= 1
        self._hand_on()

    def slow_down(self, trust: Trust) -> None:
        """Count the holder of a permit among the slow ones, however many these hold already. Slow ones take no further
        permit until they are below their share again."""
        self._taken[trust] -= 1
        self._taken[Trust.SLOW] += 1

    def wants_back(self, trust: Trust) -> bool:
        """Whether somebody waits who could have this permit."""
        without = [*self._taken]
        without[trust] -= 1
        return any(self._waiting[each] and self._has_room(each, without) for each in Trust)

    def decline(self, customer: Customer) -> None:
        """Take a customer out of the queues: it wants no permit now. If its turn has come, the next one has it."""
        for queue in self._waiting:
            queue.pop(customer, None)
        granted = self._granted.pop(customer, None)
        if granted is not None:
            self.give(granted)

    def _has_room(self, trust: Trust, taken: Sequence[int]) -> bool:
        """Whether one of this trust may have a permit, where so many are taken by trust."""
        proven, new, slow = taken
        if proven + new + slow >= self._permits:
            return False
        if trust is Trust.SLOW and slow >= self._most_slow:
            return False
        return trust is Trust.PROVEN or new + slow < self._most_unproven

    def _hand_on(self) -> None:
        """To those who may take what is free, the first who asked first."""
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
