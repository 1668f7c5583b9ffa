"""Withdrawals as data: every row of the state table, and the fields that a move keeps and clears (docs/settlement.md
"Payouts")."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain import ids
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.machine import IllegalMove, Move
from cambist.core.domain.money import Usdt
from cambist.core.domain.settlement.withdrawals import (
    GIVEN_BACK,
    WITHDRAWAL_MOVES,
    Withdrawal,
    WithdrawalStatus,
    WithdrawalTrigger,
    moved,
    payable,
    shown_hash,
    signed,
    way,
)
from tests.moves import trigger_to
from tests.tables import table

S, T = WithdrawalStatus, WithdrawalTrigger
NOW = datetime(2026, 8, 8, 9, tzinfo=UTC)
UNTIL = NOW + timedelta(seconds=60)
HASH = "a" * 64
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"

ROWS = [
    (S.PENDING, S.PROCESSING),
    (S.PENDING, S.CANCELLED),
    (S.PROCESSING, S.SENT),
    (S.PROCESSING, S.FAILED),
    (S.SENT, S.COMPLETED),
    (S.SENT, S.FAILED),
]
OTHERS = [pair for pair in product(S, S) if pair not in ROWS]


def withdrawal(status: WithdrawalStatus = S.PENDING, **more: Any) -> Withdrawal:
    """A withdrawal in this status, with the fields that it has by then."""
    fields: dict[str, Any] = {
        "id": f"{ids.WITHDRAWAL}00000000-0000-7000-8000-000000000000",
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "amount": Usdt(100_00000000),
        "wallet": WALLET,
        "sender": "simulator-chain-live",
        "network": "tron",
        "created_at": NOW,
    }
    if status not in (S.PENDING, S.CANCELLED):
        fields |= {"tx_hash": HASH, "blob": b"signed", "signed_until": UNTIL}
    if status in (S.SENT, S.COMPLETED):
        fields |= {"sent_at": NOW}
    return Withdrawal(status=status, **{**fields, **more})


def step(before: Withdrawal, after: WithdrawalStatus, now: datetime = NOW) -> Withdrawal:
    """Any one move, by the function that makes it."""
    if after is S.PROCESSING:
        return signed(before, HASH, b"signed", UNTIL)
    return moved(before, trigger_to(WITHDRAWAL_MOVES, before.status, after), now)


class TestMoves:
    def test_the_table_is_the_documented_one(self) -> None:
        assert [(row.before, row.after) for row in WITHDRAWAL_MOVES.rows] == ROWS

    @table(("before", "after"), ROWS)
    def test_every_row(self, before: WithdrawalStatus, after: WithdrawalStatus) -> None:
        assert step(withdrawal(before), after).status is after

    @table(("before", "after"), OTHERS)
    def test_every_other_pair_is_illegal(self, before: WithdrawalStatus, after: WithdrawalStatus) -> None:
        with pytest.raises(IllegalMove):
            step(withdrawal(before), after)

    def test_completed_failed_and_cancelled_are_final(self) -> None:
        assert {status for status in S if WITHDRAWAL_MOVES.is_final(status)} == {S.COMPLETED, S.FAILED, S.CANCELLED}

    def test_the_amount_comes_back_at_every_end_but_completed(self) -> None:
        assert {status for status in S if WITHDRAWAL_MOVES.is_final(status)} - {S.COMPLETED} == GIVEN_BACK

    def test_only_signing_leads_to_processing(self) -> None:
        with pytest.raises(IllegalMove):
            moved(withdrawal(), T.SIGNED, NOW)


class TestWay:
    @table("row", WITHDRAWAL_MOVES.rows)
    def test_an_allowed_move_is_one_step(self, row: Move[WithdrawalStatus, WithdrawalTrigger]) -> None:
        assert way(row.before, row.trigger) == (row.trigger,)

    @table("row", WITHDRAWAL_MOVES.rows)
    def test_withdrawal_already_in_the_target_state_needs_no_step(
        self, row: Move[WithdrawalStatus, WithdrawalTrigger]
    ) -> None:
        """An answer that comes twice moves nothing."""
        assert way(row.after, row.trigger) == ()

    def test_final_when_first_seen_is_sent_on_the_way(self) -> None:
        """The answer of the broadcast was lost, and the transfer is final by the time of the poll."""
        assert way(S.PROCESSING, T.FINAL) == (T.TAKEN, T.FINAL)

    @table(
        ("before", "trigger"),
        [
            (status, trigger)
            for status, trigger in product(S, T)
            if not WITHDRAWAL_MOVES.allows(status, trigger)
            and not WITHDRAWAL_MOVES.has_led(trigger, status)
            and (status, trigger) != (S.PROCESSING, T.FINAL)
        ],
    )
    def test_nowhere_else_leads_a_way(self, before: WithdrawalStatus, trigger: WithdrawalTrigger) -> None:
        with pytest.raises(IllegalMove):
            way(before, trigger)


class TestSigned:
    def test_signed_withdrawal_holds_all_that_the_broadcast_needs(self) -> None:
        """Signed, tx hash stored before broadcast."""
        after = signed(withdrawal(), HASH, b"signed", UNTIL)
        assert (after.tx_hash, after.blob, after.signed_until) == (HASH, b"signed", UNTIL)

    @table("status", [status for status in S if status is not S.PENDING])
    def test_nothing_is_signed_twice(self, status: WithdrawalStatus) -> None:
        with pytest.raises(IllegalMove):
            signed(withdrawal(status), "b" * 64, b"another", UNTIL)


class TestMoved:
    def test_sent_and_completed_are_dated(self) -> None:
        sent = moved(withdrawal(S.PROCESSING), T.TAKEN, NOW)
        assert (sent.sent_at, sent.completed_at, sent.blob) == (NOW, None, b"signed")
        later = NOW + timedelta(minutes=1)
        completed = moved(sent, T.FINAL, later)
        assert (completed.sent_at, completed.completed_at) == (NOW, later)

    @table(("before", "after"), [row for row in ROWS if WITHDRAWAL_MOVES.is_final(row[1])])
    def test_at_an_end_the_signed_transfer_is_forgotten_and_its_hash_is_kept(
        self, before: WithdrawalStatus, after: WithdrawalStatus
    ) -> None:
        start = withdrawal(before)
        end = moved(start, trigger_to(WITHDRAWAL_MOVES, before, after), NOW, failure="a reason")
        assert (end.blob, end.completed_at, end.failure) == (None, NOW, "a reason")
        assert end.tx_hash == start.tx_hash

    @table(("before", "after"), ROWS)
    def test_no_move_changes_what_is_paid_to_whom(self, before: WithdrawalStatus, after: WithdrawalStatus) -> None:
        start, end = withdrawal(before), step(withdrawal(before), after)
        kept = ("id", "account_id", "mode", "amount", "wallet", "sender", "network", "created_at", "version")
        assert [getattr(end, name) for name in kept] == [getattr(start, name) for name in kept]


class TestShownHash:
    @table("status", [S.PENDING, S.PROCESSING, S.CANCELLED, S.FAILED])
    def test_hidden_until_the_network_took_it(self, status: WithdrawalStatus) -> None:
        """`sent` (`tx_hash` visible): a hash that may never come would send merchants looking for it."""
        assert shown_hash(withdrawal(status)) is None

    @table("status", [S.SENT, S.COMPLETED])
    def test_shown_from_sent_on(self, status: WithdrawalStatus) -> None:
        assert shown_hash(withdrawal(status)) == HASH

    def test_once_shown_it_stays_shown(self) -> None:
        sent = withdrawal(S.SENT)
        assert shown_hash(moved(sent, T.DISPROVED, NOW)) == shown_hash(sent) == HASH


class TestPayable:
    @table(
        ("available", "amount"),
        [
            ("0.00000000", "0.00000000"),
            ("0.00000099", "0.00000000"),
            ("0.00000100", "0.00000100"),
            ("1234.56789012", "1234.56789000"),
            ("-5.00000000", "0.00000000"),
            ("-0.00000001", "0.00000000"),
        ],
    )
    def test_part_that_tron_cannot_move_stays_available(self, available: str, amount: str) -> None:
        """USDT has 6 decimals there, a balance 8; a debt pays nothing out."""
        assert payable(Usdt.parse(available), 100) == Usdt.parse(amount)

    @given(st.integers(-(10**18), 10**18), st.sampled_from([1, 100]))
    def test_never_more_than_is_there_and_less_than_a_step_is_left(self, units: int, step: int) -> None:
        amount = payable(Usdt(units), step).units
        assert amount >= 0
        assert amount % step == 0
        assert 0 <= max(units, 0) - amount < step
        assert payable(Usdt(step - 1), step) == Usdt(0)


def test_no_blob_shows_in_a_repr() -> None:
    """Anybody with the signed transfer can send it."""
    shown = repr(withdrawal(S.PROCESSING))
    assert "signed" not in shown
    assert withdrawal().id in shown


def test_a_withdrawal_survives_being_stored() -> None:
    before = withdrawal(S.SENT)
    assert msgspec.json.decode(msgspec.json.encode(before), type=Withdrawal) == before
