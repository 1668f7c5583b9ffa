"""Counting a request at the door, before anything else is looked at (docs/limits.md "Requests")."""

import msgspec

from ....ports.bundle import Ports
from ....ports.counters import Counter
from ...domain.accounts.quota import WINDOW, Verdict, bucket, limits, verdict, window

PAGES = "pages:ip"
"""The counter of pages by client address."""
PAGES_PER_MINUTE = 600
"""Unless the settings say otherwise: an open page asks a minute for some 20 where no stream is left for it."""
NOTICES = "notices:ip"
"""The counter of providers' notices by address."""
NOTICES_PER_MINUTE = 3000
"""From one address, unless the settings say otherwise: a provider has few."""


async def admit(ports: Ports, method: str, path: str, ip: str, api_key: str | None) -> Verdict:
    """Count a request under /api/v1 and judge it. `path` is normalised and relative to /api/v1."""
    of = bucket(method, path)
    now = int(ports.clock.now().timestamp())
    counts = await ports.counters.count(window(now), limits(of, ip, api_key, Counter))
    return verdict(of, counts, now)


class Counted(msgspec.Struct, frozen=True):
    """How one who has no key stands at a limit."""

    over: bool
    minute: int
    """Unix second at which the window began."""
    wait: int
    """Seconds until it ends, 1 to 60."""


async def admit_stranger(ports: Ports, counter: str, name: str, per_minute: int) -> Counted:
    """Count what comes without a key, by address or link, apart from all that `admit` counts."""
    now = int(ports.clock.now().timestamp())
    counts = await ports.counters.count(window(now), [Counter(f"{counter}:{name}", per_minute)])
    passed = now % WINDOW
    return Counted(over=counts[-1] > per_minute, minute=now - passed, wait=WINDOW - passed)
