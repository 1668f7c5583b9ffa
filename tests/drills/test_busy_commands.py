"""Operators' commands beside a service under load, on SQLite: each has its turn at the file."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.drills.merchants import load
from tests.stories.processes import installation

COMMANDS = 6
ROUNDS = 5 if os.environ.get("CAMBIST_DRILLS") == "full" else 1
MERCHANTS = 100


@pytest.mark.drill
async def test_commands_at_once_beside_a_busy_service_all_succeed(tmp_path: Path) -> None:
    with installation(tmp_path, trusted_proxies="127.0.0.0/8") as place:
        await place.migrate()
        accounts = await place.accounts(MERCHANTS)
        service, base = place.serve()
        took: list[float] = []

        async def command(number: int) -> None:
            began = time.monotonic()
            outcome = await asyncio.to_thread(place.call, "account", "create", f"Shop {number}", "--json")
            took.append(time.monotonic() - began)
            assert outcome.status == 0, outcome.err

        async with load(base, accounts, pause=0.3) as clients, clients.running() as tale:
            for _ in range(ROUNDS):
                await asyncio.gather(*(command(number) for number in range(COMMANDS)))
        assert service.terminate() == 0, service.err
        assert set(tale.statuses) <= {201, 429}, tale.statuses
    print(
        f"{len(tale.created)} payments beside {len(took)} commands, {COMMANDS} at once: all succeeded, the slowest in "
        f"{max(took):.1f} s; the slowest payment took {tale.longest:.2f} s"
    )
