"""A machine of a highly available installation dies, hangs or is taken out, under load (docs/high-availability.md).

Everything runs from the files of `deploy/ha`, with Debian's packages. The processes of the second machine reach HAProxy
through PgBouncer in transaction mode. `nox -s ha` runs it.
"""

import asyncio
import os
import signal
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tests.drills.acknowledged import Book, confirms, doubled, load, lost, verdict
from tests.drills.machines import Machines, missing, running_machines
from tests.patience import FULL, promised
from tests.poolers import own_pgbouncer
from tests.stories.merchant import Merchant
from tests.stories.processes import WORKS, eventually, installation

MERCHANTS = 16
ROUNDS = int(os.environ.get("CAMBIST_HA_ROUNDS", "1"))
WITHIN = {
    "machine killed": 20.0,
    "machine hangs": 25.0,
    "standby killed": 10.0,
    "standby hangs": 20.0,
    "switchover": 10.0,
    "no majority of etcd": 20.0,
}
"""What happens to a machine, with the seconds until the first 201 after the pause."""
WITHOUT_ETCD = 15.0
"""Seconds without a majority: longer than the leader's lock."""


async def happens(kind: str, machines: Machines) -> float:
    """Let it happen, and wait until one machine works alone or both have their new roles. Return when it began."""
    hit = await (machines.other() if kind.startswith("standby") else machines.primary())
    began = time.monotonic()
    if kind == "switchover":
        await machines.switch_over()
    elif kind == "no majority of etcd":
        silent = [each for each in machines.all if each is not hit]
        for each in silent:
            each.signal_etcd(signal.SIGSTOP)
        await asyncio.sleep(WITHOUT_ETCD)
        for each in silent:
            each.signal_etcd(signal.SIGCONT)
    elif kind.endswith("hangs"):
        hit.send(signal.SIGSTOP)
        await eventually(lambda: machines.is_alone_without(hit), every=0.2)
        hit.send(signal.SIGCONT)
    else:
        hit.kill()
        await eventually(lambda: machines.is_alone_without(hit), every=0.2)
    return began


@pytest.mark.drill
@pytest.mark.skipif(not FULL or missing() is not None, reason=f"nox -s ha; {missing() or 'takes minutes'}")
@pytest.mark.timeout(3600)
async def test_machine_that_fails_loses_doubles_and_holds_nothing(tmp_path: Path) -> None:
    pauses: dict[str, list[float]] = defaultdict(list)
    outcomes: Counter[tuple[str, str]] = Counter()
    book = Book()
    async with AsyncExitStack() as stack:
        machines = await stack.enter_async_context(running_machines())
        secrets = [
            {name: each.secret(name) for name in ("database_url", "redis_url", "vault_key", "vault_pepper")}
            for each in machines.data
        ]
        direct = secrets[1]["database_url"]
        pooler = stack.enter_context(own_pgbouncer(direct, "transaction", "server_login_retry = 1"))
        secrets[1] |= {"database_url": pooler, "database_direct_url": direct}
        places = [
            stack.enter_context(installation(tmp_path / each.name, trusted_proxies="127.0.0.0/8", **given))
            for each, given in zip(machines.data, secrets, strict=True)
        ]
        for place in places:
            place.folder.mkdir()
        await places[0].migrate()
        accounts = await places[0].accounts(MERCHANTS)
        apis = [place.start_api() for place in places]
        workers = [place.start("worker") for place in places]
        bases = [await asyncio.to_thread(api.ready) for api in apis]
        for worker in workers:
            await asyncio.to_thread(worker.said, WORKS)
        client = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)))
        merchants = [
            Merchant(client, bases[number % 2], each.live, {"X-Forwarded-For": f"203.0.113.{number}"})
            for number, each in enumerate(accounts)
        ]
        stack.push_async_exit(partial(say_state, machines, client, bases))
        async with load(book, merchants, again=0.4):
            for kind in (kind for _ in range(ROUNDS) for kind in WITHIN):
                await confirms(book, MERCHANTS)
                await eventually(machines.is_whole)
                await eventually(lambda: are_well(client, bases))
                began = await happens(kind, machines)
                await confirms(book, MERCHANTS)
                pauses[kind].append(book.after_the_gap(began) - began)
                outcomes[kind, await verdict(machines) or "goes on"] += 1
                assert await lost(machines, book) == 0, kind
                for each in machines.all:
                    each.start()
                await eventually(machines.is_whole, every=0.5)
        assert await lost(machines, book) == 0
        assert await doubled(machines) == 0
        await eventually(lambda: are_well(client, bases))
    slowest = round(book.longest, 1)
    print(f"\n{len(book.confirmed)} confirmed; {dict(outcomes)}; {dict(book.problems)}; slowest answer {slowest} s")
    for kind, found in pauses.items():
        print(f"{kind}: first 201 after {[round(each, 1) for each in sorted(found)]}")
    assert {outcome for _, outcome in outcomes} == {"goes on"}
    assert all(max(found) < promised(WITHIN[kind]) for kind, found in pauses.items())


async def say_state(
    machines: Machines, client: aiohttp.ClientSession, bases: list[str], *failed: BaseException | object | None
) -> None:
    """Print what an administrator would look at, if the drill failed."""
    if failed[1] is None:
        return
    print(await machines.members())
    for base in bases:
        async with client.get(f"{base}/health") as answer:
            print(await answer.text())


async def are_well(client: aiohttp.ClientSession, bases: list[str]) -> bool:
    """Whether all API processes say that nothing is missing: no hold, and a Redis that all share."""
    for base in bases:
        async with client.get(f"{base}/health") as answer:
            if answer.status != 200 or "degraded" in msgspec.json.decode(await answer.read()):
                return False
    return True
