"""Rate limits: count a request before it is processed (docs/limits.md "Requests")."""

import msgspec

from ....ports.bundle import Ports
from ....ports.counters import Counter
from ...domain.accounts.rate_limit import WINDOW, Verdict, bucket, limits, verdict, window

PAGES = "pages:ip"
"""Counter of page requests by client address."""
PAGES_PER_MINUTE = 600
"""Default limit. An open page without a free stream sends about 20 requests a minute."""
NOTIFICATIONS = "notifications:ip"
"""Counter of providers' notifications by address."""
NOTIFICATIONS_PER_MINUTE = 3000
"""Default limit for one address. A provider has few addresses."""


async def admit(ports: Ports, method: str, path: str, ip: str, api_key: str | None) -> Verdict:
    """Count a request under /api/v1 and return the verdict. `path` is normalised and relative to /api/v1."""
    of = bucket(method, path)
    now = int(ports.clock.now().timestamp())
    counts = await ports.counters.count(window(now), limits(of, ip, api_key, Counter))
    return verdict(of, counts, now)


class Counted(msgspec.Struct, frozen=True):
    """State of a rate limit for a client without a key."""

    over: bool
    minute: int
    """Unix second at which the window began."""
    wait: int
    """Seconds until the window ends, 1 to 60."""


async def admit_stranger(ports: Ports, counter: str, name: str, per_minute: int) -> Counted:
    """Count a request without a key, by address or link, separately from everything that `admit` counts."""
    now = int(ports.clock.now().timestamp())
    counts = await ports.counters.count(window(now), [Counter(f"{counter}:{name}", per_minute)])
    passed = now % WINDOW
    return Counted(over=counts[-1] > per_minute, minute=now - passed, wait=WINDOW - passed)
