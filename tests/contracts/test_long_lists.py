"""Long lists on every storage: each page and total equals that of a full scan, whatever was counted before
(docs/concepts.md "Lists")."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.list_counts import ListCount
from cambist.core.domain.webhooks.events import EVENT_KEPT, Event, EventType
from cambist.core.usecases.common import long_lists
from cambist.core.usecases.common.long_lists import LongList, keep, page_within
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.storage import Between, Storage

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ACCOUNT = Account(id="acc_1", name="Merchant", default_shop_id="shop", created_at=NOON)
TYPES = (EventType.PAYMENT_STATUS_CHANGED, EventType.REFUND_COMPLETED)


def event(number: int, at: datetime, chance: random.Random, mode: Mode = Mode.LIVE) -> Event:
    return Event(
        id=f"evt_{UUID(int=number)}",
        account_id=chance.choice(["acc_1", "acc_1", "acc_1", "acc_2"]),
        mode=mode,
        type=chance.choice(TYPES).value,
        object_id="pay_1",
        sequence=1,
        body=b"{}",
        created_at=at,
    )


def wanted(mode: Mode = Mode.LIVE, kind: EventType | None = None, made: Between | None = None) -> LongList[Event]:
    return LongList(
        kind=Event,
        caller=Caller(account=ACCOUNT, mode=mode, key_id="k"),
        name="events" if kind is None else f"events.{kind}",
        made=made or Between(),
        criteria={} if kind is None else {"type": kind},
        kept=EVENT_KEPT,
    )


def taken(events: Sequence[Event], asked: LongList[Event]) -> list[str]:
    """The list, word for word: the newest first."""
    low, high = asked.made.low, asked.made.high
    found = [
        each
        for each in events
        if each.account_id == "acc_1"
        and each.mode is asked.caller.mode
        and asked.criteria.get("type", each.type) == each.type
        and (low is None or each.created_at >= low)
        and (high is None or each.created_at < high)
    ]
    return [each.id for each in sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)]


async def write(storage: Storage, events: Sequence[Event], gone: Sequence[Event] = ()) -> None:
    async with storage.unit() as unit:
        for each in events:
            unit[Event].add(each)
        for each in gone:
            unit[Event].remove(each)
        await unit.commit()


@pytest.mark.parametrize("seed", range(2))
async def test_pages_and_totals_are_those_of_a_look_at_everything(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(long_lists, "LONG", 20)
    monkeypatch.setattr(long_lists, "_NEAR", 10)
    monkeypatch.setattr(long_lists, "_DAYS", 7)
    chance, events, now = random.Random(seed), list[Event](), NOON
    made, passed = 0, 12 * DAY
    async with open_app(Settings(database_url="memory://")) as app:
        ports = msgspec.structs.replace(app.ports, storage=storage)
        for _ in range(4):
            new = [event(made + n, now - passed * chance.random(), chance) for n in range(60)]
            made += len(new)
            old = [each for each in events if each.created_at < now - EVENT_KEPT]
            events = [each for each in events if each not in old] + new
            await write(storage, new, old)
            moments = [None, now - 40 * DAY, now - 5.3 * DAY, now - DAY / 3, now]
            spans = [Between(), *(Between(chance.choice(moments), chance.choice(moments)) for _ in range(4))]
            for asked in (wanted(kind=kind, made=made) for kind in (None, *TYPES) for made in spans):
                expected = taken(events, asked)
                for number, size in ((1, 5), (2, 10), (3, 13), (9, 9)):
                    fresh: list[ListCount] = []
                    async with storage.snapshot() as seen:
                        page = await page_within(seen, asked, number, size, now, fresh)
                    await keep(ports, fresh)
                    where = (asked.name, asked.made, number, size)
                    assert page.total == len(expected), where
                    assert [each.id for each in page.records] == expected[(number - 1) * size : number * size], where
            passed = chance.choice([1, 3, 20]) * DAY
            now += passed
    async with storage.unit() as unit:
        assert await unit[ListCount].total() > 0


async def test_a_day_that_is_over_is_counted_once_and_one_that_is_not_each_time(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_lists, "LONG", 3)
    chance = random.Random(1)
    events = [msgspec.structs.replace(event(n, NOON - n * DAY / 4, chance), account_id="acc_1") for n in range(20)]
    await write(storage, events)
    async with open_app(Settings(database_url="memory://")) as app:
        ports = msgspec.structs.replace(app.ports, storage=storage)

        async def counted(now: datetime, **more: Any) -> set[str]:
            fresh: list[ListCount] = []
            async with storage.snapshot() as seen:
                await page_within(seen, wanted(**more), 1, 5, now, fresh)
            await keep(ports, fresh)
            return {each.id.rpartition(":")[2] for each in fresh}

        midnight = NOON - DAY / 2
        whole = {(midnight - n * DAY).date().isoformat() for n in range(1, 29)}
        assert await counted(midnight + timedelta(minutes=59)) == whole - {"2026-02-28"}
        assert await counted(midnight + timedelta(minutes=60)) == {"2026-02-28"}
        assert await counted(NOON) == set()
        assert await counted(NOON, made=Between(NOON - 3 * DAY, NOON)) == set()
        await keep(ports, [ListCount(id="acc_1:events:2026-02-28", count=7)])  # another reader was quicker
        await write(storage, [msgspec.structs.replace(each, id=f"{each.id}t", mode=Mode.TEST) for each in events])
        assert await counted(NOON, mode=Mode.TEST) == set(), "objects of test mode may be forgotten"
        monkeypatch.setattr(long_lists, "LONG", 20)
        assert await counted(NOON, kind=TYPES[0]) == set(), "a short list is counted each time"


async def test_days_before_the_first_record_are_not_read(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range from the year 1 would make the service count every day of two thousand years, and store the counts."""
    monkeypatch.setattr(long_lists, "LONG", 3)
    chance, start = random.Random(1), datetime(1, 1, 1, tzinfo=UTC)
    events = [msgspec.structs.replace(event(n, NOON - n * DAY, chance), account_id="acc_1") for n in range(5)]
    await write(storage, events)
    asked = msgspec.structs.replace(wanted(made=Between(start, None)), kept=None)
    fresh: list[ListCount] = []
    async with storage.snapshot() as seen:
        page = await page_within(seen, asked, 1, 5, NOON, fresh)
    assert page.total == 5
    assert [each.id.rpartition(":")[2] for each in fresh] == ["2026-02-26", "2026-02-27", "2026-02-28"]
