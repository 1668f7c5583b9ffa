"""The primary of Postgres dies under load, and its standby is promoted (docs/operations.md "Failover").

With a synchronous standby nothing is lost, and nothing is held. With an asynchronous one, a failover that lost a
confirmed payment is held; a planned switchover is not. `nox -s failover` repeats it.
"""

import asyncio
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from cambist.core.domain.installation import Because
from cambist.core.usecases.installation.resume import resume
from cambist.frontends.app.maintenance import open_beside
from cambist.frontends.settings.settings import Settings
from tests.drills.acknowledged import Book, confirms, doubled, load, lost, verdict
from tests.patience import drill_of, promised
from tests.redis_servers import own_redis
from tests.servers import PostgresServer, _execute, own_postgres
from tests.stories.merchant import Merchant
from tests.stories.processes import WORKS, Installation, eventually, installation

MERCHANTS = 24
TIMES = int(os.environ.get("CAMBIST_FAILOVERS", "1"))
ROUNDS = {"synchronous": TIMES, "lost tail": (TIMES * 2 + 4) // 5, "switchover": TIMES // 5}
ANSWERS_WITHIN = 5.0
"""Seconds from the promotion to the first 201."""


class Pair:
    """Two servers of Postgres that change places."""

    def __init__(self, primary: PostgresServer, other: PostgresServer) -> None:
        self.primary = primary
        self.other = other
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (primary, other))
        self.url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=primary"

    async def rebuild(self, *, synchronous: bool) -> None:
        """Make the other server a standby."""
        await asyncio.to_thread(self.other.follow, self.primary)
        names = "*" if synchronous else ""
        await _execute(self.primary.url, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        await _execute(self.primary.url, "SELECT pg_reload_conf()")
        await eventually(self._streams)

    async def _streams(self) -> bool:
        found = await self.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
        return bool(found)

    async def promote(self) -> float:
        """Promote the standby. Return when it takes writes."""
        await _execute(self.other.url, "SELECT pg_promote()")
        self.primary, self.other = self.other, self.primary
        return time.monotonic()

    async def ask(self, question: str, *given: Any) -> Any:
        connection = await asyncpg.connect(self.primary.url, timeout=10)
        try:
            return await connection.fetchval(question, *given)
        finally:
            await connection.close()


@dataclass
class Field:
    """A running installation on a pair."""

    pair: Pair
    place: Installation
    merchants: list[Merchant]
    book: Book
    settings: Settings


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Field]:
    async with AsyncExitStack() as stack:
        pair = Pair(stack.enter_context(own_postgres()), stack.enter_context(own_postgres()))
        redis = stack.enter_context(own_redis())
        given = {"vault_key": secrets.token_hex(32), "vault_pepper": secrets.token_hex(32)}
        await asyncio.to_thread(pair.other.stop, signal.SIGINT)
        place = stack.enter_context(
            installation(folder, database_url=pair.url, redis_url=redis.url, trusted_proxies="127.0.0.0/8", **given)
        )
        await place.migrate()
        accounts = await place.accounts(MERCHANTS)
        apis = [place.start_api() for _ in range(2)]
        worker = place.start("worker")
        bases = [await asyncio.to_thread(api.ready) for api in apis]
        await asyncio.to_thread(worker.said, WORKS)
        client = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)))
        merchants = [
            Merchant(client, bases[number % 2], each.live, {"X-Forwarded-For": f"203.0.113.{number}"})
            for number, each in enumerate(accounts)
        ]
        yield Field(pair, place, merchants, Book(), place.settings)


async def fail_over(field: Field, kind: str) -> tuple[str | None, int, float]:
    """End the primary under load, and promote its standby. Return the reason of a hold, how many confirmed payments
    are lost, and the seconds to the first answer."""
    pair = field.pair
    await pair.rebuild(synchronous=kind == "synchronous")
    await confirms(field.book, MERCHANTS)
    if kind == "lost tail":
        await _execute(pair.other.url, "ALTER SYSTEM SET primary_conninfo = ''")
        await _execute(pair.other.url, "SELECT pg_reload_conf()")
        await confirms(field.book, MERCHANTS // 2)
    if kind == "switchover":
        await asyncio.to_thread(pair.primary.stop, signal.SIGINT)
    else:
        await asyncio.to_thread(pair.primary.kill)
    promoted = await pair.promote()

    async def answered() -> bool:
        return field.book.times[-1] > promoted

    await eventually(answered)
    first = next(each for each in field.book.times if each > promoted) - promoted
    return await verdict(pair), await lost(pair, field.book), first


@pytest.mark.drill
@drill_of("tests/stories/test_restored_postgres.py")
@pytest.mark.timeout(3600)
async def test_failover_is_held_only_where_it_lost_something(tmp_path: Path) -> None:
    waited: list[float] = []
    found: Counter[tuple[str, str, bool]] = Counter()
    async with running(tmp_path) as field, load(field.book, field.merchants):
        for kind, times in ROUNDS.items():
            for _ in range(times):
                because, missing, first = await fail_over(field, kind)
                waited.append(first)
                found[kind, because or "goes on", missing > 0] += 1
                expected = (Because.INCOMPLETE, True) if kind == "lost tail" else (None, False)
                assert (because, missing > 0) == expected, (kind, because, missing)
                if because is not None:
                    field.book.confirmed.clear()
                    async with field.place.app() as ports:
                        await resume(ports, open_beside(field.settings))
        assert await doubled(field.pair) == 0
        assert await lost(field.pair, field.book) == 0
    print(f"{dict(found)}; problems {dict(field.book.problems)}; first 201 after {sorted(waited)}")
    assert max(waited) < promised(ANSWERS_WITHIN)
