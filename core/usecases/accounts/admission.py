"""Counting a request at the door, before anything else is looked at (SPEC "Limits", DECISIONS 1.1)."""

from ....ports.bundle import Ports
from ....ports.meter import Gauge
from ...domain.quota import Verdict, bucket, gauges, verdict, window


async def admit(ports: Ports, method: str, path: str, ip: str, api_key: str | None) -> Verdict:
    """Count a request under /api/v1 and judge it. `path` is normalised and relative to /api/v1."""
    of = bucket(method, path)
    now = int(ports.clock.now().timestamp())
    counts = await ports.meter.count(window(now), gauges(of, ip, api_key, Gauge))
    return verdict(of, counts, now)
