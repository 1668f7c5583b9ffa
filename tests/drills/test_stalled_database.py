"""Postgres hangs under load: it is stopped (SIGSTOP) and goes on later. Probes say so within 2 s, requests are refused
instead of waiting for it, and nothing is lost or doubled when it is back.

`nox -s drills` stops it five times, for 20 s each.
"""

import asyncio
import os
import random
import secrets
import time
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from tests.patience import drill_of, promised
from tests.stories.fleet import Fleet, Load, running_fleet
from tests.stories.processes import eventually
from tests.stories.test_drills import (
    all_end_well,
    all_told,
    check_database,
    check_letters,
    check_over_http,
    summary,
)

STOPS = 5
STOPPED_FOR = 20.0
PER_SECOND = 10
AGAIN_AFTER = (2.0, 4.0)
"""Seconds after which a refused request is sent again: few enough for the limits."""
KNOWN_WITHIN = 5.0
"""Seconds after which requests are refused at once: two polls, and a query."""
IN_TIME = 2.0 + 0.5
"""Seconds: the promised time, plus the client's own time on a busy machine."""
BACK_WITHIN = 10.0


class Times:
    """The slowest answer of each kind, in seconds."""

    def __init__(self) -> None:
        self.slowest: Counter[str] = Counter()
        self.statuses: Counter[tuple[str, int]] = Counter()

    async def get(self, fleet: Fleet, base: str, path: str, name: str = "") -> int:
        began = time.monotonic()
        async with fleet.client.get(base + path, timeout=aiohttp.ClientTimeout(total=30)) as answer:
            await answer.read()
        took = time.monotonic() - began
        name = name or path
        self.slowest[name] = max(self.slowest[name], took)  # type: ignore[assignment]  # a Counter holds any number
        self.statuses[name, answer.status] += 1
        return answer.status


@pytest.mark.drill
@drill_of("tests/contracts/test_storage_stalled.py")
@pytest.mark.timeout(900)
async def test_hanging_database_makes_nobody_wait_and_loses_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("DRILL_SEED") or secrets.randbits(32))
    print(f"about the same chances again: DRILL_SEED={seed}")
    times, back = Times(), list[float]()
    async with running_fleet(tmp_path, apis=2, workers=1, spare=0) as (fleet, shops):
        load = Load(fleet, shops, random.Random(seed), per_second=PER_SECOND, again_after=AGAIN_AFTER)
        async with load.at_work():
            for _ in range(STOPS):
                await load.grows_by(len(load.orders) - load.paid + 10)  # the waiting orders, and more
                back.append(await hangs(fleet, times))
            await load.grows_by(10)
        await eventually(lambda: all_told(fleet, load.orders))
        await check_over_http(fleet, load.orders)
        await all_end_well(fleet)
        check_letters(fleet, load.orders)
        await fleet.client.close()
        async with fleet.place.app() as ports:
            await check_database(ports, load.orders)
    print(f"{STOPS} stops of {STOPPED_FOR:.0f} s; {summary(load.orders)}; well again after {max(back):.1f} s at most")
    print("slowest answers while it hung:", {name: f"{took:.2f} s" for name, took in times.slowest.items()})
    assert sorted(times.statuses) == [
        ("/health", 503),
        ("/livez", 200),
        ("/readyz", 503),
        ("refused", 503),
    ]
    assert max(times.slowest[name] for name in ("/livez", "/readyz", "/health")) < promised(IN_TIME)
    assert times.slowest["refused"] < promised(IN_TIME)
    assert max(back) < promised(BACK_WITHIN)


async def hangs(fleet: Fleet, times: Times) -> float:
    """Stop it for a while, asking all the time; the seconds after which the service is well again."""
    fleet.postgres.freeze()
    try:
        ends = time.monotonic() + STOPPED_FOR
        known = time.monotonic() + KNOWN_WITHIN
        while time.monotonic() < ends:
            base = fleet.bases[0]
            asked = [times.get(fleet, base, path) for path in ("/livez", "/readyz", "/health")]
            if time.monotonic() > known:
                asked.append(times.get(fleet, base, "/p/pay_00000000-0000-4000-8000-000000000000", "refused"))
            await asyncio.gather(*asked)
            await asyncio.sleep(0.2)
    finally:
        fleet.postgres.thaw()
    began = time.monotonic()
    await eventually(fleet.is_well)
    return time.monotonic() - began
