"""Refunds as data: every row of the state table, the body of an application, and the amount left (docs/refunds.md "How
it ends")."""

from datetime import timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import PaymentStatus, PaymentTrigger
from cambist.core.domain.refunds.orders import APPLICATIONS_MAX, RefundOrder
from cambist.core.domain.refunds.refunds import (
    REFUND_MOVES,
    PendingReason,
    Refund,
    RefundStatus,
    holds_money,
    is_given_up,
    is_open,
    refunded_by,
    remainder,
    waits_for_money,
)
from tests.domain.refund_kit import PAID_AMOUNT, case, payment, refund, refusal
from tests.moves import trigger_to
from tests.tables import table

S = RefundStatus


class TestMoves:
    @table(("before", "after"), list(product(S, S)), ids=lambda status: str(status))
    def test_the_table_is_the_one_of_the_decision(self, before: RefundStatus, after: RefundStatus) -> None:
        """The six moves, and no other (docs/states.md "Refund")."""
        allowed = {
            (S.PENDING, S.PROCESSING),
            (S.PENDING, S.REJECTED),
            (S.PENDING, S.CANCELLED),
            (S.PROCESSING, S.COMPLETED),
            (S.PROCESSING, S.FAILED),
            (S.COMPLETED, S.REVERSED),
        }
        if (before, after) in allowed:
            assert REFUND_MOVES.move(before, trigger_to(REFUND_MOVES, before, after)) is after
        else:
            with pytest.raises(IllegalMove):
                trigger_to(REFUND_MOVES, before, after)

    def test_the_ends(self) -> None:
        """Final are rejected, cancelled, failed and reversed (docs/states.md "Refund")."""
        assert {s for s in S if REFUND_MOVES.is_final(s)} == {S.REJECTED, S.CANCELLED, S.FAILED, S.REVERSED}

    def test_open_is_what_has_no_outcome(self) -> None:
        assert {s for s in S if is_open(refund(s))} == {S.PENDING, S.PROCESSING}

    def test_money_is_held_from_the_bank_on_until_it_is_known_not_to_have_gone(self) -> None:
        """In `pending` money is untouched; the money of a failed or reversed refund is given back (docs/refunds.md "How
        it ends")."""
        assert {s for s in S if holds_money(refund(s))} == {S.PROCESSING, S.COMPLETED}

    @table(("status", "reason"), list(product(S, [None, *PendingReason])))
    def test_only_an_uncovered_refund_waits_for_money_and_is_abandoned(
        self, status: RefundStatus, reason: PendingReason | None
    ) -> None:
        """14 days after its approval (docs/refunds.md "The money")."""
        one = msgspec.structs.replace(refund(status), pending_reason=reason)
        waits = (status, reason) == (S.PENDING, PendingReason.INSUFFICIENT_BALANCE)
        assert waits_for_money(one) is waits
        assert is_given_up(one, one.created_at + timedelta(days=14)) is waits
        assert not is_given_up(one, one.created_at + timedelta(days=14, microseconds=-1))

    def test_the_words_are_the_documented_ones(self) -> None:
        assert set(S) == {"pending", "processing", "completed", "reversed", "rejected", "cancelled", "failed"}
        assert set(PendingReason) == {"awaiting_approval", "insufficient_balance"}


class TestBody:
    def read(self, body: str) -> RefundOrder:
        return msgspec.json.decode(body, type=RefundOrder)

    def test_a_null_counts_as_absent(self) -> None:
        nulls = '{"payment_id":"p","amount_rub":null,"external_id":null,"reason":null,"metadata":null}'
        assert self.read(nulls) == self.read('{"payment_id":"p"}') == RefundOrder(payment_id="p")

    @table(
        "body",
        [
            "{}",
            '{"payment_id":null}',
            '{"payment_id":1}',
            '{"payment_id":"p","amount_rub":5}',
            '{"payment_id":"p","metadata":[]}',
            '{"payment_id":"p","shop_id":"s"}',
        ],
    )
    def test_malformed_order_is_refused(self, body: str) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.read(body)

    def test_repr_of_an_order_hides_the_merchants_words(self) -> None:
        order = RefundOrder(payment_id="pay_1", reason="Ivan called", metadata={"phone": "+70000000000"})
        assert "Ivan" not in repr(order)
        assert "7000" not in repr(order)


AMOUNTS = st.integers(1, 200_00).map(Rub)
REFUNDS = st.lists(st.builds(refund, st.sampled_from(S), AMOUNTS), max_size=12)


class TestSums:
    @given(REFUNDS, AMOUNTS)
    def test_nothing_is_lost_between_what_came_what_counts_and_what_is_left(
        self, refunds: list[Refund], came: Rub
    ) -> None:
        counted = sum((r.amount for r in refunds if r.status in (S.PENDING, S.PROCESSING, S.COMPLETED)), Rub(0))
        assert remainder(payment(actual_amount=came), refunds) + counted == came

    @given(REFUNDS, st.randoms())
    def test_their_order_does_not_matter(self, refunds: list[Refund], chance: Any) -> None:
        mixed = chance.sample(refunds, len(refunds))
        assert remainder(payment(), mixed) == remainder(payment(), refunds)
        assert refunded_by(payment(), mixed) is refunded_by(payment(), refunds)

    @given(
        st.lists(
            st.one_of(
                st.none(), st.integers(-1_00, 110_00), st.tuples(st.integers(0, 9), st.sampled_from(REFUND_MOVES.rows))
            ),
            max_size=40,
        )
    )
    def test_refunds_never_exceed_the_paid_amount(self, actions: list[Any]) -> None:
        """Any orders (an amount, or None for all that is left) among any allowed moves of those accepted."""
        refunds: list[Refund] = []
        for action in actions:
            if isinstance(action, tuple):
                number, move = action
                if number < len(refunds) and refunds[number].status is move.before:
                    refunds[number] = msgspec.structs.replace(refunds[number], status=move.after)
            else:
                asked = case(None if action is None else str(Rub(action)), refunds)
                if refusal(asked) is None:
                    assert asked.amount > Rub(0)
                    refunds.append(refund(S.PENDING, asked.amount))
                    if action is None:
                        assert remainder(payment(), refunds) == Rub(0)
            assert Rub(0) <= remainder(payment(), refunds) <= PAID_AMOUNT
            assert len(refunds) <= APPLICATIONS_MAX
            completed = sum((r.amount for r in refunds if r.status is S.COMPLETED), Rub(0))
            is_full = refunded_by(payment(), refunds) is PaymentTrigger.REFUNDED
            assert is_full is (completed == PAID_AMOUNT)

    @table(
        ("refunds", "is_full"),
        [
            ([], False),
            ([refund()], True),
            ([refund(amount=Rub(99_99))], False),
            ([refund(amount=Rub(99_99)), refund(amount=Rub(1))], True),
            ([refund(amount=Rub(60_00)), refund(S.PROCESSING, Rub(40_00))], False),
            ([refund(S.REVERSED)], False),
        ],
    )
    def test_refunded_when_completed_ones_reach_what_came(self, refunds: list[Refund], is_full: bool) -> None:
        """The payment is refunded when all of it was; a part leaves its status (docs/refunds.md "How it ends")."""
        assert refunded_by(payment(), refunds) is (PaymentTrigger.REFUNDED if is_full else None)
        # A refunded payment stays refunded, or returns to its status before the refunds.
        refunded = payment(status=PaymentStatus.REFUNDED)
        assert refunded_by(refunded, refunds) is (None if is_full else PaymentTrigger.RESTORED)
        settled = payment(status=PaymentStatus.REFUNDED, settled_at=refunded.created_at)
        assert refunded_by(settled, refunds) is (None if is_full else PaymentTrigger.RESTORED_SETTLED)
