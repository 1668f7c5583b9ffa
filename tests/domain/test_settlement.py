"""Input and output of a settlement: cutoff, rates, rounding, and the lines of the statement (docs/settlement.md "When",
"Reconciling")."""

from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.settlement.settlement import (
    ItemKind,
    Settlement,
    SettlementBatch,
    SettlementItem,
    at_market,
    cutoff_of,
    item_id,
    item_ids,
    last_run,
    line_id,
    lines_of,
    next_run,
    terms_of,
)
from tests.tables import table

amounts = st.integers(1, 10**12).map(Rub)
rates = st.decimals(min_value="0.00000001", max_value="100000", places=8).filter(lambda rate: rate > 0).map(str)
markups = st.integers(0, 999_999).map(lambda part: str(Decimal(part) / 1_000_000))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@table(
    ("now", "run", "cutoff", "following"),
    [
        ("2026-11-21T09:00:00", "2026-11-21T09:00:00", "2026-11-21", "2026-11-22T09:00:00"),
        ("2026-11-21T08:59:59.999999", "2026-11-20T09:00:00", "2026-11-20", "2026-11-21T09:00:00"),
        ("2026-11-21T00:00:00", "2026-11-20T09:00:00", "2026-11-20", "2026-11-21T09:00:00"),
        ("2026-11-21T23:59:59", "2026-11-21T09:00:00", "2026-11-21", "2026-11-22T09:00:00"),
        ("2024-03-01T08:00:00", "2024-02-29T09:00:00", "2024-02-29", "2024-03-01T09:00:00"),
        ("2026-01-01T05:00:00", "2025-12-31T09:00:00", "2025-12-31", "2026-01-01T09:00:00"),
    ],
)
def test_settlement_runs_at_nine_utc_for_payments_before_midnight(
    now: str, run: str, cutoff: str, following: str
) -> None:
    assert last_run(moment(now)) == moment(run)
    assert cutoff_of(last_run(moment(now))) == moment(cutoff)
    assert next_run(moment(now)) == moment(following)


def test_a_settlement_by_the_numbers() -> None:
    """100 RUB at 92.50 with 3 %: 1.08108108… at market, 1.04864864… credited; merchant rate = market / (1 - markup)."""
    worth = terms_of("92.50", "0.03").worth(Rub(100_00))
    assert worth.market == Usdt.parse("1.08108108")
    assert worth.credit == Usdt.parse("1.04864864")
    assert worth.fee == Usdt.parse("0.03243243")
    assert worth.rounding == Usdt(1)


@given(amounts, rates, markups)
def test_every_part_is_rounded_down_and_the_dust_is_one_unit_at_most(amount: Rub, rate: str, markup: str) -> None:
    worth = terms_of(rate, markup).worth(amount)
    with localcontext() as context:
        context.prec = 80
        context.rounding = ROUND_DOWN
        market = Decimal(amount.kopecks) / 100 / Decimal(rate)
        for part, exact in (
            (worth.market, market),
            (worth.credit, market * (1 - Decimal(markup))),
            (worth.fee, market * Decimal(markup)),
        ):
            assert 0 <= exact - Decimal(part.units) / 10**8 + Decimal("1e-40") < Decimal("1.0001e-8")
    assert worth.fee + worth.credit + worth.rounding == worth.market
    assert Usdt(0) <= worth.rounding <= Usdt(1)


@given(amounts, rates, markups)
def test_refund_after_settlement_takes_the_market_value_fee_included(amount: Rub, rate: str, markup: str) -> None:
    """A refund takes the amount that the service gave for the RUB, fee included (docs/refunds.md "The money")."""
    worth = terms_of(rate, markup).worth(amount)
    assert at_market(amount, rate) == worth.market
    assert at_market(amount, rate) - worth.credit == worth.fee + worth.rounding


@given(st.data(), amounts, rates, markups)
def test_the_lines_of_a_payment_sum_to_the_worth_of_what_refunds_left(
    data: st.DataObject, amount: Rub, rate: str, markup: str
) -> None:
    terms = terms_of(rate, markup)
    left, taken = amount.kopecks, []
    for number in range(data.draw(st.integers(0, 10))):
        part = data.draw(st.integers(0, left))
        taken.append((f"ref_{number}", Rub(part)))
        left -= part
    lines = lines_of("pay_1", amount, taken, terms)
    assert [line.kind for line in lines] == [ItemKind.PAYMENT] + [ItemKind.REFUND] * len(taken)
    worth = terms.worth(Rub(left))
    assert sum(line.amount.kopecks for line in lines) == left
    assert sum(line.credit.units for line in lines) == worth.credit.units
    assert sum(line.fee.units for line in lines) == worth.fee.units


def test_refunds_never_take_more_than_was_paid() -> None:
    with pytest.raises(ValueError, match="more than was paid"):
        lines_of("pay_1", Rub(100), [("ref_1", Rub(60)), ("ref_2", Rub(41))], terms_of("92.50", "0.03"))


@table(("rate", "markup"), [("0", "0.03"), ("-1", "0.03"), ("NaN", "0"), ("1", "1"), ("1", "-0.1")])
def test_terms_without_sense_are_refused(rate: str, markup: str) -> None:
    with pytest.raises(ValueError, match="above zero"):
        terms_of(rate, markup)


def test_the_lines_of_a_payment_stand_together_its_own_first() -> None:
    lines = lines_of("pay_1", Rub(100), [("ref_1", Rub(60))], terms_of("92.50", "0.03"))
    ids = [item_id("stl_1", line, "pay_1") for line in lines]
    assert ids == sorted(ids)
    low, high = item_ids("stl_1")
    assert all(low <= each < high for each in ids)


_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _batch(batch_id: str, account_id: str | None) -> SettlementBatch:
    return SettlementBatch(
        id=batch_id, mode=Mode.TEST, account_id=account_id, cutoff=_NOON, rate_market="90", started_at=_NOON
    )


@table(
    ("batch_id", "account_id", "asked_for"),
    [
        ("live:2026-11-21", None, False),
        ("test:acc_1:day-2026-11-21", "acc_1", False),
        ("test:acc_1:0190", "acc_1", True),
    ],
)
def test_a_statement_of_nothing_is_made_where_somebody_asked_for_it(
    batch_id: str, account_id: str | None, asked_for: bool
) -> None:
    """Days make none, neither those of all nor an account's own."""
    assert _batch(batch_id, account_id).was_asked_for is asked_for


@table(("kind", "refund_id"), [(ItemKind.PAYMENT, None), (ItemKind.REFUND, "ref_1"), (ItemKind.CORRECTION, "ref_2")])
def test_a_line_of_a_refund_names_it(kind: ItemKind, refund_id: str | None) -> None:
    line = SettlementItem(
        id=line_id("set_1", "pay_1", refund_id),
        settlement_id="set_1",
        payment_id="pay_1",
        shop_id="shop",
        kind=kind,
        amount=Rub(1),
        markup="0",
        fee=Usdt(0),
        credit=Usdt(0),
    )
    assert line.refund_id == refund_id


def test_new_batch_and_statement_begin_at_zero() -> None:
    batch = _batch("live:2026-11-21", None)
    statement = Settlement(
        id="set_1",
        batch_id=batch.id,
        account_id="acc_1",
        mode=Mode.LIVE,
        cutoff=_NOON,
        rate_market="90",
        started_at=_NOON,
    )
    for each in (batch, statement):
        assert (each.payments, each.amount, each.fee, each.credit, each.version) == (0, Rub(0), Usdt(0), Usdt(0), 0)
    assert statement.items == 0
