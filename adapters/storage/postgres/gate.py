"""Gate before the connections: shut while the server is known not to work."""

import logging
from collections.abc import Sequence
from typing import Protocol

from ....ports.faults import Unavailable

log = logging.getLogger("cambist.storage")


class Waited(Protocol):
    """Connections for whose server requests may be waiting."""

    @property
    def is_waited_for(self) -> bool:
        """Whether a request waits."""
        ...

    @property
    def moved(self) -> int:
        """Number that changes with every answer of the server."""
        ...

    async def break_off(self) -> None:
        """Fail all waiting requests, because their connection is gone."""
        ...


class Gate:
    """Switch that makes requests fail at once instead of waiting, while there is a reason."""

    def __init__(self) -> None:
        self.pools: Sequence[Waited] = ()
        self._reasons: list[str] = []

    @property
    def is_shut(self) -> bool:
        """Whether requests are refused."""
        return bool(self._reasons)

    def refuse(self) -> None:
        """Raise Unavailable while the gate is shut. Nothing was sent to the server."""
        if self._reasons:
            raise Unavailable(self._reasons[0])

    async def shut(self, reason: str) -> None:
        """Refuse requests from now on, and fail the waiting ones."""
        log.error("%s: requests are refused until this is over", reason)
        self._reasons.append(reason)
        for pool in self.pools:
            await pool.break_off()

    def open(self, reason: str) -> None:
        """Remove this reason. The gate opens when none is left."""
        if reason in self._reasons:
            self._reasons.remove(reason)
            log.warning("%s: this is over", reason)
