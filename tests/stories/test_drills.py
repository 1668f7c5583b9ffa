"""Failure drills (docs/operations.md "Failure drills"): 4 `cambist api` and 2 `cambist worker` under load, while in
turn a worker and an API process are killed, Redis and Postgres crash, and Redis stays away. No accepted payment is
lost, no key has two resources, no event is lost, limits are exact while Redis is up, and health comes back by itself.

`nox -s drills` runs it at full length: Redis away for 30 seconds, Postgres for 10, everything several times.
"""

import asyncio
import os
import random
import secrets
import signal
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.idempotency import IdempotencyKey
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.core.domain.webhooks.signing import verify_signature
from cambist.ports.bundle import Ports
from tests.invariants import check_books, everything
from tests.patience import FULL
from tests.stories.fleet import Fleet, Load, Order, running_fleet
from tests.stories.merchant import Merchant
from tests.stories.processes import WEBHOOK_SECRET, eventually
from tests.stories.test_serve import held_until

ROUNDS = 5 if FULL else 1
APIS = 4 if FULL else 2
REDIS_AWAY = 30.0 if FULL else 4.0
POSTGRES_AWAY = 10.0 if FULL else 0.0
PER_SECOND = 20 if FULL else 6
LIMIT = 120
"""Money requests of one key, and of one address, in a minute (docs/limits.md "Requests")."""


@pytest.mark.drill
@pytest.mark.timeout(900)
async def test_killed_processes_lose_and_double_nothing_and_health_returns(tmp_path: Path) -> None:
    seed = int(os.environ.get("DRILL_SEED") or secrets.randbits(32))
    print(f"about the same chances again: DRILL_SEED={seed}")
    async with running_fleet(tmp_path, apis=APIS, workers=2, spare=8 * ROUNDS + 2, loaded_anew=FULL) as (
        fleet,
        shops,
    ):
        load = Load(fleet, shops, random.Random(seed), per_second=PER_SECOND)
        await eventually(fleet.is_well)  # workers make the recurring jobs
        async with load.at_work():
            await load.grows_by(10)
            for _ in range(ROUNDS):
                for drill in (worker_killed, api_killed, redis_gone, redis_restarted, postgres_restarted):
                    await drill(fleet, load)
                    await load.grows_by(10)
                    await eventually(fleet.is_well)
                    assert await fleet.burst(LIMIT + 10) == {400: LIMIT, 429: 10}, drill.__name__
                    # Only Postgres is indispensable for workers.
                    assert fleet.postgres.starts > 1 or not any("Traceback" in each.err for each in fleet.place.started)
        with suppress(TimeoutError):  # the webhooks show what is missing
            await eventually(lambda: all_told(fleet, load.orders))
        await check_over_http(fleet, load.orders)
        await all_end_well(fleet)
        check_letters(fleet, load.orders)
        await fleet.client.close()
        async with fleet.place.app() as ports:
            await check_database(ports, load.orders)
        print(summary(load.orders))


async def worker_killed(fleet: Fleet, load: Load) -> None:
    """kill -9 in mid-delivery: the receiver keeps back the answers of both workers."""
    release = asyncio.Event()
    fleet.receiver.answer_with(held_until(release))
    await fleet.receiver.arrived(len(fleet.receiver.requests) + 8)
    fleet.workers.pop(0).kill()
    fleet.receiver.answer_with(200)
    release.set()


async def api_killed(fleet: Fleet, load: Load) -> None:
    """kill -9 in mid-request. A balancer knows of it only once another process has taken its place."""
    fleet.apis.pop(0).kill()


async def redis_restarted(fleet: Fleet, load: Load) -> None:
    """kill -9: it restarts empty, without the limits' script and without the queue's messages."""
    fleet.redis.stop()
    await asyncio.to_thread(fleet.redis.start)


async def postgres_restarted(fleet: Fleet, load: Load) -> None:
    """A crash, with commits under way; a kill -9 of the server alone; away for a while, which health must say."""
    for how in (signal.SIGQUIT, signal.SIGKILL):
        await asyncio.to_thread(fleet.postgres.stop, how)
        await asyncio.to_thread(fleet.postgres.start)
        await load.grows_by(5)
    await asyncio.to_thread(fleet.postgres.stop, signal.SIGINT)
    await eventually(lambda: fleet.is_degraded("storage"))
    assert not await fleet.is_ready()
    await asyncio.sleep(POSTGRES_AWAY)
    await asyncio.to_thread(fleet.postgres.start)


async def redis_gone(fleet: Fleet, load: Load) -> None:
    """Freeze Redis, then stop it. Payments continue, and the killed processes' replacements start."""
    fleet.redis.freeze()
    await load.grows_by(5)
    fleet.redis.stop()
    loop = asyncio.get_running_loop()
    back_at = loop.time() + REDIS_AWAY
    await fleet.grow(1, 1)
    del fleet.bases[0]
    before = len(fleet.receiver.requests)
    await load.grows_by(10)
    await fleet.receiver.arrived(before + 10)
    await eventually(lambda: fleet.is_degraded("meter", "queue"))
    assert await fleet.is_ready(), "a balancer keeps the processes"
    await asyncio.sleep(max(back_at - loop.time(), 0))
    await asyncio.to_thread(fleet.redis.start)


async def all_told(fleet: Fleet, orders: list[Order]) -> bool:
    told = {msgspec.json.decode(webhook.body)["payment_id"] for webhook in fleet.receiver.requests}
    return told >= {each for order in orders for each in order.ids}


async def check_over_http(fleet: Fleet, orders: list[Order]) -> None:
    """Every answered payment is there, paid, alone under its key; and there are no others."""
    of_shop: dict[str, list[Order]] = defaultdict(list)
    for number, order in enumerate(orders):
        edge = Merchant(
            fleet.client, fleet.bases[number % len(fleet.bases)], order.shop.test, {"X-Forwarded-For": order.address}
        )
        of_shop[order.shop.account_id].append(order)
        assert len(order.ids) == 1
        if len(of_shop[order.shop.account_id]) == 1:
            again = await edge.create(order.key)
            assert (again.status, {again.json["id"]}) == (200, order.ids)
    for theirs in of_shop.values():
        edge = Merchant(fleet.client, fleet.bases[0], theirs[0].shop.test, {})
        listed: list[dict[str, Any]] = []
        while len(listed) < len(theirs):
            page = (await edge.ask("GET", f"/payments?per_page=100&page={len(listed) // 100 + 1}")).json
            assert page["pagination"]["total"] == len(theirs)
            listed += page["data"]
        assert {each["id"] for each in listed} == set().union(*(order.ids for order in theirs))
        assert {each["status"] for each in listed} == {"paid"}


def check_letters(fleet: Fleet, orders: list[Order]) -> None:
    """Every webhook is genuine, and each payment has one event, however often it was sent."""
    events = defaultdict(set)
    for webhook in fleet.receiver.requests:
        sent = int(webhook.headers["x-webhook-timestamp"])
        event_id = verify_signature(webhook.headers, webhook.body, [WEBHOOK_SECRET], sent)
        event = msgspec.json.decode(webhook.body)
        events[event["payment_id"]].add((event["previous_status"], event["status"], event_id))
    assert set(events) == set().union(*(order.ids for order in orders))
    for told in events.values():
        [(previous, status, _)] = told
        assert (previous, status) == ("pending", "paid")


async def check_database(ports: Ports, orders: list[Order]) -> None:
    """One payment for each key, one event for each payment, all delivered; the ledger proves itself."""
    payments = await everything(ports, Payment)
    assert {payment.id for payment in payments} == set().union(*(order.ids for order in orders))
    assert len(payments) == len(orders)
    assert {payment.status for payment in payments} == {PaymentStatus.PAID}
    keys = await everything(ports, IdempotencyKey)
    assert sorted(key.resource_id for key in keys) == sorted(payment.id for payment in payments)
    assert {key.id for key in keys} == {payment.key_id for payment in payments}
    events = await everything(ports, Event)
    assert sorted(event.object_id for event in events) == sorted(payment.id for payment in payments)
    assert Counter(each.status for each in await everything(ports, Delivery)) == {DeliveryStatus.DELIVERED: len(events)}
    await check_books(ports)


async def all_end_well(fleet: Fleet) -> None:
    """Check that SIGTERM ends every process in order, and that none has logged a fault of ours."""
    for process in (*fleet.apis, *fleet.workers):
        process.signal(signal.SIGTERM)
    for process in (*fleet.apis, *fleet.workers):
        assert await asyncio.to_thread(process.wait) == 0, process.err
    for process in fleet.place.started:
        assert "unhandled" not in process.err, process.err


def summary(orders: list[Order]) -> str:
    """Summarise the merchants' answers."""
    problem: Counter[str] = sum((order.problem for order in orders), Counter())
    slowest = max(order.waited for order in orders)
    return f"{len(orders)} orders, {dict(problem)}; the slowest took {slowest:.1f} s"
