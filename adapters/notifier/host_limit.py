"""Limit on the concurrent webhooks to one host, from all callers.

Deliveries pass core/domain/webhooks/limiter.py first, in total and by host. Test webhooks, which a merchant
requests, do not, and many merchants may name one host.
"""

import asyncio
from collections import deque

Host = tuple[str, int]
"""Host name and port."""


class Waitlist:
    """Permits of one host, first come, first served. asyncio.Semaphore does the same with five calls for each use."""

    __slots__ = ("_waiting", "free")

    def __init__(self, permits: int) -> None:
        self.free = permits
        """Free permits; None while a webhook waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait for a permit if none is free."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Pass a permit on to the first waiting webhook, or keep it free."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class HostLimit:
    """Permits by host, first come, first served.

    The connector's own limits do not fit: its queue counts towards the webhook's time, and would charge our wait to
    the receiver.
    """

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._waitlists: dict[Host, Waitlist] = {}
        """Waitlists in use. An unused one is dropped, so that memory follows the webhooks under way."""

    async def enter(self, host: Host) -> None:
        """Wait for a permit for this host; `leave` returns it."""
        waitlist = self._waitlists.get(host)
        if waitlist is None:
            waitlist = self._waitlists[host] = Waitlist(self._per_host)
        if waitlist.free:
            waitlist.free -= 1
            return
        try:
            await waitlist.wait()
        except BaseException:
            self._forget(host, waitlist)
            raise

    def leave(self, host: Host) -> None:
        """Return the permit."""
        waitlist = self._waitlists[host]
        waitlist.give_back()
        self._forget(host, waitlist)

    def _forget(self, host: Host, waitlist: Waitlist) -> None:
        if waitlist.free == self._per_host and self._waitlists.get(host) is waitlist:
            del self._waitlists[host]
