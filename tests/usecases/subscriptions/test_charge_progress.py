"""How charges live on: notifications, the watch, what their ends do to subscriptions
(docs/subscriptions.md "Periods and attempts", "Charging"; docs/payments.md "Money that cannot count")."""

from collections.abc import AsyncIterator
from uuid import uuid4

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.subscriptions.moves import cancelled
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.domain.subscriptions.subscriptions import Binding
from cambist.core.usecases.notifications import on_notification
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.ports.bank import Notification
from cambist.ports.jobs import Job
from cambist.ports.mandates import ChargeStatus
from tests.charge_app import DAY, HOUR, ChargeApp, open_charge_app
from tests.invariants import everything
from tests.planting import beneath

PAID, FAILED = ChargeStatus.PAID, ChargeStatus.FAILED


@pytest.fixture
async def charges() -> AsyncIterator[ChargeApp]:
    async with open_charge_app() as opened:
        yield opened


@pytest.fixture
async def due(charges: ChargeApp) -> str:
    """A subscription of three days whose second period has just opened."""
    subscription_id = await charges.subscribed(Interval.DAY, 3)
    await charges.open_next(subscription_id)
    return subscription_id


async def pending(charges: ChargeApp, subscription_id: str) -> str:
    """Start a charge that stays in processing, and return its id."""
    await charges.next(subscription_id, "pending")
    return (await charges.charge(subscription_id)).payment.id


async def cancel(charges: ChargeApp, subscription_id: str) -> None:
    await charges.put(cancelled(await charges.subscription(subscription_id), charges.clock.now()))


async def jobs(charges: ChargeApp, kind: str) -> list[Job]:
    return [job for job in await everything(charges.ports, Job) if job.kind == kind]


class TestSuccess:
    async def test_the_anchor_moves_to_the_payment_and_the_period_with_it(self, charges: ChargeApp, due: str) -> None:
        """A period is counted from the day of the last success (docs/subscriptions.md "Periods and attempts")."""
        before = await charges.subscription(due)
        payment_id = await pending(charges, due)
        await charges.clock.advance(3600)
        await charges.end(payment_id, PAID)
        after, payment = await charges.subscription(due), await charges.payment(payment_id)
        assert before.anchor is not None
        assert after.anchor == payment.paid_at == charges.clock.now()
        assert after.current_period_start == before.current_period_end
        assert after.attempts is not None
        assert (after.attempts.paid, after.attempts.pending) == (True, False)
        assert (await charges.window(due))["reason"] == "CHARGE_BEFORE_WINDOW"

    async def test_success_clears_past_due_and_makes_an_event(self, charges: ChargeApp, due: str) -> None:
        """`past_due` clears when a charge succeeds, reported by an event with equal statuses (docs/subscriptions.md
        "When the mandate is lost")."""
        await charges.change(due, past_due=True)
        payment_id = await pending(charges, due)
        await charges.end(payment_id, PAID, doubled=True)
        [event] = await charges.events(due)
        assert (event["status"], event["previous_status"], event["past_due"]) == ("active", "active", False)
        assert await charges.told(payment_id) == ["paid"]

    async def test_a_success_after_cancellation_is_booked(
        self, charges: ChargeApp, due: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A success that still arrives is booked, and an operator sees it
        (docs/subscriptions.md "Changing and ending")."""
        payment_id = await pending(charges, due)
        await cancel(charges, due)
        await charges.end(payment_id, PAID)
        assert (await charges.payment(payment_id)).status == "paid"
        assert (await charges.subscription(due)).status == "cancelled"
        assert "after the end of subscription" in caplog.text

    async def test_the_watch_finds_it_where_no_notification_comes(self, charges: ChargeApp, due: str) -> None:
        payment_id = await pending(charges, due)
        await charges.app.work(5)
        await charges.end(payment_id, PAID, silent=True)
        assert (await charges.payment(payment_id)).status == "pending"
        await charges.app.work(6)
        assert (await charges.payment(payment_id)).status == "paid"
        assert await jobs(charges, "charge.watch") == []

    async def test_the_watch_goes_on_for_ever_while_the_bank_works(self, charges: ChargeApp, due: str) -> None:
        """A pending charge blocks others, even in the next period, and only the bank's answer ends it."""
        payment_id = await pending(charges, due)
        await charges.app.work((10 * DAY).total_seconds())
        assert (await charges.payment(payment_id)).status == "pending"
        assert (await charges.charge(due)).payment.id == payment_id
        await charges.end(payment_id, PAID, silent=True)
        await charges.app.work((6 * HOUR).total_seconds() + 1)
        late = await charges.payment(payment_id)
        assert late.status == "paid", "its money is never too late"
        assert (await charges.subscription(due)).anchor == late.paid_at

    async def test_a_notification_about_nothing_is_nothing(self, charges: ChargeApp, due: str) -> None:
        payment_id = await pending(charges, due)
        assert await on_notification(charges.ports, Notification(operation=f"pay_{uuid4()}")) is None
        found = await on_notification(charges.ports, Notification(operation=payment_id))
        assert found is not None
        assert found.status == "pending"

    async def test_a_bank_that_debits_another_amount_leaves_it_to_the_operator(
        self, charges: ChargeApp, due: str
    ) -> None:
        """A mismatch (docs/payments.md "How it ends"); the period is held until the review ends."""
        for outcome, status in (("failed", "MayCharge"), ("paid", "CHARGE_BEFORE_WINDOW")):
            payment_id = await pending(charges, due)
            async with beneath(charges.ports).unit() as unit:
                payment = await unit[Payment].get(payment_id)
                assert payment is not None
                unit[Payment].save(msgspec.structs.replace(payment, amount=payment.amount - Rub(1)))
                await unit.commit()
            await charges.end(payment_id, PAID)
            assert (await charges.payment(payment_id)).status == "amount_mismatch"
            assert (await charges.window(due))["reason"] == "CHARGE_PENDING"
            await resolve_mismatch(charges.ports, payment_id, outcome)
            await charges.app.work(60)
            assert (await charges.window(due))["reason"] == (None if status == "MayCharge" else status)


class TestFailure:
    async def test_a_failure_frees_the_period_and_leaves_the_anchor(self, charges: ChargeApp, due: str) -> None:
        """Only a success moves the anchor (docs/subscriptions.md "Periods and attempts")."""
        before = await charges.subscription(due)
        payment_id = await pending(charges, due)
        await charges.end(payment_id, FAILED, "insufficient_funds", doubled=True)
        after, window = await charges.subscription(due), await charges.window(due)
        assert (after.anchor, after.status) == (before.anchor, "active")
        assert (window["attempts_used"], window["can_charge"]) == (1, True)
        assert await charges.told(payment_id) == ["failed"]
        assert await charges.told(due) == []

    async def test_a_revoked_mandate_pauses_also_when_it_comes_later(self, charges: ChargeApp, due: str) -> None:
        payment_id = await pending(charges, due)
        await charges.end(payment_id, FAILED, "mandate_revoked")
        assert await charges.told(due) == ["paused"]
        assert (await charges.subscription(due)).rebind_required

    @pytest.mark.parametrize(("later", "status"), [(0, "paused"), (60, "active")])
    async def test_a_charge_by_an_earlier_mandate_says_nothing_of_the_new_one(
        self, charges: ChargeApp, due: str, later: float, status: str
    ) -> None:
        """The payer bound again while it was pending. With a stopped clock all of this happens at one moment, and the
        bank's answer counts."""
        payment_id = await pending(charges, due)
        await charges.clock.advance(later)
        await charges.change(due, binding=Binding(operation="another", requested_at=charges.clock.now()))
        await charges.end(payment_id, FAILED, "mandate_revoked")
        assert (await charges.subscription(due)).status == status

    async def test_the_last_attempt_gives_the_period_up_before_it_pauses(self, charges: ChargeApp, due: str) -> None:
        """One `subscription.charge_exhausted` per period; each event has a sequence of its own
        (docs/subscriptions.md "Periods and attempts")."""
        for reason in ("insufficient_funds", "insufficient_funds", "mandate_revoked"):
            await charges.next(due, reason)
            with pytest.raises(Refusal, match="refused"):
                await charges.charge(due)
        assert await charges.told(due) == ["exhausted", "paused"]
        [event, _] = await charges.events(due)
        window = await charges.window(due)
        assert event == {
            "event": "subscription.charge_exhausted",
            "subscription_id": due,
            "external_id": "tea-club",
            "is_sandbox": True,
            "period_ref": window["period_ref"],
            "retries_used": 3,
            "retries_max": 3,
            "retry_window_hours": 6,
            "next_allowed_at": window["closes_at"],
            "timestamp": event["timestamp"],
        }


class TestExhaustion:
    async def fail(self, charges: ChargeApp, subscription_id: str) -> None:
        await charges.next(subscription_id, "insufficient_funds")
        with pytest.raises(Refusal, match="refused"):
            await charges.charge(subscription_id)

    async def test_exhaustion_is_announced_when_the_hours_end_without_a_request(
        self, charges: ChargeApp, due: str
    ) -> None:
        await self.fail(charges, due)
        await charges.app.work((6 * HOUR).total_seconds() - 1)
        assert await charges.told(due) == []
        await charges.app.work(2)
        assert await charges.told(due) == ["exhausted"]
        assert await jobs(charges, "subscription.exhaust") == []
        with pytest.raises(Refusal) as refused:
            await charges.charge(due)
        assert refused.value.code == "RECURRING_CHARGE_EXHAUSTED"
        await charges.app.work((3 * DAY).total_seconds())
        assert await charges.told(due) == ["exhausted"], "once"

    async def test_refused_charge_also_announces_the_exhausted_period(self, charges: ChargeApp, due: str) -> None:
        """`decide_charge(…).announce` is due in the unit that polled."""
        await self.fail(charges, due)
        await charges.clock.advance((6 * HOUR).total_seconds())
        with pytest.raises(Refusal):
            await charges.charge(due)
        assert await charges.told(due) == ["exhausted"]
        await charges.app.work(5)
        assert await charges.told(due) == ["exhausted"]

    async def test_event_of_an_ended_period_precedes_the_next_attempt(self, charges: ChargeApp, due: str) -> None:
        await self.fail(charges, due)
        await charges.clock.advance((3 * DAY).total_seconds())
        made = await charges.charge(due)
        assert await charges.told(due) == ["exhausted"]
        [event] = await charges.events(due)
        assert event["period_ref"] != made.payment.period_ref
        await charges.app.work(60)

    async def test_a_pending_attempt_puts_it_off_and_a_success_makes_it_needless(
        self, charges: ChargeApp, due: str
    ) -> None:
        await self.fail(charges, due)
        payment_id = await pending(charges, due)
        await charges.app.work((7 * HOUR).total_seconds())
        assert await charges.told(due) == []
        await charges.end(payment_id, PAID)
        await charges.app.work((7 * HOUR).total_seconds())
        assert await charges.told(due) == []

    async def test_a_pending_attempt_that_fails_late_brings_it_at_once(self, charges: ChargeApp, due: str) -> None:
        await self.fail(charges, due)
        payment_id = await pending(charges, due)
        await charges.app.work((7 * HOUR).total_seconds())
        await charges.end(payment_id, FAILED)
        assert await charges.told(due) == ["exhausted"]

    async def test_a_cancelled_subscription_is_not_given_up(self, charges: ChargeApp, due: str) -> None:
        """Decided: no further attempt is in question."""
        await self.fail(charges, due)
        await cancel(charges, due)
        await charges.app.work(DAY.total_seconds())
        assert await charges.told(due) == []
        assert await jobs(charges, "subscription.exhaust") == []

    async def test_the_calendar_scheme_has_none(self, charges: ChargeApp) -> None:
        subscription_id = await charges.subscribed(Interval.DAY, scheme=Scheme.CALENDAR)
        for _ in range(6):
            await self.fail(charges, subscription_id)
        await charges.app.work(DAY.total_seconds() * 2)
        assert await charges.told(subscription_id) == []
