"""Limits on the connections of a process, in total and per client address, so that a client without a key cannot use
them all up by opening them (docs/limits.md "Sizes")."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from ....core.domain.accounts.rate_limit import Network, client_ip, is_trusted
from ....ports.clock import Ids
from ...telemetry.counters import Counters
from .bounded import named
from .errors import envelope, help_header
from .intake import RETRY_AFTER

SILENCE = 60.0
"""Seconds between two log lines about refused connections."""

_CODE = "PROVIDER_UNAVAILABLE"
_BODY = envelope(_CODE, "Too many connections are open; nothing was done: try again")
_HEAD = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: %d\r\nretry-after: %d\r\n"
    b"connection: close\r\n"
) % (len(_BODY), RETRY_AFTER)

log = logging.getLogger("cambist.http")


class Crowd:
    """Counter of open connections by client address. A trusted proxy stands for many clients, so only the total limit
    applies to it."""

    def __init__(
        self,
        most: int,
        of_an_address: int,
        ids: Ids,
        trusted: Sequence[Network] = (),
        counters: Counters | None = None,
        base_url: str = "",
    ) -> None:
        """Create the counter. `base_url` is the public address of the service, for the link in the refusal."""
        self._refusal_head = b"%b%b: %b\r\n" % (_HEAD, *help_header(base_url, _CODE))
        self._ids = ids
        self._most = most
        self._of_an_address = of_an_address
        self._trusted = frozenset(trusted)
        self.counters = counters
        self._inside: Counter[str] = Counter()
        self.count = 0
        """Connections open now."""
        self._untold: Counter[str] = Counter()
        self._quiet = False

    def enter(self, peer: str | None) -> "Stay | None":
        """Count a new connection from `peer`. Return a callable to call when the connection ends, or None when the
        limit is reached and the connection must be refused."""
        if self.count >= self._most:
            self._refuse("process")
            return None
        if peer is None or is_trusted(peer, self._trusted):  # None: a Unix socket, which only a proxy uses
            name = ""
        else:
            name = client_ip(peer, None, self._trusted)
            if self._inside[name] >= self._of_an_address:
                self._refuse("address")
                return None
        self.count += 1
        self._inside[name] += 1
        return Stay(self, name)

    def refusal(self) -> bytes:
        """Return the whole answer to a connection over the limit, with its own request id."""
        return b"%b%b\r\n%b" % (self._refusal_head, named(self._ids.uuid()), _BODY)

    def leave(self, name: str) -> None:
        """Stop counting a connection. `name` is its address, empty for a trusted proxy."""
        self.count -= 1
        self._inside[name] -= 1
        if not self._inside[name]:
            del self._inside[name]

    def _refuse(self, bound: str) -> None:
        if self.counters is not None:
            self.counters.refused_connections.add(bound)
        self._untold[bound] += 1
        if not self._quiet:
            self._quiet = True
            self._tell()
            asyncio.get_running_loop().call_later(SILENCE, self._tell_rest)

    def _tell_rest(self) -> None:
        self._quiet = False
        if self._untold.total():
            self._tell()

    def _tell(self) -> None:
        log.warning(
            "connections were refused: %d over the %d of one address, %d over the %d of this process",
            self._untold["address"], self._of_an_address, self._untold["process"], self._most,
        )  # fmt: skip
        self._untold.clear()


class Stay:
    """One counted connection. Call it when the connection ends; further calls do nothing. It has slots, because
    thousands exist at a time."""

    __slots__ = ("_crowd", "_name")

    def __init__(self, crowd: Crowd, name: str) -> None:
        self._crowd: Crowd | None = crowd
        self._name = name

    def __call__(self) -> None:
        crowd, self._crowd = self._crowd, None
        if crowd is not None:
            crowd.leave(self._name)
