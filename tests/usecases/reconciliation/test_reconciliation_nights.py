"""Every night the past day is compared and missed days are made up for. Each owner of credentials has its own list
(docs/reconciliation.md)."""

from collections.abc import AsyncIterator
from datetime import date, datetime, time, timedelta
from itertools import pairwise

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.adapters.script import Ending, Script, Twist
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import MOSCOW, moscow_day
from cambist.core.domain.reconciliation.comparing import Difference
from cambist.core.domain.reconciliation.reconciliation import (
    Discrepancy,
    Reconciliation,
    ReconciliationStatus,
    last_comparable,
)
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.reconciliation.discrepancies import list_differences, settle_difference
from cambist.core.usecases.reconciliation.nightly import COMPARE, NIGHTLY
from cambist.core.usecases.reconciliation.reconciliation import Compared, reconcile
from cambist.frontends.app.compose import Adapters
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import NotConfigured, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.reporting import ReportedPage
from tests.invariants import everything
from tests.reconciliation_kit import RealApp, RealBank, open_real_app
from tests.refund_app import open_refund_app

AWAY = Twist(ending=Ending.UNAVAILABLE)
S = ReconciliationStatus


@pytest.fixture
async def real() -> AsyncIterator[RealApp]:
    async with open_real_app() as opened:
        yield opened


async def test_each_night_the_day_that_is_over_is_compared(real: RealApp) -> None:
    await real.live.app.work(3 * 86400)
    rows = await everything(real.ports, Reconciliation)
    assert [each.status for each in rows] == [S.AGREED] * 3
    assert len({each.day for each in rows}) == 3
    assert {each.started_at.astimezone(MOSCOW).time() for each in rows} == {time(4)}
    [job] = [each for each in await everything(real.ports, Job) if each.kind == NIGHTLY]
    assert job.attempts == 0, "a night that fails is tried again as soon as the first one"
    assert not await real.jobs()


async def test_a_night_on_which_the_bank_was_away_is_made_up_for(real: RealApp) -> None:
    await real.live.app.work(86400)
    real.script.entries.calls.extend([AWAY] * 3)
    await real.live.app.work(86400)
    assert [each.status for each in await everything(real.ports, Reconciliation)] == [S.AGREED] * 2
    assert not await real.jobs()


async def test_a_bank_that_stays_away_is_asked_again_the_next_night(real: RealApp) -> None:
    await real.live.app.work(86400)
    real.script.entries.calls.extend([AWAY] * 60)
    await real.live.app.work(2 * 86400)
    assert S.FAILED in {each.status for each in await everything(real.ports, Reconciliation)}
    real.script.entries.calls.clear()
    await real.live.app.work(2 * 86400)
    assert {each.status for each in await everything(real.ports, Reconciliation)} == {S.AGREED}


async def test_day_with_open_differences_is_compared_again_until_they_close(real: RealApp) -> None:
    payment_id = await real.paid()
    real.script.entries.omitted.add(payment_id)
    await real.live.app.work(2 * 86400)
    [row] = await list_differences(real.ports)
    assert row.object_id == payment_id
    real.script.entries.omitted.clear()
    await real.live.app.work(86400)
    assert await list_differences(real.ports) == []


async def test_refund_ending_after_its_comparison_is_looked_up_at_the_bank(real: RealApp) -> None:
    """Only the refund's own day is compared again."""
    await real.live.set(refund_approval="auto")
    payment_id = await real.paid()
    for calls in (real.script.refund, real.script.find_refund):
        calls.extend([AWAY] * 100)
    refund_id = await real.live.apply(payment_id, "40.00", mode="live")
    await real.live.app.work(3 * 86400)
    assert await real.live.status(refund_id) == "processing"
    assert [(each.status, each.run) for each in await everything(real.ports, Reconciliation)] == [(S.AGREED, 1)] * 3
    real.script.entries.omitted.add(refund_id)
    real.script.refund.clear()
    real.script.find_refund.clear()
    await real.live.app.work(2 * 86400)
    assert await real.live.status(refund_id) == "completed"
    [row] = await list_differences(real.ports)
    assert (row.difference, row.object_id) == (Difference.MISSING, refund_id)
    runs = [(each.day, each.run) for each in await everything(real.ports, Reconciliation)]
    assert [day for day, run in runs if run > 1] == [row.day]


@pytest.mark.parametrize("is_listed", [False, True])
async def test_money_that_came_after_its_day_was_compared_is_sought_at_the_bank(real: RealApp, is_listed: bool) -> None:
    """Once, where it is found; each night of a week, where it is not."""
    here = real.live.app.clock.now().astimezone(MOSCOW)
    late_evening = datetime.combine(here.date() + timedelta(days=1), datetime.min.time(), MOSCOW) - timedelta(hours=0.5)
    await real.live.app.work((late_evening - here).total_seconds())
    made = await real.live.app.payment((await real.live.app.create(mode="live")).json()["id"])
    real.script.entries.omitted |= set() if is_listed else {made.id}
    await real.live.app.work(5 * 3600)
    assert await list_differences(real.ports) == []
    paid = Simulation(status=InvoiceStatus.PAID)
    for notification in await real.bank.simulate(made.id, paid, reference=made.bank_reference):
        await on_notification(real.ports, notification)
    await real.live.app.work(3 * 86400)
    assert [each.object_id for each in await list_differences(real.ports)] == ([] if is_listed else [made.id])
    runs = {each.day: each.run for each in await everything(real.ports, Reconciliation)}
    assert [runs[each] for each in sorted(runs)] == [1, 2 if is_listed else 4, 1, 1, 1]


@pytest.mark.parametrize(("days", "runs"), [(30, 2), (31, 1)])
async def test_late_ending_operation_is_looked_up_for_thirty_days(real: RealApp, days: int, runs: int) -> None:
    made = await real.live.app.payment((await real.live.app.create(mode="live")).json()["id"])
    day = made.created_at.astimezone(MOSCOW).date()
    noon = datetime.combine(day + timedelta(days=days), time(12), MOSCOW)
    await real.live.app.work((noon - real.live.app.clock.now()).total_seconds())
    for notification in await real.bank.simulate(
        made.id, Simulation(status=InvoiceStatus.PAID), reference=made.bank_reference
    ):
        await on_notification(real.ports, notification)
    await real.live.app.work(86400)
    [row] = [each for each in await everything(real.ports, Reconciliation) if each.day == day.isoformat()]
    assert (row.run, row.status) == (runs, S.AGREED)


async def test_a_day_of_open_differences_is_compared_again_for_a_week(real: RealApp) -> None:
    payment_id = await real.paid()
    real.script.entries.omitted.add(payment_id)
    await real.live.app.work(12 * 86400)
    [found] = await list_differences(real.ports)
    runs = {each.day: each.run for each in await everything(real.ports, Reconciliation)}
    assert runs.pop(found.day) == 1 + 7
    assert set(runs.values()) == {1}


async def test_each_time_that_something_of_a_day_ends_late_it_is_compared_anew(real: RealApp) -> None:
    made = [(await real.live.app.create(mode="live")).json()["id"] for _ in range(2)]
    await real.live.app.work(2 * 86400)
    for payment_id in made:
        payment = await real.live.payment(payment_id)
        paid = Simulation(status=InvoiceStatus.PAID)
        for notification in await real.bank.simulate(payment_id, paid, reference=payment.bank_reference):
            await on_notification(real.ports, notification)
        await real.live.app.work(86400)
    day = (await real.live.payment(made[0])).created_at.astimezone(MOSCOW).date().isoformat()
    assert {each.run for each in await everything(real.ports, Reconciliation) if each.day == day} == {3}


async def test_days_on_which_no_worker_ran_are_made_up_for(real: RealApp) -> None:
    await real.live.app.work(86400)
    await real.live.app.clock.advance(3 * 86400)
    await real.live.app.work(86400)
    days = sorted(each.day for each in await everything(real.ports, Reconciliation))
    first = date.fromisoformat(days[0])
    assert days == [(first + timedelta(days=number)).isoformat() for number in range(5)]


async def test_credentials_that_are_gone_are_compared_with_nothing(real: RealApp) -> None:
    day, now = last_comparable(real.live.app.clock.now()).isoformat(), real.live.app.clock.now()
    async with real.ports.storage.unit() as unit:
        for bank, owner in (("real", "acc_gone"), ("gone", ""), ("simulator-test", "acc_gone")):
            await COMPARE.plan(unit, f"{bank}:{day}:{owner}", now, now)
        await unit.commit()
    await real.live.app.work(60)
    assert not await real.jobs()
    assert await everything(real.ports, Reconciliation) == []


async def test_day_in_another_process_is_left_to_it_and_checked_later(
    real: RealApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, clock = real.bank.entries, real.live.app.clock
    asked: list[datetime] = []

    async def meanwhile(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        asked.append(clock.now())
        if len(asked) == 1:
            await reconcile(real.ports, last_comparable(clock.now()))
        return await entries(owner, since, until, cursor)

    monkeypatch.setattr(real.bank, "entries", meanwhile)
    await real.live.app.work(86400)
    first, later = sorted(set(asked))
    assert later > first
    assert [each.status for each in await everything(real.ports, Reconciliation)] == [S.AGREED]
    assert not await real.jobs()


@pytest.mark.parametrize("hours", [0, 20])
async def test_unavailable_bank_is_retried_soon_and_after_growing_pauses(
    real: RealApp, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    entries, clock = real.bank.entries, real.live.app.clock
    away = moscow_day(last_comparable(clock.now()) + timedelta(days=1))[0] + timedelta(hours=hours)
    asked: list[datetime] = []

    async def going(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        if since < away:
            return await entries(owner, since, until, cursor)
        asked.append(clock.now())
        raise Unavailable("away")

    monkeypatch.setattr(real.bank, "entries", going)
    await real.live.app.work(2 * 86400)
    pauses = [later - earlier for earlier, later in pairwise(asked) if later < asked[0] + timedelta(hours=20)]
    assert timedelta(0) < pauses[0] < pauses[1] < timedelta(minutes=1)
    assert pauses == sorted(pauses)


async def test_records_over_400_days_old_are_deleted_but_open_differences_stay(real: RealApp) -> None:
    opened, settled = await real.paid(), await real.paid()
    real.script.entries.omitted |= {opened, settled}
    await real.live.app.work(2 * 86400)
    [row] = [each for each in await list_differences(real.ports) if each.object_id == settled]
    await settle_difference(real.ports, row.id)
    rows = {each.id for each in await everything(real.ports, Reconciliation)}
    assert rows
    await real.live.app.clock.advance(399 * 86400)
    await real.live.app.work(3600)
    assert len(await everything(real.ports, Discrepancy)) == 2
    await real.live.app.work(3 * 86400)
    assert [each.object_id for each in await everything(real.ports, Discrepancy)] == [opened]
    assert not rows & {each.id for each in await everything(real.ports, Reconciliation)}


@pytest.mark.parametrize(("days", "differences"), [(5, 0), (2, 5)])
async def test_all_that_is_old_goes_in_one_night_however_much_it_is(
    real: RealApp, monkeypatch: pytest.MonkeyPatch, days: int, differences: int
) -> None:
    monkeypatch.setattr("cambist.core.usecases.reconciliation.nightly._BATCH", 2)
    paid = {await real.paid() for _ in range(differences)}
    real.script.entries.omitted |= paid
    await real.live.app.work(days * 86400)
    for row in await list_differences(real.ports):
        await settle_difference(real.ports, row.id)
    old = {each.id for kind in (Reconciliation, Discrepancy) for each in await everything(real.ports, kind)}
    assert len(old) == days + differences
    await real.live.app.clock.advance(401 * 86400)
    await real.live.app.work(86400)
    assert not old & {each.id for kind in (Reconciliation, Discrepancy) for each in await everything(real.ports, kind)}


class MerchantsBank(RealBank):
    """A bank with the installation's credentials, and a merchant's own, by which some operations go."""

    merchant = ""
    own: frozenset[str] = frozenset()
    away: str | None = None
    """The owner whose list it does not return."""

    def owners(self) -> tuple[str, ...]:
        return ("", self.merchant)

    def owner_of(self, reference: str) -> str:
        return self.merchant if self._operation(reference) in self.own else ""

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        if owner == self.away:
            raise NotConfigured("its credentials are gone")
        page = await super().entries(owner, since, until, cursor)
        listed = [each for each in page.entries if ((each.operation or "") in self.own) is (owner != "")]
        return msgspec.structs.replace(page, entries=tuple(listed))


async def test_each_credentials_owner_is_compared_alone_and_fails_alone() -> None:
    script, clock = Script(), VirtualClock()
    bank = MerchantsBank("real", MemoryStorage(clock), clock, SeededIds(), script=script)
    async with open_refund_app(adapters=Adapters(banks={Mode.LIVE: [bank]})) as live:
        bank._clock, app = live.app.clock, RealApp(live, bank, script)
        bank.merchant = live.app.account.account_id
        ours, own, lost = [await app.paid() for _ in range(3)]
        bank.own = frozenset((own, lost))
        script.entries.omitted |= {lost}
        day = live.app.clock.now().astimezone(MOSCOW).date()
        await live.app.work(2 * 86400)
        told = {each.result.owner: each.result for each in await reconcile(live.ports, day) if each.result is not None}
        assert {owner: (row.status, row.entries) for owner, row in told.items()} == {
            "": (S.AGREED, 1),
            bank.merchant: (S.DIFFERENT, 1),
        }
        assert [(each.owner, each.object_id) for each in await list_differences(live.ports)] == [(bank.merchant, lost)]
        bank.away = bank.merchant
        told = {each.result.owner: each.result for each in await reconcile(live.ports, day) if each.result is not None}
        assert {owner: row.status for owner, row in told.items()} == {"": S.AGREED, bank.merchant: S.FAILED}
        assert [each.object_id for each in await list_differences(live.ports)] == [lost], "nothing is said to be gone"
        bank.away = None
        before = [Compared(bank="real", result=row) for row in told.values()]
        after = {each.result.owner: each.result for each in await reconcile(live.ports, day, but=before) if each.result}
        assert after[""] is told[""], "only what failed goes on"
        assert after[bank.merchant].status is S.DIFFERENT
        assert ours not in {lost, own}
