"""Effects of a bank's report on a charge, and the steps allowed for a charge without a known outcome
(docs/subscriptions.md "When a charge is refused"; ARCHITECTURE.md "Three outcomes")."""

from datetime import timedelta
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import RECURRING, FailureReason, Payment, PaymentStatus, PaymentTrigger
from cambist.core.domain.payments.reports import Arrival, Report
from cambist.core.domain.subscriptions.charge_reports import (
    ON_ITS_WAY,
    SEND_LONGEST,
    Step,
    decide_charge_report,
    has_no_outcome,
    step_of,
)
from tests.domain.subscription_kit import BOUND_AT, DAY, HOUR, SHOP_ID, TICK, S, subscription
from tests.tables import table

NOW = BOUND_AT + 28 * DAY
P, T = PaymentStatus, PaymentTrigger


def charge(status: PaymentStatus = P.PENDING) -> Payment:
    return Payment(
        id="pay_1",
        account_id="acc_1",
        mode=Mode.TEST,
        shop_id=SHOP_ID,
        status=status,
        amount=Rub(100_00),
        payment_method=RECURRING,
        created_at=NOW,
        expires_at=NOW + DAY,
        subscription_id="sub_1",
        period_ref="a20260228-month1",
        bank="bank",
    )


@table("late", [timedelta(0), 7 * HOUR, 400 * DAY])
def test_money_of_a_charge_is_never_too_late(late: timedelta) -> None:
    """Decided: no payer lets it pass, only the bank's word ends it."""
    arrival = Arrival(id="t", amount=Rub(100_00), at=NOW + late)
    decision = decide_charge_report(charge(), Report(status=P.PAID, arrivals=(arrival,)), NOW + late)
    assert (decision.trigger, decision.arrival, decision.unapplied) == (T.PAID, arrival, ())


@table("late", [timedelta(0), 2 * DAY, 400 * DAY])
def test_a_charge_never_expires(late: timedelta) -> None:
    assert decide_charge_report(charge(), Report(status=P.PENDING), NOW + late).trigger is None


def test_a_failure_says_why() -> None:
    report = Report(status=P.FAILED, failure=FailureReason.MANDATE_REVOKED)
    decision = decide_charge_report(charge(), report, NOW + 3 * DAY)
    assert (decision.trigger, decision.failure) == (T.REFUSED, FailureReason.MANDATE_REVOKED)


def test_money_after_a_failure_goes_to_suspense() -> None:
    """Never lost and never silently kept (docs/payments.md "Money that cannot count")."""
    arrival = Arrival(id="t", amount=Rub(100_00), at=NOW)
    decision = decide_charge_report(charge(P.FAILED), Report(status=P.PAID, arrivals=(arrival,)), NOW)
    assert decision.trigger is None
    assert [unapplied.reason for unapplied in decision.unapplied] == ["after_failed"]


STEPS: list[tuple[S, dict[str, Any], timedelta, Step]] = [
    (S.ACTIVE, {}, timedelta(0), Step.SEND),
    (S.ACTIVE, {}, SEND_LONGEST - TICK, Step.SEND),
    (S.ACTIVE, {}, SEND_LONGEST, Step.WAIT),
    (S.ACTIVE, {}, SEND_LONGEST + ON_ITS_WAY - TICK, Step.WAIT),
    (S.ACTIVE, {}, SEND_LONGEST + ON_ITS_WAY, Step.GIVE_UP),
    (S.ACTIVE, {"mandate_bank": "another"}, HOUR, Step.WAIT),
    (S.PAUSED, {}, HOUR, Step.WAIT),
    (S.PAUSED, {}, SEND_LONGEST + ON_ITS_WAY, Step.GIVE_UP),
    (S.CANCELLED, {}, ON_ITS_WAY - TICK, Step.WAIT),
    (S.CANCELLED, {}, ON_ITS_WAY, Step.GIVE_UP),
    (S.EXPIRED, {}, ON_ITS_WAY, Step.GIVE_UP),
]


@table(("status", "more", "after", "step"), STEPS)
def test_charge_that_its_bank_never_saw_is_sent_again_or_abandoned(
    status: S, more: dict[str, Any], after: timedelta, step: Step
) -> None:
    """Sent while the payer agrees and somebody expects it; given up only once no request can be under way."""
    found = msgspec.structs.replace(subscription(status, **more), updated_at=NOW)
    assert step_of(charge(), found, NOW + after) is step


@table("status", P)
def test_only_an_open_charge_holds_its_period(status: PaymentStatus) -> None:
    assert has_no_outcome(charge(status)) is (status in (P.PENDING, P.PROCESSING))
