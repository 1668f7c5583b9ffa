"""Rows that nobody can read are written under a service at work, SQLite and Postgres: no process ends, no webhook of
another merchant is late, and of the merchant whose event it is only that one waits."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from cambist.core.usecases.accounts.accounts import set_settings
from tests.apps import WEBHOOK_SECRET
from tests.patience import drill_of, promised
from tests.receivers import Receiver
from tests.servers import database
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import Installation, eventually, installation

SECONDS = 60.0
OTHERS = 30
LATE = 5.0
"""Seconds: a webhook takes some milliseconds, on a machine that has other work more."""
UNKNOWN = "moon.risen"
BEYOND = 900_000_000_000_000_000
JOBS = (
    "INSERT INTO jobs (id, kind, argument, due, created_at, attempts, asked, version) "
    "VALUES ('payment.watch:pay_bad{number}', 'payment.watch', 'pay_bad{number}', 1, {garbage}, 0, 0, 0)"
)
AGAIN = "UPDATE deliveries SET status = 'pending', due = 0, attempts = 0, backoff_start = 0 WHERE id = '{event}'"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with database(request.getfixturevalue("server")) as made:
        yield made


async def spoil(place: Installation, url: str | None, statement: str) -> None:
    """Write past the service."""
    if url is None:
        with closing(sqlite3.connect(place.settings.data_dir / "cambist.db", timeout=10)) as file, file:
            file.execute(statement)
    else:
        server = await asyncpg.connect(url)
        await server.execute(statement)
        await server.close()


class Told:
    """Arrival times of webhooks, by the payment that they concern."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.at: dict[str, float] = {}
        self.types: list[str] = []

    @asynccontextmanager
    async def heard(self) -> AsyncIterator["Told"]:
        event_handler = asyncio.create_task(self._hear())
        try:
            yield self
        finally:
            event_handler.cancel()
            # The receiver checks bodies against the schemas at its end, which know only existing types.
            requests = self._receiver.requests
            requests[:] = [each for each in requests if each.headers["x-webhook-event"] != UNKNOWN]

    async def _hear(self) -> None:
        seen = 0
        while True:
            for webhook in self._receiver.requests[seen:]:
                seen += 1
                self.types.append(webhook.headers["x-webhook-event"])
                self.at.setdefault(msgspec.json.decode(webhook.body).get("payment_id", ""), time.monotonic())
            await asyncio.sleep(0.005)


async def paid_all_along(shops: list[Merchant], until: float) -> dict[str, float]:
    """Pay one payment after the other, for each shop in turn, and return the times."""
    paid = {}
    for shop in cycle(shops):
        if time.monotonic() > until:
            break
        made = await shop.created()
        answer = await shop.simulate(made["id"], outcome="paid")
        assert answer.status == 200, answer.text
        paid[made["id"]] = time.monotonic()
        await asyncio.sleep(0.1)
    return paid


async def all_told(told: Told, payments: list[str]) -> None:
    async def look() -> bool | None:
        return True if set(payments) <= set(told.at) else None

    await eventually(look)


async def told_of(told: Told, word: str) -> bool | None:
    return True if word in told.types else None


async def all_noted(place: Installation, bad_jobs: int) -> set[str] | None:
    """Wait until operators see the unreadable rows of all the jobs: the service claims jobs now and then."""
    said = await asyncio.to_thread(place.call, "unreadable", "list", "--json")
    rows = {each["row"] for each in said.document["data"]}
    jobs = [row for row in rows if row.startswith("jobs:payment.watch:pay_bad")]
    return rows if len(jobs) == bad_jobs else None


@pytest.mark.drill
@drill_of("tests/usecases/operators/test_unreadable_fuzz.py")
async def test_rows_that_cannot_be_read_stop_nobody(tmp_path: Path, url: str | None) -> None:
    settings: dict[str, str] = {} if url is None else {"database_url": url}
    async with (
        Receiver() as ours,
        Receiver() as theirs,
        Told(ours).heard() as told_us,
        Told(theirs).heard() as told_them,
    ):
        with installation(tmp_path, trusted_proxies="127.0.0.0/8", **settings) as place:
            await place.migrate()
            accounts = await place.accounts(1 + OTHERS)
            async with place.app() as ports:
                for account, receiver in zip(accounts, (ours, *repeat(theirs, OTHERS)), strict=True):
                    wish: dict[str, Any] = {"webhook_url": receiver.url, "webhook_secret": WEBHOOK_SECRET}
                    await set_settings(ports, account.account_id, wish)
            service, base = await asyncio.to_thread(place.serve)
            async with (
                merchant(base, accounts[0].test, {"X-Forwarded-For": "10.0.0.1"}) as us,
                AsyncExitStack() as stack,
            ):
                them = [
                    await stack.enter_async_context(
                        merchant(base, account.test, {"X-Forwarded-For": f"10.0.1.{number}"})
                    )
                    for number, account in enumerate(accounts[1:])
                ]
                first = [(await us.paid())["id"] for _ in range(2)]
                await all_told(told_us, first)
                events = (await us.ask("GET", "/events")).json["data"]
                unknown, broken = (each["id"] for each in events[:2])
                paying = asyncio.create_task(paid_all_along(them, time.monotonic() + SECONDS))
                number, told_within = 0, 0.0
                while not paying.done():
                    garbage = "'zz'" if url is None and number % 2 else BEYOND
                    await spoil(place, url, JOBS.format(number=number, garbage=garbage))
                    number += 1
                    await asyncio.sleep(0.3)
                    if number == 3:
                        await spoil(place, url, f"UPDATE events SET type = '{UNKNOWN}' WHERE id = '{unknown}'")
                        await spoil(place, url, f"UPDATE events SET created_at = {BEYOND} WHERE id = '{broken}'")
                        for event in (unknown, broken):
                            await spoil(place, url, AGAIN.format(event=event))
                        began = time.monotonic()
                        later = [(await us.paid())["id"] for _ in range(12)]
                        await all_told(told_us, later)
                        await eventually(lambda: told_of(told_us, UNKNOWN))
                        told_within = time.monotonic() - began
                paid = await paying
                await all_told(told_them, list(paid))
                longest = max(told_them.at[each] - at for each, at in paid.items())
                assert not service.ended, service.err[-2000:]
                listed = await us.ask("GET", "/events")
                health = await us.client.get(f"{base}/health")
                degraded = (await health.json())["degraded"]
                ready = (await us.client.get(f"{base}/readyz")).status
            noted = await eventually(lambda: all_noted(place, number))
            assert service.terminate() == 0
    print(
        f"{'SQLite' if url is None else 'Postgres'}: {number} jobs and an event that cannot be read, one of an unknown "
        f"type; {len(paid)} payments of {OTHERS} other merchants, the slowest letter after {longest:.2f} s; 12 later "
        f"events of the same one told within {told_within:.2f} s"
    )
    assert longest < promised(LATE)
    assert told_within < promised(LATE + 12)
    assert UNKNOWN in told_us.types
    assert listed.status == 200
    assert "unreadable" in degraded
    assert ready == 200
    assert f"events:{broken}" in noted
