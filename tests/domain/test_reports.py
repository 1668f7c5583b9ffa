"""Effects of a bank's report on a payment: one case per row (docs/payments.md "How it ends")."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import PAYMENT_MOVES, FailureReason, Payment, PaymentStatus, PaymentTrigger
from cambist.core.domain.payments.reports import Arrival, Decision, Report, decide, moved
from tests.moves import led, trigger_to
from tests.tables import table

S, T = PaymentStatus, PaymentTrigger
START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ASKED = Rub(100_00)


def payment(status: PaymentStatus, *, transfer_id: str | None = None) -> Payment:
    return Payment(
        id="pay_0",
        account_id="acc",
        mode=Mode.TEST,
        shop_id="shop",
        status=status,
        amount=ASKED,
        payment_method="sbp",
        created_at=START,
        expires_at=START + timedelta(minutes=15),
        transfer_id=transfer_id,
    )


def money(*, transfer: str = "t1", kopecks: int = 100_00, after: timedelta = timedelta(minutes=1)) -> Arrival:
    return Arrival(id=transfer, amount=Rub(kopecks), at=START + after)


LATE = timedelta(hours=5, minutes=59)
TOO_LATE = timedelta(hours=6, seconds=1)

MONEY_ROWS = [
    # status before, when the money came, kopecks, status after (None: stays), why it is unapplied
    (S.PENDING, timedelta(minutes=1), 100_00, S.PAID, None),
    (S.PROCESSING, timedelta(minutes=1), 100_00, S.PAID, None),
    (S.PENDING, timedelta(minutes=1), 99_99, S.AMOUNT_MISMATCH, None),
    (S.PENDING, timedelta(minutes=1), 100_01, S.AMOUNT_MISMATCH, None),
    (S.PROCESSING, timedelta(minutes=1), 1, S.AMOUNT_MISMATCH, None),
    (S.EXPIRED, LATE, 100_00, S.PAID, None),
    (S.EXPIRED, LATE, 50_00, S.AMOUNT_MISMATCH, None),
    (S.EXPIRED, timedelta(hours=6), 100_00, S.PAID, None),
    (S.EXPIRED, TOO_LATE, 100_00, None, "too_late"),
    # The bank was not polled until then.
    (S.PENDING, TOO_LATE, 100_00, S.EXPIRED, "too_late"),
    (S.PROCESSING, TOO_LATE, 50_00, S.EXPIRED, "too_late"),
    (S.FAILED, timedelta(minutes=1), 100_00, None, "after_failed"),
    (S.CANCELLED, timedelta(minutes=1), 100_00, None, "after_cancelled"),
]


@table(("before", "after_start", "kopecks", "after", "unapplied"), MONEY_ROWS)
def test_money_moves_a_payment_or_goes_to_suspense(
    before: PaymentStatus, after_start: timedelta, kopecks: int, after: PaymentStatus | None, unapplied: str | None
) -> None:
    arrival = money(kopecks=kopecks, after=after_start)
    decision = decide(payment(before), Report(status=S.PAID, arrivals=(arrival,)), START + after_start)
    assert led(PAYMENT_MOVES, before, decision.trigger) is after
    assert [(each.arrival, each.reason) for each in decision.unapplied] == (
        [] if unapplied is None else [(arrival, unapplied)]
    )


@table("status", [S.PAID, S.SETTLED, S.REFUNDED, S.AMOUNT_MISMATCH, S.FAILED])
def test_second_transfer_is_suspense_and_a_repeated_first_changes_nothing(status: PaymentStatus) -> None:
    report = Report(status=S.PAID, arrivals=(money(), money(transfer="t2", after=timedelta(minutes=2))))
    decision = decide(payment(status, transfer_id="t1"), report, START + timedelta(minutes=3))
    assert decision.trigger is None
    assert [(unapplied.arrival.id, unapplied.reason) for unapplied in decision.unapplied] == [("t2", "second_transfer")]


@table("status", [S.PAID, S.SETTLED, S.CANCELLED])
def test_transfer_of_the_amount_an_operator_named_is_no_second_one(status: PaymentStatus) -> None:
    """If two transfers have the amount that the operator named, the earlier one counts. A transfer of another amount
    does not."""
    told = msgspec.structs.replace(payment(status), actual_amount=Rub(90_00))
    other, first = money(transfer="t0"), money(transfer="t1", kopecks=90_00, after=timedelta(minutes=2))
    again = money(transfer="t2", kopecks=90_00, after=timedelta(minutes=3))
    for arrivals, known in (((again, first, other), first), ((other,), None)):
        decision = decide(told, Report(status=S.PAID, arrivals=arrivals), START + timedelta(minutes=4))
        assert (decision.trigger, decision.arrival) == (None, known)
        unapplied = sorted(set(arrivals) - {known}, key=lambda arrival: arrival.at)
        assert [(each.arrival, each.reason) for each in decision.unapplied] == [
            (arrival, f"after_{status.value}") for arrival in unapplied
        ]


def test_payment_under_review_takes_the_transfer_its_bank_names_late() -> None:
    told = msgspec.structs.replace(payment(S.AMOUNT_MISMATCH), actual_amount=Rub(90_00))
    decision = decide(told, Report(status=S.PAID, arrivals=(money(),)), START + timedelta(minutes=4))
    assert decision == Decision(arrival=money())


def test_earlier_of_two_transfers_pays_and_the_other_is_suspense() -> None:
    late, early = money(transfer="a", after=timedelta(minutes=2)), money(transfer="b")
    decision = decide(payment(S.PENDING), Report(status=S.PAID, arrivals=(late, early)), START + timedelta(minutes=3))
    assert (decision.trigger, decision.arrival) == (T.PAID, early)
    assert [unapplied.arrival for unapplied in decision.unapplied] == [late]


NO_MONEY_ROWS = [
    # status before, reported, minutes since creation, status after
    (S.PENDING, S.PENDING, 1, None),
    (S.PENDING, S.PENDING, 15, S.EXPIRED),
    (S.PENDING, S.PROCESSING, 1, S.PROCESSING),
    (S.PENDING, S.PROCESSING, 16, S.EXPIRED),
    (S.PROCESSING, S.PROCESSING, 1, None),
    (S.PROCESSING, S.PENDING, 1, None),
    (S.PROCESSING, S.PROCESSING, 15, S.EXPIRED),
    (S.PENDING, S.FAILED, 1, S.FAILED),
    (S.PROCESSING, S.FAILED, 1, S.FAILED),
    (S.PENDING, S.CANCELLED, 1, S.CANCELLED),
    (S.PROCESSING, S.CANCELLED, 1, S.CANCELLED),
    (S.PENDING, S.EXPIRED, 1, S.EXPIRED),
    (S.PROCESSING, S.EXPIRED, 1, S.EXPIRED),
    (S.PENDING, S.PAID, 1, S.AMOUNT_MISMATCH),
    (S.EXPIRED, S.PAID, 60, S.AMOUNT_MISMATCH),
    (S.EXPIRED, S.PAID, 361, None),
    (S.EXPIRED, S.FAILED, 60, None),
    (S.EXPIRED, S.CANCELLED, 60, None),
    (S.EXPIRED, S.PROCESSING, 60, None),
    (S.FAILED, S.PROCESSING, 1, None),
    (S.FAILED, S.CANCELLED, 1, None),
    (S.CANCELLED, S.FAILED, 1, None),
    (S.CANCELLED, S.EXPIRED, 1, None),
    # Under review: only the operator ends that.
    (S.AMOUNT_MISMATCH, S.FAILED, 1, None),
    (S.AMOUNT_MISMATCH, S.CANCELLED, 1, None),
    (S.AMOUNT_MISMATCH, S.PAID, 1, None),
]


@table(("before", "reported", "minutes", "after"), NO_MONEY_ROWS)
def test_a_report_without_money(
    before: PaymentStatus, reported: PaymentStatus, minutes: int, after: PaymentStatus | None
) -> None:
    decision = decide(payment(before), Report(status=reported), START + timedelta(minutes=minutes))
    assert led(PAYMENT_MOVES, before, decision.trigger) is after
    assert decision.unapplied == ()


@table("reason", list(FailureReason))
def test_a_failure_keeps_its_reason_and_without_one_it_is_unknown(reason: FailureReason) -> None:
    now = START + timedelta(minutes=1)
    named = decide(payment(S.PENDING), Report(status=S.FAILED, failure=reason), now)
    unnamed = decide(payment(S.PENDING), Report(status=S.FAILED), now)
    assert (named.failure, unnamed.failure) == (reason, FailureReason.UNKNOWN)
    after = moved(payment(S.PENDING), named, now, encrypted_name=None)
    assert (after.status, after.failure_reason, after.closed_at) == (S.FAILED, reason, now)


def test_a_move_fills_what_it_brings_and_rises_the_sequence() -> None:
    now = START + timedelta(minutes=2)
    arrival = money()
    after = moved(payment(S.PENDING), Decision(trigger=T.PAID, arrival=arrival), now, encrypted_name=b"sealed")
    assert (after.status, after.actual_amount, after.paid_at, after.closed_at) == (S.PAID, ASKED, arrival.at, now)
    assert (after.transfer_id, after.payer_name, after.sequence) == ("t1", b"sealed", 1)


def test_a_mismatch_holds_what_came_and_is_not_paid_yet() -> None:
    decision = Decision(trigger=T.OTHER_AMOUNT, arrival=money(kopecks=5))
    after = moved(payment(S.PENDING), decision, START, encrypted_name=None)
    assert (after.actual_amount, after.paid_at, after.closed_at) == (Rub(5), None, None)


def test_a_bank_whose_clock_is_ahead_does_not_pay_in_the_future() -> None:
    after = moved(payment(S.PENDING), Decision(trigger=T.PAID, arrival=money()), START, encrypted_name=None)
    assert after.paid_at == START


@table(
    ("before", "after"),
    [(S.PAID, S.SETTLED), (S.PAID, S.REFUNDED), (S.SETTLED, S.REFUNDED), (S.REFUNDED, S.PAID), (S.REFUNDED, S.SETTLED)],
)
def test_settlement_and_refunds_do_not_open_the_payer_window_again(before: PaymentStatus, after: PaymentStatus) -> None:
    stored = msgspec.structs.replace(payment(before), paid_at=START, closed_at=START)
    later = moved(
        stored,
        Decision(trigger=trigger_to(PAYMENT_MOVES, before, after)),
        START + timedelta(days=1),
        encrypted_name=None,
    )
    assert (later.closed_at, later.paid_at) == (START, START)


def test_staying_is_no_move() -> None:
    with pytest.raises(IllegalMove):
        moved(payment(S.PENDING), Decision(), START, encrypted_name=None)


@given(
    before=st.sampled_from(list(S)),
    reported=st.sampled_from(list(S)),
    arrivals=st.lists(
        st.builds(
            lambda number, kopecks, minutes: money(
                transfer=f"t{number}", kopecks=kopecks, after=timedelta(minutes=minutes)
            ),
            st.integers(0, 3),
            st.sampled_from([1, 100_00, 200_00]),
            st.integers(0, 500),
        ),
        max_size=4,
        unique_by=lambda arrival: arrival.id,
    ),
    minutes=st.integers(0, 600),
    known=st.sampled_from([None, "t0", "t1"]),
)
def test_any_report_makes_a_listed_move_and_loses_no_money(
    before: PaymentStatus, reported: PaymentStatus, arrivals: list[Arrival], minutes: int, known: str | None
) -> None:
    stored = payment(before, transfer_id=known)
    decision = decide(stored, Report(status=reported, arrivals=tuple(arrivals)), START + timedelta(minutes=minutes))
    assert decision.trigger is None or PAYMENT_MOVES.allows(before, decision.trigger)
    booked = [unapplied.arrival for unapplied in decision.unapplied] + ([decision.arrival] if decision.arrival else [])
    assert sorted(arrival.id for arrival in booked) == sorted(each.id for each in arrivals if each.id != known)
