"""Returns of what could move nothing, and RUB that a payer's bank takes back: one row for each case
(docs/exchanges.md "RUB to USDT")."""

from collections import Counter
from datetime import timedelta
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.exchanges.entries import money_received, money_taken_back
from cambist.core.domain.exchanges.exchanges import operation_exchange
from cambist.core.domain.exchanges.funds import (
    SUSPENDED_FOR,
    ExchangeTransfer,
    Incoming,
    is_return_of,
    judge_deposits,
    judge_payments,
    returnable,
    returned,
    transfer_source,
    with_return,
)
from cambist.core.domain.exchanges.returns import (
    RETURN_MOVES,
    ReturnStatus,
    ReturnTrigger,
    return_moved,
    return_signed,
    returned_transfer,
    usdt_return_operation,
)
from cambist.core.domain.exchanges.reversals import LOST, judge_taken_back
from cambist.core.domain.ledger import BalanceType
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Rub
from tests.domain.exchange_kit import END, ID, NOW, WALLET, S, exchange, incoming, posted, rub_exchange
from tests.moves import pairs
from tests.tables import table

R = ReturnStatus
LATER = NOW + timedelta(minutes=1)
MOVES = {
    (R.PLANNED, R.SENDING),
    (R.PLANNED, R.FAILED),
    (R.SENDING, R.PLANNED),
    (R.SENDING, R.RETURNED),
    (R.SENDING, R.FAILED),
    (R.SENDING, R.REVERSED),
    (R.FAILED, R.RETURNED),
    (R.RETURNED, R.REVERSED),
}


def late(units: int = 500) -> ExchangeTransfer:
    (found,) = judge_deposits(exchange(), [incoming(units, at=END)], END).transfers
    return found


def planned(units: int = 500) -> ExchangeTransfer:
    return with_return(late(units), NOW, address=WALLET, sender="one")


def standing(status: ReturnStatus, number: int = 1) -> ExchangeTransfer:
    """Return a transfer whose return has this status."""
    first = planned()
    assert first.sent_back is not None
    back = msgspec.structs.replace(first.sent_back, status=status, number=number)
    return msgspec.structs.replace(first, sent_back=back)


@table("move", list(product(R, R)), ids=str)
def test_a_return_moves_so_and_in_no_other_way(move: tuple[ReturnStatus, ReturnStatus]) -> None:
    assert (move in pairs(RETURN_MOVES)) is (move in MOVES)


@table(
    ("transfer", "expected"),
    [
        (late(500), 500),
        (late(599), 500),
        (late(99), 0),
        (msgspec.structs.replace(late(), resolved_at=NOW), 0),
        (standing(R.PLANNED), 0),
        (standing(R.SENDING), 0),
        (standing(R.FAILED), 500),
        (standing(R.REVERSED), 500),
        (standing(R.FAILED, 9), 500),
        (standing(R.FAILED, 10), 0),
    ],
    ids=[
        "all",
        "what the network moves",
        "less",
        "gone",
        "decided",
        "sent",
        "failed",
        "came back",
        "tried",
        "given up",
    ],
)
def test_returnable_amount_of_a_transfer(transfer: ExchangeTransfer, expected: int) -> None:
    assert returnable(transfer) == expected
    if not expected:
        with pytest.raises(ValueError, match="can be sent back"):
            with_return(transfer, NOW)


def test_every_attempt_is_another_operation_and_names_its_transfer() -> None:
    """A bank answers a known operation as it did before."""
    first, second = standing(R.FAILED), with_return(standing(R.FAILED), NOW)
    assert first.sent_back is not None
    assert second.sent_back is not None
    assert first.sent_back.operation != second.sent_back.operation
    for each in (first.sent_back.operation, second.sent_back.operation):
        assert returned_transfer(each) == first.id
        assert operation_exchange(each) is None


@table("operation", ["", "#1", ID, f"{ID}:a", f"{ID}:a#", f"{ID}:a#x", f"{ID}:a\0#1", "pay_1#1"])
def test_foreign_operation_is_no_return(operation: str) -> None:
    assert returned_transfer(operation) is None


def test_the_source_of_a_transfer_is_the_banks_id_whatever_is_in_it() -> None:
    (found,) = judge_payments(rub_exchange(), [incoming(1, f"{ID}/1:2")], NOW).transfers
    assert transfer_source(found) == f"{ID}/1:2"
    assert returned_transfer(usdt_return_operation(found.id, 3)) == found.id


def test_a_second_signature_would_pay_twice() -> None:
    back = planned().sent_back
    assert back is not None
    signed = return_signed(back, "a" * 64, b"blob", LATER)
    assert (signed.status, "blob" in repr(signed)) == (R.SENDING, False)
    with pytest.raises(IllegalMove):
        return_signed(signed, "b" * 64, b"other", LATER)
    anew = return_moved(signed, ReturnTrigger.DISPROVED)
    assert (anew.tx_hash, anew.blob, anew.signed_until) == (None, None, None)
    assert (return_moved(signed, ReturnTrigger.ARRIVED).blob, return_moved(signed, ReturnTrigger.ARRIVED).tx_hash) == (
        None,
        "a" * 64,
    )


def test_only_what_was_returned_is_resolved() -> None:
    with pytest.raises(ValueError, match="not sent back"):
        returned(planned(), NOW)
    done = returned(msgspec.structs.replace(standing(R.RETURNED), suspended=570, amount=570), NOW)
    assert (done.suspended, done.rounded, done.resolved_at) == (500, 70, NOW)


@given(st.lists(st.integers(1, 2 * 10_000_00), min_size=1, max_size=5), st.data())
def test_every_reason_for_suspense_is_listed(amounts: list[int], data: st.DataObject) -> None:
    """The operator's list finds by them."""
    status = data.draw(st.sampled_from(list(S)))
    given_up = rub_exchange(status if status not in (S.AWAITING_USDT, S.USDT_RECEIVED, S.RUB_SENDING) else S.PENDING)
    came = [incoming(each, str(n), data.draw(st.sampled_from([NOW, END]))) for n, each in enumerate(amounts)]
    decision = judge_payments(given_up, came, data.draw(st.sampled_from([LATER, END])))
    assert {each.reason for each in decision.transfers} <= {None, *SUSPENDED_FOR}


def gone(source: str) -> Incoming:
    return Incoming(source=source, amount=1, at=NOW, is_taken_back=True)


ASKED = 10_000_00


@table(
    ("amounts", "lost", "held", "after"),
    [
        ([ASKED], "0", 0, [(0, 0)]),
        ([4_000_00, 6_000_00], "0", 6_000_00, [(0, 0), (6_000_00, 0)]),
        ([ASKED, 500_00], "0", 500_00, [(0, 0), (500_00, 0)]),
        ([ASKED, 500_00], "1", ASKED, [(ASKED, 0), (0, 0)]),
        ([ASKED, 15_000_00], "0", ASKED, [(0, 0), (ASKED, 5_000_00)]),
        ([ASKED, 7_000_00, 8_000_00], "0", ASKED, [(0, 0), (7_000_00, 0), (3_000_00, 5_000_00)]),
        ([ASKED, ASKED], "0", ASKED, [(0, 0), (ASKED, 0)]),
    ],
    ids=["all of it", "a part", "surplus steps in", "surplus itself", "surplus is enough", "two fill it", "all again"],
)
def test_rub_that_the_payers_bank_takes_back(
    amounts: list[int], lost: str, held: int, after: list[tuple[int, int]]
) -> None:
    came = judge_payments(rub_exchange(), [incoming(each, str(n)) for n, each in enumerate(amounts)], LATER)
    it = rub_exchange(S.RUB_RECEIVED, amount_rub_received=Rub(came.received))
    found = judge_taken_back(it, [gone(lost)], came.transfers)
    assert found is not None
    changed = {each.id: each for each in came.transfers} | {each.id: each for each in found.changed}
    assert [(each.counted, each.suspended) for each in changed.values()] == after
    assert [each.reason for each in changed.values()] == ["excess" if suspended else None for _, suspended in after]
    assert (found.held, found.received) == (held, sum(amounts) - amounts[int(lost)])
    sums: Counter[BalanceType] = Counter()
    for entry in (*(money_received(it, each, NOW) for each in came.transfers), money_taken_back(it, found, NOW)):
        for balance_type, amount in posted(entry).items():
            sums[balance_type] += amount
    suspended = sum(each for _, each in after)
    assert [sums[each] for each in (BalanceType.BANK, BalanceType.EXCHANGING_RUB, BalanceType.SUSPENSE)] == [
        -held - suspended,
        held,
        suspended,
    ]
    # It is reported again at every poll.
    assert judge_taken_back(it, [gone(lost)], tuple(changed.values())) is None


@table("status", [S.AWAITING_RUB, S.USDT_SENDING])
def test_payment_taken_back_while_nothing_is_held_changes_nothing(status: S) -> None:
    came = judge_payments(rub_exchange(), [incoming(ASKED)], NOW).transfers
    assert judge_taken_back(rub_exchange(status), [gone("a:0")], came) is None


@table("resolved", [False, True])
@table(("counted", "suspended"), [(ASKED, 0), (ASKED - 100, 100), (0, ASKED)])
@table("status", [S.COMPLETED, S.EXPIRED, S.FAILED, S.CANCELLED])
def test_payment_taken_back_at_the_end_is_lost_except_what_still_waits(
    status: S, counted: int, suspended: int, resolved: bool
) -> None:
    [came] = judge_payments(rub_exchange(), [incoming(ASKED)], NOW).transfers
    came = msgspec.structs.replace(
        came,
        counted=counted,
        suspended=suspended,
        reason="excess" if suspended else None,
        resolved_at=NOW if resolved and suspended else None,
    )
    it = rub_exchange(status)
    taken = judge_taken_back(it, [gone("a:0")], [came])
    assert taken is not None
    waits = 0 if came.resolved_at else suspended
    assert (taken.loss, taken.suspended, taken.counted, taken.held) == (ASKED - waits, waits, 0, 0)
    [after] = taken.changed
    assert (after.taken_back, after.counted, after.suspended) == (ASKED, 0, 0)
    assert (after.reason == LOST) is (taken.loss > 0)
    postings = {each.balance_type: each.amount for each in money_taken_back(it, taken, NOW).postings}
    assert postings.get(BalanceType.BANK) == ASKED
    assert (postings.get(BalanceType.LOSSES_RUB, 0), postings.get(BalanceType.SUSPENSE, 0)) == (-taken.loss, -waits)
    assert judge_taken_back(it, [gone("a:0")], [after]) is None, "it is told again at every look"


@table(("status", "is_lost"), [(status, status not in (R.PLANNED, R.SENDING)) for status in R])
def test_running_return_ends_before_its_money_is_lost(status: ReturnStatus, is_lost: bool) -> None:
    [came] = judge_payments(rub_exchange(), [incoming(ASKED)], NOW).transfers
    came = msgspec.structs.replace(came, counted=0, suspended=ASKED, sent_back=standing(status).sent_back)
    assert (judge_taken_back(rub_exchange(S.FAILED), [gone("a:0")], [came]) is not None) is is_lost


def test_an_operation_is_of_the_present_attempt_or_of_none() -> None:
    transfer = planned()
    assert transfer.sent_back is not None
    operation = transfer.sent_back.operation
    assert is_return_of(transfer, operation)
    assert not is_return_of(transfer, f"{operation[:-1]}2")
    assert not is_return_of(msgspec.structs.replace(transfer, sent_back=None), operation)


def test_money_that_is_gone_before_it_was_booked_is_nothing() -> None:
    assert judge_payments(rub_exchange(), [gone("a:0")], NOW).transfers == ()
