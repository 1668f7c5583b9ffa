"""Results of a bank's report about a binding, one row per case (docs/states.md "Subscription"; docs/payments.md "Money
that cannot count"; docs/subscriptions.md "How the payer binds")."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Mode, Scheme
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import (
    LATE_WINDOW,
    PAYMENT_MOVES,
    RECURRING,
    BindingCharge,
    FailureReason,
    Payment,
    PaymentStatus,
)
from cambist.core.domain.payments.reports import Arrival
from cambist.core.domain.subscriptions.binding_reports import (
    BindingReport,
    MandateStanding,
    decide_binding,
    follow_binding,
    is_unknown_mandate,
    may_bind,
    symbolically_paid,
)
from cambist.core.domain.subscriptions.moves import Mandate
from cambist.core.domain.subscriptions.periods import Interval
from cambist.core.domain.subscriptions.subscriptions import Binding, Subscription, SubscriptionStatus
from tests.moves import led
from tests.tables import table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
M, P, S = MandateStanding, PaymentStatus, SubscriptionStatus
MONEY = (Arrival(id="t1", amount=Rub(500_00), at=NOW),)
MANDATE = Mandate(bank="b", reference="b:1", token=b"sealed")


def subscription(**changes: Any) -> Subscription:
    made = Subscription(
        id="sub_1",
        account_id="acc_1",
        mode=Mode.TEST,
        shop_id="shop",
        scheme=Scheme.WINDOW,
        status=S.PENDING_BINDING,
        amount=Rub(500_00),
        cap_amount=Rub(500_00),
        interval=Interval.MONTH,
        interval_count=1,
        description="Club",
        binding_charge=BindingCharge.FIRST,
        created_at=NOW,
        updated_at=NOW,
        binding_url="https://pay.example/s/sub_1",
        binding=Binding(operation="sub_1:1", requested_at=NOW, payment_id="pay_1", bank="b", bank_reference="b:1"),
    )
    return msgspec.structs.replace(made, **changes)


def payment(**changes: Any) -> Payment:
    made = Payment(
        id="pay_1",
        account_id="acc_1",
        mode=Mode.TEST,
        shop_id="shop",
        status=P.PENDING,
        amount=Rub(500_00),
        payment_method=RECURRING,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=15),
        subscription_id="sub_1",
        binding=BindingCharge.FIRST,
        bank="b",
        bank_reference="b:1",
    )
    return msgspec.structs.replace(made, **changes)


SYMBOLIC = {"binding": BindingCharge.NONE, "amount": Rub(1_00)}
LATE = {**SYMBOLIC, "status": P.EXPIRED, "expires_at": NOW - LATE_WINDOW}
TICK = timedelta(microseconds=1)
PAID = {"status": P.PAID, "transfer_id": "t1", "paid_at": NOW}


@table(
    ("of_payment", "of_subscription", "standing", "arrivals", "status", "unapplied"),
    [
        ({}, {}, M.OPEN, (), None, []),
        ({}, {}, M.ACTIVE, (), None, []),
        ({}, {}, M.ACTIVE, MONEY, P.PAID, []),
        ({}, {}, M.OPEN, MONEY, P.PAID, []),
        ({}, {}, M.REFUSED, MONEY, P.PAID, []),
        ({}, {}, M.REFUSED, (), P.FAILED, []),
        ({}, {}, M.CLOSED, (), P.EXPIRED, []),
        ({"status": P.EXPIRED}, {}, M.ACTIVE, MONEY, P.PAID, []),
        ({"status": P.CANCELLED}, {"status": S.CANCELLED}, M.ACTIVE, MONEY, None, ["after_cancelled"]),
        ({"status": P.EXPIRED}, {"status": S.CANCELLED}, M.ACTIVE, MONEY, None, ["after_cancelled"]),
        ({"status": P.EXPIRED}, {"status": S.EXPIRED}, M.ACTIVE, MONEY, None, ["after_expired"]),
        ({}, {"status": S.ACTIVE}, M.ACTIVE, MONEY, None, ["bound_already"]),
        ({}, {"first_payment_id": "pay_0"}, M.ACTIVE, MONEY, None, ["bound_already"]),
        (PAID, {"status": S.CANCELLED}, M.ACTIVE, MONEY, None, []),
        (SYMBOLIC, {}, M.ACTIVE, (), P.PAID, []),
        (SYMBOLIC, {}, M.LOST, (), P.PAID, []),
        (SYMBOLIC, {}, M.OPEN, (), None, []),
        (SYMBOLIC, {}, M.REFUSED, (), P.EXPIRED, []),
        (SYMBOLIC, {}, M.CLOSED, (), P.EXPIRED, []),
        (SYMBOLIC, {}, M.ACTIVE, MONEY, P.PAID, ["not_to_be_debited"]),
        ({**SYMBOLIC, "status": P.EXPIRED}, {}, M.ACTIVE, (), P.PAID, []),
        ({**SYMBOLIC, "status": P.EXPIRED}, {"status": S.CANCELLED}, M.ACTIVE, (), None, []),
        ({**SYMBOLIC, "status": P.CANCELLED}, {}, M.ACTIVE, (), None, []),
        ({**SYMBOLIC, "expires_at": NOW}, {}, M.OPEN, (), P.EXPIRED, []),
        ({**SYMBOLIC, "expires_at": NOW + TICK}, {}, M.OPEN, (), None, []),
        ({**LATE, "created_at": NOW - LATE_WINDOW}, {}, M.ACTIVE, (), P.PAID, []),
        ({**LATE, "created_at": NOW - LATE_WINDOW - TICK}, {}, M.ACTIVE, (), None, []),
        ({**LATE, "created_at": NOW - 2 * LATE_WINDOW, "expires_at": NOW}, {}, M.ACTIVE, (), P.PAID, []),
        ({"status": P.FAILED}, {"status": S.ACTIVE}, M.ACTIVE, MONEY, None, ["after_failed"]),
    ],
)
def test_report_moves_the_payment(
    of_payment: dict[str, Any],
    of_subscription: dict[str, Any],
    standing: MandateStanding,
    arrivals: tuple[Arrival, ...],
    status: PaymentStatus | None,
    unapplied: list[str],
) -> None:
    report = BindingReport(standing=standing, arrivals=arrivals, failure=FailureReason.DECLINED_BY_BANK)
    decision = decide_binding(payment(**of_payment), subscription(**of_subscription), report, NOW)
    moved = led(PAYMENT_MOVES, of_payment.get("status", P.PENDING), decision.trigger)
    assert (moved, [unapplied.reason for unapplied in decision.unapplied]) == (status, unapplied)


HELD = {"mandate_bank": "b", "mandate_reference": "b:1", "mandate_token": b"sealed", "anchor": NOW}
PAUSED = {"status": S.PAUSED, "rebind_required": True, "paused_at": NOW}
OLD = {"mandate_bank": "b", "mandate_reference": "b:0", "mandate_token": b"old", "anchor": NOW}
NEWER = Binding(operation="sub_1:2", requested_at=NOW, payment_id="pay_2", bank="b", bank_reference="b:2")


@table(
    ("of_subscription", "of_payment", "report", "status", "unapplied"),
    [
        ({}, {}, {"standing": M.OPEN}, S.PENDING_BINDING, False),
        ({}, {}, {"standing": M.ACTIVE}, S.PENDING_BINDING, False),
        ({}, PAID, {"standing": M.OPEN}, S.PENDING_BINDING, False),
        ({}, PAID, {"standing": M.REFUSED}, S.PENDING_BINDING, False),
        ({}, PAID, {"standing": M.ACTIVE}, S.ACTIVE, False),
        ({"binding": NEWER}, PAID, {"standing": M.ACTIVE}, S.ACTIVE, False),
        ({}, {**SYMBOLIC, "status": P.PAID}, {"standing": M.ACTIVE}, S.ACTIVE, False),
        ({}, {"status": P.EXPIRED}, {"standing": M.CLOSED}, S.CANCELLED, False),
        ({"binding": NEWER}, {"status": P.EXPIRED}, {"standing": M.CLOSED}, S.PENDING_BINDING, False),
        ({}, {"expires_at": NOW}, {"standing": M.CLOSED}, S.PENDING_BINDING, False),
        ({**HELD, "status": S.ACTIVE}, PAID, {"standing": M.LOST}, S.PAUSED, False),
        ({**HELD, **PAUSED}, PAID, {"standing": M.ACTIVE}, S.ACTIVE, False),
        ({**HELD, "status": S.ACTIVE}, PAID, {"standing": M.ENDED}, S.EXPIRED, False),
        ({**HELD, **PAUSED}, PAID, {"standing": M.ENDED}, S.PAUSED, False),
        ({**OLD, **PAUSED}, {**SYMBOLIC, "status": P.PAID}, {"standing": M.ACTIVE}, S.ACTIVE, False),
        (
            {**OLD, **PAUSED},
            {**SYMBOLIC, "created_at": NOW - timedelta(hours=1)},
            {"standing": M.ACTIVE},
            S.PAUSED,
            True,
        ),
        ({**OLD, "status": S.ACTIVE, "binding": NEWER}, {}, {"standing": M.ACTIVE}, S.ACTIVE, True),
        ({**HELD, "status": S.CANCELLED}, PAID, {"standing": M.ACTIVE}, S.CANCELLED, True),
        ({"status": S.CANCELLED}, {"status": P.CANCELLED}, {"standing": M.OPEN}, S.CANCELLED, True),
        ({"status": S.CANCELLED}, {"status": P.CANCELLED}, {"standing": M.ENDED}, S.CANCELLED, False),
    ],
)
def test_report_moves_the_subscription(
    of_subscription: dict[str, Any],
    of_payment: dict[str, Any],
    report: dict[str, Any],
    status: SubscriptionStatus,
    unapplied: bool,
) -> None:
    said, before, paid = BindingReport(**report), subscription(**of_subscription), payment(**of_payment)
    given = said.standing in (M.ACTIVE, M.LOST, M.ENDED)
    first = paid if paid.status is P.PAID and paid.binding is BindingCharge.FIRST else None
    first = first if before.status is S.PENDING_BINDING else None
    after = follow_binding(before, paid, said, MANDATE if given else None, first, NOW)
    assert after.status is status
    assert is_unknown_mandate(after, paid, said) is unapplied
    assert follow_binding(after, paid, said, MANDATE if given else None, None, NOW).status is status


def test_mandate_confirmed_and_lost_since_moves_twice() -> None:
    paid, said = payment(**PAID), BindingReport(standing=M.LOST)
    first = follow_binding(subscription(), paid, said, MANDATE, paid, NOW)
    second = follow_binding(first, paid, said, MANDATE, None, NOW)
    assert (first.status, second.status) == (S.ACTIVE, S.PAUSED)
    assert follow_binding(second, paid, said, MANDATE, None, NOW) == second


def test_the_anchor_is_when_the_first_charge_was_paid() -> None:
    """The binding sets the anchor (docs/subscriptions.md "Periods and attempts")."""
    paid_at = NOW - timedelta(days=1)
    paid = payment(**{**PAID, "paid_at": paid_at})
    after = follow_binding(subscription(), paid, BindingReport(standing=M.ACTIVE), MANDATE, paid, NOW)
    assert (after.anchor, after.first_payment_id) == (paid_at, "pay_1")
    assert after.attempts is not None
    assert (after.attempts.paid, after.attempts.payment_id) == (True, "pay_1")


def test_overdue_is_a_flag() -> None:
    before = subscription(**HELD, status=S.ACTIVE)
    after = follow_binding(before, payment(**PAID), BindingReport(standing=M.ACTIVE, overdue=True), MANDATE, None, NOW)
    assert (after.status, after.past_due) == (S.ACTIVE, True)


def test_symbolic_payment_brings_no_money() -> None:
    assert symbolically_paid(payment(**SYMBOLIC)).actual_amount == Rub(0)


@table(
    ("of_subscription", "link", "url"),
    [
        ({}, "https://bank.example/1", "https://bank.example/1"),
        ({}, None, None),
        ({"binding": NEWER}, "https://bank.example/1", None),
        ({"binding": None}, "https://bank.example/1", None),
    ],
)
def test_the_link_is_that_of_the_present_binding(
    of_subscription: dict[str, Any], link: str | None, url: str | None
) -> None:
    before = subscription(**{"binding_url": None, "binding_url_pending": True, **of_subscription})
    after = follow_binding(before, payment(), BindingReport(standing=M.OPEN, link=link), None, None, NOW)
    assert (after.binding_url, after.binding_url_pending) == (url, url is None)
    assert after.binding is None or after.binding.link_issued_at == (NOW if url else None)


def test_nothing_is_bound_before_the_mandate_is_known() -> None:
    before = subscription()
    assert follow_binding(before, payment(**PAID), BindingReport(standing=M.ACTIVE), None, None, NOW) is before


@table(("standing", "revoked"), [(M.ACTIVE, True), (M.LOST, False), (M.ENDED, False)])
def test_standing_mandate_of_an_ended_subscription_is_kept_for_revocation(
    standing: MandateStanding, revoked: bool
) -> None:
    before = subscription(status=S.CANCELLED)
    after = follow_binding(before, payment(**PAID), BindingReport(standing=standing), MANDATE, None, NOW)
    assert (after.revoke_pending, after.mandate_reference) == (revoked, "b:1" if revoked else None)


@table(
    ("more", "may"),
    [
        ({"status": S.ACTIVE}, True),
        ({"status": S.ACTIVE, "binding": NEWER}, False),
        ({"status": S.ACTIVE, "binding": None}, False),
        (PAUSED, True),
        ({**PAUSED, "paused_at": NOW + TICK}, False),
        ({**PAUSED, "rebind_required": False}, False),
        ({}, True),
        ({"status": S.EXPIRED}, False),
    ],
)
def test_whose_mandate_a_subscription_takes(more: dict[str, Any], may: bool) -> None:
    assert may_bind(subscription(**more), payment()) is may
