"""Merchants who create payments while the database fails, and what they were answered."""

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol
from uuid import uuid4

import aiohttp
import asyncpg

from tests.stories.merchant import Merchant
from tests.stories.processes import eventually


@dataclass
class Book:
    """What merchants were answered."""

    confirmed: dict[str, str] = field(default_factory=dict)
    """Payment ids of answers 201 and 200, by external id."""
    times: list[float] = field(default_factory=list)
    """When they came, by the monotonic clock."""
    longest: float = 0.0
    """Seconds of the slowest answer, of any status."""
    problems: Counter[str] = field(default_factory=Counter)

    def after_the_gap(self, began: float) -> float:
        """Return the first answer after the longest time without one since `began`."""
        times = [began, *(each for each in self.times if each > began)]
        return max(pairwise(times), key=lambda pair: pair[1] - pair[0])[1]


class Asked(Protocol):
    """The primary of the moment."""

    async def ask(self, question: str, *given: Any) -> Any:
        """Return one value."""
        ...


@asynccontextmanager
async def load(book: Book, merchants: Sequence[Merchant], *, again: float = 0.1) -> AsyncIterator[None]:
    """Merchants create payments, one after the other, with one key until there is an answer. `again`: seconds after
    which they repeat it."""

    async def go_on(merchant: Merchant) -> None:
        while True:
            wish, key = secrets.token_hex(8), str(uuid4())
            while True:
                began = time.monotonic()
                try:
                    answer = await merchant.create(key, external_id=wish)
                except (aiohttp.ClientError, OSError, TimeoutError) as lost:
                    book.problems[type(lost).__name__] += 1
                else:
                    book.longest = max(book.longest, time.monotonic() - began)
                    if answer.status in (200, 201):
                        book.confirmed[wish] = answer.json["id"]
                        book.times.append(time.monotonic())
                        break
                    assert answer.status in (503, 429), answer
                    book.problems[str(answer.status)] += 1
                await asyncio.sleep(again)
            await asyncio.sleep(0.5)

    tasks = [asyncio.create_task(go_on(merchant)) for merchant in merchants]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def confirms(book: Book, more: int) -> None:
    """Wait for so many more payments."""
    wanted = len(book.confirmed) + more

    async def enough() -> bool:
        return len(book.confirmed) >= wanted

    await eventually(enough)


async def verdict(database: Asked) -> str | None:
    """Wait until the promoted server is accepted or held. Return the reason of the hold."""
    timeline = await database.ask("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)")

    async def decided() -> tuple[str | None] | None:
        with contextlib.suppress(asyncpg.PostgresError, OSError):
            found = await database.ask("SELECT concat(held_because, '/', place) FROM installations")
            because, _, location = found.partition("/")
            if because or f"timeline {timeline} " in location:
                return (because or None,)
        return None

    return (await eventually(decided))[0]


async def lost(database: Asked, book: Book) -> int:
    """Return how many confirmed payments the present primary lacks."""
    ids = list(book.confirmed.values())
    return len(ids) - int(await database.ask("SELECT count(*) FROM payments WHERE id = ANY($1)", ids))


async def doubled(database: Asked) -> int:
    """Return how many orders have two payments."""
    found: int = await database.ask(
        "SELECT count(*) FROM (SELECT 1 FROM payments GROUP BY external_id HAVING count(*) > 1) AS twice"
    )
    return found
