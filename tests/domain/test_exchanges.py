"""Exchanges: their states, and what moves and ends them (docs/exchanges.md "How it ends")."""

from datetime import timedelta
from itertools import product

import pytest

from cambist.core.domain.exchanges.exchanges import (
    CANCELLABLE,
    EXCHANGE_MOVES,
    FINAL,
    HOLD,
    Direction,
    Exchange,
    ExchangeStatus,
    ExchangeTrigger,
    moved_to,
    operation_exchange,
    shown_received,
    signed,
    unsigned,
)
from cambist.core.domain.exchanges.payouts import part_operation
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Usdt
from tests.domain.exchange_kit import END, ID, NOW, R2U, U2R, S, exchange, rub_exchange
from tests.moves import trigger_to
from tests.tables import table

T = ExchangeTrigger
FULL = 100 * 10**8
LATER = NOW + timedelta(minutes=1)

DOCUMENTED_MOVES = {
    U2R: """
        pending awaiting_usdt|awaiting_usdt usdt_received|awaiting_usdt partial|awaiting_usdt expired|partial expired
        usdt_received rub_sending|rub_sending completed|pending cancelled|awaiting_usdt cancelled
        pending failed|awaiting_usdt failed|partial failed|usdt_received failed|rub_sending failed
    """,
    R2U: """
        pending awaiting_rub|awaiting_rub rub_received|awaiting_rub partial|rub_received partial
        rub_received usdt_sending|usdt_sending completed|pending cancelled|awaiting_rub cancelled|partial expired
        pending failed|awaiting_rub failed|partial failed|rub_received failed|usdt_sending failed
    """,
}
OUR_MOVES = {U2R: {("partial", "usdt_received")}, R2U: {("partial", "rub_received"), ("awaiting_rub", "expired")}}
"""Several transfers add up; both directions have 15 minutes (docs/exchanges.md "Rules")."""


class TestStates:
    @table("direction", Direction)
    def test_the_moves_are_the_documented_ones_and_ours(self, direction: Direction) -> None:
        lines = DOCUMENTED_MOVES[direction].replace("\n", "|").split("|")
        documented = {tuple(pair.split()) for pair in lines if pair.strip()}
        moves = {(row.before.value, row.after.value) for row in EXCHANGE_MOVES[direction].rows}
        assert moves == documented | OUR_MOVES[direction]

    def test_the_four_finals_are_final_in_both_directions(self) -> None:
        assert {S.COMPLETED, S.FAILED, S.EXPIRED, S.CANCELLED} == FINAL
        for direction, status in product(Direction, FINAL):
            assert EXCHANGE_MOVES[direction].is_final(status)

    def test_every_state_but_the_finals_may_fail(self) -> None:
        for direction, moves in EXCHANGE_MOVES.items():
            known = {row.before for row in moves.rows}
            assert known == {row.before for row in moves.rows if row.after is S.FAILED}, direction

    def test_exchange_is_cancelled_only_before_funds_came(self) -> None:
        cancelled = {row.before for moves in EXCHANGE_MOVES.values() for row in moves.rows if row.after is S.CANCELLED}
        assert cancelled == CANCELLABLE == {S.PENDING, S.AWAITING_USDT, S.AWAITING_RUB}

    @table("after", [S.EXPIRED, S.CANCELLED, S.FAILED])
    def test_at_the_end_the_slot_is_free_and_the_event_has_its_number(self, after: ExchangeStatus) -> None:
        ended = moved_to(exchange(), trigger_to(EXCHANGE_MOVES[U2R], S.AWAITING_USDT, after), LATER, "why")
        assert (ended.status, ended.active_slot, ended.completed_at) == (after, None, LATER)
        assert (ended.sequence, ended.failure, ended.is_final) == (1, "why", True)

    def test_exchange_under_way_holds_the_slot_and_makes_no_event(self) -> None:
        """Only final statuses have an event (docs/exchanges.md "How it ends")."""
        moving = moved_to(exchange(), T.FUNDED, LATER)
        assert (moving.active_slot, moving.completed_at, moving.sequence) == (b"digest", None, 0)

    def test_received_roubles_are_held_for_five_minutes(self) -> None:
        received = moved_to(rub_exchange(), T.FUNDED, LATER)
        assert received.hold_until == LATER + HOLD == LATER + timedelta(minutes=5)
        assert moved_to(received, T.HELD, END).hold_until == received.hold_until

    def test_a_move_of_the_other_direction_is_illegal(self) -> None:
        for it, trigger in ((exchange(S.PENDING), T.INVOICE_MADE), (rub_exchange(S.PENDING), T.ADDRESS_GIVEN)):
            with pytest.raises(IllegalMove):
                moved_to(it, trigger, NOW)

    def test_one_signed_transfer_at_a_time(self) -> None:
        """A second would pay twice; it may be made once the first is proven never to take effect."""
        sending = rub_exchange(S.USDT_SENDING)
        once = signed(sending, "f" * 64, b"blob", END)
        assert (once.tx_hash, once.blob, once.signed_until) == ("f" * 64, b"blob", END)
        with pytest.raises(IllegalMove):
            signed(once, "e" * 64, b"other", END)
        assert unsigned(once) == sending
        with pytest.raises(IllegalMove):
            unsigned(sending)
        with pytest.raises(IllegalMove):
            signed(rub_exchange(S.RUB_RECEIVED), "f" * 64, b"blob", END)
        assert moved_to(once, T.CONFIRMED, END).blob is None

    def test_nothing_personal_or_spendable_shows_in_a_repr(self) -> None:
        shown = repr(signed(rub_exchange(S.USDT_SENDING, client_phone=b"phone"), "f" * 64, b"blob", END))
        assert ID in shown
        assert "phone" not in shown
        assert "blob" not in shown

    @table(
        ("it", "shown"),
        [
            (exchange(amount_usdt_received=Usdt(5)), None),
            (exchange(S.EXPIRED), "0.00000000"),
            (exchange(S.EXPIRED, amount_usdt_received=Usdt(5)), "0.00000005"),
            (exchange(S.COMPLETED, amount_usdt_received=Usdt(FULL + 5)), "100.00000005"),
            (rub_exchange(S.USDT_SENDING), None),
            (rub_exchange(S.COMPLETED), "105.94594500"),
            (rub_exchange(S.FAILED), "0.00000000"),
        ],
    )
    def test_received_amount_is_shown_at_the_end(self, it: Exchange, shown: str | None) -> None:
        """`amount_usdt_received` is null until a final status (docs/exchanges.md "How it ends")."""
        received = shown_received(it)
        assert shown == (None if received is None else str(received))

    @table(
        ("operation", "found"),
        [
            (ID, ID),
            (part_operation(ID, 1), ID),
            (part_operation(ID, 12), ID),
            (part_operation(ID, 1) + "x", None),
            (part_operation(ID, 10**9 - 1) + "0", None),
            (f"{ID}/1", None),
            ("pay_1", None),
            ("exch_1", None),
            ("", None),
        ],
    )
    def test_operation_id_names_its_exchange(self, operation: str, found: str | None) -> None:
        assert operation_exchange(operation) == found
