"""How often limits were hit, on every storage: processes add up, old rows go (docs/decisions.md "Lists and search")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.accounts.limit_hits import LimitHits
from cambist.core.usecases import retention
from cambist.core.usecases.accounts.limit_hits import HitCounter, Hits, read_hits
from cambist.core.usecases.retention import HITS_KEPT, first_retention, retain
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from cambist.ports.storage import Storage
from tests.invariants import everything

NOW = datetime(2026, 11, 21, 0, 30, 20, tzinfo=UTC)
MINUTE = 60


@pytest.fixture
async def ports(storage: Storage) -> AsyncIterator[Ports]:
    """Ports over an empty storage of each kind, half an hour after midnight."""
    async with open_app(Settings(database_url="memory://"), clock=VirtualClock(NOW)) as app:
        yield msgspec.structs.replace(app.ports, storage=storage)


def minute(back: int) -> int:
    """The minute that was so many before this one, as processes count it."""
    return (int(NOW.timestamp()) // MINUTE - back) * MINUTE


async def read(ports: Ports) -> Hits:
    async with ports.storage.snapshot() as seen:
        return await read_hits(seen, NOW)


async def test_processes_that_write_at_once_lose_nothing_and_share_a_row(ports: Ports) -> None:
    processes = [HitCounter() for _ in range(4)]
    for _ in range(5):
        for hits in processes:
            hits.add("general:key", minute(0), 3)
            hits.add("money:ip", minute(0))
        await asyncio.gather(*(hits.flush(ports) for hits in processes))
    found = {each.id: each.count for each in await everything(ports, LimitHits)}
    assert found == {"2026-11-21T00:30:general:key": 60, "2026-11-21T00:30:money:ip": 20}
    assert processes[0].read() == [(("general:key",), 15), (("money:ip",), 5)]


async def test_today_is_the_utc_day_and_the_hour_goes_back_over_midnight(ports: Ports) -> None:
    hits = HitCounter()
    for back, times in ((0, 1), (30, 2), (31, 4), (59, 8), (60, 16)):
        hits.add("general:key" if back % 2 else "money:key", minute(back), times)
    hits.add("general:ip", minute(1), 100)
    await hits.flush(ports)
    found = await read(ports)
    assert found.today == {"ip": 100, "key": 3}
    assert {59 - place: times for place, times in enumerate(found.hour) if times} == {0: 1, 1: 100, 30: 2, 31: 4, 59: 8}
    assert len(found.hour) == 60


async def test_no_hits_are_reported_as_none(ports: Ports) -> None:
    assert await read(ports) == Hits(today={"ip": 0, "key": 0}, hour=[0] * 60)


async def test_old_rows_go_in_portions_and_young_ones_stay(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_BATCH", 3)
    monkeypatch.setattr(retention, "_PORTION", 2)
    last = int(HITS_KEPT / timedelta(minutes=1))
    hits = HitCounter()
    for back in (0, last, *range(last + 1, last + 9)):
        hits.add("general:ip", minute(back))
    await hits.flush(ports)
    job = first_retention(NOW)
    async with ports.storage.unit() as unit:
        unit[Job].add(job)
        await unit.commit()
    left, dues = [], []
    for _ in range(2):
        async with ports.storage.unit() as unit:
            found = await unit[Job].get(job.id)
        assert found is not None
        await retain(ports, found)
        async with ports.storage.unit() as unit:
            after = await unit[Job].get(job.id)
        assert after is not None
        left.append(len(await everything(ports, LimitHits)))
        dues.append(after.due - NOW)
    assert left == [4, 2]
    assert dues == [timedelta(0), timedelta(hours=1)]
    assert [each.minute for each in await everything(ports, LimitHits)] == [
        datetime.fromtimestamp(minute(back), UTC) for back in (last, 0)
    ]
