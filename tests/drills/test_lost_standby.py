"""The synchronous standby of Postgres is gone: creations and repeats of their keys are refused at once, and after the
primary crashed as well, until a standby has everything again."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from cambist.adapters.storage.postgres.standby import REASON
from tests.patience import drill_of, promised
from tests.stories.fleet import running_fleet
from tests.stories.merchant import Answer, Merchant
from tests.stories.processes import eventually

KNOWN_WITHIN = 5.0
"""Seconds until every process knows: a commit each second, two seconds for its answer, and the question why."""
AT_ONCE = 0.5
KEYS = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(3)]


@pytest.mark.drill
@drill_of("tests/contracts/test_storage_standby.py")
@pytest.mark.timeout(300)
async def test_creations_and_repeats_are_refused_without_the_standby(tmp_path: Path) -> None:
    async with (
        running_fleet(tmp_path, apis=2, workers=1, spare=0) as (fleet, shops),
        fleet.postgres.standby() as standby,
    ):
        edges = [Merchant(fleet.client, base, shops[0].test, None) for base in fleet.bases]
        acknowledged = (await edges[0].create(KEYS[0])).json["id"]
        standby.stop(signal.SIGINT)
        late = [asyncio.create_task(edges[0].create(key)) for key in KEYS[1:]]
        await asyncio.sleep(promised(KNOWN_WITHIN))
        await _all_refused(edges)
        assert {(await each).status for each in late} == {503}
        assert not await fleet.is_ready()
        # The primary crashes. Its own log still has its writes, and it would show them.
        fleet.postgres.stop(signal.SIGQUIT)
        fleet.postgres.start()
        for _ in range(3):
            await _all_refused(edges)
        standby.start()
        await eventually(fleet.is_well)
        answers = [await edges[1].create(key) for key in KEYS]
        assert {each.status for each in answers} <= {200, 201}
        assert answers[0].json["id"] == acknowledged
        assert len({each.json["id"] for each in answers}) == len(KEYS)
        for api in fleet.apis:
            assert REASON in api.err


async def _all_refused(edges: list[Merchant]) -> None:
    began = time.monotonic()
    answers: list[Answer] = await asyncio.gather(*(edge.create(key) for edge in edges for key in KEYS))
    assert {each.status for each in answers} == {503}
    assert all(each.headers.get("Retry-After") for each in answers)
    assert time.monotonic() - began < promised(AT_ONCE * len(answers))
