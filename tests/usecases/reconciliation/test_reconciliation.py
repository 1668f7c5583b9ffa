"""A bank's own list compared with ours: differences are found, written once, and closed again
(docs/reconciliation.md)."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import msgspec
import pytest

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.reconciliation.comparing import Difference
from cambist.core.domain.reconciliation.reconciliation import Discrepancy, Reconciliation, ReconciliationStatus
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.reconciliation.discrepancies import list_differences, open_differences, settle_difference
from cambist.core.usecases.reconciliation.reconciliation import reconcile, reconcile_owner
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.ports.bank import InvoiceStatus, RefundStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.faults import Unavailable
from cambist.ports.reporting import ReportedKind, ReportedPage, ReportedState, ReportingBank
from tests.invariants import everything
from tests.planting import beneath
from tests.reconciliation_kit import BANK, Day, at, entry, open_day

S = ReconciliationStatus


@pytest.fixture
async def day() -> AsyncIterator[Day]:
    async with open_day() as opened:
        yield opened


async def test_a_day_on_which_all_went_well_agrees(day: Day) -> None:
    paid = [await day.live.paid(mode="live") for _ in range(3)]
    await day.live.app.create(mode="live")  # stays unpaid
    refund_id = await day.live.apply(paid[0], "40.00", mode="live")
    await day.live.app.work(60)
    assert await day.live.status(refund_id) == "completed"
    await day.over()
    row = await day.compared()
    assert (row.status, row.entries, row.found, row.failure) == (S.AGREED, 5, 0, None)
    assert await day.found() == []


@pytest.mark.parametrize("hours", [0.0, 23.9999])
async def test_operation_at_midnight_is_found_on_either_day_the_bank_booked_it(day: Day, hours: float) -> None:
    await day.at(hours, day=1)
    payment_id = await day.live.paid(mode="live")
    moved = timedelta(minutes=5) if hours else -timedelta(minutes=5)
    day.told.turned[payment_id] = lambda each: msgspec.structs.replace(each, moment=each.moment + moved)
    await day.at(4, day=3)
    for each in range(3):
        assert (await day.compared(day.day + timedelta(days=each))).status is S.AGREED
    assert await day.found() == []


async def test_each_difference_is_found_once_and_is_an_action_item(day: Day) -> None:
    names = [await day.live.paid(mode="live") for _ in range(5)]
    agreed, omitted, dearer, fee, failed = names
    day.told.omitted.add(omitted)
    day.told.turned = {
        dearer: lambda each: msgspec.structs.replace(each, amount_kopecks=100_01),
        fee: lambda each: msgspec.structs.replace(each, fee_kopecks=41),
        failed: lambda each: msgspec.structs.replace(each, state=ReportedState.FAILED),
    }
    day.told.invented.append(entry("made-up", day.clock.now()))
    async with beneath(day.ports).unit() as unit:
        payment = await day.live.payment(fee)
        unit[Payment].save(msgspec.structs.replace(payment, provider_fee=type(payment.amount)(40)))
        await unit.commit()
    await day.over()
    for _ in range(2):
        row = await day.compared()
        assert (row.status, row.found) == (S.DIFFERENT, 5)
        assert sorted(await day.found(), key=str) == sorted(
            [
                ("missing", omitted),
                ("amount", dearer),
                ("fee", fee),
                ("state", failed),
                ("extra", None),
            ],
            key=str,
        )
    assert agreed not in str(await day.found())
    items = [each for each in (await read_action_items(day.ports)).found if each.kind == "difference"]
    assert len(items) == 5
    assert {each.mode for each in items} == {Mode.LIVE}


async def test_a_difference_that_is_gone_at_a_later_run_is_closed(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.omitted.add(payment_id)
    await day.over()
    assert (await day.compared()).status is S.DIFFERENT
    day.told.omitted.clear()
    assert (await day.compared()).status is S.AGREED
    [row] = await everything(day.ports, Discrepancy)
    assert (row.closed_at, row.settled) == (day.clock.now(), False)
    day.told.omitted.add(payment_id)
    await day.compared()
    assert await day.found() == [("missing", payment_id)]


async def test_difference_settled_by_an_operator_is_no_longer_one(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.omitted.add(payment_id)
    await day.over()
    await day.compared()
    [row] = await list_differences(day.ports)
    await settle_difference(day.ports, row.id)
    assert (await day.compared()).status is S.AGREED
    with pytest.raises(Refusal) as refusal:
        await settle_difference(day.ports, row.id)
    assert refusal.value.code == "INVALID_STATE"
    for name in ("nothing", "", "\0", "x" * 5000):
        with pytest.raises(Refusal) as refusal:
            await settle_difference(day.ports, name)
        assert refusal.value.code == "NOT_FOUND"


async def test_money_unknown_to_us_is_another_state(day: Day) -> None:
    made = (await day.live.app.create(mode="live")).json()["id"]
    await day.live.bank("live").simulate(
        made,
        Simulation(status=InvoiceStatus.PAID, silent=True),
        reference=(await day.live.payment(made)).bank_reference,
    )
    await day.over()
    assert (await day.compared()).status is S.DIFFERENT
    [row] = await list_differences(day.ports)
    assert (row.difference, row.object_id, row.their_standing, row.our_standing) == ("state", made, "done", "open")
    await day.live.app.work(60)
    assert (await day.live.payment(made)).status in ("paid", "expired")


async def test_all_transfers_of_a_payment_count_on_both_sides(day: Day) -> None:
    """The second transfer is in suspense. After its return the bank lists both directions."""
    payment_id = await day.live.paid(mode="live")
    await day.live.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, again=True))
    await day.live.app.work(60)
    await day.over()
    row = await day.compared()
    assert (row.status, await day.found()) == (S.AGREED, [])


async def test_a_refund_that_came_back_agrees_with_whichever_the_bank_says(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    refund_id = await day.live.apply(payment_id, "40.00", mode="live")
    await day.live.app.work(60)
    await day.live.bank("live").simulate_refund(refund_id, RefundStatus.REVERSED)
    await day.live.app.work(86400 * 3)
    assert await day.live.status(refund_id) == "reversed"
    assert (await day.compared()).status is S.AGREED
    day.told.turned[refund_id] = lambda each: msgspec.structs.replace(each, state=ReportedState.DONE)
    assert (await day.compared()).status is S.AGREED


async def test_a_second_payment_of_one_operation_is_extra(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.invented.append(entry("second", day.clock.now(), operation=payment_id))
    await day.over()
    await day.compared()
    [row] = await list_differences(day.ports)
    assert (row.difference, row.entry, row.object_id) == (Difference.EXTRA, "second", payment_id)


async def test_foreign_payment_under_our_operation_is_extra_and_ours_is_missing(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.omitted.add(payment_id)
    day.told.invented.append(entry("another", day.clock.now(), operation=payment_id, reference="of another"))
    await day.over()
    await day.compared()
    assert sorted(await day.found()) == [("extra", payment_id), ("missing", payment_id)]


@pytest.mark.parametrize("kind", list(ReportedKind))
async def test_failed_entry_that_is_not_ours_is_no_difference(day: Day, kind: ReportedKind) -> None:
    day.told.invented.append(entry("x", day.clock.now(), kind=kind, state=ReportedState.FAILED))
    await day.over()
    assert (await day.compared()).status is S.AGREED


async def test_entry_booked_hours_later_is_missing_at_first_then_found(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.turned[payment_id] = lambda each: msgspec.structs.replace(each, moment=each.moment + timedelta(hours=3))
    await day.over()
    assert (await day.compared()).status is S.AGREED
    [row] = await everything(day.ports, Discrepancy)
    assert (row.difference, row.closed_at) == (Difference.MISSING, day.clock.now())


async def test_differences_beyond_the_limit_are_counted_and_close_none(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/reconciliation.md "Kinds of differences"."""
    monkeypatch.setattr("cambist.core.usecases.reconciliation.discrepancies.MOST", 2)
    noon, dearer = day.clock.now(), await day.live.paid(mode="live")
    day.told.invented += [entry(f"x{number}", noon - timedelta(minutes=9)) for number in range(2)]
    await day.over()
    assert (await day.compared()).found == 2
    day.told.invented[:] = [entry(f"y{number}", noon - timedelta(minutes=9)) for number in range(5)]
    day.told.turned = {dearer: lambda each: msgspec.structs.replace(each, amount_kopecks=99_00)}
    assert (await day.compared()).found == 2 + 2 + 1 + 3
    opened = {each.entry for each in await list_differences(day.ports) if each.difference is Difference.EXTRA}
    assert opened == {"x0", "x1", "y0", "y1"}
    assert ("amount", dearer) in await day.found()
    del day.told.invented[2:]
    assert (await day.compared()).found == 3
    assert {each.entry for each in await list_differences(day.ports)} >= {"y0", "y1"}


async def test_resumed_comparison_writes_no_more_than_an_uninterrupted_one(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.core.usecases.reconciliation.discrepancies.MOST", 2)
    day.told.invented += [entry(f"x{hours}", await at(day, hours)) for hours in (2, 8, 14, 20)]
    await day.over()
    bank = day.ports.banks.named(BANK)
    assert isinstance(bank, ReportingBank)
    while (await reconcile_owner(day.ports, bank, "", day.day, stretches=5)).status is S.RUNNING:
        pass
    assert sorted(each.entry or "" for each in await list_differences(day.ports)) == ["x2", "x8"]


async def test_pages_end_and_all_of_them_are_read(day: Day) -> None:
    day.told.page = 2
    names = [await day.live.paid(mode="live") for _ in range(7)]
    day.told.omitted.add(names[6])
    await day.over()
    row = await day.compared()
    assert (row.entries, await day.found()) == (6, [("missing", names[6])])


async def test_failed_comparison_resumes_where_it_stood_and_closes_nothing(day: Day) -> None:
    early = await day.live.paid(mode="live")
    await day.at(18)
    late = await day.live.paid(mode="live")
    day.told.omitted.add(early)
    await day.over()
    bank = Counting(day.live.bank("live"), fails_from=await at(day, 17))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(day.live.bank("live"), "entries", bank.entries)
        failed = await day.compared()
        assert failed.status is S.FAILED
        assert failed.failure is not None
        assert await day.found() == [("missing", early)]
        assert "reconciliation" in {each.kind for each in (await read_action_items(day.ports)).found}
        bank.fails_from, bank.asked = None, []
        done = await day.compared()
    assert min(bank.asked) > await at(day, 12), "it began anew"
    assert (done.status, done.run, done.found) == (S.DIFFERENT, failed.run, 1)
    assert await day.found() == [("missing", early)]
    assert late not in str(await day.found())
    assert "reconciliation" not in {each.kind for each in (await read_action_items(day.ports)).found}


class Counting:
    """The bank's list. It records the periods it was read for, and fails from a moment on."""

    def __init__(self, bank: SimulatedBank, fails_from: datetime | None = None) -> None:
        self._entries = bank.entries
        self.fails_from = fails_from
        self.asked: list[datetime] = []

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        self.asked.append(since)
        if self.fails_from is not None and since >= self.fails_from:
            raise Unavailable("away")
        return await self._entries(owner, since, until, cursor)


async def test_killed_comparison_resumes_where_it_stood(day: Day) -> None:
    names = []
    for hours in (12, 14, 16, 18):
        await day.at(hours)
        names.append(await day.live.paid(mode="live"))
    day.told.omitted |= {names[0], names[3]}
    await day.over()
    bank = day.ports.banks.named(BANK)
    assert isinstance(bank, ReportingBank)
    runs = 0
    while True:
        row = await reconcile_owner(day.ports, bank, "", day.day, stretches=5)
        runs += 1
        if row.status is not S.RUNNING:
            break
    assert runs > 5
    assert (row.status, row.run, row.found, row.entries) == (S.DIFFERENT, 1, 2, 2), "each entry is counted once"
    assert sorted(await day.found()) == sorted([("missing", names[0]), ("missing", names[3])])


async def test_two_processes_comparing_one_day_have_one_winner(day: Day) -> None:
    await day.live.paid(mode="live")
    await day.over()
    bank = day.ports.banks.named(BANK)
    assert isinstance(bank, ReportingBank)
    entries = day.live.bank("live").entries
    other: list[Reconciliation] = []

    async def meanwhile(owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:
        if not other:
            other.append(msgspec.structs.replace(await stored(day)))
            other[0] = await reconcile_owner(day.ports, bank, "", day.day)
        return await entries(owner, since, until, cursor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(day.live.bank("live"), "entries", meanwhile)
        with pytest.raises(Refusal) as refusal:
            await day.compared()
    assert refusal.value.code == "INVALID_STATE"
    assert other[0].status is S.AGREED


async def stored(day: Day) -> Reconciliation:
    row: Reconciliation
    [row] = await everything(day.ports, Reconciliation)
    return row


@pytest.mark.parametrize("which", ["young", "nobody"])
async def test_day_or_bank_that_cannot_be_compared_is_refused(day: Day, which: str) -> None:
    asked = {"young": (day.day, BANK), "nobody": (day.day - timedelta(days=2), "nobody")}[which]
    with pytest.raises(Refusal) as refusal:
        await reconcile(day.ports, *asked)
    assert refusal.value.code == "VALIDATION_ERROR"


async def test_simulators_are_compared_only_when_somebody_asks(day: Day) -> None:
    await start_recurring_jobs(day.ports)
    await day.live.app.work(2 * 86400)
    assert await everything(day.ports, Reconciliation) == []


async def test_open_differences_of_a_day_are_listed_oldest_first(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of each kind as are written down."""
    monkeypatch.setattr("cambist.core.usecases.reconciliation.discrepancies.MOST", 4)
    missing, dearer = [[await day.live.paid(mode="live") for _ in range(4)] for _ in range(2)]
    day.told.omitted |= set(missing)
    for each in dearer:
        day.told.turned[each] = lambda told: msgspec.structs.replace(told, amount_kopecks=100_01)
    day.told.invented += [entry(f"x{hours}", await at(day, hours)) for hours in (20, 8, 14, 2)]
    await day.over()
    told = await open_differences(day.ports, await day.compared())
    assert [each.entry for each in told if each.difference is Difference.EXTRA] == ["x2", "x8", "x14", "x20"]
    assert [each.moment for each in told] == sorted(each.moment for each in told)
    assert {each.object_id for each in told} == {None, *missing, *dearer}
    assert len(told) == 12


async def test_open_differences_are_reported_by_day(day: Day) -> None:
    payment_id = await day.live.paid(mode="live")
    day.told.omitted.add(payment_id)
    await day.over()
    row = await day.compared()
    assert [each.object_id for each in await open_differences(day.ports, row)] == [payment_id]
