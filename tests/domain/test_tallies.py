"""Finding a page by the counts of days, and the days themselves (docs/settlement.md "Turnover": calendar days in
UTC)."""

from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import PAYMENT_MOVES, Payment, PaymentStatus
from cambist.core.domain.payments.tallies import (
    TOOK_MONEY,
    day_end,
    day_ids,
    day_of,
    day_start,
    ever_ids,
    stretch,
    tallies_of,
    took_money,
    turnover_of,
)
from tests.tables import table

DAYS = st.dates(date(2026, 1, 1), date(2026, 1, 9)).map(date.isoformat)


@given(st.dictionaries(DAYS, st.integers(0, 5)), st.integers(0, 50), st.integers(1, 12))
def test_a_stretch_holds_exactly_the_page_from_either_end(counts: dict[str, int], offset: int, size: int) -> None:
    newest_first = [(day, number) for day in sorted(counts, reverse=True) for number in reversed(range(counts[day]))]
    page = newest_first[offset : offset + size]
    found = stretch(counts, offset, size)
    if found is None:
        assert page == []
        return
    within = [record for record in newest_first if found.first <= record[0] <= found.last]
    assert within[found.skipped : found.skipped + found.taken] == page
    assert within[::-1][found.left : found.left + found.taken] == page[::-1]
    # No day is walked that holds none of the page.
    assert {found.first, found.last} == {page[0][0], page[-1][0]}


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=3)), timezone(timedelta(hours=-11))])))
def test_a_day_holds_exactly_its_moments(moment: datetime) -> None:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return
    day = day_of(moment)
    assert day_start(day) <= moment
    assert moment < day_end(day) or moment == datetime.max.replace(tzinfo=UTC)
    assert day_of(day_start(day)) == day


def test_days_follow_one_another_to_the_last_there_is() -> None:
    assert day_end("2026-02-28") == day_start("2026-03-01")
    assert day_of(day_end("9999-12-31")) == "9999-12-31"


def payment(status: PaymentStatus, at: datetime = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)) -> Payment:
    return Payment(
        id="pay_0",
        account_id="acc_1",
        mode=Mode.TEST,
        shop_id="shop",
        status=status,
        amount=Rub(100),
        actual_amount=Rub(60),
        payment_method="sbp",
        created_at=at,
        expires_at=at,
        paid_at=at + timedelta(hours=1),
    )


def test_ranges_of_ids_hold_the_tallies_of_their_days_and_no_others() -> None:
    days = ["0001-01-01", "2026-02-28", "2026-03-01", "2026-03-02", "9999-12-31"]
    made = {day: tallies_of(payment(PaymentStatus.PAID, day_start(day)), 1) for day in days}
    for low, high, expected in (
        (None, None, days),
        ("2026-03-01", None, days[2:]),
        (None, "2026-03-01", days[:3]),
        ("2026-02-28", "2026-03-01", days[1:3]),
        ("2026-03-01", "2026-03-01", days[2:3]),
    ):
        first, last = day_ids("acc_1", Mode.TEST, low, high)
        assert [day for day in days if first <= made[day][0].id < last] == expected
        assert not any(first <= made[day][1].id < last for day in days)
    first, last = ever_ids("acc_1", Mode.TEST)
    assert all(first <= made[day][1].id < last and not first <= made[day][0].id < last for day in days)
    assert not first <= made[days[0]][1].id.replace("acc_1", "acc_12") < last
    assert not first <= made[days[0]][1].id.replace("test", "live") < last


def test_sums_of_a_day_are_spread_over_four_rows() -> None:
    paid = [msgspec.structs.replace(payment(PaymentStatus.PAID), id=f"pay_{number}") for number in range(64)]
    for ids in (
        {tallies_of(each, 1)[0].id for each in paid},
        {tallies_of(each, 1)[1].id for each in paid},
        {turnover_of(each, 1).id for each in paid},
    ):
        assert len(ids) == 4


def test_turnover_is_by_the_day_of_the_money_and_by_what_came() -> None:
    found = turnover_of(payment(PaymentStatus.PAID), -2)
    assert (found.day, found.payments, found.amount) == ("2026-03-02", -2, Rub(-120))
    first, last = day_ids("acc_1", Mode.TEST, "2026-03-02", "2026-03-02")
    assert first <= found.id < last


@table("missing", ["paid_at", "actual_amount"])
def test_unpaid_payment_is_no_turnover(missing: str) -> None:
    with pytest.raises(ValueError, match="not paid"):
        turnover_of(msgspec.structs.replace(payment(PaymentStatus.PAID), **{missing: None}), 1)


def test_every_way_through_the_states_takes_money_at_most_once() -> None:
    """A recount counts exactly the statuses that took money. `failed` after a mismatch took none."""

    def walk(status: PaymentStatus, taken: int, steps: int) -> None:
        assert taken == (status in TOOK_MONEY), status
        if steps:
            for move in PAYMENT_MOVES.rows:
                if move.before is status:
                    walk(move.after, taken + took_money(move.before, move.after), steps - 1)

    walk(PaymentStatus.PENDING, 0, 8)
