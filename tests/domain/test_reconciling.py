"""A comparison of a day from beginning to end, and the stored record of a difference (docs/reconciliation.md)."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.reconciliation.comparing import Difference
from cambist.core.domain.reconciliation.reconciliation import (
    GOES_ON,
    MOST,
    Discrepancy,
    Reconciliation,
    ReconciliationStatus,
    comparable_from,
    compared,
    difference_id,
    discrepancy,
    found_again,
    last_comparable,
    read_day,
    started,
)
from tests.domain.test_comparing import BEGIN, END, NOON, PAYMENT, D, ours, theirs
from tests.tables import table

ROW = Reconciliation(
    id="bank:2026-11-22:",
    bank="bank",
    day="2026-11-22",
    owner="",
    status=ReconciliationStatus.RUNNING,
    started_at=END,
    judged_until=NOON,
    entries=7,
    version=3,
)


@table(
    "before, goes_on",
    [
        (ROW, True),
        (msgspec.structs.replace(ROW, status=ReconciliationStatus.FAILED, finished_at=END), True),
        (msgspec.structs.replace(ROW, status=ReconciliationStatus.FAILED, finished_at=END - GOES_ON), False),
        (msgspec.structs.replace(ROW, status=ReconciliationStatus.AGREED, finished_at=END), False),
        (msgspec.structs.replace(ROW, status=ReconciliationStatus.DIFFERENT, finished_at=END), False),
    ],
)
def test_interrupted_comparison_resumes_and_an_ended_one_restarts(before: Reconciliation, goes_on: bool) -> None:
    row = started(before, "bank", date(2026, 11, 22), "", END)
    assert row.status is ReconciliationStatus.RUNNING
    assert row.finished_at is None
    assert (row.run, row.judged_until) == ((1, NOON) if goes_on else (2, BEGIN))
    assert row.version == before.version


def test_the_first_of_a_day_begins_at_its_midnight_in_moscow() -> None:
    row = started(None, "bank", date(2026, 11, 22), "acc_1", END)
    assert (row.id, row.run, row.judged_until) == ("bank:2026-11-22:acc_1", 1, datetime(2026, 11, 21, 21, tzinfo=UTC))
    assert (row.entries, row.found, row.counted) == (0, 0, None)


@table(("found", "status"), [(0, "agreed"), (1, "different")])
def test_ended_comparison_has_judged_the_whole_day(found: int, status: str) -> None:
    row = compared(ROW, found, END + timedelta(hours=2))
    assert (row.status, row.found, row.judged_until) == (status, found, END)


def found(difference: Difference = D.AMOUNT, **fields: Any) -> Discrepancy:
    return discrepancy(ROW, difference, ours(of="payment", object_id="pay_1"), theirs(**fields), END)


def test_a_difference_has_one_row_however_often_it_is_found() -> None:
    assert found(kopecks=1).id == difference_id(ROW, D.AMOUNT, PAYMENT, "pay_1")
    first, again = found(kopecks=1), msgspec.structs.replace(found(kopecks=1), run=2, found_at=END + timedelta(days=1))
    assert first.id == again.id
    assert found_again(first, again) == msgspec.structs.replace(again, found_at=END)


def test_settled_difference_stays_settled_until_it_changes() -> None:
    settled = msgspec.structs.replace(found(kopecks=1), closed_at=END, settled=True)
    assert found_again(settled, found(kopecks=1)).closed_at == END
    other = found_again(settled, found(kopecks=2))
    assert (other.closed_at, other.settled) == (None, False)


def test_closed_difference_found_again_is_open_again() -> None:
    gone = msgspec.structs.replace(found(kopecks=1), closed_at=END)
    later = msgspec.structs.replace(found(kopecks=1), found_at=END + timedelta(days=1))
    assert (found_again(gone, later).closed_at, found_again(gone, later).found_at) == (None, later.found_at)


def test_entry_that_only_the_bank_has_is_named_by_its_id() -> None:
    alone = discrepancy(ROW, D.EXTRA, None, theirs(id="b-9", operation=None), END)
    assert alone.id == difference_id(ROW, D.EXTRA, PAYMENT, "b-9")
    assert discrepancy(ROW, D.EXTRA, ours(), theirs(id="b-9"), END).id == alone.id
    assert discrepancy(ROW, D.EXTRA, ours(), theirs(id="b-9"), END).our_kopecks is None
    missing = discrepancy(ROW, D.MISSING, ours(), None, END)
    assert missing.id == difference_id(ROW, D.MISSING, PAYMENT, "pay_1") != alone.id


@table("day", [date(2000, 1, 1), date(2026, 2, 28), date(2199, 12, 31)])
def test_a_day_is_read_as_it_is_written(day: date) -> None:
    assert read_day(day.isoformat()) == day


@table(
    "text",
    [
        *("", "yesterday", "2026-11-31", "20261122", "2026-W47-7", "1999-12-31", "2200-01-01", "2026-11-22T00:00"),
        " 2026-11-22",
    ],
)
def test_invalid_day_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_day(text)
    assert refusal.value.code == "VALIDATION_ERROR"


def test_a_day_can_be_compared_an_hour_after_its_end() -> None:
    day = read_day("2026-11-22")
    assert comparable_from(day) == datetime(2026, 11, 22, 22, tzinfo=UTC)
    assert last_comparable(comparable_from(day)) == day
    assert last_comparable(comparable_from(day) - timedelta(microseconds=1)) == date(2026, 11, 21)


def test_limit_of_stored_differences_is_the_documented_one() -> None:
    """docs/reconciliation.md "Kinds of differences"."""
    assert MOST == 1000
