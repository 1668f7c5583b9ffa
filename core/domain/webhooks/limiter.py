"""Limits how many webhooks are in flight at once, in total and to one host, and decides which is next.

A webhook without an answer holds its permit until the timeout, an answered webhook for some milliseconds. So slow
receivers share a part of the permits and cannot take those of others. A receiver counts as slow a second after its
webhook began. Permits are granted in the order of the requests.
"""

from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from .limiter_pool import Customer, Pool, Trust

_HANGS = 10.0
"""Seconds for which a webhook without an answer holds a permit."""

LATE = 1.0
"""Seconds after which a webhook in flight makes its receiver a slow one."""

MOST_WAIT = 256
"""Limit of waiting receivers for each of three groups: slow ones, new ones, and those that wait only for their host.
Further ones leave and return later, because a waiting receiver holds a claimed job, and a worker has a limited number
of them."""

_LONGEST_DETOUR = 60.0
"""Longest time away, in seconds."""

_REMEMBERED = 10_000
"""Limit of remembered slow receivers; the oldest are forgotten first."""


def host_of(url: str) -> str:
    """Return host and port of an address. They show which receivers share a host."""
    try:
        parts = urlsplit(url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        return ""  # no webhook is ever sent there
    return f"{parts.hostname}:{port}"


class Detour:
    """Decides when receivers return that could not wait here: one after the other, about as fast as permits become
    free."""

    def __init__(self, shortest: float, between: float) -> None:
        self._shortest = shortest
        self._between = between
        self._last = 0.0

    def seconds(self, now: float) -> float:
        """Return how long the next one stays away."""
        self._last = min(max(self._last + self._between, now + self._shortest), now + _LONGEST_DETOUR)
        return self._last - now


class Permit(msgspec.Struct, eq=False, gc=False):
    """Permission to send a webhook: one permit of the total, and one of its host."""

    receiver: str
    host: str
    trust: Trust
    began: float


class Wait(Enum):
    """Group of a waiting customer."""

    SLOW = "slow"
    NEW = "new"
    HOST = "host"
    """It waits for a permit of its host, and is not slow."""
    PROVEN = "proven"
    """A proven receiver that waits for a permit of the total. Only the number of jobs that a worker claims limits this
    group."""


class Asked(NamedTuple):
    """Request of a waiting customer."""

    host: str
    trust: Trust
    there: bool
    """It has its host's permit, and waits for one of the total."""

    @property
    def how(self) -> Wait:
        """The group that limits how many may wait."""
        if self.trust is Trust.SLOW:
            return Wait.SLOW
        if not self.there:
            return Wait.HOST
        return Wait.NEW if self.trust is Trust.NEW else Wait.PROVEN


class SendLimiter:
    """Gives out permits. At most `total` webhooks are in flight, at most `per_host` of them to one host and port, and
    `per_receiver` to one receiver."""

    def __init__(self, total: int, per_receiver: int, per_host: int, now: Callable[[], float]) -> None:
        """`now` returns monotonic seconds."""
        self.per_receiver = per_receiver
        self._per_host = per_host
        self._now = now
        self._all = Pool(total, per_receiver)
        self._hosts: dict[str, Pool] = {}
        """Hosts with webhooks in flight or waiting."""
        self._asked: dict[Customer, Asked] = {}
        """Waiting customers."""
        self._waits: Counter[Wait] = Counter()
        """Number of waiting customers in each group."""
        slow = Detour(_HANGS, _HANGS / max(total * 2 // 5, 1))
        self._detours = {Wait.SLOW: slow, Wait.NEW: slow, Wait.HOST: Detour(LATE, LATE / per_host)}
        self._young: dict[Permit, None] = {}
        """Permits in flight that are not late yet, in the order of their start."""
        self._slow: dict[str, None] = {}
        """Receivers whose last webhook was late."""

    def is_slow(self, receiver: str) -> bool:
        """Return whether the receiver's last webhook that ended, or became late, was late."""
        return receiver in self._slow

    def share(self, host: str, trust: Trust, mine: int) -> int:
        """Return how many permits a receiver with `mine` permits may have."""
        pool = self._hosts.get(host)
        there = self.per_receiver if pool is None else pool.share(trust, mine)
        return min(there, self._all.share(trust, mine))

    def take(self, customer: Customer, receiver: str, host: str, trust: Trust) -> Permit | None:
        """Take a permit. Returns None when there is none, and queues the customer. A customer that waits for its host
        holds no permit of the total."""
        asked = self._asked.get(customer)
        if asked is not None and (asked.host != host or asked.trust is not trust):
            self.decline(customer)
            asked = None
        # First a permit of the host, then one of the total: a customer that waits for its host blocks no others.
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
        permit = Permit(receiver, host, trust, self._now())
        self._young[permit] = None
        return permit

    def turned_away(self, trust: Trust) -> float | None:
        """Return the seconds after which a receiver of this trust should return without requesting a permit; None when
        it may request one."""
        if trust is Trust.SLOW and self._waits[Wait.SLOW] >= MOST_WAIT:
            return self._detours[Wait.SLOW].seconds(self._now())
        return None

    def sent_off(self, customer: Customer) -> float | None:
        """Return the seconds after which a receiver without a permit should return; None when it may wait here."""
        asked = self._asked.get(customer)
        detour = None if asked is None else self._detours.get(asked.how)
        if asked is None or detour is None or self._waits[asked.how] <= MOST_WAIT:
            return None
        self.decline(customer)
        return detour.seconds(self._now())

    def goes_on(self, permit: Permit) -> bool:
        """End a webhook. Returns whether the next webhook may use the same permit. It may not if a waiting customer
        could have it, or if the receiver is slow: a slow receiver must request a permit as such."""
        self._end(permit)
        if permit.trust is Trust.SLOW or permit.receiver in self._slow:
            return False
        if self._all.wants_back(permit.trust) or self._hosts[permit.host].wants_back(permit.trust):
            return False
        permit.began = self._now()
        self._young[permit] = None
        return True

    def give(self, permit: Permit) -> None:
        """Give a permit back."""
        self._young.pop(permit, None)
        pool = self._hosts[permit.host]
        pool.give(permit.trust)
        self._forget(permit.host, pool)
        self._all.give(permit.trust)

    def decline(self, customer: Customer) -> None:
        """Remove a customer from the queues: it wants no permit now. A permit already granted to it goes to the next
        one."""
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
        """Count the receivers of webhooks that are now late among the slow ones."""
        latest = self._now() - LATE
        while self._young:
            permit = next(iter(self._young))
            if permit.began > latest:
                return
            del self._young[permit]
            self._note_slow(permit.receiver)
            if permit.trust is not Trust.SLOW:
                self._hosts[permit.host].slow_down(permit.trust)
                self._all.slow_down(permit.trust)
                permit.trust = Trust.SLOW

    def _wait(self, customer: Customer, asked: Asked) -> None:
        self._no_longer(customer)
        self._asked[customer] = asked
        self._waits[asked.how] += 1

    def _no_longer(self, customer: Customer) -> Asked | None:
        asked = self._asked.pop(customer, None)
        if asked is not None:
            self._waits[asked.how] -= 1
        return asked

    def _end(self, permit: Permit) -> None:
        self._young.pop(permit, None)
        if self._now() - permit.began < LATE:
            self._slow.pop(permit.receiver, None)
        else:
            self._note_slow(permit.receiver)

    def _note_slow(self, receiver: str) -> None:
        self._slow.pop(receiver, None)
        if len(self._slow) >= _REMEMBERED:
            del self._slow[next(iter(self._slow))]
        self._slow[receiver] = None

    def _forget(self, host: str, pool: Pool) -> None:
        """Drop the pool of an idle host, so that memory follows the webhooks in flight."""
        if pool.empty:
            del self._hosts[host]
