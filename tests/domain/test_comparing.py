"""Differences between our operations and the provider's entries, found however the two lists are cut into stretches
(docs/reconciliation.md)."""

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import msgspec

from cambist.core.domain.days import moscow_day
from cambist.core.domain.reconciliation.comparing import (
    MARGIN,
    Booked,
    Counted,
    Difference,
    Standing,
    Subject,
    Sweep,
    differences,
    matters,
)
from tests.tables import table

D = Difference
O, N, F, U = Standing.OPEN, Standing.DONE, Standing.FAILED, Standing.UNDONE  # noqa: E741
PAYMENT, REFUND, PAYOUT = Subject.PAYMENT, Subject.REFUND, Subject.PAYOUT
BEGIN, END = moscow_day(date(2026, 11, 22))
NOON = BEGIN + timedelta(hours=12)


def ours(standing: Standing = N, subject: Subject = PAYMENT, **fields: Any) -> Counted:
    made: dict[str, Any] = {"operation": "pay_1", "began": NOON, "kopecks": 100_00, **fields}
    return Counted(subject=subject, standing=standing, **made)


def theirs(standing: Standing = N, subject: Subject = PAYMENT, **fields: Any) -> Booked:
    made: dict[str, Any] = {"id": "b-1", "operation": "pay_1", "moment": NOON, "kopecks": 100_00, **fields}
    return Booked(subject=subject, standing=standing, **made)


@table(
    "mine, other, expected",
    [
        # one side has nothing
        (ours(N), None, (D.MISSING,)),
        (ours(U), None, (D.MISSING,)),
        (ours(O), None, ()),
        (ours(F), None, ()),
        (None, theirs(N), (D.EXTRA,)),
        (None, theirs(O), ()),
        (None, theirs(F), ()),
        (None, theirs(O, REFUND), (D.EXTRA,)),
        (None, theirs(O, PAYOUT), (D.EXTRA,)),
        (None, theirs(F, REFUND), ()),
        (None, None, ()),
        # states of payments
        (ours(N), theirs(N), ()),
        (ours(N), theirs(O), (D.STATE,)),
        (ours(N), theirs(F), (D.STATE,)),
        (ours(O), theirs(N), (D.STATE,)),
        (ours(O), theirs(O), ()),
        (ours(O), theirs(F), ()),
        (ours(F), theirs(N), (D.STATE,)),
        (ours(F), theirs(O), ()),
        (ours(F), theirs(F), ()),
        # states of what leaves
        (ours(N, REFUND), theirs(N, REFUND), ()),
        (ours(N, REFUND), theirs(O, REFUND), (D.STATE,)),
        (ours(N, REFUND), theirs(F, REFUND), (D.STATE,)),
        (ours(O, REFUND), theirs(N, REFUND), (D.STATE,)),
        (ours(O, REFUND), theirs(O, REFUND), ()),
        (ours(O, REFUND), theirs(F, REFUND), (D.STATE,)),
        (ours(F, REFUND), theirs(N, REFUND), (D.STATE,)),
        (ours(F, REFUND), theirs(O, REFUND), (D.STATE,)),
        (ours(F, REFUND), theirs(F, REFUND), ()),
        (ours(U, REFUND), theirs(N, REFUND), ()),
        (ours(U, REFUND), theirs(F, REFUND), ()),
        (ours(U, REFUND), theirs(O, REFUND), (D.STATE,)),
        # amounts and fees, if both report them and money moved
        (ours(), theirs(kopecks=100_01), (D.AMOUNT,)),
        (ours(kopecks=None), theirs(), ()),
        (ours(fee=40), theirs(fee=41), (D.FEE,)),
        (ours(fee=40), theirs(fee=None), ()),
        (ours(fee=None), theirs(fee=41), ()),
        (ours(fee=0), theirs(fee=0), ()),
        (ours(fee=40), theirs(kopecks=99_99, fee=41), (D.AMOUNT, D.FEE)),
        (ours(F), theirs(F, kopecks=1), ()),
        (ours(U, REFUND), theirs(F, REFUND, kopecks=1), ()),
        # another object under our operation
        (ours(reference="b-1"), theirs(reference="b-1"), ()),
        (ours(reference="b-1"), theirs(reference="b-2"), (D.EXTRA,)),
        (ours(reference="b-1"), theirs(F, reference="b-2"), ()),
        (ours(reference="b-1"), theirs(reference=None), ()),
        (ours(reference=None), theirs(reference="b-2"), ()),
        (ours(N, REFUND), theirs(N, PAYOUT), (D.EXTRA,)),
        # test mode is not compared
        (ours(is_compared=False), None, ()),
        (ours(F, is_compared=False), theirs(N), ()),
    ],
)
def test_differences_between_our_operation_and_an_entry(
    mine: Counted | None, other: Booked | None, expected: tuple[Difference, ...]
) -> None:
    assert differences(mine, other) == expected


@table(
    ("entry", "asked"),
    [
        (theirs(N), True),
        (theirs(O), False),
        (theirs(F), False),
        (theirs(N, REFUND), True),
        (theirs(O, REFUND), True),
        (theirs(F, PAYOUT), True),
    ],
)
def test_a_payment_that_nobody_paid_is_not_asked_for(entry: Booked, asked: bool) -> None:
    assert matters(entry) is asked


STRETCH = timedelta(minutes=20)
HALF_AN_HOUR = timedelta(minutes=30)
"""Half an hour on both sides of a day, as in docs/reconciliation.md "What is compared"."""


def swept(counted: list[Counted], booked: list[Booked], *, begin: datetime = BEGIN) -> tuple[set[str], set[str], int]:
    """Sweep as a comparison does. Return the operations without an entry, the entries without an operation, and the
    most operations held at once."""
    sweep, listed, held, most = Sweep(begin, END), begin - MARGIN, begin - MARGIN, 0
    lacking: set[str] = set()
    strange: set[str] = set()
    while listed < END + MARGIN or sweep.waits():
        upto = listed + STRETCH
        sweep.hold([each for each in counted if held <= each.began < upto + MARGIN])
        held = upto + MARGIN
        most = max(most, len(sweep))
        for each in booked:
            if listed <= each.moment < upto and sweep.match(each) is None and BEGIN <= each.moment < END:
                strange.add(each.id)
        listed = upto
        lacking |= {each.operation for each in sweep.lacking(listed)}
        assert begin <= sweep.judged_until(listed) <= END
        if listed > END + timedelta(days=5):
            break
    lacking |= {each.operation for each in sweep.lacking(None)}
    return lacking, strange, most


@table(
    "began, moment, expected",
    [
        (END - timedelta(seconds=1), END + timedelta(seconds=1), set()),  # booked on the next day
        (BEGIN + timedelta(seconds=1), BEGIN - timedelta(seconds=1), set()),  # booked on the day before
        (BEGIN, BEGIN - HALF_AN_HOUR, set()),
        (BEGIN, BEGIN - HALF_AN_HOUR - timedelta(microseconds=1), {"pay_1"}),
        (END - timedelta(microseconds=1), END + HALF_AN_HOUR - timedelta(microseconds=2), set()),
        (BEGIN - timedelta(seconds=1), None, set()),  # the day before's to miss
        (END, None, set()),  # the next day's
        (BEGIN, None, {"pay_1"}),
        (END - timedelta(microseconds=1), None, {"pay_1"}),
        (NOON, NOON + 2 * MARGIN, {"pay_1"}),  # too far apart in time alone, so the ids are looked up
    ],
)
def test_a_day_has_margins_on_both_sides(began: datetime, moment: datetime | None, expected: set[str]) -> None:
    booked = [] if moment is None else [theirs(moment=moment)]
    assert swept([ours(began=began)], booked)[0] == expected


def test_long_operation_may_be_booked_until_we_learnt_of_its_end() -> None:
    late = NOON + timedelta(days=1)
    mine = ours(began=NOON, ended=late)
    assert swept([mine], [theirs(moment=late - timedelta(minutes=1))])[:2] == (set(), set())
    assert swept([mine], [])[0] == {"pay_1"}


def test_a_second_entry_of_an_operation_is_not_the_first() -> None:
    second = theirs(id="b-2", moment=NOON + timedelta(minutes=1))
    assert swept([ours(subject=REFUND)], [theirs(subject=REFUND), msgspec.structs.replace(second, subject=REFUND)])[
        :2
    ] == (set(), {"b-2"})
    sweep = Sweep(BEGIN, END)
    sweep.hold([ours()])
    assert not sweep.is_second("pay_1", "b-1")
    assert sweep.match(theirs()) is not None
    assert not sweep.is_second("pay_1", "b-1")
    assert sweep.is_second("pay_1", "b-2")


def test_entry_with_another_reference_does_not_replace_the_right_one() -> None:
    sweep = Sweep(BEGIN, END)
    sweep.hold([ours(reference="b-1")])
    assert sweep.match(theirs(id="b-2", reference="b-2")) is None
    assert sweep.match(theirs(id="b-1", reference="b-1")) is not None
    assert sweep.lacking(None) == []


def test_operation_known_to_the_bank_by_another_name_is_not_missing() -> None:
    sweep = Sweep(BEGIN, END)
    sweep.hold([ours()])
    assert sweep.match(theirs(operation="an earlier name")) is None
    sweep.found("pay_1", "b-1")
    assert sweep.lacking(None) == []


def test_operation_looked_up_before_it_was_held_is_not_missing() -> None:
    sweep = Sweep(BEGIN, END)
    sweep.found("pay_1", "b-1")
    sweep.hold([ours()])
    assert sweep.is_second("pay_1", "b-2")
    assert sweep.lacking(None) == []


@table("seed", range(20))
def test_sweep_finds_the_same_differences_as_sets(seed: int) -> None:
    """Lists with omissions, inventions and clocks that differ; held are never more than those of a stretch and two
    margins."""
    random = Random(seed)
    count, span = 2000, (END - BEGIN + 4 * MARGIN) / 2000
    counted, booked, omitted, invented = [], [], set(), set()
    for number in range(count):
        began = BEGIN - 2 * MARGIN + number * span
        name, skew = f"pay_{number}", timedelta(seconds=random.uniform(-1500, 1500))
        counted.append(ours(operation=name, began=began))
        if random.random() < 0.05:
            omitted |= {name} if BEGIN <= began < END else set()
            continue
        booked.append(theirs(id=f"b-{number}", operation=name, moment=began + skew))
    for number in range(50):
        moment = BEGIN + random.random() * (END - BEGIN)
        invented.add(f"x-{number}")
        booked.append(theirs(id=f"x-{number}", operation=f"pay_x{number}", moment=moment))
    random.shuffle(booked)
    lacking, strange, most = swept(counted, booked)
    assert lacking == omitted
    assert strange == invented
    assert most <= (STRETCH + 3 * MARGIN) / span


def test_resumed_comparison_misses_nothing() -> None:
    counted = [ours(operation=f"pay_{number}", began=BEGIN + timedelta(minutes=number)) for number in range(1440)]
    booked = [theirs(id=f"b-{n}", operation=f"pay_{n}", moment=BEGIN + timedelta(minutes=n)) for n in range(0, 1440, 2)]
    whole = swept(counted, booked)[0]
    for hours in (0, 1, 7, 23):
        resumed = swept(counted, booked, begin=BEGIN + timedelta(hours=hours))[0]
        assert resumed == {name for name in whole if int(name.removeprefix("pay_")) >= hours * 60}


LONG = ours(operation="long", began=NOON - timedelta(hours=2), ended=END)


@table(
    ("counted", "listed_until", "until", "waits"),
    [
        ([], NOON, NOON - HALF_AN_HOUR, False),
        ([LONG], NOON, LONG.began, True),
        ([LONG, ours()], NOON, LONG.began, True),
        ([ours()], NOON, NOON - HALF_AN_HOUR, False),
        ([ours(F, operation="failed", began=BEGIN)], NOON, NOON - HALF_AN_HOUR, False),
        ([], BEGIN, BEGIN, False),
        ([], END + timedelta(hours=2), END, False),
    ],
)
def test_unfound_operation_is_not_judged_and_marks_the_point_to_resume(
    counted: list[Counted], listed_until: datetime, until: datetime, waits: bool
) -> None:
    sweep = Sweep(BEGIN, END)
    sweep.hold(counted)
    sweep.match(theirs())
    assert sweep.judged_until(listed_until) == until
    assert sweep.waits() is waits


def test_operation_is_lacking_once_the_list_was_read_half_an_hour_past_it() -> None:
    sweep = Sweep(BEGIN, END)
    sweep.hold([ours()])
    assert sweep.lacking(NOON + HALF_AN_HOUR - timedelta(microseconds=1)) == []
    assert sweep.lacking(NOON + HALF_AN_HOUR) == [ours()]
