"""Requests that never become whole: a connection that sends half a head or half a body is closed after a while, so that
nobody holds connections by saying nothing (docs/limits.md "Times").

It looks at all connections once a second, instead of setting a timer for each request: what is quick pays nothing.
"""

from collections.abc import Iterable
from typing import Any

from ....ports.clock import Clock
from .edge import UPLOADS

HEAD = 15.0
"""Seconds that the head of a request may take, from the connection's beginning or the end of the answer before."""

BODY = 60.0
"""Seconds that its body may take, from when the server first saw it wait. Uploads have bounds of their own."""

GRACE = 20.0
"""Seconds of these that it has in any case."""

LEAST = 500
"""Bytes of it that give it one second more."""

EVERY = 1.0
"""Seconds between two looks."""


class HalfRequests:
    """Closes connections that have been waiting for the rest of one request for too long."""

    def __init__(self, connections: Iterable[Any]) -> None:
        self._connections = connections
        self._waiting: dict[Any, tuple[object, float]] = {}
        """By connection: the part of a request that it waits for, and since when it was seen to."""

    async def watch(self, clock: Clock) -> None:
        """Look again and again, until cancelled."""
        while True:
            await clock.sleep(EVERY)
            self.look(clock.monotonic())

    def look(self, now: float) -> None:
        """Close what has waited too long at this moment, in seconds of a clock that never jumps."""
        waiting: dict[Any, tuple[object, float]] = {}
        for connection in tuple(self._connections):
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
    """What a connection of the server (uvicorn's protocol) waits for from its client, and how long it may; None: for
    nothing, or it is at rest between two requests, which the server itself bounds."""
    cycle = connection.cycle
    if cycle is None or cycle.response_complete:
        at_rest = connection.timeout_keep_alive_task is not None
        return None if at_rest else (("head", cycle, connection.rests_since), HEAD)
    if cycle.more_body and not cycle.scope["path"].startswith(UPLOADS):
        return ("body", cycle), min(GRACE + connection.body_received / LEAST, BODY)
    return None
