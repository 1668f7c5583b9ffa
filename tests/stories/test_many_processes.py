"""Tests of `cambist api` and `cambist worker` in several processes, and a small fleet of them (docs/operations.md
"Running several machines"). test_drills.py covers their work together and the death of a process or server."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.usecases.accounts.accounts import NewAccount
from tests.receivers import Receiver
from tests.redis_servers import RedisServer, own_redis
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import WORKS, Installation, Process, Service, eventually, installation


@dataclass
class Fleet:
    """Processes of one installation that run."""

    place: Installation
    redis: RedisServer
    receiver: Receiver
    account: NewAccount
    apis: list[Service]
    workers: list[Process]
    edges: list[Merchant]
    """The same merchant at each API process."""

    async def pay(self, count: int) -> set[str]:
        """Create payments at each process in turn, and pay each at another one. Their ids."""
        return set(await asyncio.gather(*(self._pay(number) for number in range(count))))

    async def _pay(self, number: int) -> str:
        first, then = self.edges[number % len(self.edges)], self.edges[(number + 1) % len(self.edges)]
        created = await first.created()
        answer = await then.simulate(created["id"], outcome="paid")
        assert (answer.status, answer.json["status"]) == (200, "paid")
        payment_id: str = created["id"]
        return payment_id

    async def told(self, wanted: set[str]) -> None:
        """Wait until the merchant knows of these payments; and each has one event, however often it was sent."""
        await eventually(lambda: self._has_told(wanted))
        events = {(webhook.headers["x-webhook-id"], self._payment(webhook.body)) for webhook in self.receiver.requests}
        assert {count for payment, count in Counter(each for _, each in events).items() if payment in wanted} == {1}

    async def health(self) -> list[tuple[int, dict[str, Any]]]:
        """Return each API process's health."""
        said = []
        for edge in self.edges:
            async with edge.client.get(f"{edge.base}/health") as answer:
                said.append((answer.status, msgspec.json.decode(await answer.read())))
        return said

    async def is_well(self) -> bool:
        return all(
            (status, said["status"], "degraded" in said) == (200, "ok", False) for status, said in await self.health()
        )

    async def _has_told(self, wanted: set[str]) -> bool:
        return wanted <= {self._payment(webhook.body) for webhook in self.receiver.requests}

    def _payment(self, body: bytes) -> str:
        payment_id: str = msgspec.json.decode(body)["payment_id"]
        return payment_id


@pytest.fixture
def redis_of_ours() -> Iterator[RedisServer]:
    with own_redis() as server:
        yield server


@pytest.fixture
async def fleet(tmp_path: Path, postgres_database: str, redis_of_ours: RedisServer) -> AsyncIterator[Fleet]:
    """Start two API processes and one worker; the test starts the second worker."""
    settings = {
        "database_url": postgres_database,
        "redis_url": redis_of_ours.url,
        "vault_key": secrets.token_hex(32),
        "vault_pepper": secrets.token_hex(32),
        "trusted_proxies": "127.0.0.0/8",
    }
    async with Receiver() as receiver, AsyncExitStack() as stack:
        place = stack.enter_context(installation(tmp_path, **settings))
        await place.migrate()
        account = await place.account(receiver.url)
        apis = [place.start_api() for _ in range(2)]
        workers = [place.start("worker")]
        bases = [await asyncio.to_thread(api.ready) for api in apis]
        await asyncio.to_thread(workers[0].said, WORKS)
        edges = [await stack.enter_async_context(merchant(base, account.test)) for base in bases]
        yield Fleet(place, redis_of_ours, receiver, account, apis, workers, edges)


@pytest.mark.parametrize("command", ["api", "worker"])
def test_settings_unfit_for_many_processes_are_refused_with_the_reason(tmp_path: Path, command: str) -> None:
    with installation(tmp_path) as place:
        outcome = place.call(command)
    assert (outcome.status, outcome.out) == (1, "")
    assert "CAMBIST_DATABASE_URL: must be postgresql" in outcome.err
    assert (
        "CAMBIST_REDIS_URL: is needed: with counters in memory every process would grant the whole limit" in outcome.err
    )
    assert "CAMBIST_VAULT_KEY: and CAMBIST_VAULT_PEPPER are needed" in outcome.err
    assert "`cambist vault new` prints both" in outcome.err
