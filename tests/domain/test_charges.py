"""In which order POST /subscriptions/{id}/charges refuses, and what each rule says (`CHARGE_RULES`;
docs/subscriptions.md "When a charge is refused")."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Scheme
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.subscriptions.charge_decisions import Blocked, MayCharge, Occupied
from cambist.core.domain.subscriptions.charges import (
    CHARGE_RULES,
    ChargeCase,
    ChargeOrder,
    judge_charge,
    subscription_window,
)
from cambist.core.domain.subscriptions.periods import window_period
from cambist.core.domain.subscriptions.subscriptions import SubscriptionStatus
from tests.domain.subscription_kit import (
    BOUND_AT,
    DAY,
    HOUR,
    S,
    attempts,
    calendar_attempts,
    refusal,
    subscription,
    terms,
)
from tests.tables import table

FIRST = window_period(terms(), BOUND_AT, 1)
INVALID = (400, "VALIDATION_ERROR")
replace = msgspec.structs.replace


def case(amount: str = "100.00", external_id: str | None = "e-2", **more: Any) -> ChargeCase:
    fields: dict[str, Any] = {
        "order": ChargeOrder(amount_rub=amount, external_id=external_id),
        "recurring": True,
        "subscription": subscription(),
        "provider": True,
        "now": FIRST.opens_at + 2 * HOUR,
    }
    return ChargeCase(**{**fields, **more})


def with_subscription(good: ChargeCase, **fields: Any) -> ChargeCase:
    return replace(good, subscription=None if good.subscription is None else replace(good.subscription, **fields))


def answer(judged: ChargeCase) -> tuple[int, str] | None:
    return refusal(lambda: judge_charge(judged))


class Row(msgspec.Struct, frozen=True):
    """A rule, how an order breaks it, and what that is answered with."""

    rule: str
    spoil: Callable[[ChargeCase], ChargeCase]
    answer: tuple[int, str]


def _order(**fields: Any) -> Callable[[ChargeCase], ChargeCase]:
    return lambda good: replace(good, order=replace(good.order, **fields))


ROWS = [
    Row("shape", _order(external_id="x" * 257), INVALID),
    Row("recurring is on", lambda good: replace(good, recurring=False), (501, "RECURRING_NOT_SUPPORTED")),
    Row("subscription is found", lambda good: replace(good, subscription=None), (404, "SUBSCRIPTION_NOT_FOUND")),
    Row("mandate is active", lambda good: with_subscription(good, status=S.PAUSED), (409, "CHARGE_MANDATE_INACTIVE")),
    Row("above zero", _order(amount_rub="0"), (400, "INVALID_AMOUNT")),
    Row("within cap", lambda good: with_subscription(good, cap_amount=Rub(99_99)), (409, "CAP_EXCEEDED")),
    Row("within window cap", lambda good: with_subscription(good, cap_window=Rub(99_99)), (409, "CAP_EXCEEDED")),
    Row("provider is ready", lambda good: replace(good, provider=False), (503, "PROVIDER_NOT_CONFIGURED")),
    Row(
        "receipt is known",
        lambda good: replace(good, receipt_lacks=("receipt_email",)),
        (400, "PAYMENT_ROUTE_UNAVAILABLE"),
    ),
    Row(
        "period is free",
        lambda good: with_subscription(
            replace(good, now=BOUND_AT), scheme=Scheme.CALENDAR, attempts=calendar_attempts(paid=True)
        ),
        (409, "CHARGE_PERIOD_OCCUPIED"),
    ),
    Row("window is open", lambda good: replace(good, now=BOUND_AT + DAY), (409, "CHARGE_BEFORE_WINDOW")),
    Row(
        "budget is left",
        lambda good: with_subscription(good, attempts=attempts(used=4)),
        (409, "RECURRING_CHARGE_EXHAUSTED"),
    ),
]
OF_PERIOD = {"period is free", "window is open", "budget is left"}
PAIRS = [
    (first, second)
    for number, first in enumerate(ROWS)
    for second in ROWS[number + 1 :]
    # A period is in one state at a time.
    if first.rule not in OF_PERIOD
]


class TestRules:
    def test_there_is_a_row_for_every_rule_in_their_order(self) -> None:
        assert [row.rule for row in ROWS] == [rule.name for rule in CHARGE_RULES]

    @table("row", ROWS, ids=lambda row: row.rule)
    def test_charge_that_breaks_one_rule_is_refused_by_it(self, row: Row) -> None:
        assert answer(case()) is None
        assert answer(row.spoil(case())) == row.answer

    def test_a_charge_may_take_all_that_a_period_may(self) -> None:
        assert answer(with_subscription(case(), cap_amount=Rub(100_00), cap_window=Rub(100_00))) is None

    @table(("first", "second"), PAIRS, ids=lambda row: row.rule)
    def test_charge_that_breaks_two_rules_is_refused_by_the_first(self, first: Row, second: Row) -> None:
        assert answer(first.spoil(second.spoil(case()))) == first.answer

    @table("text", ["", "1e3", "-", "1.001", "١", " 5"])
    def test_an_amount_is_a_decimal_string(self, text: str) -> None:
        assert answer(case(text)) == INVALID

    @table("text", ["0", "0.00", "-5.00"])
    def test_an_amount_is_above_zero(self, text: str) -> None:
        assert answer(case(text)) == (400, "INVALID_AMOUNT")

    @table("text", ["0.01", "29.99", "100", "100.00"])
    def test_up_to_the_cap_any_amount_is_charged(self, text: str) -> None:
        """The 30 RUB of one-off payments do not hold for charges (docs/subscriptions.md "Periods and attempts")."""
        assert judge_charge(case(text)) == MayCharge(period=FIRST, attempt=1)

    @table("status", S)
    def test_only_active_ones_are_charged(self, status: SubscriptionStatus) -> None:
        wanted = None if status is S.ACTIVE else (409, "CHARGE_MANDATE_INACTIVE")
        assert answer(case(subscription=subscription(status))) == wanted

    @table("lost", ["mandate_token", "anchor"])
    def test_an_active_one_without_a_mandate_is_not(self, lost: str) -> None:
        assert answer(with_subscription(case(), **{lost: None})) == (409, "CHARGE_MANDATE_INACTIVE")

    def test_an_overdue_mandate_is_still_tried(self) -> None:
        """`past_due` leaves the status active (docs/subscriptions.md "When the mandate is lost")."""
        assert answer(with_subscription(case(), past_due=True)) is None

    @table(
        ("rule", "next_allowed_at"),
        [("window is open", "2026-02-28T00:00:00.000+03:00"), ("budget is left", "2026-03-31T00:00:00.000+03:00")],
    )
    def test_early_charge_is_refused_with_the_next_time_in_moscow_time(self, rule: str, next_allowed_at: str) -> None:
        row = next(row for row in ROWS if row.rule == rule)
        with pytest.raises(Refusal) as refused:
            judge_charge(row.spoil(case()))
        assert refused.value.details == {"next_allowed_at": next_allowed_at}


class TestEarlierCharges:
    @table("external_id", ["e-1", "e-2", None])
    def test_a_pending_attempt_answers_whoever_asks(self, external_id: str | None) -> None:
        """200 with the same last attempt; the bank is not called (docs/subscriptions.md "Periods and attempts")."""
        blocked = case(external_id=external_id, subscription=subscription(attempts=attempts(pending=True)))
        assert judge_charge(blocked) == Blocked(period=FIRST, payment_id="pay_1")

    @table("outcome", ["pending", "paid"])
    @table(
        ("held", "asked", "is_same"),
        [
            ("e-1", "e-1", True),
            ("e-1", None, True),
            ("e-1", "e-2", False),
            (None, None, True),
            (None, "e-1", False),
        ],
    )
    def test_a_calendar_period_answers_with_its_charge_unless_another_is_meant(
        self, outcome: str, held: str | None, asked: str | None, is_same: bool
    ) -> None:
        """The same charge with 200; `CHARGE_PERIOD_OCCUPIED` for another `external_id`
        (docs/subscriptions.md "The calendar scheme")."""
        known = replace(calendar_attempts(**{outcome: True}), external_id=held)
        judged = case(
            external_id=asked, now=BOUND_AT, subscription=subscription(scheme=Scheme.CALENDAR, attempts=known)
        )
        if is_same:
            assert judge_charge(judged) == Occupied(period=known.period, payment_id="pay_1", external_id=held)
        else:
            assert answer(judged) == (409, "CHARGE_PERIOD_OCCUPIED")

    def test_a_failure_frees_the_calendar_period(self) -> None:
        known = calendar_attempts()
        freed = case(now=BOUND_AT, subscription=subscription(scheme=Scheme.CALENDAR, attempts=known))
        assert judge_charge(freed) == MayCharge(period=known.period, attempt=2)


class TestBody:
    def test_other_keys_are_ignored(self) -> None:
        """The period cannot be set (docs/subscriptions.md "Charging")."""
        read = msgspec.json.decode(b'{"amount_rub":"5","period_ref":"2026-01","x":[]}', type=ChargeOrder)
        assert read == ChargeOrder(amount_rub="5")

    @table("body", ["{}", '{"amount_rub":5}', '{"amount_rub":null}', "[]"])
    def test_malformed_order_is_refused(self, body: str) -> None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=ChargeOrder)


class TestWindow:
    @table("status", [S.PAUSED, S.CANCELLED, S.EXPIRED])
    def test_window_without_a_mandate_shows_the_period_and_no_charge(self, status: SubscriptionStatus) -> None:
        shown = subscription_window(subscription(status), FIRST.opens_at)
        assert (shown.period_ref, shown.can_charge, shown.next_allowed_at) == (FIRST.ref, False, None)
        assert shown.reason == "CHARGE_MANDATE_INACTIVE"

    def test_before_the_binding_there_is_no_period(self) -> None:
        shown = subscription_window(subscription(S.PENDING_BINDING), FIRST.opens_at)
        assert (shown.period_ref, shown.can_charge, shown.reason) == (None, False, "CHARGE_MANDATE_INACTIVE")
        assert shown.attempts_used == 0

    @table("known", [None, attempts(), attempts(used=4), attempts(pending=True)])
    @table("now", [BOUND_AT, FIRST.opens_at, FIRST.opens_at + DAY, FIRST.closes_at])
    def test_window_says_what_a_charge_would_be_answered(self, known: Any, now: Any) -> None:
        """Computed by the function that guards charges (docs/subscriptions.md "Charging")."""
        it = subscription(attempts=known)
        shown = subscription_window(it, now)
        judged = case(subscription=it, now=now)
        refused = answer(judged)
        if refused is None:
            assert shown.can_charge is isinstance(judge_charge(judged), MayCharge)
        else:
            assert (shown.can_charge, shown.reason) == (False, refused[1])
