"""When a subscription may be charged: every variant of the decision, and how it is shown
(docs/subscriptions.md "Periods and attempts", "Charging")."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.subscriptions.charge_decisions import (
    Attempts,
    Blocked,
    ChargeDecision,
    ChargeState,
    Exhausted,
    Exhaustion,
    MayCharge,
    Occupied,
    TooEarly,
    charge_window,
    decide_charge,
    exhaustion_due_at,
)
from cambist.core.domain.subscriptions.periods import Interval, calendar_period, window_period
from tests.domain.subscription_kit import BOUND_AT, DAY, HOUR, TICK, attempts, calendar_attempts, moscow, terms
from tests.tables import table


def state(known: Attempts | None) -> ChargeState:
    return ChargeState(anchor=BOUND_AT, attempts=known)


def decide(known: Attempts | None, now: datetime) -> ChargeDecision:
    return decide_charge(terms(), state(known), now)


FIRST, SECOND = window_period(terms(), BOUND_AT, 1), window_period(terms(), BOUND_AT, 2)
AT = attempts().first_at
TOLD = Exhaustion(
    period_ref="a20260228-month1",
    retries_used=1,
    retries_max=4,
    retry_window_hours=20,
    next_allowed_at=moscow(2026, 3, 31),
)
USED_UP = msgspec.structs.replace(TOLD, retries_used=4)


class TestDecision:
    @table(
        ("known", "now", "decision"),
        [
            (None, FIRST.opens_at - TICK, TooEarly(period=FIRST, next_allowed_at=FIRST.opens_at)),
            (None, FIRST.opens_at, MayCharge(period=FIRST, attempt=1)),
            (None, FIRST.closes_at, MayCharge(period=SECOND, attempt=1)),
            (attempts(), AT + 20 * HOUR - TICK, MayCharge(period=FIRST, attempt=2)),
            (
                attempts(),
                AT + 20 * HOUR,
                Exhausted(period=FIRST, next_allowed_at=SECOND.opens_at, announce=TOLD),
            ),
            (
                attempts(announced=True),
                AT + 20 * HOUR,
                Exhausted(period=FIRST, next_allowed_at=SECOND.opens_at),
            ),
            (attempts(used=4), AT, Exhausted(period=FIRST, next_allowed_at=SECOND.opens_at, announce=USED_UP)),
            (attempts(used=4), SECOND.opens_at, MayCharge(period=SECOND, attempt=1, announce=USED_UP)),
            (attempts(used=4, announced=True), SECOND.opens_at, MayCharge(period=SECOND, attempt=1)),
            (attempts(pending=True), AT, Blocked(period=FIRST, payment_id="pay_1")),
            (attempts(used=4, pending=True), AT + 20 * HOUR, Blocked(period=FIRST, payment_id="pay_1")),
            (attempts(pending=True), SECOND.opens_at + DAY, Blocked(period=FIRST, payment_id="pay_1")),
            (attempts(paid=True), AT, TooEarly(period=SECOND, next_allowed_at=SECOND.opens_at)),
            # Another process's clock is behind at the edge: the attempt that was made counts.
            (attempts(), FIRST.opens_at - TICK, MayCharge(period=FIRST, attempt=2)),
        ],
    )
    def test_each_variant(self, known: Attempts | None, now: datetime, decision: ChargeDecision) -> None:
        assert decide(known, now) == decision

    @table("before", [HOUR, 3 * HOUR])
    def test_a_period_that_ends_no_later_than_its_budget_is_not_exhausted(self, before: timedelta) -> None:
        """If the first attempt of the day is at 21:00, its three hours end with the day, and charges are allowed again
        in the next period."""
        daily = terms(Interval.DAY, 1)
        period = window_period(daily, BOUND_AT, 1)
        known = attempts(period=period, first_at=period.closes_at - before)
        assert exhaustion_due_at(daily, state(known)) is None
        for now in (period.closes_at - TICK, period.closes_at, period.closes_at + 5 * HOUR):
            decision = decide_charge(daily, state(known), now)
            assert isinstance(decision, MayCharge)
            assert decision.announce is None

    @table(
        ("known", "due_at"),
        [
            (None, None),
            (attempts(), AT + 20 * HOUR),
            (attempts(used=4), AT),
            (attempts(pending=True), None),
            (attempts(paid=True), None),
            (attempts(announced=True), None),
        ],
    )
    def test_when_to_look_for_an_exhaustion_unasked(self, known: Attempts | None, due_at: datetime | None) -> None:
        assert exhaustion_due_at(terms(), state(known)) == due_at

    def test_before_the_binding_there_is_nothing_to_decide(self) -> None:
        with pytest.raises(ValueError, match="anchor"):
            decide_charge(terms(), ChargeState(anchor=None, attempts=None), BOUND_AT)

    @table(
        ("known", "held"),
        [
            (None, False),
            (calendar_attempts(), False),
            (calendar_attempts(pending=True), True),
            (calendar_attempts(paid=True), True),
        ],
    )
    def test_a_calendar_period_is_held_by_what_did_not_fail(self, known: Attempts | None, held: bool) -> None:
        kind = terms(scheme=Scheme.CALENDAR)
        period = calendar_period(Interval.MONTH, BOUND_AT)
        decision = decide_charge(kind, state(known), BOUND_AT)
        if held:
            assert decision == Occupied(period=period, payment_id="pay_1", external_id="e-1")
        else:
            assert decision == MayCharge(period=period, attempt=1 if known is None else 2)
        following = decide_charge(kind, state(known), period.closes_at)
        assert isinstance(following, MayCharge)
        assert following.attempt == 1


class TestWindow:
    """`charge-window` is computed by the function that guards charges (docs/subscriptions.md "Charging")."""

    @table(
        ("known", "now", "shown"),
        [
            (None, BOUND_AT, (FIRST.ref, 0, None, False, "CHARGE_BEFORE_WINDOW", FIRST.opens_at)),
            (None, FIRST.opens_at, (FIRST.ref, 0, None, True, None, None)),
            (attempts(), AT, (FIRST.ref, 1, AT + 20 * HOUR, True, None, None)),
            (
                attempts(used=4),
                AT,
                (FIRST.ref, 4, AT + 20 * HOUR, False, "RECURRING_CHARGE_EXHAUSTED", SECOND.opens_at),
            ),
            (attempts(pending=True), SECOND.opens_at, (FIRST.ref, 1, AT + 20 * HOUR, False, "CHARGE_PENDING", None)),
            (attempts(used=4), SECOND.opens_at, (SECOND.ref, 0, None, True, None, None)),
        ],
    )
    def test_charge_window_is_shown(self, known: Attempts | None, now: datetime, shown: tuple[Any, ...]) -> None:
        window = charge_window(terms(), state(known), now)
        period = SECOND if window.period_ref == SECOND.ref else FIRST
        assert (window.opens_at, window.closes_at, window.attempts_max) == (period.opens_at, period.closes_at, 4)
        assert shown == (
            window.period_ref,
            window.attempts_used,
            window.window_ends_at,
            window.can_charge,
            window.reason,
            window.next_allowed_at,
        )

    def test_the_budget_is_shown_to_end_with_the_period(self) -> None:
        daily = terms(Interval.DAY, 1)
        period = window_period(daily, BOUND_AT, 1)
        known = attempts(period=period, first_at=period.closes_at - HOUR)
        assert charge_window(daily, state(known), known.first_at).window_ends_at == period.closes_at

    def test_in_the_calendar_scheme_there_is_no_budget_and_waiting_helps(self) -> None:
        period = calendar_period(Interval.MONTH, BOUND_AT)
        window = charge_window(terms(scheme=Scheme.CALENDAR), state(calendar_attempts(paid=True)), BOUND_AT)
        assert (window.attempts_max, window.window_ends_at, window.can_charge) == (None, None, False)
        assert (window.reason, window.next_allowed_at) == ("CHARGE_PERIOD_OCCUPIED", period.closes_at)
