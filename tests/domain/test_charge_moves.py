"""Effects of charges on their subscription (docs/subscriptions.md "Periods and attempts", "Charging")."""

from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.subscriptions import charge_moves
from cambist.core.domain.subscriptions.charge_decisions import Exhaustion, MayCharge
from cambist.core.domain.subscriptions.periods import window_period
from cambist.core.domain.subscriptions.subscriptions import Subscription, SubscriptionStatus
from tests.domain.subscription_kit import (
    BOUND_AT,
    DAY,
    HOUR,
    S,
    attempts,
    calendar_attempts,
    moscow,
    subscription,
    terms,
)
from tests.tables import table

NOW = BOUND_AT + 2 * DAY
FIRST, SECOND = window_period(terms(), BOUND_AT, 1), window_period(terms(), BOUND_AT, 2)
IN_FIRST = FIRST.opens_at + 2 * HOUR


def start(it: Subscription, number: int = 1, name: str = "pay_1") -> Subscription:
    decision = MayCharge(period=FIRST, attempt=number)
    return charge_moves.charge_started(it, decision, payment_id=name, external_id="e-2", now=IN_FIRST)


class TestCharges:
    def test_attempts_of_one_period_are_counted_from_the_first(self) -> None:
        failed = charge_moves.charge_failed(start(subscription()), "pay_1", IN_FIRST)
        second = start(failed, 2, "pay_2").attempts
        assert second is not None
        assert (second.used, second.payment_id, second.pending, second.first_at) == (2, "pay_2", True, IN_FIRST)

    @table("status", S)
    def test_a_success_moves_the_anchor_and_clears_what_is_overdue(self, status: SubscriptionStatus) -> None:
        """A success moves the anchor even if the subscription is over; the status stays."""
        overdue = status is S.ACTIVE
        before = start(subscription(status, past_due=overdue))
        paid = charge_moves.charge_succeeded(before, "pay_1", FIRST.ref, at=IN_FIRST, now=IN_FIRST)
        assert (paid.status, paid.anchor, paid.past_due, paid.sequence) == (status, IN_FIRST, False, overdue)
        assert (paid.current_period_start, paid.current_period_end) == (FIRST.opens_at, moscow(2026, 3, 28))
        assert charge_moves.charge_succeeded(paid, "pay_1", FIRST.ref, at=IN_FIRST, now=NOW) == paid
        assert charge_moves.charge_succeeded(paid, "pay_1", FIRST.ref, at=IN_FIRST + HOUR, now=NOW) is paid
        assert charge_moves.charge_failed(paid, "pay_1", NOW) == paid

    @table(
        ("paid", "pending", "known", "last"),
        [
            (False, False, "pay_1", "pay_1"),
            (False, True, "pay_1", "pay_1"),
            (True, True, "pay_1", "pay_1"),
            (True, False, "pay_2", "pay_1"),
            (False, True, "pay_2", "pay_2"),
        ],
    )
    def test_new_success_moves_the_anchor(self, paid: bool, pending: bool, known: str, last: str) -> None:
        before = subscription(attempts=attempts(paid=paid, pending=pending, payment_id=known))
        after = charge_moves.charge_succeeded(before, "pay_1", FIRST.ref, at=IN_FIRST, now=NOW)
        assert after.attempts is not None
        assert (after.anchor, after.attempts.paid, after.attempts.payment_id) == (IN_FIRST, True, last)
        assert after.attempts.pending is (known == "pay_2" and pending)

    def test_a_bank_whose_clock_is_behind_does_not_open_the_period_again(self) -> None:
        at = FIRST.opens_at - timedelta(minutes=1)
        paid = charge_moves.charge_succeeded(start(subscription()), "pay_1", FIRST.ref, at=at, now=IN_FIRST)
        assert paid.anchor == FIRST.opens_at

    def test_late_payment_restarts_the_period_from_its_time(self) -> None:
        late = SECOND.opens_at + DAY
        paid = charge_moves.charge_succeeded(start(subscription()), "pay_1", FIRST.ref, at=late, now=late)
        assert paid.current_period_start == moscow(2026, 4, 1)

    def test_a_calendar_charge_that_ends_late_is_of_its_own_period(self) -> None:
        known = calendar_attempts(pending=True)
        before = subscription(scheme=Scheme.CALENDAR, attempts=known)
        late = known.period.closes_at + DAY
        paid = charge_moves.charge_succeeded(before, "pay_1", known.period.ref, at=late, now=late)
        assert (paid.current_period_start, paid.current_period_end) == (known.period.opens_at, known.period.closes_at)
        assert paid.anchor == known.period.closes_at - timedelta(microseconds=1)

    def test_late_success_of_an_earlier_attempt_closes_the_period(self) -> None:
        failed = charge_moves.charge_failed(start(subscription()), "pay_1", IN_FIRST)
        both = charge_moves.charge_succeeded(start(failed, 2, "pay_2"), "pay_1", FIRST.ref, at=IN_FIRST, now=IN_FIRST)
        assert both.attempts is not None
        assert (both.attempts.payment_id, both.attempts.pending, both.attempts.paid) == ("pay_2", True, True)
        ended = charge_moves.charge_failed(both, "pay_2", IN_FIRST).attempts
        assert ended is not None
        assert (ended.pending, ended.paid) == (False, True)

    def test_news_of_a_period_that_is_forgotten_move_the_anchor_forward_only(self) -> None:
        before = subscription()
        later, earlier = BOUND_AT + DAY, BOUND_AT - DAY
        assert charge_moves.charge_succeeded(before, "pay_0", "other", at=later, now=NOW).anchor == later
        assert charge_moves.charge_succeeded(before, "pay_0", "other", at=earlier, now=NOW).anchor == BOUND_AT

    def test_an_attempt_that_was_not_made_takes_nothing_from_the_budget(self) -> None:
        """PROVIDER_NOT_CONFIGURED leaves no payment and the period free
        (docs/subscriptions.md "When a charge is refused")."""
        undone = charge_moves.charge_undone(start(subscription()), "pay_1", IN_FIRST)
        assert undone.attempts is None
        failed = charge_moves.charge_failed(start(subscription()), "pay_1", IN_FIRST)
        second = charge_moves.charge_undone(start(failed, 2, "pay_2"), "pay_2", IN_FIRST).attempts
        assert second is not None
        assert (second.used, second.pending) == (1, False)
        assert charge_moves.charge_undone(failed, "pay_1", IN_FIRST) == failed

    def test_an_exhaustion_is_announced_once(self) -> None:
        told = Exhaustion(
            period_ref=FIRST.ref,
            retries_used=4,
            retries_max=4,
            retry_window_hours=20,
            next_allowed_at=FIRST.closes_at,
        )
        after = charge_moves.exhaustion_announced(subscription(attempts=attempts(used=4)), told, NOW)
        assert after.sequence == 1
        for wrong in (after, subscription(), subscription(attempts=attempts(2))):
            with pytest.raises(ValueError, match="exhaustion"):
                charge_moves.exhaustion_announced(wrong, told, NOW)
