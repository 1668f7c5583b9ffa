"""Effect of a journal entry on the balance, its counting, and the counts that a query uses (docs/settlement.md
"Movements")."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from cambist.core.domain import ids
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, journal_entry
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.movements import (
    BELIEVED,
    KINDS,
    Balance,
    Movement,
    ObjectType,
    Sorts,
    entry_ids,
    in_order,
    movement_ids,
    movement_of,
    object_type,
    sort_of,
)
from tests.tables import table

AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
K, T, B = EntryKind, ObjectType, Balance
PAYMENT, REFUND, PAYOUT = f"{ids.PAYMENT}1", f"{ids.REFUND}1", f"{ids.WITHDRAWAL}1"


def entry(kind: EntryKind, object_id: str, at: datetime = AT, **amounts: int) -> JournalEntry:
    postings = {BalanceType(balance_type): amount for balance_type, amount in amounts.items()}
    return journal_entry(kind, object_id, account_id="acc_1", mode=Mode.LIVE, at=at, postings=postings)


RECEIPT = entry(K.RECEIPT, PAYMENT, pending=500, bank=-500)
SETTLED = entry(
    K.SETTLEMENT, PAYMENT, pending=-500, converted_rub=500, available=70, fees=3, rounding=1, converted_usdt=-74
)
RESERVED = entry(K.PAYOUT_RESERVED, PAYOUT, available=-40, reserved=40)
SENT = entry(K.PAYOUT_SENT, PAYOUT, reserved=-40, paid_out=40)
ENTRIES = (RECEIPT, SETTLED, RESERVED, SENT)


def listed(*entries: JournalEntry) -> list[Movement]:
    """Their movements, one after the other."""
    made: list[Movement] = []
    for each in entries:
        movement = movement_of(each, made[-1] if made else None)
        assert movement is not None
        made.append(movement)
    return made


def test_each_movement_has_the_balance_and_the_counts_after_it() -> None:
    after = [
        (each.number, each.available_after.units, each.reserved_after.units, each.pending_after.kopecks)
        for each in listed(*ENTRIES)
    ]
    assert after == [(1, 0, 0, 500), (2, 70, 0, 0), (3, 30, 40, 0), (4, 30, 0, 0)]
    changed = [(each.available, each.reserved, each.pending) for each in listed(*ENTRIES)]
    assert changed == [
        (Usdt(0), Usdt(0), Rub(500)),
        (Usdt(70), Usdt(0), Rub(-500)),
        (Usdt(-40), Usdt(40), Rub(0)),
        (Usdt(0), Usdt(-40), Rub(0)),
    ]
    *_, last = listed(*ENTRIES, SENT)
    assert last.counts == {"rp4": 1, "sp5": 1, "hw3": 1, "ow2": 2}
    assert [sort_of(each) for each in listed(*ENTRIES)] == ["rp4", "sp5", "hw3", "ow2"]


def test_entry_that_moves_no_balance_is_no_movement() -> None:
    assert movement_of(entry(K.REVIEW, PAYMENT, review=5, bank=-5), None) is None
    with pytest.raises(ValueError, match="moves no balance"):
        movement_of(entry(K.REVIEW, PAYMENT, pending=5, bank=-5), None)
    with pytest.raises(ValueError, match="moves a balance"):
        object_type("sub_1")


TAKEN = [
    (Sorts(), 4),
    (Sorts(kind=K.SETTLEMENT), 1),
    (Sorts(kind=K.REFUND_TAKEN), 0),
    (Sorts(object_type=T.WITHDRAWAL), 2),
    (Sorts(object_type=T.PAYMENT), 2),
    (Sorts(balance=B.AVAILABLE), 2),
    (Sorts(balance=B.RESERVED), 2),
    (Sorts(balance=B.PENDING), 2),
    (Sorts(kind=K.PAYOUT_RESERVED, balance=B.AVAILABLE), 1),
    (Sorts(kind=K.PAYOUT_SENT, balance=B.AVAILABLE), 0),
    (Sorts(object_type=T.PAYMENT, balance=B.AVAILABLE), 1),
    (Sorts(kind=K.RECEIPT, object_type=T.WITHDRAWAL), 0),
]


@table(("sorts", "count"), TAKEN)
def test_a_question_takes_the_sorts_that_meet_all_it_asks(sorts: Sorts, count: int) -> None:
    movements = listed(*ENTRIES)
    assert sorts.count(movements[-1]) == sum(sorts.takes(sort_of(each)) for each in movements) == count
    assert sorts.count(None) == 0
    assert sorts.all is (sorts == Sorts())


@table(
    ("earlier", "at"),
    [
        (timedelta(0), AT),
        (timedelta(microseconds=1), AT),
        (BELIEVED, AT),
        (BELIEVED + timedelta(microseconds=1), AT - BELIEVED - timedelta(microseconds=1)),
        (-timedelta(seconds=1), AT + timedelta(seconds=1)),
    ],
)
def test_moments_go_back_only_where_a_clock_was_set_right(earlier: timedelta, at: datetime) -> None:
    assert listed(RECEIPT, entry(K.RECEIPT, PAYMENT, AT - earlier, pending=5, bank=-5))[-1].at == at


def test_at_one_moment_what_brings_money_comes_first() -> None:
    later = entry(K.RECEIPT, f"{ids.PAYMENT}2", AT + timedelta(microseconds=1), pending=5, bank=-5)
    assert in_order([later, SENT, RESERVED, SETTLED, RECEIPT]) == [RECEIPT, SETTLED, RESERVED, SENT, later]


def test_a_range_of_numbers_is_a_range_of_ids() -> None:
    all_ids = [each.id for each in listed(*ENTRIES)]
    for low, high in product(range(1, 5), (*range(1, 6), None)):
        begin, end = movement_ids("acc_1", Mode.LIVE, low, high)
        asked = [each for number, each in enumerate(all_ids, 1) if low <= number and (high is None or number < high)]
        assert [each for each in all_ids if begin <= each < end] == asked
    assert movement_ids("acc_1", Mode.LIVE) == movement_ids("acc_1", Mode.LIVE, 1)


def test_object_has_one_entry_of_each_kind_but_two_reservations() -> None:
    assert entry_ids(PAYOUT) == [
        f"payout_reserved:{PAYOUT}:1",
        f"payout_reserved:{PAYOUT}:2",
        f"payout_sent:{PAYOUT}:1",
        f"payout_released:{PAYOUT}:1",
        f"sandbox_cleared:{PAYOUT}:1",
    ]
    assert entry_ids(REFUND) == [f"{kind}:{REFUND}:1" for kind in KINDS[T.REFUND]]
    assert [each.entry_id for each in listed(RESERVED)] == [RESERVED.id]
