"""The door of the server: whoever waits at it is let in, all at once.

uvloop lets in one connection in a turn of its loop. Under load, when turns are long, that is some tens in a second: the
system's queue overflows, and a balancer's look at `/readyz` waits for many seconds behind connections that are let in
one by one.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from .crowd import Crowd, Stay

AT_ONCE = 256
"""Connections let in before the loop goes on with what else is due."""

PAUSE = 0.2
"""Seconds without letting anybody in, when the system gives no more: its files are all in use."""

log = logging.getLogger("cambist.serve")


class Guest(Protocol):
    """A connection's protocol that tells of its end."""

    ended: Callable[[], None] | None


class Entrance:
    """Lets connections in from a listening socket, as far as there is room for them, until it is closed."""

    def __init__(self, listener: socket.socket, protocol: Callable[[], Any], crowd: Crowd) -> None:
        """`protocol` makes a `Guest` that is an asyncio protocol."""
        self._listener = listener
        self._protocol = protocol
        self._crowd = crowd
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[object]] = set()
        self._later: asyncio.TimerHandle | None = None
        self._open()

    async def close(self) -> None:
        """Let in who waits, which the system has accepted already, and then nobody any more."""
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
        """Whether there may be more."""
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
        """Have the connection served; whatever comes, `leave` is called."""

        def protocol() -> Any:
            made = self._protocol()
            made.ended = leave
            return made

        try:
            await self._loop.connect_accepted_socket(protocol, connection)
        except OSError as fault:  # it has gone already
            log.debug("a connection ended before it was served: %s", fault)
            connection.close()
            leave()
        except BaseException:
            leave()
            raise


def _turn_away(connection: socket.socket, refusal: bytes) -> None:
    """Say that there is no room, as far as that can be said without waiting, and close."""
    with connection, suppress(OSError):  # who has gone already
        connection.send(refusal)
        connection.shutdown(socket.SHUT_WR)
