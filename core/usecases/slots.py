"""How many letters may be under way at once, in all and to one host, and whose turn is next.

A letter that hangs holds its place for as long as a receiver may take, one that is answered for some milliseconds. So
receivers that are known to be slow have a part of the places for themselves, and cannot take those of the others; who
is slow is known a second after it began to be. Turns come in the order in which they were asked for.
"""

from collections import Counter
from collections.abc import Callable
from enum import Enum, IntEnum
from itertools import count
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

_HANGS = 10.0
"""Seconds for which a letter that is not answered holds a place."""

LATE = 1.0
"""Seconds after which a letter under way makes its receiver a slow one."""

MOST_WAIT = 256
"""So many slow receivers wait for a place at most, so many new ones, and so many that wait for their host alone.
Further ones leave, and come back: who waits holds a claimed job, and a worker has no more than so many of these."""

_LONGEST_DETOUR = 60.0
"""Seconds."""

_REMEMBERED = 10_000
"""Slow receivers that are known at most; the first of them are forgotten first."""


class Customer(Protocol):
    """Who takes places: the service of one receiver. Told when its turn has come."""

    def stir(self) -> None: ...


class Trust(IntEnum):
    """How a receiver is trusted with places, by what is known of it."""

    PROVEN = 0
    """It answered well."""
    NEW = 1
    """It never answered well yet."""
    SLOW = 2
    """Its last letter took longer than LATE, or got no answer in time."""


def host_of(url: str) -> str:
    """Host and port of an address, by which those are told that many receivers share."""
    try:
        parts = urlsplit(url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        return ""  # nothing is ever posted there
    return f"{parts.hostname}:{port}"


class Pool:
    """A number of places. Slow receivers take two fifths of them at most; those and new ones together leave a fifth to
    those that are proven, however many come at once and hang."""

    def __init__(self, places: int, per_receiver: int) -> None:
        self._places = places
        self._per_receiver = per_receiver
        self._most_slow = -(-places * 2 // 5)
        self._most_unproven = places - places // 5
        self._taken = [0, 0, 0]
        """By trust."""
        self._waiting: tuple[dict[Customer, int], ...] = ({}, {}, {})
        """By trust: who waits, and the number that it drew."""
        self._granted: dict[Customer, Trust] = {}
        """Their turn came, and they have not taken the place yet. It counts as taken."""
        self._numbers = count()

    @property
    def empty(self) -> bool:
        """Nobody has a place or waits for one."""
        return not any(self._taken) and not any(self._waiting)

    def share(self, trust: Trust, mine: int) -> int:
        """How many one receiver may have, which has `mine`: one where others have a quarter of the places, so that
        there are some for as many receivers as possible. Who has more keeps them."""
        if trust is Trust.SLOW:
            taken, places = self._taken[Trust.SLOW], self._most_slow
        else:
            taken, places = sum(self._taken), self._places
        return self._per_receiver if 4 * (taken - mine) < places else 1

    def take(self, customer: Customer, trust: Trust) -> bool:
        """A place, or a turn in the queue for one."""
        if customer in self._waiting[trust]:
            return False
        if self._granted.get(customer) is trust:
            del self._granted[customer]
            return True
        # What it asked for before it turned out to be slow, or well again, is another queue's.
        self.decline(customer)
        if self._has_room(trust):
            self._taken[trust] += 1
            return True
        self._waiting[trust][customer] = next(self._numbers)
        return False

    def give(self, trust: Trust) -> None:
        """A place is free again."""
        self._taken[trust] -= 1
        self._hand_on()

    def slow_down(self, trust: Trust) -> None:
        """Who has a place turned out to be slow: it is counted among theirs, however many these have already. They
        take no further one, then, until they are as few again as they may be."""
        self._taken[trust] -= 1
        self._taken[Trust.SLOW] += 1

    def wants_back(self, trust: Trust) -> bool:
        """Somebody waits who could have this place."""
        proven, new, slow = self._waiting
        if proven or new:
            return True
        return bool(slow) and (trust is Trust.SLOW or self._taken[Trust.SLOW] < self._most_slow)

    def decline(self, customer: Customer) -> None:
        """It wants no place now; if its turn has come, the next one may."""
        for queue in self._waiting:
            queue.pop(customer, None)
        granted = self._granted.pop(customer, None)
        if granted is not None:
            self.give(granted)

    def _has_room(self, trust: Trust) -> bool:
        proven, new, slow = self._taken
        if proven + new + slow >= self._places:
            return False
        if trust is Trust.SLOW:
            return slow < self._most_slow
        return trust is Trust.PROVEN or new + slow < self._most_unproven

    def _hand_on(self) -> None:
        """To those who may take what is free, the first who asked first."""
        while True:
            first: tuple[int, Trust, Customer] | None = None
            for trust in Trust:
                for customer, number in self._waiting[trust].items():
                    if (first is None or number < first[0]) and self._has_room(trust):
                        first = number, trust, customer
                    break
            if first is None:
                return
            _, trust, customer = first
            del self._waiting[trust][customer]
            self._granted[customer] = trust
            self._taken[trust] += 1
            customer.stir()


class Detour:
    """When those come back for whom there is no room to wait: one after the other, about as fast as places get free."""

    def __init__(self, shortest: float, between: float) -> None:
        self._shortest = shortest
        self._between = between
        self._last = 0.0

    def seconds(self, now: float) -> float:
        """How long the next one stays away."""
        self._last = min(max(self._last + self._between, now + self._shortest), now + _LONGEST_DETOUR)
        return self._last - now


class Place:
    """What a letter needs to be under way: a place in all, and one at its host."""

    __slots__ = ("began", "host", "receiver", "trust")

    def __init__(self, receiver: str, host: str, trust: Trust, began: float) -> None:
        self.receiver = receiver
        self.host = host
        self.trust = trust
        self.began = began


class Wait(Enum):
    """As what somebody waits."""

    SLOW = "slow"
    NEW = "new"
    HOST = "host"
    """For a place at a host, and not slow."""
    PROVEN = "proven"
    """For a place in all, and proven: this is bounded by nothing but what a worker claims."""


class Asked(NamedTuple):
    """What a customer waits for."""

    host: str
    trust: Trust
    there: bool
    """It has its place at the host, and waits for one in all."""

    @property
    def how(self) -> Wait:
        """By what it is bounded how many wait so."""
        if self.trust is Trust.SLOW:
            return Wait.SLOW
        if not self.there:
            return Wait.HOST
        return Wait.NEW if self.trust is Trust.NEW else Wait.PROVEN


class Slots:
    """Gives out places. `total` letters are under way at most, `per_host` of them to one host and port, `per_receiver`
    to one receiver."""

    def __init__(self, total: int, per_receiver: int, per_host: int, now: Callable[[], float]) -> None:
        """`now`: seconds that only rise."""
        self.per_receiver = per_receiver
        self._per_host = per_host
        self._now = now
        self._all = Pool(total, per_receiver)
        self._hosts: dict[str, Pool] = {}
        """Those to which something is under way, or waits to be."""
        self._asked: dict[Customer, Asked] = {}
        """Those who wait."""
        self._waits: Counter[Wait] = Counter()
        """How many of them wait how."""
        slow = Detour(_HANGS, _HANGS / max(total * 2 // 5, 1))
        self._detours = {Wait.SLOW: slow, Wait.NEW: slow, Wait.HOST: Detour(LATE, LATE / per_host)}
        self._young: dict[Place, None] = {}
        """Under way and not late yet, in the order in which they began."""
        self._slow: dict[str, None] = {}
        """Receivers whose last letter was late."""

    def is_slow(self, receiver: str) -> bool:
        """Whether the last letter to it that ended, or became late, was late."""
        return receiver in self._slow

    def share(self, host: str, trust: Trust, mine: int) -> int:
        """How many places one receiver may have, which has `mine`."""
        pool = self._hosts.get(host)
        there = self.per_receiver if pool is None else pool.share(trust, mine)
        return min(there, self._all.share(trust, mine))

    def take(self, customer: Customer, receiver: str, host: str, trust: Trust) -> Place | None:
        """A place; or none, and a turn in the queue for one. Who waits for a host takes no place in all."""
        asked = self._asked.get(customer)
        if asked is not None and (asked.host != host or asked.trust is not trust):
            self.decline(customer)
            asked = None
        if asked is None or not asked.there:
            pool = self._hosts.get(host)
            if pool is None:
                pool = self._hosts[host] = Pool(self._per_host, self.per_receiver)
            if not pool.take(customer, trust):
                self._wait(customer, Asked(host, trust, there=False))
                return None
        if not self._all.take(customer, trust):
            self._wait(customer, Asked(host, trust, there=True))
            return None
        self._no_longer(customer)
        place = Place(receiver, host, trust, self._now())
        self._young[place] = None
        return place

    def turned_away(self, trust: Trust) -> float | None:
        """Whether one that is trusted so need not even ask for a place, and shall come back in so many seconds."""
        if trust is Trust.SLOW and self._waits[Wait.SLOW] >= MOST_WAIT:
            return self._detours[Wait.SLOW].seconds(self._now())
        return None

    def sent_off(self, customer: Customer) -> float | None:
        """Whether one that found no place may not wait for one, and shall come back in so many seconds."""
        asked = self._asked.get(customer)
        detour = None if asked is None else self._detours.get(asked.how)
        if asked is None or detour is None or self._waits[asked.how] <= MOST_WAIT:
            return None
        self.decline(customer)
        return detour.seconds(self._now())

    def goes_on(self, place: Place) -> bool:
        """Its letter ended. Whether another one may begin on the same place: not when somebody waits who could have
        it, nor when the receiver is slow, which then asks as such."""
        self._end(place)
        if place.trust is Trust.SLOW or place.receiver in self._slow:
            return False
        if self._all.wants_back(place.trust) or self._hosts[place.host].wants_back(place.trust):
            return False
        place.began = self._now()
        self._young[place] = None
        return True

    def give(self, place: Place) -> None:
        """A place is free again."""
        self._young.pop(place, None)
        pool = self._hosts[place.host]
        pool.give(place.trust)
        self._forget(place.host, pool)
        self._all.give(place.trust)

    def decline(self, customer: Customer) -> None:
        """It wants no place now; if its turn has come, the next one may."""
        asked = self._no_longer(customer)
        if asked is None:
            return
        pool = self._hosts[asked.host]
        if asked.there:
            self._all.decline(customer)
            pool.give(asked.trust)
        else:
            pool.decline(customer)
        self._forget(asked.host, pool)

    def look(self) -> None:
        """Count the receivers of letters that are late by now among the slow ones."""
        latest = self._now() - LATE
        while self._young:
            place = next(iter(self._young))
            if place.began > latest:
                return
            del self._young[place]
            self._note_slow(place.receiver)
            if place.trust is not Trust.SLOW:
                self._hosts[place.host].slow_down(place.trust)
                self._all.slow_down(place.trust)
                place.trust = Trust.SLOW

    def _wait(self, customer: Customer, asked: Asked) -> None:
        self._no_longer(customer)
        self._asked[customer] = asked
        self._waits[asked.how] += 1

    def _no_longer(self, customer: Customer) -> Asked | None:
        asked = self._asked.pop(customer, None)
        if asked is not None:
            self._waits[asked.how] -= 1
        return asked

    def _end(self, place: Place) -> None:
        self._young.pop(place, None)
        if self._now() - place.began < LATE:
            self._slow.pop(place.receiver, None)
        else:
            self._note_slow(place.receiver)

    def _note_slow(self, receiver: str) -> None:
        self._slow.pop(receiver, None)
        if len(self._slow) >= _REMEMBERED:
            del self._slow[next(iter(self._slow))]
        self._slow[receiver] = None

    def _forget(self, host: str, pool: Pool) -> None:
        """Memory follows what is under way."""
        if pool.empty:
            del self._hosts[host]
