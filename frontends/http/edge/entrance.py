"""Acceptor of connections, which accepts all waiting connections at once.

uvloop accepts one connection per iteration of its loop. Under load, when iterations are long, that is some tens per
second: the system's queue overflows, and a load balancer's request to `/readyz` waits for many seconds behind other
connections.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from .crowd import Crowd, Stay

AT_ONCE = 256
"""Connections accepted before the event loop continues with other work."""

PAUSE = 0.2
"""Pause before the next accept when the process has no free file descriptors, in seconds."""

log = logging.getLogger("cambist.serve")


class Guest(Protocol):
    """A connection's protocol that reports its end."""

    ended: Callable[[], None] | None


class Entrance:
    """Accept connections from a listening socket within the limits, until it is closed."""

    def __init__(self, listener: socket.socket, protocol: Callable[[], Any], crowd: Crowd) -> None:
        """Start accepting. `protocol` makes a `Guest` that is an asyncio protocol."""
        self._listener = listener
        self._protocol = protocol
        self._crowd = crowd
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[object]] = set()
        self._later: asyncio.TimerHandle | None = None
        self._open()

    async def close(self) -> None:
        """Accept the connections that the system has queued, then stop."""
        self._loop.remove_reader(self._listener)
        while self._let_in():
            pass
        if self._later is not None:
            self._later.cancel()
        self._listener.close()
        if self._entering:
            await asyncio.wait(self._entering)

    def _open(self) -> None:
        self._later = None
        self._loop.add_reader(self._listener, self._let_in)

    def _let_in(self) -> bool:
        """Accept waiting connections. Return whether there may be more."""
        for _ in range(AT_ONCE):
            try:
                connection, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as fault:
                log.warning("no connection can be let in: %s", fault)
                self._loop.remove_reader(self._listener)
                self._later = self._later or self._loop.call_later(PAUSE, self._open)
                return False
            connection.setblocking(False)
            leave = self._crowd.enter(peer[0] if peer else None)
            if leave is None:
                _turn_away(connection, self._crowd.refusal())
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._loop.create_task(self._seat(connection, leave))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)
        return True

    async def _seat(self, connection: socket.socket, leave: Stay) -> None:
        """Start serving the connection. `leave` is called whatever happens."""

        def protocol() -> Any:
            made = self._protocol()
            made.ended = leave
            return made

        try:
            await self._loop.connect_accepted_socket(protocol, connection)
        except OSError as fault:  # the client has disconnected
            log.debug("a connection ended before it was served: %s", fault)
            connection.close()
            leave()
        except BaseException:
            leave()
            raise


def _turn_away(connection: socket.socket, refusal: bytes) -> None:
    """Send the refusal as far as possible without waiting, and close."""
    with connection, suppress(OSError):  # the client may have disconnected
        connection.send(refusal)
        connection.shutdown(socket.SHUT_WR)
