"""Closing of connections that stall in the middle of a head or body, or that stay idle, so that a client cannot hold
connections by sending nothing (docs/limits.md "Times").

All connections are checked once a second instead of with a timer for each request, so a fast request costs nothing.
"""

from collections.abc import Iterable
from typing import Any

from ....ports.clock import Clock
from .edge import UPLOADS

HEAD = 15.0
"""Seconds for the head of a request, from the start of the connection or the end of the previous answer."""

BODY = 60.0
"""Largest number of seconds for a body, from the first check that finds it incomplete. Uploads have their own limits.
"""

GRACE = 20.0
"""Part of `BODY` that every request gets, in seconds."""

REST = 1.0
"""Largest number of seconds for the rest of a body whose request was answered early, from the first check that finds it
incomplete. A client that sends head and body separately keeps its connection."""

LEAST = 500
"""Bytes of a body that allow one more second: a slow line is not an attack."""

IDLE = 75.0
"""Seconds until an idle connection is closed, from the first check that finds it idle. It is longer than the timeout of
clients and load balancers (60 s is usual), so that they close first: a request sent while the server closes is lost,
and nobody repeats it."""

EVERY = 1.0
"""Seconds between two checks."""


class HalfRequests:
    """Closes connections that wait too long for the rest of a request or for the next request."""

    def __init__(self, connections: Iterable[Any]) -> None:
        self._connections = connections
        self._waiting: dict[Any, tuple[object, float]] = {}
        """By connection: the missing part of a request, and the time of the first check that found it missing."""

    async def watch(self, clock: Clock) -> None:
        """Check every `EVERY` seconds, until cancelled."""
        while True:
            await clock.sleep(EVERY)
            self.look(clock.monotonic())

    def look(self, now: float) -> None:
        """Close the connections that have been idle or incomplete for too long at `now`, in seconds of the monotonic
        clock."""
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
    """Return the missing part of a request on a connection that is not idle, and the seconds allowed for it. None:
    nothing is missing."""
    cycle = connection.cycle
    if connection.is_answered_early:
        return ("rest", cycle), REST
    if cycle is None or cycle.response_complete:
        return ("head", cycle, connection.rests_since), HEAD
    if cycle.more_body and not cycle.scope["path"].startswith(UPLOADS):
        return ("body", cycle), min(GRACE + connection.body_received / LEAST, BODY)
    return None
