"""The clock of a test account: everything of the account follows it, nothing else does
(docs/sandbox.md "The clock")."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Caller, Mode
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.settlement.rates import KnownRate
from cambist.core.domain.settlement.settlement import Settlement, SettlementBatch
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common.account_time import living_with
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from cambist.core.usecases.refunds import refunds
from cambist.core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from cambist.core.usecases.settlement.rates import market_rate
from cambist.ports.notifier import Answer, DeliveryResult
from tests.apps import TestApp, open_test_app
from tests.clock_kit import DAY, YEAR, advance, ask, moment, record, second_merchant, standing
from tests.invariants import check_books, everything
from tests.payout_kit import WALLET
from tests.subscription_app import bound
from tests.tables import table

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


async def shown(app: TestApp, payment_id: str, mode: str = "test") -> dict[str, Any]:
    found: dict[str, Any] = (await app.get(f"/payments/{payment_id}", mode=mode)).json()
    return found


async def status(app: TestApp, payment_id: str, mode: str = "test") -> str:
    return str((await shown(app, payment_id, mode))["status"])


async def paid(app: TestApp, amount: str = "100.00") -> str:
    payment = await app.created({"amount_rub": amount})
    assert (await app.simulate(payment["id"], outcome="paid")).status_code == 200
    return str(payment["id"])


async def made(app: TestApp) -> str:
    """A payment, without the limits of requests."""
    order = PaymentOrder(amount_rub="100.00")
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    async with living_with(app.ports, caller.account_id, Mode.TEST):
        return (await create_payment(app.ports, caller, str(uuid4()), lambda: order)).resource.id


async def tell(app: TestApp, payment_id: str) -> None:
    """Mark the payment as paid, without the limits of requests."""
    caller = Caller(account=await record(app), mode=Mode.TEST, key_id="a-key")
    async with living_with(app.ports, caller.account_id, Mode.TEST):
        await simulate(app.ports, caller, payment_id, PaymentSimulation(outcome="paid"))


class TestWhoMoves:
    async def test_one_account_moves_and_its_neighbour_does_not(self, app: TestApp) -> None:
        other = await second_merchant(app)
        mine, theirs = await app.created(), await other.created()
        before = app.clock.now()
        assert await advance(app, HOUR) == {
            "now": "2026-01-01T01:00:00.000Z",
            "advancing": False,
            "to": None,
            "jobs_run": 2,
            "events_emitted": 1,
        }
        assert (await status(app, mine["id"]), await status(other, theirs["id"])) == ("expired", "pending")
        assert app.clock.now() == before
        assert (await standing(other))["now"] == "2026-01-01T00:00:00.000Z"
        assert (await app.created())["created_at"] == "2026-01-01T01:00:00.000Z"
        assert (await other.created())["created_at"] == "2026-01-01T00:00:00.000Z"

    async def test_live_mode_does_not_move(self, app: TestApp) -> None:
        live = (await app.create(mode="live")).json()
        await advance(app, YEAR)
        await run_due(app.ports)
        assert await status(app, live["id"], "live") == "pending"
        assert (await app.create(mode="live")).json()["created_at"] == live["created_at"]

    async def test_the_clock_goes_on_by_itself_from_where_it_was_moved_to(self, app: TestApp) -> None:
        await advance(app, HOUR)
        await app.clock.advance(90)
        assert (await standing(app))["now"] == "2026-01-01T01:01:30.000Z"
        assert (await advance(app, HOUR))["now"] == "2026-01-01T02:01:30.000Z"

    async def test_remaining_jobs_are_due_by_the_moved_clock(self, app: TestApp) -> None:
        payment = await app.created()
        await advance(app, 10 * MINUTE)
        assert await status(app, payment["id"]) == "pending"
        await app.work(299)
        assert await status(app, payment["id"]) == "pending"
        await app.work(2)
        assert await status(app, payment["id"]) == "expired"

    async def test_a_request_leaves_no_world_behind(self, app: TestApp) -> None:
        await advance(app, YEAR)
        await app.created()
        assert app.ports.clock.test_clock is None
        assert app.ports.clock.now() == app.clock.now()


class TestWhatFollows:
    async def test_events_follow_the_moved_clock_but_signatures_use_real_time(self, app: TestApp) -> None:
        payment = await app.created()
        await advance(app, YEAR)
        [event] = await app.events(payment["id"])
        assert event["timestamp"] == "2026-01-01T00:15:00.000Z"
        [webhook] = app.postman.webhooks
        assert webhook.headers["X-Webhook-Timestamp"] == str(int(app.clock.now().timestamp()))
        app.check_signatures()

    async def test_webhooks_are_retried_on_the_way_at_their_times(self, app: TestApp) -> None:
        payment = await app.created()
        app.postman.answers = [DeliveryResult(answer=Answer.RESPONDED, status=500)] * 4
        await advance(app, HOUR)
        assert len(app.postman.webhooks) == 5
        [event] = (await app.get(f"/events?object_id={payment['id']}")).json()["data"]
        whole = (await app.get(f"/events/{event['id']}")).json()
        sent = [moment(attempt["sent_at"]) for attempt in whole["attempts"]]
        assert [(each - sent[0]).total_seconds() for each in sent] == [0, 1, 3, 7, 15]
        assert whole["delivery_status"] == "delivered"

    @pytest.mark.parametrize(
        ("after", "taken"), [(timedelta(hours=5, minutes=59), "paid"), (6 * HOUR + MINUTE, "expired")]
    )
    async def test_late_money_lifts_expired_within_six_hours_of_the_moved_clock(
        self, app: TestApp, after: timedelta, taken: str
    ) -> None:
        payment = await app.created()
        await advance(app, after)
        await app.simulate(payment["id"], outcome="paid")
        assert await status(app, payment["id"]) == taken

    async def test_the_payer_window_closes_a_minute_after_by_the_moved_clock(self, app: TestApp) -> None:
        payment_id = await paid(app)
        await advance(app, timedelta(seconds=59))
        assert (await app.http.get(f"/p/{payment_id}")).status_code == 200
        assert (await app.http.get(f"/p/{payment_id}/state")).status_code == 200
        await advance(app, timedelta(seconds=2))
        assert (await app.http.get(f"/p/{payment_id}")).status_code == 404
        assert (await app.http.get(f"/p/{payment_id}/state")).status_code == 404

    async def test_a_payer_pays_at_the_moved_time(self, app: TestApp) -> None:
        await advance(app, YEAR)
        payment = await app.created()
        assert (await app.http.post(f"/p/{payment['id']}/simulate", data={"action": "pay"})).status_code == 303
        assert (await shown(app, payment["id"]))["paid_at"] == "2027-01-01T00:00:00.000Z"

    async def test_operators_action_in_the_objects_time(self, app: TestApp) -> None:
        await set_settings(app.ports, app.account.account_id, {"refunds": "true", "refund_approval": "manual"})
        await advance(app, YEAR)
        payment = await app.created()
        await app.simulate(payment["id"], outcome="amount_mismatch")
        await resolve_mismatch(app.ports, payment["id"], "paid")
        assert (await shown(app, payment["id"]))["paid_at"] == "2027-01-01T00:00:00.000Z"
        refund = await refunds.create_refund_for(app.ports, payment["id"])
        assert refund.created_at == datetime(2027, 1, 1, tzinfo=UTC)
        await refunds.approve_refund(app.ports, refund.id)
        await app.work(60)
        found = (await app.http.get(f"/api/v1/refunds/{refund.id}", headers=app.headers())).json()
        assert found["status"] == "completed"
        assert found["completed_at"].startswith("2027-01-01T00:0")

    async def test_held_events_of_a_moved_account_leave_once_there_is_a_receiver(self) -> None:
        async with open_test_app(receiver=False) as app:
            await advance(app, YEAR)
            await paid(app)
            wish = {"webhook_url": "https://merchant.example/hooks", "webhook_secret": "a-webhook-secret-of-the-tests"}
            await set_settings(app.ports, app.account.account_id, wish)
            await run_due(app.ports)
            assert [body["status"] for body in app.postman.bodies] == ["paid"]


class TestSettlement:
    async def test_own_settlement_runs_at_nine_of_the_accounts_days(self, app: TestApp) -> None:
        await start_recurring_jobs(app.ports)
        other = await second_merchant(app)
        mine, theirs = await paid(app), await paid(other)
        await advance(app, DAY + 8 * HOUR)
        assert await status(app, mine) == "paid"
        await advance(app, 2 * HOUR)
        assert (await shown(app, mine))["settled_at"] == "2026-01-02T09:00:00.000Z"
        assert await status(other, theirs) == "paid"
        late = await paid(app)
        await app.work((DAY + 9 * HOUR).total_seconds())
        assert (await shown(other, theirs))["settled_at"] == "2026-01-02T09:00:00.000Z"
        # The settlements of its own clock and of the common clock have both passed; by its own clock it was 3 January
        # 09:00.
        assert (await shown(app, late))["settled_at"] == "2026-01-03T09:00:00.000Z"
        assert len(await everything(app.ports, Settlement)) == 3
        await check_books(app.ports)

    async def test_days_without_money_make_no_statements(self, app: TestApp) -> None:
        await paid(app)
        await advance(app, 30 * DAY)
        assert len(await everything(app.ports, Settlement)) == 1
        own = [batch for batch in await everything(app.ports, SettlementBatch) if batch.account_id is not None]
        # Batches of the day of payment, and of the next day, which settles it. No money waits on other days.
        assert sorted(batch.id[-10:] for batch in own) == ["2026-01-01", "2026-01-02"]
        assert all(batch.completed_at is not None for batch in own)

    async def test_payment_that_arises_on_the_way_is_settled_at_nine_next_day(self, app: TestApp) -> None:
        """Days on which nothing waits are passed over, but never one on which something does."""
        await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
        subscription = await bound(app)
        await advance(app, 40 * DAY)
        made = await app.http.post(
            f"/api/v1/subscriptions/{subscription['id']}/charges",
            json={"amount_rub": "500.00"},
            headers=app.headers(Idempotency_Key=str(uuid4())),
        )
        # Nothing is paid yet: the bank answers a second later, on the way.
        assert (made.status_code, made.json()["status"]) == (201, "pending"), made.text
        await advance(app, 40 * DAY)
        charge = await shown(app, made.json()["id"])
        assert moment(charge["settled_at"]) == moment(charge["paid_at"]).replace(hour=9, minute=0, second=0) + DAY

    async def test_a_wallet_that_comes_later_is_paid_out_to_on_the_next_day(self, app: TestApp) -> None:
        await paid(app)
        await advance(app, 10 * DAY)
        assert (await app.get("/withdrawals")).json()["data"] == []
        await set_settings(app.ports, app.account.account_id, {"payout_wallet": WALLET})
        await advance(app, 10 * DAY)
        [payout] = (await app.get("/withdrawals")).json()["data"]
        assert (payout["created_at"], payout["status"]) == ("2026-01-11T09:00:00.000Z", "completed")

    async def test_a_refund_that_waits_for_money_is_tried_every_day(self, app: TestApp) -> None:
        await set_settings(app.ports, app.account.account_id, {"refunds": "true"})
        poor = await paid(app)
        await advance(app, 2 * DAY)
        # The market value is more than this payment alone brought.
        made = await app.http.post(
            "/api/v1/refunds", json={"payment_id": poor}, headers=app.headers(Idempotency_Key=str(uuid4()))
        )
        await advance(app, 5 * DAY)
        path = f"/refunds/{made.json()['id']}"
        assert (await app.get(path)).json()["pending_reason"] == "insufficient_balance"
        await set_settings(app.ports, app.account.account_id, {"refund_overdraft_usdt": "10"})
        await advance(app, 2 * DAY)
        assert (await app.get(path)).json()["status"] == "completed"

    async def test_rates_fetched_in_the_future_are_the_accounts_alone(self, app: TestApp) -> None:
        before = await market_rate(app.ports, Mode.TEST)
        await paid(app)
        await advance(app, 30 * DAY)
        assert (await app.get("/rates")).status_code == 200
        known = {rate.id: rate for rate in await everything(app.ports, KnownRate)}
        assert known["test"].at == before.at
        assert known[f"test:{app.account.account_id}"].at > before.at

    async def test_the_ledger_verifies_with_entries_of_the_future(self, app: TestApp) -> None:
        await paid(app)
        await advance(app, 40 * DAY)
        await paid(await second_merchant(app))
        report = await verify_ledger(app.ports)
        assert report.holds


class TestSubscriptions:
    async def test_a_charge_a_month_each_settled_the_day_after(self, app: TestApp) -> None:
        subscription = await bound(app)
        charged = []
        for _ in range(3):
            window = (await app.get(f"/subscriptions/{subscription['id']}/charge-window")).json()
            if not window["can_charge"]:
                await advance(app, to=window["next_allowed_at"])
            made = await app.http.post(
                f"/api/v1/subscriptions/{subscription['id']}/charges",
                json={"amount_rub": "500.00"},
                headers=app.headers(Idempotency_Key=str(uuid4())),
            )
            assert made.status_code == 201, made.text
            await advance(app, 2 * DAY)
            charged.append(await shown(app, made.json()["id"]))
        assert [charge["status"] for charge in charged] == ["settled"] * 3
        paid_days = [moment(charge["paid_at"]).date().isoformat() for charge in charged]
        assert paid_days == ["2026-01-31", "2026-02-28", "2026-03-31"]
        for charge in charged:
            nine = moment(charge["settled_at"])
            assert (nine.hour, nine.minute) == (9, 0)
            assert nine.date() == moment(charge["paid_at"]).date() + DAY

    async def test_a_binding_that_nobody_confirms_ends_in_its_time(self, app: TestApp) -> None:
        made = await app.http.post(
            "/api/v1/subscriptions",
            json={"amount_rub": "500.00", "interval": "month", "description": "Club"},
            headers=app.headers(Idempotency_Key=str(uuid4())),
        )
        await advance(app, 25 * HOUR)
        found = (await app.get(f"/subscriptions/{made.json()['id']}")).json()
        assert found["status"] == "expired"


class TestManyObjects:
    async def test_a_year_over_a_thousand_objects_is_done_in_the_order_of_time(self, app: TestApp) -> None:
        """100 payments that expire, 900 that are settled: nothing lost, nothing twice, in the order of time."""
        ids = [await made(app) for _ in range(1000)]
        for payment_id in ids[100:]:
            await tell(app, payment_id)
        done = await advance(app, YEAR)
        assert done["events_emitted"] == 100 + 900
        # An expiring payment is polled twice, a paid one once. Events of one moment are sent by one
        # job: after each start, expiry, and settlement. Only two of the days have work, and each has two jobs.
        assert done["jobs_run"] == 100 * 2 + 900 + 3 + 2 * 2
        statuses = Counter(each.status for each in await everything(app.ports, Payment))
        assert statuses == {PaymentStatus.EXPIRED: 100, PaymentStatus.SETTLED: 900}
        told = Counter((body["payment_id"], body["status"]) for body in app.postman.bodies)
        assert len(told) == 100 + 900 + 900
        assert set(told.values()) == {1}
        stamps = [body["timestamp"] for body in app.postman.bodies]
        assert stamps == sorted(stamps)


class TestRefusals:
    @table(
        "body",
        [
            {},
            {"seconds": 1, "to": "2027-01-01T00:00:00Z"},
            {"seconds": -1},
            {"seconds": 366 * 86_400 + 1},
            {"seconds": 10**30},
            {"seconds": 1.5},
            {"seconds": "1"},
            {"seconds": True},
            {"to": "2025-12-31T23:59:59Z"},
            {"to": "2027-01-03T00:00:00Z"},
            {"to": "2026-06-01T00:00:00"},
            {"to": "tomorrow"},
            {"to": "9999-12-31T23:59:59-14:00"},
            {"seconds": 1, "more": 1},
        ],
        ids=str,
    )
    async def test_advance_to_nowhere_is_refused(self, app: TestApp, body: dict[str, Any]) -> None:
        response = await ask(app, **body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), response.text
        assert (await record(app)).clock is None

    async def test_the_now_that_was_shown_can_be_asked_for(self, app: TestApp) -> None:
        await app.clock.advance(0.000_700)
        now = (await standing(app))["now"]
        assert (await advance(app, to=now))["now"] == now

    async def test_live_keys_find_nothing(self, app: TestApp) -> None:
        for method, path in (("GET", "clock"), ("POST", "clock/advance")):
            response = await app.http.request(
                method, f"/api/v1/sandbox/{path}", json={"seconds": 1}, headers=app.headers("live")
            )
            assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_position_of_undelivered_webhooks_is_kept(app: TestApp) -> None:
    """A receiver is down during the whole advance: its webhooks are given up after a week of its own time."""
    payment = await app.created()
    app.postman.answers = [DeliveryResult(answer=Answer.RESPONDED, status=500)] * 1000
    await advance(app, 30 * DAY)
    [delivery] = [each for each in await everything(app.ports, Delivery) if each.type.startswith("payment")]
    assert (delivery.status, payment["status"]) == (DeliveryStatus.FAILED, "pending")
