"""Operator actions that wait for a second person, and the text shown to that person (docs/operations.md "Two pairs of
eyes")."""

from datetime import timedelta
from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.exchanges.funds import ExchangeTransfer
from cambist.core.domain.exchanges.returns import MoneyReturn
from cambist.core.domain.ledger import Currency
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.guarded import all_refunded, decisions, may_decide
from cambist.core.domain.operators.pending_actions import (
    ActionStatus,
    Line,
    PendingAction,
    decided,
    expiry,
    is_same_operator,
    is_waiting,
    moved,
    status_at,
)
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from cambist.core.domain.payments.suspense import RETURN_FAILED, RETURNED_ANEW, Suspense
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from tests.domain import exchange_kit
from tests.domain.refund_kit import NOW, payment, refund
from tests.tables import table

Shown = dict[str, tuple[str, str]]
TICK = timedelta(microseconds=1)
WALLET, OTHER = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"


def with_wallet(address: str | None) -> Account:
    return exchange_kit.account(payout_wallet=address, exchange=False)


def applied(**more: Any) -> Refund:
    return msgspec.structs.replace(refund(RefundStatus.PENDING, Rub(40_00)), **more)


def approved(**more: Any) -> Refund:
    return applied(**{"approved_at": NOW, **more})


def suspended(**more: Any) -> Suspense:
    fields: dict[str, Any] = {"reason": "second", "amount": Rub(30_00), "mode": Mode.LIVE, **more}
    return Suspense(id="sus_1", account_id="acc_1", payment_id="pay_1", received_at=NOW, **fields)


def mismatched(**more: Any) -> Payment:
    return payment(PaymentStatus.AMOUNT_MISMATCH, **more)


def came(currency: Currency = Currency.USDT, amount: int = 1_50000000, **more: Any) -> ExchangeTransfer:
    fields: dict[str, Any] = {"reason": "late", "mode": Mode.LIVE, **more}
    return ExchangeTransfer(
        id="exch_1:t",
        exchange_id="exch_1",
        account_id="acc_1",
        currency=currency,
        amount=amount,
        received_at=NOW,
        **fields,
    )


def back(number: int = 1, amount: int = 1_00000000, address: str | None = WALLET) -> MoneyReturn:
    return MoneyReturn(operation="ret_1", number=number, amount=amount, address=address, created_at=NOW)


TEST: dict[str, Any] = {"mode": Mode.TEST}


@table(
    ("before", "after", "guarded", "shown"),
    [
        # Where a merchant's money goes to: set, changed, cleared.
        (None, with_wallet(WALLET), "payout_wallet", {"payout_wallet": ("-", WALLET)}),
        (with_wallet(None), with_wallet(WALLET), "payout_wallet", {"payout_wallet": ("-", WALLET)}),
        (with_wallet(WALLET), with_wallet(OTHER), "payout_wallet", {"payout_wallet": (WALLET, OTHER)}),
        (
            with_wallet(WALLET),
            with_wallet(None),
            "payout_wallet",
            {"payout_wallet": (WALLET, "-"), "account": ("Tea",) * 2},
        ),
        (with_wallet(WALLET), with_wallet(WALLET), None, {}),
        (None, with_wallet(None), None, {}),
        # A refund that is sent.
        (applied(), approved(), "refunds", {"refund": ("40.00 RUB",) * 2, "approved": ("no, pending", "yes")}),
        (applied(), approved(amount=Rub(41_00)), "refunds", {"refund": ("40.00 RUB", "41.00 RUB")}),
        (None, approved(), "refunds", {"refund": ("-", "40.00 RUB"), "approved": ("-", "yes")}),
        (None, applied(), None, {}),
        (applied(), applied(), None, {}),
        (approved(), approved(), None, {}),
        (applied(), approved(**TEST), None, {}),
        # Money in suspense that is sent back.
        (
            suspended(),
            suspended(reason=RETURNED_ANEW, attempt=2),
            "suspense",
            {
                "suspended": ("30.00 RUB, second", "back to who paid it"),
                "attempt": ("1", "2"),
                "payment": ("pay_1",) * 2,
            },
        ),
        (None, suspended(), None, {}),
        (suspended(), suspended(resolved_at=NOW), None, {}),
        (suspended(resolved_at=NOW), suspended(), None, {}),
        (suspended(), suspended(reason=RETURN_FAILED), None, {}),
        (suspended(**TEST), suspended(attempt=2, **TEST), None, {}),
        # A review of another amount.
        (
            mismatched(),
            payment(PaymentStatus.PAID),
            "suspense",
            {"amount asked": ("120.00 RUB",) * 2, "came": ("100.00 RUB", "100.00 RUB credited")},
        ),
        (
            mismatched(actual_amount=None),
            payment(PaymentStatus.FAILED, actual_amount=None),
            "suspense",
            {"came": ("unknown", "- back to who paid it"), "status": ("amount_mismatch", "failed")},
        ),
        (mismatched(), mismatched(), None, {}),
        (payment(PaymentStatus.PENDING), payment(PaymentStatus.PAID), None, {}),
        (None, payment(PaymentStatus.PAID), None, {}),
        (mismatched(**TEST), payment(PaymentStatus.PAID, **TEST), None, {}),
        # Money of an exchange that is sent back.
        (
            came(),
            came(sent_back=back()),
            "suspense",
            {"suspended": ("1.00000000 USDT, late", "sent back"), "goes to": ("-", WALLET), "attempt": ("0", "1")},
        ),
        (
            came(sent_back=back()),
            came(sent_back=back(2, address=None)),
            "suspense",
            {"goes to": ("-", "who paid it"), "attempt": ("1", "2")},
        ),
        (
            came(Currency.RUB, 30_00),
            came(Currency.RUB, 30_00, sent_back=back(amount=20_00)),
            "suspense",
            {"suspended": ("20.00 RUB, late", "sent back"), "transfer": ("exch_1:t",) * 2},
        ),
        (came(sent_back=back()), came(sent_back=back()), None, {}),
        (came(), came(), None, {}),
        (None, came(sent_back=back()), None, {}),
        (came(**TEST), came(sent_back=back(), **TEST), None, {}),
        # Anything else.
        (exchange_kit.client(), exchange_kit.client(), None, {}),
    ],
)
def test_decisions_of_an_action_are_derived_from_its_writes(
    before: Any, after: Any, guarded: str | None, shown: Shown
) -> None:
    made = decisions(before, after)
    assert [each.guarded for each in made] == ([] if guarded is None else [guarded])
    for each in made:
        assert may_decide(after)
        assert {line.field: (line.before, line.after) for line in each.lines}.items() >= shown.items()
        assert (each.record_id, each.account_id) == (after.id, "acc_1")
        assert each.mode is (None if guarded == "payout_wallet" else Mode.LIVE)


@table(
    "after",
    [
        applied(),
        approved(**TEST),
        approved(status=RefundStatus.COMPLETED),
        suspended(**TEST),
        suspended(resolved_at=NOW),
        payment(PaymentStatus.PAID, **TEST),
        payment(PaymentStatus.PENDING),
        came(),
        came(sent_back=back(), **TEST),
        exchange_kit.client(),
    ],
)
def test_record_that_can_be_no_decision_is_not_read(after: Any) -> None:
    assert not may_decide(after)


def test_earlier_refunds_count_unless_they_ended_without_money() -> None:
    def other(number: int, status: RefundStatus, **more: Any) -> Refund:
        return applied(amount=Rub(10_00), id=f"ref_{number}", status=status, **{"approved_at": NOW, **more})

    mine = approved(amount=Rub(5_00))
    others = [
        mine,
        *(other(2, RefundStatus.COMPLETED), other(3, RefundStatus.PENDING), other(4, RefundStatus.PROCESSING)),
        other(5, RefundStatus.PENDING, approved_at=None),
        *(other(6, RefundStatus.REJECTED), other(7, RefundStatus.CANCELLED), other(8, RefundStatus.FAILED)),
        other(9, RefundStatus.REVERSED),
    ]
    assert all_refunded(mine, others) == Rub(35_00)
    assert all_refunded(mine, []) == Rub(5_00)


def waiting(**more: Any) -> PendingAction:
    fields: dict[str, Any] = {"created_at": NOW, "expires_at": expiry(NOW, 3), "slot": "approve:ref_1", **more}
    return PendingAction(
        id="action_1",
        use_case="approve",
        action="refund.approve",
        object_id="ref_1",
        account_id="acc_1",
        mode=Mode.LIVE,
        arguments={},
        shown=(),
        operator="olga",
        reason="",
        **fields,
    )


def test_an_action_waits_for_the_days_of_the_setting() -> None:
    action, end = waiting(), NOW + timedelta(days=3)
    assert (is_waiting(action, end - TICK), status_at(action, end - TICK)) == (True, ActionStatus.WAITING)
    assert (is_waiting(action, end), status_at(action, end)) == (False, ActionStatus.EXPIRED)


def test_decided_action_no_longer_waits_and_frees_its_slot() -> None:
    over = decided(waiting(), ActionStatus.REJECTED, "ivan", NOW)
    assert (over.status, over.decided_by, over.decided_at, over.slot) == ("rejected", "ivan", NOW, None)
    assert not is_waiting(over, NOW)
    assert status_at(over, NOW + timedelta(days=9)) is ActionStatus.REJECTED


@table(
    ("one", "other", "same"),
    [("olga", " OLGA", True), ("olga", "ｏlga", True), ("straße", "STRASSE", True), ("olga", "oleg", False)],
)
def test_a_name_written_otherwise_is_no_second_operator(one: str, other: str, same: bool) -> None:
    assert is_same_operator(one, other) is same


ASKED, PAID_OUT = Line("amount asked", "1", "2"), Line("came", "3", "4")


@table(
    ("present", "said"),
    [
        ((PAID_OUT,), "amount asked is not to be decided any more"),
        ((ASKED, Line("came", "3", "5")), "came was 3 → 4, and is 3 → 5"),
        ((ASKED, PAID_OUT, Line("status", "a", "b")), "more would be decided than was shown"),
    ],
)
def test_confirming_operator_reads_what_moved(present: tuple[Line, ...], said: str) -> None:
    assert moved((ASKED, PAID_OUT), present) == said
