"""The bytes that an account writes in a day are bounded (docs/limits.md "Data")."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.written_bytes import (
    COPIES,
    MEGABYTE,
    PER_REQUEST,
    DailyBytes,
    WrittenBytes,
    until_midnight,
)
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.accounts.written_bytes import ByteCounter
from cambist.frontends.server.app import create_app
from cambist.frontends.telemetry.requests import RequestWatch
from tests.apps import TestApp
from tests.invariants import everything
from tests.tables import table
from tests.usecases.webhooks.test_events import caller

HALF = bytes(MEGABYTE // (2 * COPIES) - PER_REQUEST)
"""Half a megabyte: two of these bodies fit into the limit."""
SMALL = DailyBytes(live=2, test=1)


async def test_the_days_bytes_of_one_mode_are_bounded_and_the_next_day_is_free(app: TestApp) -> None:
    counter, mine = ByteCounter(SMALL), await caller(app)
    for _ in range(2):
        counter.take(app.ports, mine, HALF)
    with pytest.raises(Refusal, match="1 MB") as refused:
        counter.take(app.ports, mine, HALF)
    wait = refused.value.retry_after
    assert (refused.value.code, wait) == ("RATE_LIMIT_EXCEEDED", until_midnight(app.clock.now()))
    counter.take(app.ports, await caller(app, Mode.LIVE), HALF)
    assert wait is not None
    await app.clock.advance(wait)
    counter.take(app.ports, mine, HALF)


async def test_count_survives_a_restart_and_is_shared_by_processes(app: TestApp) -> None:
    first, second, mine = ByteCounter(SMALL), ByteCounter(SMALL), await caller(app)
    first.take(app.ports, mine, HALF)
    second.take(app.ports, mine, HALF)
    for each in (first, second):
        await each.flush(app.ports)
    with pytest.raises(Refusal):
        second.take(app.ports, mine, HALF)
    [row] = await everything(app.ports, WrittenBytes)
    assert row.bytes == 2 * (PER_REQUEST + COPIES * len(HALF))
    third = ByteCounter(SMALL)
    third.take(app.ports, mine, b"")
    await third.flush(app.ports)
    with pytest.raises(Refusal):
        third.take(app.ports, mine, HALF)


async def test_rows_of_past_days_are_deleted(app: TestApp) -> None:
    counter, mine = ByteCounter(), await caller(app)
    for _ in range(12):
        counter.take(app.ports, mine, b"")
        await counter.flush(app.ports)
        await app.clock.advance(timedelta(days=1).total_seconds())
    assert len(await everything(app.ports, WrittenBytes)) <= 9


@table(
    ("moment", "seconds"),
    [
        (datetime(2026, 11, 27, tzinfo=UTC), 86_400),
        (datetime(2026, 11, 27, 23, 59, 59, tzinfo=UTC), 1),
        (datetime(2026, 11, 27, 23, 59, 59, 999_999, tzinfo=UTC), 1),
        (datetime(2026, 11, 27, 12, tzinfo=UTC), 43_200),
    ],
)
def test_retry_after_ends_with_the_utc_day(moment: datetime, seconds: int) -> None:
    assert until_midnight(moment) == seconds


async def test_the_refusal_is_a_429_with_a_message_of_its_own_and_reads_go_on(app: TestApp) -> None:
    watch = RequestWatch(app.ports.clock, written=ByteCounter(DailyBytes(live=1, test=0)))
    asgi: Any = create_app(app.ports, watch=watch)
    import httpx

    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as http:
        app.http = http
        refused = await app.create()
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
        assert "UTC day" in refused.json()["error"]["message"]
        assert refused.headers["Retry-After"] == str(until_midnight(app.clock.now()))
        assert (await app.create(mode="live")).status_code == 201
        assert (await app.get("/payments")).status_code == 200
        assert (await http.delete("/api/v1/sandbox/data", headers=app.headers())).status_code == 200
