"""Closes connections that never send the rest of a head or body, or that ask nothing more, so that nobody holds
connections by saying nothing (docs/limits.md "Times").

All connections are looked at once a second, in place of a timer for each request: a quick request costs nothing.
"""

from collections.abc import Iterable
from typing import Any

from ....ports.clock import Clock
from .edge import UPLOADS

HEAD = 15.0
"""Seconds that the head of a request may take, from the connection's beginning or the end of the answer before."""

BODY = 60.0
"""Seconds that a body may take, at most, from the first look that finds it missing. Uploads have bounds of their
own."""

GRACE = 20.0
"""Seconds of these that every body has."""

REST = 1.0
"""Seconds in which the rest of a body may come whose request was answered before, at most, from the first look that
finds it missing. A client that sends head and body apart keeps its connection."""

LEAST = 500
"""Bytes of a body that give it one second more: a slow line is no attack."""

IDLE = 75.0
"""Seconds that an idle connection stays open, from the first look that finds it so: longer than clients and balancers
keep theirs (60 s is usual), so that it is they who close. A request that is sent while the server closes is lost, and
nobody repeats it."""

EVERY = 1.0
"""Seconds between two looks."""


class HalfRequests:
    """Closes connections that have been waiting for the rest of one request, or for another one, for too long."""

    def __init__(self, connections: Iterable[Any]) -> None:
        self._connections = connections
        self._waiting: dict[Any, tuple[object, float]] = {}
        """By connection: which part of which request is missing, and the time of the first look that found it so."""

    async def watch(self, clock: Clock) -> None:
        """Look every `EVERY` seconds, until cancelled."""
        while True:
            await clock.sleep(EVERY)
            self.look(clock.monotonic())

    def look(self, now: float) -> None:
        """Close the connections that have been idle, or whose request has been incomplete, for too long at `now`, in
        seconds of the monotonic clock."""
        waiting: dict[Any, tuple[object, float]] = {}
        for connection in tuple(self._connections):
            if connection.idle_since is not None:
                connection.idle_since = since = min(connection.idle_since, now)
                if now - since >= IDLE:
                    connection.transport.close()
                continue
            found = _missing(connection)
            if found is None:
                continue
            part, patience = found
            known, since = self._waiting.get(connection, (None, now))
            if known != part:
                since = now
            if now - since >= patience:
                connection.transport.close()
            else:
                waiting[connection] = (part, since)
        self._waiting = waiting


def _missing(connection: Any) -> tuple[object, float] | None:
    """Which part of a request a connection that is not idle still wants from its client, and for how many seconds it
    may. None: nothing is missing."""
    cycle = connection.cycle
    if connection.is_answered_early:
        return ("rest", cycle), REST
    if cycle is None or cycle.response_complete:
        return ("head", cycle, connection.rests_since), HEAD
    if cycle.more_body and not cycle.scope["path"].startswith(UPLOADS):
        return ("body", cycle), min(GRACE + connection.body_received / LEAST, BODY)
    return None
