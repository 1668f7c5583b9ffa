"""Several `cambist api` and `cambist worker` on one Postgres and one Redis of their own, and merchants who use them.

Merchants behave as good clients do: one Idempotency-Key for one wish, sent again to another process until there is a
definite answer. They are many, each at an address of its own behind a trusted proxy, because the limits count by key
and by address.
"""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import msgspec

from cambist.core.usecases.accounts.accounts import NewAccount
from tests.patience import HANGS
from tests.receivers import Receiver
from tests.redis_servers import RedisServer, own_redis
from tests.servers import PostgresServer, own_postgres
from tests.stories.merchant import Answer, Merchant
from tests.stories.processes import WORKS, Installation, Process, Service, installation

GIVES_UP = 5.0
"""Seconds after which a merchant sends the same request again."""

MERCHANTS = 128


@dataclass
class Order:
    """A payment that a merchant wants, and the answers to it."""

    key: str
    shop: NewAccount
    address: str
    ids: set[str] = field(default_factory=set)
    """Ids from answers 201 and 200; there is one if all is well."""
    problem: Counter[str] = field(default_factory=Counter)
    """Other answers."""
    waited: float = 0.0
    """Seconds from the first request to the last answer."""


class Fleet:
    """Processes of one installation that run, and can be killed and replaced."""

    def __init__(self, place: Installation, postgres: PostgresServer, redis: RedisServer, receiver: Receiver) -> None:
        self.place = place
        self.postgres = postgres
        self.redis = redis
        self.receiver = receiver
        self.apis: list[Service] = []
        self.workers: list[Process] = []
        self.bases: list[str] = []
        """Addresses of the API processes in order, as a balancer would know them. A killed process stays until another
        takes its place."""
        self.spare: list[NewAccount] = []
        """Merchants who do nothing yet."""
        self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def grow(self, apis: int, workers: int) -> None:
        """Start processes, side by side, and wait until they work."""
        began_apis = [self.place.start_api() for _ in range(apis)]
        began_workers = [self.place.start("worker") for _ in range(workers)]
        self.bases += [await asyncio.to_thread(api.ready) for api in began_apis]
        for worker in began_workers:
            await asyncio.to_thread(worker.said, WORKS)
        self.apis += began_apis
        self.workers += began_workers

    async def health(self) -> list[tuple[int, dict[str, Any]]]:
        """Return each API process's health."""
        return [await self._read(f"{base}/health") for base in self._living()]

    async def is_well(self) -> bool:
        return all(
            (status, said["status"], "degraded" in said) == (200, "ok", False) for status, said in await self.health()
        )

    async def is_degraded(self, *names: str) -> bool:
        """Whether every process says that just these do not work."""
        core = "degraded" if "storage" in names else "ok"
        wanted = {(503, "degraded", core, names)}
        said = await self.health()
        return {
            (status, each["status"], each["core"], tuple(each.get("degraded", ()))) for status, each in said
        } == wanted

    async def is_ready(self) -> bool:
        """Whether a balancer keeps all processes."""
        return all([(await self._read(f"{base}/readyz"))[0] == 200 for base in self._living()])

    async def burst(self, count: int) -> Counter[int]:
        """The statuses of so many money requests of a merchant who did nothing yet, at all processes at once. They
        lack a key, so that nothing comes of them; counted they are."""
        while True:
            pair, minute = self.spare.pop().live, time.time() // 60
            headers = {"X-Forwarded-For": f"198.51.100.{len(self.spare)}"}
            edges = [Merchant(self.client, base, pair, headers) for base in self._living()]
            asked = (edges[number % len(edges)].ask("POST", "/payments", body={}) for number in range(count))
            statuses = Counter(answer.status for answer in await asyncio.gather(*asked))
            if time.time() // 60 == minute:  # otherwise the requests fell into two windows; the next attempt does not
                return statuses

    def _living(self) -> list[str]:
        return self.bases[-len(self.apis) :]

    async def _read(self, url: str) -> tuple[int, dict[str, Any]]:
        async with self.client.get(url) as answer:
            return answer.status, msgspec.json.decode(await answer.read())


class Load:
    """Merchants who create and pay, several at a time, until stopped."""

    def __init__(
        self,
        fleet: Fleet,
        shops: list[NewAccount],
        chance: random.Random,
        *,
        per_second: float,
        again_after: tuple[float, float] = (0.05, 0.2),
    ) -> None:
        """`again_after`: the least and the most seconds after which what got no answer, or a 503, is sent again."""
        self.orders: list[Order] = []
        self.paid = 0
        self._fleet = fleet
        self._shops = shops
        self._chance = chance
        self._pause = 1 / per_second
        self._again_after = again_after
        self._stopping = False
        self._progress = asyncio.Condition()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Place orders during the block; at its end, wait until all are carried out."""
        async with asyncio.TaskGroup() as group:
            coming = group.create_task(self._come(group))
            try:
                yield
            except BaseException:
                coming.cancel()
                raise
            self._stopping = True

    async def grows_by(self, count: int, within: float = HANGS) -> None:
        """Wait until so many more orders are paid. Raises TimeoutError."""
        wanted = self.paid + count
        async with asyncio.timeout(within), self._progress:
            await self._progress.wait_for(lambda: self.paid >= wanted)

    async def _come(self, group: asyncio.TaskGroup) -> None:
        while not self._stopping:
            number = len(self.orders) % len(self._shops)
            key = str(UUID(int=self._chance.getrandbits(128), version=4))
            order = Order(key, self._shops[number], f"203.0.113.{number}")
            self.orders.append(order)
            group.create_task(self._carry_out(order))
            await asyncio.sleep(self._pause * self._chance.uniform(0.5, 1.5))

    async def _carry_out(self, order: Order) -> None:
        """Create the payment and pay it, repeating each until the answer is a success."""
        began = time.monotonic()
        created = await self._until_done(order, lambda edge: edge.create(order.key))
        order.ids.add(created["id"])
        paid = await self._until_done(order, lambda edge: edge.simulate(created["id"], outcome="paid"))
        assert (paid["id"], paid["status"]) == (created["id"], "paid")
        order.waited = time.monotonic() - began
        async with self._progress:
            self.paid += 1
            self._progress.notify_all()

    async def _until_done(self, order: Order, request: Callable[[Merchant], Awaitable[Answer]]) -> dict[str, Any]:
        while True:
            base = self._chance.choice(self._fleet.bases)
            edge = Merchant(self._fleet.client, base, order.shop.test, {"X-Forwarded-For": order.address})
            try:
                async with asyncio.timeout(GIVES_UP):
                    answer = await request(edge)
            except (aiohttp.ClientError, OSError, TimeoutError) as lost:
                order.problem[type(lost).__name__] += 1
            else:
                if answer.status in (200, 201):
                    done: dict[str, Any] = answer.json
                    return done
                # Temporary, and nothing else: a 404 would be a lost payment, a 500 a fault, a 502 a key that is dead.
                assert answer.status == 503, (answer, order)
                order.problem[str(answer.status)] += 1
            await asyncio.sleep(self._chance.uniform(*self._again_after))


@asynccontextmanager
async def running_fleet(
    folder: Path, *, apis: int, workers: int, spare: int, loaded_anew: bool = True
) -> AsyncIterator[tuple[Fleet, list[NewAccount]]]:
    """A fleet with merchants, and as many `spare` ones. Its processes are `loaded_anew`, or forked at a quarter of the
    cost."""
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(own_postgres())
        redis = stack.enter_context(own_redis())
        receiver = await stack.enter_async_context(Receiver())
        place = stack.enter_context(
            installation(
                folder,
                loaded_anew,
                database_url=postgres.url,
                redis_url=redis.url,
                vault_key=secrets.token_hex(32),
                vault_pepper=secrets.token_hex(32),
                trusted_proxies="127.0.0.0/8",
            )
        )
        await place.migrate()
        accounts = await place.accounts(MERCHANTS + spare, receiver.url)
        fleet = Fleet(place, postgres, redis, receiver)
        stack.push_async_callback(fleet.client.close)
        fleet.spare = accounts[MERCHANTS:]
        await fleet.grow(apis, workers)
        yield fleet, accounts[:MERCHANTS]
