"""Logs providers' faults at most once a minute for each provider, operation and kind of fault, with a count, because an
unreachable provider fails at every payment (docs/operations.md "Logs")."""

import logging
from collections.abc import Sequence

from ....ports.clock import Clock
from ....ports.faults import BulkheadFull, Fault, Held, NotConfigured, NotSupported, Refused

MINUTE = 60.0
_LONGEST = 300
"""Maximum characters of a provider's own message."""

_OF_NOBODY = (BulkheadFull, Held, NotSupported)
"""Faults raised without a call to the provider."""

log = logging.getLogger("cambist.providers")


class FaultLog:
    """Fault log of one provider. Refusals are answers and are logged at level info only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], tuple[float, int]] = {}
        """Time of the last log line and count since then, by operation and kind of fault."""

    def tell(self, operation: str, fault: Fault) -> None:
        """Log or count the fault of a call. `operation` includes the provider's name."""
        if isinstance(fault, _OF_NOBODY):
            return
        if isinstance(fault, Refused):
            log.info("%s: refused (%s): %.*s", operation, fault.reason, _LONGEST, str(fault))
            return
        level = logging.ERROR if isinstance(fault, NotConfigured) else logging.WARNING
        self._log(level, operation, type(fault).__name__, str(fault))

    def tell_odd(self, operation: str, fields: Sequence[str]) -> None:
        """Log or count that texts of an answer were cleaned for display (shown.py)."""
        named = ", ".join(sorted(set(fields)))
        self._log(logging.WARNING, operation, "odd text", f"cleaned, the rest of the answer counts: {named}")

    def _log(self, level: int, operation: str, kind: str, message: str) -> None:
        now = self._clock.monotonic()
        since, more = self._told.get((operation, kind), (float("-inf"), 0))
        if now - since < MINUTE:
            self._told[operation, kind] = since, more + 1
            return
        self._told[operation, kind] = now, 0
        also = f" ({more} more since the last line)" if more else ""
        log.log(level, "%s: %s: %.*s%s", operation, kind, _LONGEST, message, also)
