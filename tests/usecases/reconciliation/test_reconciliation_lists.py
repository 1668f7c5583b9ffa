"""Which banks' lists are read, how far, and from when on (docs/reconciliation.md)."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from operator import attrgetter
from typing import cast

import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Ending, Twist
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import moscow_day
from cambist.core.domain.errors import Refusal
from cambist.core.domain.reconciliation.comparing import MARGIN, Difference
from cambist.core.domain.reconciliation.reconciliation import ReconciliationStatus, last_comparable
from cambist.core.usecases.reconciliation.discrepancies import list_differences, settle_difference
from cambist.core.usecases.reconciliation.reconciliation import reconcile
from cambist.core.usecases.reconciliation.signs import days_not_compared, reconciliation_signs
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import Bank
from cambist.ports.reporting import ReportedPage
from tests.reconciliation_kit import Day, at, entry, open_day
from tests.refund_app import open_refund_app, send

S = ReconciliationStatus
DAY = timedelta(days=1)


@pytest.fixture
async def day() -> AsyncIterator[Day]:
    async with open_day() as opened:
        yield opened


async def test_a_day_can_be_compared_from_an_hour_after_its_end_on(day: Day) -> None:
    await day.at(25 - 1 / 3600)
    with pytest.raises(Refusal) as refusal:
        await reconcile(day.ports, day.day)
    assert refusal.value.code == "VALIDATION_ERROR"
    await day.at(25)
    assert (await day.compared()).status is S.AGREED


async def test_list_is_read_with_half_an_hour_on_both_sides_of_the_day(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, asked = day.live.bank("live"), list[tuple[datetime, datetime]]()
    entries = bank.entries

    async def listening(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        asked.append((since, until))
        return await entries(owner, since, until, cursor)

    monkeypatch.setattr(bank, "entries", listening)
    await day.live.paid(mode="live")
    await day.at(72)
    assert (await day.compared()).status is S.AGREED
    begin, end = moscow_day(day.day)
    assert (asked[0][0], asked[-1][1]) == (begin - MARGIN, end + MARGIN)
    assert [since for since, _ in asked[1:]] == [until for _, until in asked[:-1]], "each moment once"


@pytest.mark.parametrize("is_another", [False, True])
async def test_a_list_that_never_ends_fails_and_does_not_go_on_for_ever(
    day: Day, monkeypatch: pytest.MonkeyPatch, is_another: bool
) -> None:
    """A cursor that repeats fails at once; other cursors are followed up to a limit."""
    monkeypatch.setattr("cambist.core.usecases.reconciliation.reconciliation._PAGES", 5)
    asked: list[str | None] = []

    async def endless(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        asked.append(cursor)
        return ReportedPage(entries=(), next_cursor=str(len(asked)) if is_another else "again")

    monkeypatch.setattr(day.live.bank("live"), "entries", endless)
    await day.over()
    assert (await day.compared()).status is S.FAILED
    assert asked == ([None, "1", "2", "3", "4"] if is_another else [None, "again"])


@pytest.mark.parametrize(
    ("hours", "moment", "is_of_it"),
    [(0, -1, False), (0, 0, True), (12, 0, True), (24, -1, True), (24, 0, False), (24.5, -1, False)],
)
async def test_an_entry_is_of_the_day_on_which_the_bank_took_it_up(
    day: Day, monkeypatch: pytest.MonkeyPatch, hours: float, moment: int, is_of_it: bool
) -> None:
    """Also if a bank returns more of its list than was requested."""
    bank = day.live.bank("live")
    entries, begin = bank.entries, moscow_day(day.day)[0]

    async def all_of_it(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        return await entries(owner, since - DAY, until + DAY, cursor)

    monkeypatch.setattr(bank, "entries", all_of_it)
    day.told.invented.append(entry("x", begin + timedelta(hours=hours, microseconds=moment)))
    await day.over()
    row = await day.compared()
    assert (row.entries, row.found) == ((1, 1) if is_of_it else (0, 0))
    assert await day.found() == ([("extra", None)] if is_of_it else [])


async def test_operation_that_just_ended_is_missing_if_the_bank_lacks_it(day: Day) -> None:
    """Its entry might have come half an hour later still: there is no list of that time yet."""
    payment_id, script = await day.live.paid(mode="live"), day.live.app.script
    for calls in (script.refund, script.find_refund):
        calls.extend([Twist(ending=Ending.UNAVAILABLE)] * 100)
    refund_id = await day.live.apply(payment_id, "40.00", mode="live")
    await day.live.app.work(18 * 3600)
    script.refund.clear()
    script.find_refund.clear()
    await send(day.ports, refund_id)
    await day.live.app.work(60)
    assert await day.live.status(refund_id) == "completed"
    day.told.omitted.add(refund_id)
    assert (await day.compared()).status is S.DIFFERENT
    assert await day.found() == [("missing", refund_id)]


def without_list(bank: SimulatedBank) -> Bank:
    """The bank, which can all else that it can."""
    names = (name for name in dir(bank) if not name.startswith("_") and name != "entries")
    kept = {name: property(attrgetter(f"bank.{name}")) for name in names}
    return cast("Bank", type("WithoutList", (), {**kept, "bank": bank})())


async def test_bank_without_a_list_is_named_and_does_not_stop_the_others() -> None:
    clock, ids = VirtualClock(), SeededIds()
    bare, listing = (SimulatedBank(name, MemoryStorage(clock), clock, ids) for name in ("bare", "listing"))
    banks = [without_list(bare), listing]
    async with open_refund_app(adapters=Adapters(banks={Mode.LIVE: banks})) as live:
        await live.app.clock.advance(2 * 86400)
        done = await reconcile(live.ports, last_comparable(live.app.clock.now()))
        assert [(each.bank, each.result and each.result.status) for each in done] == [
            ("bare", None),
            ("listing", S.AGREED),
        ]
        assert [each.bank for each in await reconciliation_signs(live.ports)] == ["listing"]


async def test_metrics_show_the_last_complete_comparison_and_open_differences(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.omitted.add(payment_id)
    moments = list[datetime | None]()
    for number, is_away in enumerate((False, True, False)):
        await day.at(4, day=1 + number)
        if is_away:
            day.told.calls.append(Twist(ending=Ending.UNAVAILABLE))
        row = await day.compared(day.day + number * DAY)
        assert row.status is (S.FAILED if is_away else S.DIFFERENT if not number else S.AGREED)
        [signs] = await reconciliation_signs(day.ports)
        moments.append(signs.compared_at)
        assert signs.differences == {each: int(each is Difference.MISSING) for each in Difference}
        assert await days_not_compared(day.ports) == int(number > 0)
    first = await at(day, 28)
    assert moments == [first, first, first + 2 * DAY]
    [found] = await list_differences(day.ports)
    await settle_difference(day.ports, found.id)
    [signs] = await reconciliation_signs(day.ports)
    assert set(signs.differences.values()) == {0}
