"""In which order POST /refunds refuses, and what each rule says (`orders.RULES`; docs/refunds.md "Rules")."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.terminals import Terminal
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import PaymentStatus, PaymentTrigger
from cambist.core.domain.refunds.orders import APPLICATIONS_MAX, RULES, RefundCase, judge_refund
from cambist.core.domain.refunds.refunds import Refund, RefundStatus, refunded_by, remainder
from tests.domain.refund_kit import BOUND, case, payment, refund, refusal, terminal
from tests.tables import table

S = RefundStatus
OVER = (400, "OVER_REMAINING")
PARTIAL = (400, "PARTIAL_BEFORE_SETTLEMENT")
INVALID = (400, "VALIDATION_ERROR")


def with_order(judged: RefundCase, **fields: Any) -> RefundCase:
    return msgspec.structs.replace(judged, order=msgspec.structs.replace(judged.order, **fields))


def with_refunds(judged: RefundCase, *refunds: Refund) -> RefundCase:
    return msgspec.structs.replace(judged, refunds=(*judged.refunds, *refunds))


class Row(msgspec.Struct, frozen=True):
    """A rule, how an order breaks it, and what that is answered with."""

    rule: str
    spoil: Callable[[RefundCase], RefundCase]
    answer: tuple[int, str]


ROWS = [
    Row("shape", lambda good: with_order(good, external_id="x" * 257), INVALID),
    Row("payment is found", lambda good: msgspec.structs.replace(good, payment=None), (404, "PAYMENT_NOT_FOUND")),
    Row(
        "payment is refundable",
        lambda good: msgspec.structs.replace(good, payment=payment(PaymentStatus.REFUNDED)),
        (409, "INVALID_STATUS"),
    ),
    Row(
        "applications",
        lambda good: with_refunds(good, *[refund(S.CANCELLED)] * 10),
        (409, "LIMIT_PER_PAYMENT"),
    ),
    Row("above zero", lambda good: with_order(good, amount_rub="0.00"), (400, "INVALID_AMOUNT")),
    Row(
        "whole before settlement",
        lambda good: with_order(msgspec.structs.replace(good, terminal=BOUND), amount_rub="99.99"),
        PARTIAL,
    ),
    Row("within remainder", lambda good: with_refunds(good, refund(S.PROCESSING, Rub(1))), OVER),
]


class TestRules:
    def test_there_is_a_row_for_every_rule_in_their_order(self) -> None:
        assert [row.rule for row in ROWS] == [rule.name for rule in RULES]

    @table("row", ROWS, ids=lambda row: row.rule)
    def test_refund_that_breaks_one_rule_is_refused_by_it(self, row: Row) -> None:
        good = case("100.00")
        assert refusal(good) is None
        assert refusal(row.spoil(good)) == row.answer

    @table(("first", "second"), list(combinations(ROWS, 2)), ids=lambda row: row.rule)
    def test_refund_that_breaks_two_rules_is_refused_by_the_first(self, first: Row, second: Row) -> None:
        assert refusal(first.spoil(second.spoil(case("100.00")))) == first.answer

    @table(
        "fields",
        [
            {"external_id": "x" * 256, "reason": "x" * 255},
            {"external_id": "", "reason": "", "metadata": {}},
            {"metadata": {"payerNameMasked": "I."}},
            {"amount_rub": "0.01"},
            {"amount_rub": "100"},
        ],
    )
    def test_order_within_the_rules_is_accepted(self, fields: dict[str, Any]) -> None:
        assert refusal(with_order(case("100.00"), **fields)) is None

    @table(
        ("fields", "answer", "path"),
        [
            ({"external_id": "x" * 257}, INVALID, "external_id"),
            ({"reason": "x" * 256}, INVALID, "reason"),
            *(({"amount_rub": text}, INVALID, "amount_rub") for text in ("", " 5", "+5", "1e3", "5.", "1.001", "NaN")),
            ({"amount_rub": "0"}, (400, "INVALID_AMOUNT"), None),
            ({"amount_rub": "-5.00"}, (400, "INVALID_AMOUNT"), None),
        ],
    )
    def test_order_against_the_rules_is_refused(
        self, fields: dict[str, Any], answer: tuple[int, str], path: str | None
    ) -> None:
        with pytest.raises(Refusal) as refused:
            judge_refund(with_order(case("100.00"), **fields))
        assert (refused.value.status, refused.value.code) == answer
        if path is not None:
            assert msgspec.to_builtins(refused.value.details)[0]["path"] == path

    @table("status", PaymentStatus)
    def test_only_paid_and_settled_payments_are_refunded(self, status: PaymentStatus) -> None:
        refundable = status in (PaymentStatus.PAID, PaymentStatus.SETTLED)
        assert refusal(case(payment=payment(status))) == (None if refundable else (409, "INVALID_STATUS"))

    @table("status", S)
    def test_the_eleventh_application_ever(self, status: RefundStatus) -> None:
        """A payment can have at most 10 applications ever; failed ones count (docs/refunds.md "Rules")."""
        before = [refund(status, Rub(1_00))] * (APPLICATIONS_MAX - 1)
        assert refusal(case("1.00", before)) is None
        assert refusal(case("1.00", [*before, refund(status, Rub(1_00))])) == (409, "LIMIT_PER_PAYMENT")

    @table(
        ("amount", "via", "status", "answer"),
        [
            ("99.99", BOUND, PaymentStatus.PAID, PARTIAL),
            ("0.01", BOUND, PaymentStatus.PAID, PARTIAL),
            ("100.00", BOUND, PaymentStatus.PAID, None),
            (None, BOUND, PaymentStatus.PAID, None),
            ("100.01", BOUND, PaymentStatus.PAID, OVER),
            ("99.99", BOUND, PaymentStatus.SETTLED, None),
            ("99.99", terminal(credit_follows_receipt=False), PaymentStatus.PAID, None),
            ("99.99", None, PaymentStatus.PAID, None),
        ],
    )
    def test_partial_before_settlement(
        self, amount: str | None, via: Terminal | None, status: PaymentStatus, answer: tuple[int, str] | None
    ) -> None:
        """Some terminals allow partial refunds only after settlement (docs/refunds.md "Rules")."""
        assert refusal(case(amount, terminal=via, payment=payment(status))) == answer

    @table("via", [None, BOUND])
    def test_refund_without_an_amount_is_refused_if_others_cover_all(self, via: Terminal | None) -> None:
        """More than is left is OVER_REMAINING (docs/refunds.md "Rules")."""
        assert refusal(case(None, [refund(S.PENDING)], terminal=via)) == OVER

    def test_the_last_kopeck_is_refunded_too(self) -> None:
        before = [refund(amount=Rub(99_99))]
        assert refusal(case("0.01", before)) is None
        assert refusal(case("0.02", before)) == OVER
        assert refunded_by(payment(actual_amount=Rub(1)), [refund(amount=Rub(1))]) is PaymentTrigger.REFUNDED

    def test_refund_without_an_amount_may_be_a_part(self) -> None:
        part = [refund(S.COMPLETED, Rub(1_00))]
        assert case(None, part).amount == Rub(99_00)
        assert refusal(case(None, part)) is None
        assert refusal(case(None, part, terminal=BOUND)) == PARTIAL

    @table("status", S)
    def test_open_and_completed_refunds_reduce_the_remainder(self, status: RefundStatus) -> None:
        """The remainder is what was paid less pending, processing and completed (docs/refunds.md "Rules")."""
        counted = status in (S.PENDING, S.PROCESSING, S.COMPLETED)
        before = [refund(status, Rub(60_00))]
        assert remainder(payment(), before) == Rub(40_00 if counted else 100_00)
        assert refusal(case("40.01", before)) == (OVER if counted else None)
        assert refusal(case("40.00", before)) is None

    def test_a_payment_without_money_has_nothing_to_refund(self) -> None:
        assert refusal(case(payment=payment(actual_amount=None))) == OVER
        assert remainder(payment(actual_amount=None), ()) == Rub(0)
        assert refunded_by(payment(actual_amount=None), ()) is None
