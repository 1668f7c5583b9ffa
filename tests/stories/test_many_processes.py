"""Two `cambist api` and two `cambist worker` on one Postgres and one Redis (issue 9, DESIGN 5)."""

import asyncio
import secrets
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.usecases.accounts import NewAccount
from tests.receivers import Receiver
from tests.servers import RedisServer, own_redis
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import WORKS, Installation, Process, Service, eventually, installation
from tests.stories.test_serve import held_until


@dataclass
class Fleet:
    """Processes of one installation that run."""

    place: Installation
    redis: RedisServer
    receiver: Receiver
    account: NewAccount
    apis: list[Service]
    workers: list[Process]
    doors: list[Merchant]
    """The same merchant at each API process."""

    async def pay(self, count: int) -> set[str]:
        """Create payments at each process in turn, and pay each at another one. Their ids."""
        return set(await asyncio.gather(*(self._pay(number) for number in range(count))))

    async def _pay(self, number: int) -> str:
        first, then = self.doors[number % len(self.doors)], self.doors[(number + 1) % len(self.doors)]
        created = await first.created()
        answer = await then.simulate(created["id"], outcome="paid")
        assert (answer.status, answer.json["status"]) == (200, "paid")
        payment_id: str = created["id"]
        return payment_id

    async def told(self, wanted: set[str]) -> None:
        """Wait until the merchant knows of these payments; and each has one event, however often it was sent."""
        await eventually(lambda: self._has_told(wanted))
        events = {(letter.headers["x-webhook-id"], self._payment(letter.body)) for letter in self.receiver.requests}
        assert {count for payment, count in Counter(each for _, each in events).items() if payment in wanted} == {1}

    async def health(self) -> list[tuple[int, dict[str, Any]]]:
        """What each API process says of itself."""
        said = []
        for door in self.doors:
            async with door.client.get(f"{door.base}/health") as answer:
                said.append((answer.status, msgspec.json.decode(await answer.read())))
        return said

    async def is_well(self) -> bool:
        return all(
            (status, said["status"], "degraded" in said) == (200, "ok", False) for status, said in await self.health()
        )

    async def _has_told(self, wanted: set[str]) -> bool:
        return wanted <= {self._payment(letter.body) for letter in self.receiver.requests}

    def _payment(self, body: bytes) -> str:
        payment_id: str = msgspec.json.decode(body)["payment_id"]
        return payment_id


@pytest.fixture
def redis_of_ours() -> Iterator[RedisServer]:
    with own_redis() as server:
        yield server


@pytest.fixture
async def fleet(tmp_path: Path, postgres_database: str, redis_of_ours: RedisServer) -> AsyncIterator[Fleet]:
    """Two API processes and one worker; the second worker is the test's to start."""
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
        doors = [await stack.enter_async_context(merchant(base, account.test)) for base in bases]
        yield Fleet(place, redis_of_ours, receiver, account, apis, workers, doors)


async def test_two_of_each_work_as_one_and_a_killed_worker_loses_nothing(fleet: Fleet) -> None:
    release = asyncio.Event()
    fleet.receiver.answer_with(held_until(release), 200)
    first = await fleet.pay(10)
    await fleet.receiver.arrived(1)
    # The first worker has all deliveries in hand; it dies in the middle of one.
    second = fleet.place.start("worker")
    await asyncio.to_thread(second.said, WORKS)
    fleet.workers[0].kill()
    release.set()
    await fleet.told(first)
    third = fleet.place.start("worker")
    await asyncio.to_thread(third.said, WORKS)
    await fleet.told(await fleet.pay(10))

    await limits_are_counted_together(fleet)

    assert await fleet.is_well()
    for process in (*fleet.apis, second, third):
        process.signal(signal.SIGTERM)
    for process in (*fleet.apis, second, third):
        assert await asyncio.to_thread(process.wait) == 0, process.err
        assert "Traceback" not in process.err


async def limits_are_counted_together(fleet: Fleet) -> None:
    """SPEC "Limits": 120 money requests in a minute, not 120 at each process. One without a key is counted too."""
    for address in ("203.0.113.7", "203.0.113.8"):
        minute = time.time() // 60
        async with AsyncExitStack() as stack:
            doors = [
                await stack.enter_async_context(merchant(door.base, fleet.account.live, {"X-Forwarded-For": address}))
                for door in fleet.doors
            ]
            requests = (doors[number % len(doors)].ask("POST", "/payments", body={}) for number in range(130))
            statuses = Counter(answer.status for answer in await asyncio.gather(*requests))
        if time.time() // 60 == minute:  # else it fell into two windows; the next one does not
            break
    assert statuses == {400: 120, 429: 10}


async def test_redis_away_is_no_outage_and_health_comes_back_by_itself(fleet: Fleet) -> None:
    assert await fleet.is_well()

    fleet.redis.stop()
    await fleet.told(await fleet.pay(10))
    late = fleet.place.start_api()  # a restart in the middle of an outage
    fleet.workers.append(fleet.place.start("worker"))
    fleet.apis.append(late)
    base = await asyncio.to_thread(late.ready)
    await asyncio.to_thread(fleet.workers[1].said, WORKS)
    async with merchant(base, fleet.account.test) as door:
        fleet.doors.append(door)
        await fleet.told(await fleet.pay(3))
        for status, said in await fleet.health():
            assert (status, said["status"], said["core"]) == (503, "degraded", "ok")
            assert said["degraded"] == ["meter", "queue"]
        async with door.client.get(f"{base}/readyz") as ready:
            assert ready.status == 200, "a balancer keeps the process"

        fleet.redis.start()
        await eventually(fleet.is_well)
        await fleet.told(await fleet.pay(10))
        await limits_are_counted_together(fleet)
    for process in (*fleet.apis, *fleet.workers):
        assert not process.ended
        assert "Traceback" not in process.err


@pytest.mark.parametrize("command", ["api", "worker"])
def test_what_several_processes_cannot_share_is_refused_with_the_reason(tmp_path: Path, command: str) -> None:
    with installation(tmp_path) as place:
        outcome = place.call(command)
    assert (outcome.status, outcome.out) == (1, "")
    assert "CAMBIST_DATABASE_URL: must be postgresql" in outcome.err
    assert (
        "CAMBIST_REDIS_URL: is needed: with counters in memory every process would grant the whole limit" in outcome.err
    )
    assert "CAMBIST_VAULT_KEY: and CAMBIST_VAULT_PEPPER are needed" in outcome.err
