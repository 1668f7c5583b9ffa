"""Event delivery by one worker on SQLite. The floor is the bare HTTP client, which posts the same bodies to the same
receiver with the same concurrency.

The worker claims, reads, signs, posts, and records every attempt durably. The receiver is a separate process.
CAMBIST_BENCH_EVENTS sets the number of events (default 10000). They belong to four accounts, and the worker sends eight
webhooks at a time for each. Run with `pytest benchmarks/test_deliveries.py --benchmark-only`.
"""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import msgspec
import pytest
import uvloop
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.turns import in_turns
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.webhooks.delivery import sent_anew
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, Event, EventType
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.common.encrypted import event_body_aad
from cambist.core.usecases.webhooks.outbox import DELIVER, ask_to_deliver
from cambist.frontends.app.compose import open_app
from cambist.frontends.process.gc_pause import keep_for_good
from cambist.frontends.settings.settings import Settings
from cambist.frontends.worker.loop import Worker
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job

EVENTS = int(os.environ.get("CAMBIST_BENCH_EVENTS", "10000"))
ACCOUNTS = 4
AT_ONCE = 8 * ACCOUNTS
ROUNDS = 7

pytestmark = pytest.mark.benchmark(group="delivery")

RECEIVER = """
import asyncio, sys, httptools, uvloop

class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
    def data_received(self, data):
        self.parser.feed_data(data)
    def on_message_complete(self):
        self.transport.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")

async def main():
    listen = asyncio.get_running_loop().create_server
    servers = [await listen(Protocol, "127.0.0.1", 0) for _ in range(int(sys.argv[1]))]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await servers[0].serve_forever()

uvloop.run(main())
"""
HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": "cambist/1",
    "X-Webhook-Id": "evt_0197c1d0-5b7e-7000-8000-000000000001",
    "X-Webhook-Timestamp": "1760000000",
    "X-Webhook-Signature": "sha256=" + "0" * 64,
    "X-Webhook-Event": "payment.status_changed",
    "X-Webhook-Attempt": "1",
    "X-Webhook-Sequence": "1",
    "webhook-id": "evt_0197c1d0-5b7e-7000-8000-000000000001",
    "webhook-timestamp": "1760000000",
    "webhook-signature": "v1," + "0" * 44,
}
"""Headers of a webhook, so that the client writes the same amount in both cases."""


def body(number: int) -> bytes:
    """Build a body of 600 bytes, the size of a payment event."""
    return msgspec.json.encode({"event": "payment.status_changed", "number": number}).ljust(600)


@pytest.fixture(scope="module")
def receivers() -> Iterator[list[str]]:
    """Run one receiver per account that only answers 200, and yield their addresses."""
    process = subprocess.Popen([sys.executable, "-c", RECEIVER, str(ACCOUNTS)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield [f"http://127.0.0.1:{int(port)}/hook" for port in process.stdout.readline().split()]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def run() -> Iterator[Callable[[Awaitable[None]], None]]:
    """Run coroutines on the service's kind of event loop. It stays open between rounds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        async def wait_for(work: Awaitable[None]) -> None:
            await work

        yield lambda work: runner.run(wait_for(work))


async def post_all(urls: list[str]) -> None:
    """Floor: the client alone."""
    numbers = iter(range(EVENTS))

    async def poster(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            url = urls[number % ACCOUNTS]
            async with session.post(url, data=body(number), headers=HEADERS, allow_redirects=False) as response:
                await response.read()
                assert response.status == 200

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(poster(session) for _ in range(AT_ONCE)))


async def fill(ports: Ports, accounts: list[Account], rounds: Iterator[int]) -> None:
    """Write events that wait for delivery, as use cases do."""
    now = ports.clock.now()
    turn = next(rounds)
    for start in range(0, EVENTS, 500):
        async with ports.storage.unit() as unit:
            for number in range(start, min(start + 500, EVENTS)):
                account = accounts[number % ACCOUNTS]
                event_id = f"evt_{turn:04}-{number:09}"
                event = Event(
                    id=event_id,
                    account_id=account.id,
                    mode=Mode.TEST,
                    type=EventType.PAYMENT_STATUS_CHANGED,
                    object_id=f"pay_{number}",
                    sequence=1,
                    body=ports.vault.encrypt(body(number), event_body_aad(event_id)),
                    created_at=now,
                )
                delivery = Delivery(
                    id=event.id,
                    account_id=account.id,
                    mode=Mode.TEST,
                    type=event.type,
                    status=DeliveryStatus.HELD,
                    created_at=now,
                )
                unit[Event].add(event)
                unit[Delivery].add(sent_anew(delivery, receives=True, now=now))
            await unit.commit()


async def deliver_all(ports: Ports, accounts: list[Account]) -> None:
    """Deliver everything, from the wake-up of a worker until every attempt is on disk."""
    worker = Worker(ports)
    working = asyncio.create_task(worker.work())
    async with ports.storage.unit() as unit:
        for account in accounts:
            ask_to_deliver(ports, unit, account.id, Mode.TEST)
        await unit.commit()
    while not await all_done(ports, accounts):  # noqa: ASYNC110 - only the storage shows the outcome
        await asyncio.sleep(0.02)
    worker.stop()
    await working


async def all_done(ports: Ports, accounts: list[Account]) -> bool:
    """Report whether all jobs are gone. The unit that records a receiver's last attempt removes its job."""
    async with ports.storage.unit() as unit:
        jobs = [await unit[Job].get(f"{DELIVER}:{account.id}:test") for account in accounts]
    return not any(jobs)


@asynccontextmanager
async def app(folder: Path, urls: list[str]) -> AsyncIterator[tuple[Ports, list[Account]]]:
    async with open_app(Settings(data_dir=folder)) as opened:
        accounts = []
        for url in urls:
            made = await create_account(opened.ports, "Merchant")
            wish = {"webhook_url": url, "webhook_secret": "a-webhook-secret-of-the-benchmark"}
            accounts.append(await set_settings(opened.ports, made.account_id, wish))
        yield opened.ports, accounts


def test_worker(
    benchmark: BenchmarkFixture, run: Callable[[Awaitable[None]], None], receivers: list[str], tmp_path: Path
) -> None:
    opened = app(tmp_path, receivers)
    rounds, thresholds = count(), gc.get_threshold()
    places: list[tuple[Ports, list[Account]]] = []

    async def open_it() -> None:
        places.append(await opened.__aenter__())
        keep_for_good()  # as every worker process does after its start

    run(open_it())
    [(ports, accounts)] = places

    def filled() -> tuple[()]:
        run(fill(ports, accounts, rounds))
        return ()

    try:
        in_turns(
            benchmark,
            lambda: run(deliver_all(ports, accounts)),
            lambda: run(post_all(receivers)),
            rounds=ROUNDS,
            prepare=filled,
        )
    finally:

        async def close_it() -> None:
            await opened.__aexit__(None, None, None)

        run(close_it())
        gc.unfreeze()
        gc.set_threshold(*thresholds)
