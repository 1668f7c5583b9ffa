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
from cambist.frontends.http.app import create_app
from cambist.frontends.telemetry.requests import RequestWatch
from tests.houses import TestHouse
from tests.invariants import everything
from tests.tables import table
from tests.usecases.test_events import caller

HALF = bytes(MEGABYTE // (2 * COPIES) - PER_REQUEST)
"""A body of which two fit into a megabyte."""
SMALL = DailyBytes(live=2, test=1)


async def test_the_days_bytes_of_one_mode_are_bounded_and_the_next_day_is_free(house: TestHouse) -> None:
    counter, mine = ByteCounter(SMALL), await caller(house)
    for _ in range(2):
        counter.take(house.ports, mine, HALF)
    with pytest.raises(Refusal, match="1 MB") as refused:
        counter.take(house.ports, mine, HALF)
    wait = refused.value.retry_after
    assert (refused.value.code, wait) == ("RATE_LIMIT_EXCEEDED", until_midnight(house.clock.now()))
    counter.take(house.ports, await caller(house, Mode.LIVE), HALF)
    assert wait is not None
    await house.clock.advance(wait)
    counter.take(house.ports, mine, HALF)


async def test_what_was_counted_survives_a_restart_and_is_shared_by_processes(house: TestHouse) -> None:
    first, second, mine = ByteCounter(SMALL), ByteCounter(SMALL), await caller(house)
    first.take(house.ports, mine, HALF)
    second.take(house.ports, mine, HALF)
    for each in (first, second):
        await each.flush(house.ports)
    with pytest.raises(Refusal):
        second.take(house.ports, mine, HALF)
    [row] = await everything(house.ports, WrittenBytes)
    assert row.bytes == 2 * (PER_REQUEST + COPIES * len(HALF))
    third = ByteCounter(SMALL)
    third.take(house.ports, mine, b"")
    await third.flush(house.ports)
    with pytest.raises(Refusal):
        third.take(house.ports, mine, HALF)


async def test_rows_of_past_days_are_deleted(house: TestHouse) -> None:
    counter, mine = ByteCounter(), await caller(house)
    for _ in range(12):
        counter.take(house.ports, mine, b"")
        await counter.flush(house.ports)
        await house.clock.advance(timedelta(days=1).total_seconds())
    assert len(await everything(house.ports, WrittenBytes)) <= 9


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


async def test_the_refusal_is_a_429_with_a_message_of_its_own_and_reads_go_on(house: TestHouse) -> None:
    watch = RequestWatch(house.ports.clock, written=ByteCounter(DailyBytes(live=1, test=0)))
    app: Any = create_app(house.ports, watch=watch)
    import httpx

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://pay.example") as http:
        house.http = http
        refused = await house.create()
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
        assert "UTC day" in refused.json()["error"]["message"]
        assert refused.headers["Retry-After"] == str(until_midnight(house.clock.now()))
        assert (await house.create(mode="live")).status_code == 201
        assert (await house.get("/payments")).status_code == 200
        assert (await http.delete("/api/v1/sandbox/data", headers=house.headers())).status_code == 200
