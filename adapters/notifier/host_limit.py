"""How many webhooks may be on their way to one host at once, whoever posts them.

Deliveries ask core/domain/webhooks/limiter.py before they come here, in all and by host; test webhooks, which a
merchant asks for, do not, and many merchants may name one host.
"""

import asyncio
from collections import deque

Host = tuple[str, int]
"""Its name, and the port."""


class Waitlist:
    """The permits of one host, given to who comes first. asyncio.Semaphore is the same with five calls for each use."""

    __slots__ = ("_waiting", "free")

    def __init__(self, permits: int) -> None:
        self.free = permits
        """None while somebody waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait for a permit, where none is free."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand a permit on to the first who still waits, or keep it free."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class HostLimit:
    """Gives out turns, first come first served per host.

    Not the connector's own limits: its queue runs on the webhook's time, and would charge our wait to the receiver.
    """

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._waitlists: dict[Host, Waitlist] = {}
        """One that nobody holds is forgotten, so that memory follows what is under way."""

    async def enter(self, host: Host) -> None:
        """Wait for a turn at this host; `leave` ends it."""
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
        """The turn is over."""
        waitlist = self._waitlists[host]
        waitlist.give_back()
        self._forget(host, waitlist)

    def _forget(self, host: Host, waitlist: Waitlist) -> None:
        if waitlist.free == self._per_host and self._waitlists.get(host) is waitlist:
            del self._waitlists[host]
