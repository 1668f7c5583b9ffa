"""The daily settlement (docs/settlement.md "When")."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.settlement.settlement import Settlement, SettlementBatch, SettlementItem
from cambist.core.usecases.accounts import shops
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.ledger.balance import read_balance
from cambist.core.usecases.operators.action_item import ActionItem
from cambist.core.usecases.operators.action_items import read_action_items
from cambist.core.usecases.operators.doctor import check_settlement
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.operators.settlement_items import PASSED_OVER
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.settlement import settlement, withdrawals
from cambist.core.usecases.settlement.settlement import settle_now, settle_own
from cambist.ports.bundle import Ports
from cambist.ports.faults import Unavailable
from cambist.ports.jobs import Job
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.apps import TestApp
from tests.invariants import check_books, everything
from tests.planting import beneath

NINE = datetime(2026, 1, 2, 9, tzinfo=UTC)


async def paid(app: TestApp, amount: str = "100.00", **body: Any) -> str:
    """A payment of test mode that was paid."""
    payment = await app.created({"amount_rub": amount, **body})
    assert (await app.simulate(payment["id"], outcome="paid")).status_code == 200
    return str(payment["id"])


async def caller(app: TestApp, mode: Mode = Mode.TEST) -> Caller:
    async with app.ports.storage.unit() as unit:
        account = await unit[Account].get(app.account.account_id)
    assert account is not None
    return Caller(account=account, mode=mode, key_id="a-key")


async def payment(app: TestApp, payment_id: str) -> Payment:
    async with app.ports.storage.unit() as unit:
        found = await unit[Payment].get(payment_id)
    assert found is not None
    return found


async def planted(app: TestApp, payment_id: str, **fields: Any) -> None:
    """Write these fields of the payment beneath all rules."""
    async with beneath(app.ports).unit() as unit:
        unit[Payment].save(msgspec.structs.replace(await payment(app, payment_id), **fields))
        await unit.commit()


async def unsettled_items(app: TestApp) -> list[ActionItem]:
    return [each for each in (await read_action_items(app.ports)).found if each.kind == "unsettled"]


async def to(app: TestApp, moment: datetime) -> None:
    """Work until this moment."""
    await app.work((moment - app.clock.now()).total_seconds())


async def say(app: TestApp, mode: Mode = Mode.TEST, **simulation: Any) -> None:
    """Let the simulated rates say so."""
    [source] = app.ports.rates.of_mode(mode.value)
    assert isinstance(source, RateSimulator)
    await source.simulate(RateSimulation(**simulation))


async def test_settlement_at_nine_takes_the_payments_before_midnight(app: TestApp) -> None:
    await app.work(43_200)
    await start_recurring_jobs(app.ports)
    await to(app, NINE - timedelta(hours=9, minutes=5))
    early = await paid(app)
    await to(app, NINE - timedelta(hours=9))
    late = await paid(app)
    await to(app, NINE - timedelta(seconds=1))
    assert (await payment(app, early)).status == "paid"
    await to(app, NINE)
    settled, waiting = await payment(app, early), await payment(app, late)
    assert (settled.status, settled.settled_at, str(settled.amount_usdt)) == ("settled", NINE, "1.04864864")
    assert (waiting.status, waiting.amount_usdt) == ("paid", None)
    last = (await app.events(early))[-1]
    assert (last["status"], last["previous_status"], last["amount_usdt"]) == ("settled", "paid", "1.04864864")
    batches = {batch.id: batch for batch in await everything(app.ports, SettlementBatch)}
    assert set(batches) == {"live:2026-01-02", "test:2026-01-02"}
    (statement,) = await everything(app.ports, Settlement)
    came = (1, settled.actual_amount, statement.fee, settled.amount_usdt)
    for sums in (statement, batches["test:2026-01-02"]):
        assert (sums.payments, sums.amount, sums.fee, sums.credit) == came
    assert all(batch.completed_at == NINE for batch in batches.values())
    job = await app.ports.storage.get(Job, settlement.DAILY)
    assert job is not None
    assert (job.due, job.leased_until, job.attempts) == (NINE + timedelta(days=1), None, 0)
    await to(app, NINE + timedelta(days=1))
    assert (await payment(app, late)).status == "settled"
    await check_books(app.ports)


async def test_the_balance_before_and_after(app: TestApp) -> None:
    await paid(app, "100.00")
    await paid(app, "50.50")
    who = await caller(app)
    before = await read_balance(app.ports, who)
    assert (str(before.pending), str(before.available)) == ("150.50", "0.00000000")
    statement = await settle_own(app.ports, who)
    after = await read_balance(app.ports, who)
    assert (str(after.pending), after.available, after.settled) == ("0.00", statement.credit, statement.credit)
    assert (statement.payments, str(statement.amount)) == (2, "150.50")
    live = await read_balance(app.ports, await caller(app, Mode.LIVE))
    assert (str(live.pending), str(live.available)) == ("0.00", "0.00000000")


async def test_one_market_rate_for_all_and_the_markup_of_each_shop(app: TestApp) -> None:
    cheap = await shops.create_shop(app.ports, app.account.account_id, "Cheap", "0.01")
    first = await paid(app)
    second = await paid(app, shop_id=cheap.id)
    await say(app, rate=Decimal(80))
    statement = await settle_own(app.ports, await caller(app))
    assert statement.rate_market == "80"
    assert str((await payment(app, first)).amount_usdt) == "1.21250000"
    assert str((await payment(app, second)).amount_usdt) == "1.23750000"


async def test_a_payment_is_settled_by_the_markup_that_it_was_accepted_at(app: TestApp) -> None:
    """A shop's fee is agreed before its payments are accepted (docs/settlement.md "How much")."""
    shop = await shops.create_shop(app.ports, app.account.account_id, "Further", "0.03")
    before = await paid(app, shop_id=shop.id)
    await shops.set_shop(app.ports, shop.id, {"markup": "0.2"})
    after = await paid(app, shop_id=shop.id)
    old = await paid(app, shop_id=shop.id)
    await planted(app, old, markup=None)
    await say(app, rate=Decimal(80))
    await settle_own(app.ports, await caller(app))
    worth = [str((await payment(app, each)).amount_usdt) for each in (before, after, old)]
    assert worth == ["1.21250000", "1.00000000", "1.00000000"], "one from before markups were kept: the shop's"
    lines = {each.payment_id: each.markup for each in await everything(app.ports, SettlementItem)}
    assert lines == {before: "0.03", after: "0.2", old: "0.2"}
    await check_books(app.ports)


async def test_settlement_without_a_rate_waits_and_retries_every_minute(app: TestApp) -> None:
    await app.work(43_200)
    await start_recurring_jobs(app.ports)
    one = await paid(app)
    await say(app, rate=Decimal("92.50"), silent=True)
    await to(app, NINE + timedelta(minutes=2, seconds=30))
    assert (await payment(app, one)).status == "paid"
    assert [batch.mode for batch in await everything(app.ports, SettlementBatch)] == [Mode.LIVE]
    await say(app, rate=Decimal("92.50"))
    await to(app, NINE + timedelta(minutes=3))
    assert (await payment(app, one)).status == "settled"
    await say(app, rate=Decimal("92.50"), silent=True)
    await to(app, NINE + timedelta(minutes=4))  # a page still shows it, and nothing is settled at it
    with pytest.raises(Refusal, match="rate"):
        await settle_own(app.ports, await caller(app))


async def test_settlement_after_an_outage_takes_the_missed_days_too(app: TestApp) -> None:
    await app.work(43_200)
    await start_recurring_jobs(app.ports)
    one = await paid(app)
    await app.clock.advance((NINE + timedelta(days=3, hours=2) - app.clock.now()).total_seconds())
    await app.work()
    assert (await payment(app, one)).status == "settled"
    days = [batch.id for batch in await everything(app.ports, SettlementBatch) if batch.mode is Mode.TEST]
    assert days == ["test:2026-01-05"]
    await to(app, NINE + timedelta(days=4))
    assert len(await everything(app.ports, SettlementBatch)) == 4


async def test_a_day_is_settled_once_however_often_it_is_asked_for(app: TestApp) -> None:
    await paid(app)
    await to(app, NINE)
    first = await settle_now(app.ports, Mode.TEST)
    await say(app, rate=Decimal(80))
    again = await settle_now(app.ports, Mode.TEST)
    assert again == first
    assert first.payments == 1
    await check_books(app.ports)


async def test_payment_settles_at_its_own_markup_after_its_shop_lost_one(app: TestApp) -> None:
    shop = await shops.create_shop(app.ports, app.account.account_id, "Further", "0.01")
    one = await paid(app, shop_id=shop.id)
    await say(app, rate=Decimal(80))
    for each in await everything(app.ports, Shop):
        await shops.set_shop(app.ports, each.id, {"markup": ""})
    assert (await settle_own(app.ports, await caller(app))).payments == 1
    assert str((await payment(app, one)).amount_usdt) == "1.23750000"
    await check_books(app.ports)


async def test_payment_without_any_markup_waits_and_is_reported_after_two_days(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    shop = await shops.create_shop(app.ports, app.account.account_id, "Further", "0.01")
    one = await paid(app, shop_id=shop.id)
    await shops.set_shop(app.ports, shop.id, {"markup": ""})
    await planted(app, one, markup=None)
    found = []
    for day in range(3):
        await to(app, NINE + timedelta(days=day, minutes=1))
        found.append([(each.object_id, each.text) for each in await unsettled_items(app)])
        assert (await payment(app, one)).status == "paid"
    assert found == [[], [(one, PASSED_OVER)], [(one, PASSED_OVER)]]
    assert (await check_settlement(app.ports)).level is Level.WARNING
    await shops.set_shop(app.ports, shop.id, {"markup": "0.02"})
    assert (await settle_own(app.ports, await caller(app))).payments == 1
    assert await unsettled_items(app) == []


async def test_money_that_a_refund_holds_is_not_reported_as_passed_over(app: TestApp) -> None:
    await start_recurring_jobs(app.ports)
    held = await paid(app)
    await planted(app, held, refund_taken=Rub(100_00), refund_pending=True)
    await to(app, NINE + timedelta(days=2, minutes=1))
    assert (await payment(app, held)).status == "paid"
    assert await unsettled_items(app) == []
    await planted(app, held, refund_taken=Rub(0), refund_pending=False)


async def test_many_payments_go_in_several_units_and_sum_up(app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.core.usecases.settlement.run.CHUNK", 3)
    for number in range(10):
        await paid(app, f"{100 + number}.{number:02}")
    statement = await settle_own(app.ports, await caller(app))
    assert (statement.payments, statement.items, str(statement.amount)) == (10, 10, "1045.45")
    await check_books(app.ports)


async def test_the_accounts_settlement_takes_only_its_own_mode_and_account(app: TestApp) -> None:
    await paid(app)
    await settle_own(app.ports, await caller(app))
    [statement] = await everything(app.ports, Settlement)
    assert (statement.account_id, statement.mode) == (app.account.account_id, Mode.TEST)
    batch = await settle_now(app.ports, Mode.LIVE)
    assert batch.payments == 0


async def test_with_a_wallet_the_settlement_is_paid_out(app: TestApp) -> None:
    wallet = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
    await set_settings(app.ports, app.account.account_id, {"payout_wallet": wallet})
    await paid(app)
    who = await caller(app)
    statement = await settle_own(app.ports, who)
    assert statement.withdrawal_id is not None
    balance = await read_balance(app.ports, who)
    assert (str(balance.reserved), str(balance.available)) == ("1.04864800", "0.00000064")
    await app.work(3600)
    balance = await read_balance(app.ports, who)
    assert (str(balance.reserved), str(balance.withdrawn)) == ("0.00000000", "1.04864800")
    await check_books(app.ports)


@pytest.mark.parametrize("fault", [RuntimeError("a slip of the program"), Unavailable("away")])
async def test_settlement_failure_of_one_merchant_delays_no_other(
    app: TestApp, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """The batch stays open until everybody is settled."""
    first = await paid(app)
    other = await create_account(app.ports, "Another")
    broken = [other.account_id]

    async def pay_out(ports: Ports, account_id: str, mode: Mode, **more: Any) -> Any:
        if account_id in broken:
            raise fault
        return await withdrawals.pay_out(ports, account_id, mode, **more)

    monkeypatch.setattr(settlement, "pay_out", pay_out)
    await app.work(43_200)
    await start_recurring_jobs(app.ports)
    await to(app, NINE)
    assert (await payment(app, first)).status == "settled"
    batches = await everything(app.ports, SettlementBatch)
    assert [batch.completed_at for batch in batches] == [None, None]
    broken.clear()
    await app.work(60)
    batches = await everything(app.ports, SettlementBatch)
    assert all(batch.completed_at is not None for batch in batches)


async def test_completed_statement_takes_no_more_while_its_batch_is_retried(
    app: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Payments that become due meanwhile belong to the next settlement, at its rate, because this statement was already
    read and paid out."""
    await paid(app)
    bare = await shops.create_shop(app.ports, app.account.account_id, "Bare", "0.03")
    late = await paid(app, shop_id=bare.id)
    await planted(app, late, markup=None)
    await shops.set_shop(app.ports, bare.id, {"markup": ""})
    other = await create_account(app.ports, "Another")

    async def pay_out(ports: Ports, account_id: str, mode: Mode, *, settlement_id: str | None = None) -> Any:
        if account_id == other.account_id:
            raise RuntimeError("a slip of the program")
        return await withdrawals.pay_out(ports, account_id, mode, settlement_id=settlement_id)

    monkeypatch.setattr(settlement, "pay_out", pay_out)
    await app.work(43_200)
    await start_recurring_jobs(app.ports)
    await to(app, NINE)
    await shops.set_shop(app.ports, bare.id, {"markup": "0.03"})
    await to(app, NINE + timedelta(hours=1))
    [statement] = await everything(app.ports, Settlement)
    assert (statement.payments, statement.completed_at) == (1, NINE)
    assert (await payment(app, late)).status == "paid"
    await to(app, NINE + timedelta(days=1))
    assert (await payment(app, late)).settled_at == NINE + timedelta(days=1)
    await check_books(app.ports)
