"""kill -9 of `cambist serve` at random moments of a run of creations and payments (ARCHITECTURE.md "Units and jobs"):
every answered 201 is there, every paid payment's event arrives, nothing is created twice."""

import asyncio
import os
import random
import secrets
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp
import msgspec
import pytest

from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job
from tests.invariants import noted
from tests.patience import HANGS
from tests.receivers import Receiver, Request
from tests.stories.merchant import Answer, Merchant, merchant
from tests.stories.processes import WEBHOOK_SECRET, Installation, Service, eventually

CLIENTS = 16
PER_ACCOUNT = 10
"""Payments of one account. The limits count by key and by address (docs/limits.md "Requests"), and nothing turns them
off: so there are many merchants, each at an address of its own behind a trusted proxy."""
GIVES_UP = 2.0
"""Seconds after which a client tries again. The service resumes a creation that a kill broke off only after 10 seconds;
until then requests with its key wait."""


@dataclass
class Order:
    """A payment that a merchant wants, and the answers to it."""

    key: str
    shop: Merchant
    ids: list[str] = field(default_factory=list)
    """The payment's id, once for every 201 and 200."""
    paid: bool = False


class Drill:
    """A service that is killed and restarted while clients work."""

    def __init__(self, place: Installation, port: int, chance: random.Random) -> None:
        self.place = place
        self.chance = chance
        self.answered = 0
        """Requests that got their 2xx: creations and payments."""
        self.kills = 0
        self._port = str(port)
        self._slots = asyncio.Semaphore(CLIENTS)
        self._up = asyncio.Event()
        """While it is not set, no client tries: hundreds of refused connections would only slow the start."""
        self._progress = asyncio.Condition()
        self._service: Service | None = None

    async def run(self, wanted: list[Order], moments: list[int], twice: Collection[int]) -> None:
        """Carry out all orders, and kill at these moments; at some of them `twice`, once more on the way up. Raises
        when some order comes to no end."""
        await self._start()
        try:
            async with asyncio.timeout(HANGS), asyncio.TaskGroup() as group:
                group.create_task(self._kill_at(moments, twice))
                for order in wanted:
                    group.create_task(self._carry_out(order))
        except TimeoutError:
            stuck = [order.ids or "not created" for order in wanted if not order.paid]
            raise AssertionError(f"after {self.kills} kills {len(stuck)} orders hang: {stuck}") from None

    async def stop(self) -> None:
        """The ordinary way, with exit status 0."""
        assert self._service is not None
        assert await asyncio.to_thread(self._service.terminate) == 0, self._service.err

    async def _start(self) -> None:
        service = self.place.start_service("--port", self._port)
        self._service = service
        await asyncio.to_thread(service.ready)
        self._up.set()

    async def _kill_at(self, moments: list[int], twice: Collection[int]) -> None:
        """Kill the service shortly after so many answered requests, each time, and start it again."""
        for moment in moments:
            async with self._progress:
                while self.answered < moment:
                    await self._progress.wait()
            await asyncio.sleep(self.chance.uniform(0, 0.03))
            await self._kill()
            if moment in twice:
                # It may still open its data, or resume unfinished work.
                self._service = self.place.start_service("--port", self._port)
                await asyncio.sleep(self.chance.uniform(0.1, 2))
                await self._kill()
            if moment == moments[-1]:
                await end_leases(self.place)
            await self._start()

    async def _kill(self) -> None:
        assert self._service is not None
        assert not self._service.ended, self._service.err
        self._up.clear()
        await asyncio.to_thread(self._service.kill)
        self.kills += 1

    async def _carry_out(self, order: Order) -> None:
        """Create the payment and pay it, repeating each until the answer is a success."""
        created = await self._until_done(lambda: order.shop.create(order.key))
        order.ids.append(created["id"])
        paid = await self._until_done(lambda: order.shop.simulate(created["id"], outcome="paid"))
        assert (paid["id"], paid["status"]) == (created["id"], "paid")
        order.paid = True

    async def _until_done(self, request: Callable[[], Awaitable[Answer]]) -> dict[str, Any]:
        while True:
            await self._up.wait()
            async with self._slots:
                answer = await attempt(request)
            if answer is not None and answer.status in (200, 201):
                async with self._progress:
                    self.answered += 1
                    self._progress.notify_all()
                done: dict[str, Any] = answer.json
                return done
            # Temporary, and nothing else: a 404 would be a lost payment, a 500 a fault, a 502 a key that is dead.
            assert answer is None or answer.status in (429, 503), answer
            await asyncio.sleep(self.chance.uniform(0.05, 0.2))


async def attempt(request: Callable[[], Awaitable[Answer]]) -> Answer | None:
    """Return None if the outcome of the request is unknown."""
    try:
        async with asyncio.timeout(GIVES_UP):
            return await request()
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None


async def end_leases(place: Installation) -> None:
    """Free the jobs of dead workers instead of waiting a minute for their leases. The service is down."""
    async with place.app() as ports:
        now = await ports.storage.now()
        async for batch in ports.storage.scan(Job):
            async with ports.storage.unit() as unit:
                for job in batch:
                    if job.leased_until is not None:
                        unit[Job].save(msgspec.structs.replace(job, leased_until=now))
                await unit.commit()


def quiet_port(chance: random.Random) -> int:
    """Return a free port below the system's own range. From that range a client that calls a closed port may get that
    very port, connect to itself, and keep the service from coming back."""
    while True:
        port = chance.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


@asynccontextmanager
async def orders(
    place: Installation, port: int, receiver: Receiver, count: int, chance: random.Random
) -> AsyncIterator[list[Order]]:
    """Yield the payments that the merchants want."""
    base = f"http://127.0.0.1:{port}"
    accounts = await place.accounts(-(-count // PER_ACCOUNT), receiver.url)
    async with AsyncExitStack() as stack:
        shops = [
            await stack.enter_async_context(merchant(base, each.test, {"X-Forwarded-For": f"203.0.113.{number}"}))
            for number, each in enumerate(accounts)
        ]
        yield [
            Order(str(UUID(int=chance.getrandbits(128), version=4)), shops[number % len(shops)])
            for number in range(count)
        ]


@pytest.mark.drill
@pytest.mark.parametrize(
    ("place", "bank", "count", "kills"),
    [("sqlite", "simulator-asked", 300, 8), ("postgres", "simulator", 100, 3)],
    indirect=["place"],
)
async def test_kill_9_loses_nothing_and_doubles_nothing(place: Installation, bank: str, count: int, kills: int) -> None:
    """At a bank that needs a call for each invoice, and at one that does not."""
    seed = int(os.environ.get("DRILL_SEED") or secrets.randbits(32))
    print(f"about the same moments again: DRILL_SEED={seed}")
    chance = random.Random(seed)
    place.environ["CAMBIST_TRUSTED_PROXIES"] = "127.0.0.0/8"
    place.environ["CAMBIST_TEST_BANKS"] = bank
    await place.migrate()
    port = quiet_port(chance)
    drill = Drill(place, port, chance)
    async with Receiver() as receiver, orders(place, port, receiver, count, chance) as wanted:
        # Not in the last fifth: there, all that is left may wait for the recovery of what earlier kills broke off.
        on_the_way_up = kills // 3
        moments = sorted(chance.sample(range(5, int(2 * count * 0.8)), kills - on_the_way_up))
        await drill.run(wanted, moments, twice=chance.sample(moments, on_the_way_up))
        assert drill.kills == kills
        await check_answers(wanted)
        with suppress(TimeoutError):  # the webhooks show what is missing
            await eventually(lambda: announced(receiver, wanted))
        await drill.stop()
        check_letters(receiver.requests, wanted)
    async with place.app() as ports:
        await check_books(ports, wanted)


async def announced(receiver: Receiver, wanted: list[Order]) -> bool:
    arrived = {msgspec.json.decode(request.body)["payment_id"] for request in receiver.requests}
    return arrived >= {order.ids[0] for order in wanted}


async def check_answers(wanted: list[Order]) -> None:
    """Every answered payment is there, paid, under its key; and there are no others."""
    of_shop: dict[Merchant, list[Order]] = defaultdict(list)
    for order in wanted:
        of_shop[order.shop].append(order)
    for shop, theirs in of_shop.items():
        for order in theirs:
            again = await shop.create(order.key)
            assert again.status == 200
            order.ids.append(again.json["id"])
            assert len(set(order.ids)) == 1
        page = (await shop.ask("GET", "/payments?per_page=100")).json
        assert page["pagination"]["total"] == len(theirs)
        assert {each["id"] for each in page["data"]} == {order.ids[0] for order in theirs}
        assert {each["status"] for each in page["data"]} == {"paid"}


def check_letters(webhooks: list[Request], wanted: list[Order]) -> None:
    """Every webhook is genuine, and each payment has one event, however often it was sent."""
    events = defaultdict(set)
    for webhook in webhooks:
        sent = int(webhook.headers["x-webhook-timestamp"])
        event_id = verify_signature(webhook.headers, webhook.body, [WEBHOOK_SECRET], sent)
        event = msgspec.json.decode(webhook.body)
        events[event["payment_id"]].add((event["previous_status"], event["status"], event_id))
    assert set(events) == {order.ids[0] for order in wanted}
    for told in events.values():
        [(previous, status, _)] = told
        assert (previous, status) == ("pending", "paid")


async def check_books(ports: Ports, wanted: list[Order]) -> None:
    """Check that nothing was created twice here or at the bank, and that every delivery is recorded as done."""
    ids = sorted(order.ids[0] for order in wanted)
    assert sorted([each.id async for batch in ports.storage.scan(Payment) for each in batch]) == ids
    assert sorted([each.object_id async for batch in ports.storage.scan(Event) for each in batch]) == ids
    deliveries = [each.status async for batch in ports.storage.scan(Delivery) for each in batch]
    assert deliveries == [DeliveryStatus.DELIVERED] * len(wanted)
    invoices = [msgspec.json.decode(each.body) for each in await noted(ports)]
    assert sorted(invoice["operation"] for invoice in invoices) == ids
    assert {len(invoice["transfers"]) for invoice in invoices} == {1}
    assert [each async for batch in ports.storage.scan(Suspense) for each in batch] == []
