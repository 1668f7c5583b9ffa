"""Merchants who load a service for as long as a drill wants."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import aiohttp

from cambist.core.usecases.accounts.accounts import NewAccount
from tests.stories.merchant import Merchant, merchant


@dataclass
class Tale:
    """Requests and answers."""

    created: dict[str, str] = field(default_factory=dict)
    """Ids of payments whose creation was answered 201 or 200, by Idempotency-Key."""
    answered_at: dict[str, float] = field(default_factory=dict)
    """When that was, by the machine's monotonic clock."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Answers by status; 0 where there was none."""
    longest: float = 0.0
    """Seconds that the slowest answer took."""


class Load:
    """Merchants of their own keys, each at an address of its own, creating payments one after another."""

    def __init__(self, shops: list[Merchant], pause: float, paid: dict[str, float] | None = None) -> None:
        self.tale = Tale()
        self.shops = shops
        self._pause = pause
        self._paid = paid
        self._ends = False

    async def _create(self, shop: Merchant) -> None:
        while not self._ends:
            key = str(uuid4())
            began = time.monotonic()
            try:
                answer = await shop.create(key)
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.tale.statuses[0] += 1
            else:
                now = time.monotonic()
                self.tale.statuses[answer.status] += 1
                self.tale.longest = max(self.tale.longest, now - began)
                if answer.status in (200, 201):
                    self.tale.created[key] = answer.json["id"]
                    self.tale.answered_at[key] = now
                    await self._pay(shop, self.tale.created[key])
            await asyncio.sleep(self._pause)

    async def _pay(self, shop: Merchant, payment: str) -> None:
        if self._paid is not None:
            answer = await shop.simulate(payment, outcome="paid")
            assert answer.status == 200, answer.text
            self._paid[payment] = time.monotonic()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Tale]:
        """They create inside; at the end each has heard its last answer."""
        self._ends = False
        async with asyncio.TaskGroup() as group:
            for shop in self.shops:
                group.create_task(self._create(shop))
            try:
                yield self.tale
            finally:
                self._ends = True


@asynccontextmanager
async def load(
    base: str, accounts: list[NewAccount], *, pause: float = 0.6, pays: dict[str, float] | None = None
) -> AsyncIterator[Load]:
    """Merchants in test mode who pause so long between two creations: 100 a minute each, below their limits.

    The service must trust the proxy 127.0.0.1. With `pays` each payment is paid, and when that was is put there.
    """
    async with AsyncExitStack() as stack:
        shops = [
            await stack.enter_async_context(merchant(base, each.test, {"X-Forwarded-For": f"203.0.113.{number}"}))
            for number, each in enumerate(accounts)
        ]
        yield Load(shops, pause, pays)
