"""A storage seen from a test world: inside, its jobs are due by the world's time; for a worker that claims them, by the
storage's clock (adapters/storage/account_time.py)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec

from cambist.adapters.storage.account_time import ASIDE
from cambist.ports.bundle import Ports
from cambist.ports.clock import TestClock
from cambist.ports.jobs import Job
from cambist.ports.storage import AtMost
from tests.apps import TestApp, open_test_app

AHEAD = timedelta(days=100)
MINE = TestClock("acc_1", AHEAD)
HELD = TestClock("acc_1", AHEAD, is_advancing=True)
OTHER = TestClock("acc_2")
HOUR = timedelta(hours=1)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[TestApp]:
    async with open_test_app(database_url=url, receiver=False) as app:
        app.made_up = True
        yield app


def job(name: str, due: datetime, **fields: Any) -> Job:
    return Job(id=f"kind:{name}", kind="kind", argument=name, due=due, created_at=due, **fields)


async def add(ports: Ports, *jobs: Job, world: TestClock | None) -> None:
    with ports.clock.entered(world):
        async with ports.storage.unit() as unit:
            for each in jobs:
                unit[Job].add(each)
            await unit.commit()


async def read(ports: Ports, name: str, world: TestClock | None = None) -> Job:
    with ports.clock.entered(world):
        async with ports.storage.unit() as unit:
            found = await unit[Job].get(f"kind:{name}")
        assert await ports.storage.get(Job, f"kind:{name}") == found  # also for a reader without a unit
    assert found is not None
    return found


async def save(ports: Ports, changed: Job, world: TestClock | None) -> Job:
    with ports.clock.entered(world):
        async with ports.storage.unit() as unit:
            saved = unit[Job].save(changed)
            await unit.commit()
    return saved


async def test_a_job_of_a_world_is_claimed_when_the_storages_clock_says_so(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD
        await add(app.ports, job("a", there + HOUR), world=MINE)
        stored = await read(app.ports, "a")
        assert (stored.due, stored.moment, stored.world) == (app.clock.now() + HOUR, there + HOUR, "acc_1")
        assert (await read(app.ports, "a", MINE)).due == there + HOUR
        assert await app.ports.storage.claim(10, 8) == []
        await app.clock.advance(3600)
        [claimed] = await app.ports.storage.claim(10, 8)
        assert claimed.id == "kind:a"


async def test_leases_too_are_of_the_storages_clock(url: str) -> None:
    async with opened(url) as app:
        with app.ports.clock.entered(MINE):
            until = await app.ports.storage.now() + HOUR
        await add(app.ports, job("a", app.clock.now() + AHEAD, leased_until=until), world=MINE)
        assert (await read(app.ports, "a")).leased_until == app.clock.now() + HOUR
        assert (await read(app.ports, "a", MINE)).leased_until == until


async def test_a_job_keeps_its_moment_when_its_world_moves_on(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD + HOUR
        await add(app.ports, job("a", there), world=MINE)
        later = TestClock("acc_1", AHEAD + HOUR)
        seen = await read(app.ports, "a", later)
        assert seen.due == there
        await save(app.ports, seen, later)
        stored = await read(app.ports, "a")
        assert (stored.due, stored.moment) == (app.clock.now(), there)


async def test_held_clocks_jobs_are_hidden_from_workers_but_keep_their_moments(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD
        await add(app.ports, job("a", there), job("b", there + HOUR), world=HELD)
        assert await app.ports.storage.claim(10, 8) == []
        now, near = await read(app.ports, "a"), await read(app.ports, "b")
        assert (now.due, now.moment) == (app.clock.now() + ASIDE, there)
        assert (near.due, near.moment) == (app.clock.now() + HOUR, there + HOUR)


async def test_job_saved_unread_or_accrued_again_belongs_to_the_test_clock(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD
        first = job("a", there)
        await add(app.ports, first, world=MINE)
        await save(app.ports, msgspec.structs.replace(first, due=there + HOUR), MINE)
        assert (await read(app.ports, "a")).due == app.clock.now() + HOUR
        with app.ports.clock.entered(MINE):
            async with app.ports.storage.unit() as unit:
                unit[Job].accrue(job("b", there, asked=1))
                await unit.commit()
        assert (await read(app.ports, "b")).moment == there


async def test_jobs_of_no_world_and_of_others_are_left_as_they_are(url: str) -> None:
    async with opened(url) as app:
        now = app.clock.now()
        await add(app.ports, job("none", now), world=None)
        await add(app.ports, job("other", now), world=OTHER)
        for name in ("none", "other"):
            seen = await read(app.ports, name, MINE)
            assert seen.due == now
            await save(app.ports, await save(app.ports, seen, None), MINE)
            assert (await read(app.ports, name)).due == now
        assert (await read(app.ports, "none")).world is None


async def test_jobs_are_found_in_the_order_of_the_test_clock(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD
        await add(app.ports, *(job(str(hours), there + hours * HOUR) for hours in (3, 1, 2)), world=MINE)
        await add(app.ports, job("other", there), world=OTHER)
        async with app.ports.storage.unit() as unit:
            found = await unit[Job].find(world="acc_1", moment=AtMost(there + 2 * HOUR), order="moment", quick=True)
        assert [each.argument for each in found] == ["1", "2"]


async def test_a_unit_follows_its_task_into_a_world_and_out_of_it(url: str) -> None:
    async with opened(url) as app:
        there = app.clock.now() + AHEAD
        async with app.ports.storage.unit() as unit:
            with app.ports.clock.entered(MINE):
                unit[Job].add(job("mine", there))
            unit[Job].add(job("none", there))
            await unit.commit()
        assert (await read(app.ports, "mine")).due == app.clock.now()
        assert (await read(app.ports, "none")).due == there
