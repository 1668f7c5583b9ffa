"""Figures of the dashboard's home (docs/dashboard.md "Home")."""

from datetime import timedelta

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.money import Rub
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.overview.overview import Overview, Period, Sums, read_overview
from tests.apps import TestApp
from tests.tables import table

DAY = timedelta(days=1).total_seconds()


async def seen(app: TestApp, period: Period = Period.TODAY, **limits: object) -> Overview:
    account = await app.ports.storage.get(Account, app.account.account_id)
    assert account is not None
    caller = Caller(account=account, mode=Mode.TEST, key_id="usr_1", **limits)  # type: ignore[arg-type]  # per test
    return await read_overview(app.ports, caller, period)


async def made(app: TestApp, outcome: str | None, amount: str = "100.00", **body: object) -> str:
    payment: str = (await app.created({"amount_rub": amount, **body}))["id"]
    if outcome is not None:
        await app.simulate(payment, outcome=outcome)
    return payment


async def test_empty_account_has_zeros_and_no_rates(app: TestApp) -> None:
    found = await seen(app)
    assert (found.now, found.before, found.shops, found.by_status) == (Sums(), Sums(), (), ())
    assert (found.now.average, found.now.success_percent, found.work.total) == (None, None, 0)
    assert len(found.days) == 1


async def test_today_stands_beside_yesterday(app: TestApp) -> None:
    await made(app, "paid", "70.00")
    await app.work(DAY)
    await made(app, "paid", "100.00")
    await made(app, "paid", "200.50")
    await made(app, "failed")
    await made(app, None)
    found = await seen(app)
    assert found.now == Sums(taken=Rub(30050), paid=2, created=4, succeeded=2, ended=3)
    assert (found.now.average, found.now.success_percent) == (Rub(15025), 67)
    assert found.before == Sums(taken=Rub(7000), paid=1, created=1, succeeded=1, ended=1)
    assert dict(found.by_status) == {"paid": 2, "failed": 1, "pending": 1}
    assert (await seen(app, Period.YESTERDAY)).now == found.before
    week = await seen(app, Period.WEEK)
    assert (week.now.taken, week.before.taken, len(week.days)) == (Rub(37050), Rub(0), 7)
    assert [day.sums.taken for day in week.days[-2:]] == [Rub(7000), Rub(30050)]


async def test_days_of_figures_are_moscow_days(app: TestApp) -> None:
    """21:00 UTC is midnight in Moscow: payments around it belong to different days."""
    evening = app.clock.now().replace(hour=20, minute=0, second=0, microsecond=0) + timedelta(days=1)
    await app.work((evening + timedelta(minutes=58) - app.clock.now()).total_seconds())
    await made(app, "paid", "70.00")
    await made(app, "failed")
    before = await seen(app)
    await app.work((evening + timedelta(minutes=61) - app.clock.now()).total_seconds())
    assert (await seen(app)).before == before.now
    await made(app, "paid", "100.00")
    found = await seen(app)
    assert (found.now.taken, found.before.taken) == (Rub(10000), Rub(7000))
    assert (found.now.created, found.before.created) == (1, 2)
    assert found.first == (evening + timedelta(hours=3, minutes=61)).date().isoformat()
    assert found.failures.read == 0
    yesterday = await seen(app, Period.YESTERDAY)
    assert (yesterday.now, yesterday.failures.read, yesterday.failures.total) == (found.before, 1, 1)
    await app.work(6 * 3600)
    later = await seen(app)
    assert (later.first, later.now.taken) == (found.first, Rub(10000)), "the UTC day changed, the Moscow day did not"


async def test_failures_are_counted_by_reason(app: TestApp) -> None:
    for reason in ("declined_by_bank", "insufficient_funds", "declined_by_bank"):
        payment = await made(app, None)
        await app.simulate(payment, outcome="failed", failure_reason=reason)
    found = (await seen(app)).failures
    assert found.reasons == (("declined_by_bank", 2), ("insufficient_funds", 1))
    assert (found.read, found.total) == (3, 3)


async def test_shops_are_listed_by_money_and_limit_a_member(app: TestApp) -> None:
    shop = await create_shop(app.ports, app.account.account_id, "Second", "0.05")
    await made(app, "paid", "50.00")
    await made(app, "paid", "90.00", shop_id=shop.id)
    found = await seen(app)
    assert [(each.name, each.now.taken) for each in found.shops] == [("Second", Rub(9000)), ("Default", Rub(5000))]
    limited = await seen(app, shops=(shop.id,))
    assert (limited.now.taken, [each.name for each in limited.shops]) == (Rub(9000), ["Second"])


async def test_open_work_names_what_waits_for_a_person(app: TestApp) -> None:
    await set_settings(app.ports, app.account.account_id, {"refunds": "true", "refund_approval": "manual"})
    payment = await made(app, "paid")
    await app.simulate(await made(app, None), outcome="amount_mismatch", actual_amount_rub="99.00")
    headers = app.headers("test", Idempotency_Key="0b1a0d4e-2f0e-4c8e-9d7a-0d6f5f0f9a11")
    answer = await app.http.post("/api/v1/refunds", json={"payment_id": payment}, headers=headers)
    assert answer.status_code == 201, answer.text
    work = (await seen(app)).work
    assert (work.refunds_to_approve, work.amount_mismatches, work.total) == (1, 1, 2)


@table(("succeeded", "ended", "percent"), [(0, 0, None), (1, 1, 100), (1, 2, 50), (1, 3, 33), (2, 3, 67), (1, 200, 1)])
def test_success_rate_rounds_half_up(succeeded: int, ended: int, percent: int | None) -> None:
    assert Sums(succeeded=succeeded, ended=ended).success_percent == percent
