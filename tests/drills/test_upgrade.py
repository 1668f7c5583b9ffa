"""A rolling upgrade (docs/operations.md "Upgrades"): processes of the last release run on while the next version brings
the schema up under them, and beside the new processes, on one Postgres and one Redis. Each pays, refunds and delivers
what the other creates. Before the first release this version stands for the last one.
"""

import asyncio
import secrets
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event
from cambist.core.usecases.accounts.accounts import KeyPair
from tests.invariants import check_books, everything
from tests.patience import drill_of
from tests.receivers import Receiver
from tests.redis_servers import own_redis
from tests.releases import last_release, next_version
from tests.servers import own_postgres
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import (
    PROGRAM,
    WEBHOOK_SECRET,
    WORKS,
    Installation,
    Process,
    Service,
    eventually,
    installation,
)

PAYMENTS = 200
"""In each of the two parts: at the old one, on the schema of before and of after, and at both side by side."""
MERCHANTS = 16
AT_ONCE = 8


class Trade:
    """Payments made at one process and paid at another, with their answers."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.answers: Counter[int] = Counter()

    async def go(self, edges: list[Merchant], count: int) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            first, then = edges[number % len(edges)], edges[(number // 2 + 1) % len(edges)]
            async with places:
                created = await first.create()
                self.answers[created.status] += 1
                assert created.status == 201, created.text
                payment = created.json["id"]
                paid = await then.simulate(payment, outcome="paid")
                self.answers[paid.status] += 1
                assert (paid.status, paid.json["status"]) == (200, "paid"), paid.text
                read = await first.ask("GET", f"/payments/{payment}")
                self.answers[read.status] += 1
                assert read.json["status"] == "paid", read.text
                self.paid.append(payment)

        await asyncio.gather(*(one(number) for number in range(count)))


P = TypeVar("P", bound=Process)


def start(place: Installation, kind: type[P], program: Path, *arguments: str) -> P:
    """Start a process of this program."""
    process = kind(arguments, place.folder, place.environ, len(place.started), program)
    place.started.append(process)
    return process


def merchant_of(place: Installation, program: Path, number: int, url: str) -> KeyPair:
    """The test keys of a new merchant, made by the operator of the last release."""

    def call(*arguments: str) -> str:
        process = start(place, Process, program, *arguments)
        assert process.wait() == 0, process.err
        return process.out

    made = msgspec.json.decode(call("account", "create", f"Merchant {number}", "--json"))
    call("account", "set", made["account_id"], f"webhook_url={url}", f"webhook_secret={WEBHOOK_SECRET}")
    return KeyPair(api_key=made["test"]["api_key"], api_secret=made["test"]["api_secret"])


async def told(receiver: Receiver, wanted: list[str]) -> None:
    """Check that every payment was reported by one event, however often it was sent."""

    async def all_told() -> bool:
        return {msgspec.json.decode(each.body)["payment_id"] for each in receiver.requests} >= set(wanted)

    await eventually(all_told)
    events: dict[str, set[str]] = defaultdict(set)
    for webhook in receiver.requests:
        events[msgspec.json.decode(webhook.body)["payment_id"]].add(webhook.headers["x-webhook-id"])
    assert {len(events[each]) for each in wanted} == {1}


@pytest.mark.drill
@drill_of("tests/contracts/test_upgrade.py")
@pytest.mark.timeout(600)
async def test_last_release_runs_beside_the_next_version_on_its_schema(tmp_path: Path) -> None:
    program = await asyncio.to_thread(last_release, tmp_path / "release") or PROGRAM
    following, revision = await asyncio.to_thread(next_version, tmp_path / "next")
    async with AsyncExitStack() as stack:
        postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
        receiver = await stack.enter_async_context(Receiver())
        place = stack.enter_context(
            installation(
                tmp_path,
                database_url=postgres.url,
                redis_url=redis.url,
                vault_key=secrets.token_hex(32),
                vault_pepper=secrets.token_hex(32),
                trusted_proxies="127.0.0.0/8",
            )
        )
        assert start(place, Process, program, "migrate").wait() == 0
        shops = [
            await asyncio.to_thread(merchant_of, place, program, number, receiver.url) for number in range(MERCHANTS)
        ]
        old = start(place, Service, program, "api")
        old_worker = start(place, Process, program, "worker")
        old_base = await asyncio.to_thread(old.ready)
        await asyncio.to_thread(old_worker.said, WORKS)

        trade = Trade()
        addresses = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(len(shops))]
        edges = [
            await stack.enter_async_context(merchant(old_base, pair, more))
            for pair, more in zip(shops, addresses, strict=True)
        ]
        for edge in edges:
            await trade.go([edge], PAYMENTS // len(edges) // 2)
        migrating = start(place, Process, following, "migrate", "--json")
        assert await asyncio.to_thread(migrating.wait) == 0, migrating.err
        upgraded = msgspec.json.decode(migrating.out)
        assert upgraded["revision"] == revision
        assert len(upgraded["older_processes"]) == 2, "both are named as to be replaced"
        for edge in edges:
            await trade.go([edge], PAYMENTS // len(edges) // 2)

        new = start(place, Service, following, "api")
        new_worker = start(place, Process, following, "worker")
        new_base = await asyncio.to_thread(new.ready)
        await asyncio.to_thread(new_worker.said, WORKS)
        for edge, pair, more in zip(edges, shops, addresses, strict=True):
            both = [edge, await stack.enter_async_context(merchant(new_base, pair, more))]
            await trade.go(both, PAYMENTS // len(edges))
        await told(receiver, trade.paid)

        late = start(place, Service, program, "api")
        await asyncio.to_thread(late.ready)
        assert f"the schema is at {revision}" in late.err, "a program that starts on a newer schema warns of it"
        for process in (old, old_worker, new, new_worker, late):
            assert await asyncio.to_thread(process.terminate) == 0, process.err
            assert "Traceback" not in process.err, process.err
        verified = start(place, Process, following, "ledger", "verify")
        assert await asyncio.to_thread(verified.wait) == 0, verified.err
        async with place.app() as ports:
            payments = await everything(ports, Payment)
            assert sorted(payment.id for payment in payments) == sorted(trade.paid)
            events = await everything(ports, Event)
            assert sorted(event.object_id for event in events) == sorted(trade.paid)
            delivered = Counter(each.status for each in await everything(ports, Delivery))
            assert delivered == {DeliveryStatus.DELIVERED: len(events)}
            await check_books(ports)
        print(f"{len(trade.paid)} payments, {dict(trade.answers)}, {len(receiver.requests)} letters")
