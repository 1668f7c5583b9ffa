"""Money that a client brings for an exchange, and its effects: one row per case (docs/exchanges.md "Rules")."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.exchanges.exchanges import (
    AWAITING,
    EXCHANGE_MOVES,
    FINAL,
    Exchange,
    ExchangeTrigger,
    asked_units,
    held_units,
    moved_to,
)
from cambist.core.domain.exchanges.funds import (
    FINALITY_WAIT,
    ExchangeTransfer,
    FundsDecision,
    Incoming,
    deposit_source,
    judge_deposits,
    judge_payments,
    released_transfers,
    transfer_id,
    transfer_ids,
    with_received,
)
from cambist.core.domain.ledger import Currency
from cambist.core.domain.money import Rub, Usdt
from tests.domain.exchange_kit import END, ID, NOW, TICK, S, exchange, incoming, rub_exchange
from tests.moves import led
from tests.tables import table

FULL = 100 * 10**8
LATER = NOW + timedelta(minutes=1)


def parts(decision: FundsDecision) -> list[tuple[int, int, int, str | None]]:
    return [(each.counted, each.suspended, each.rounded, each.reason) for each in decision.transfers]


HALF = FULL // 2
PARTIAL = exchange(S.PARTIAL, amount_usdt_received=Usdt(HALF))
NOTHING: list[Any] = []

CASES: list[tuple[str, Exchange, Sequence[Incoming], datetime, Any]] = [
    ("nothing came", exchange(), NOTHING, LATER, (None, NOTHING, 0, 0)),
    ("all came", exchange(), [incoming(FULL)], LATER, (S.USDT_RECEIVED, [(FULL, 0, 0, None)], FULL, 0)),
    ("less came", exchange(), [incoming(HALF)], LATER, (S.PARTIAL, [(HALF, 0, 0, None)], HALF, 0)),
    ("still less", PARTIAL, [incoming(1, "b:0")], LATER, (None, [(1, 0, 0, None)], HALF + 1, 0)),
    ("the rest came", PARTIAL, [incoming(HALF, "b:0")], LATER, (S.USDT_RECEIVED, [(HALF, 0, 0, None)], FULL, 0)),
    (
        "several at once",
        exchange(),
        [incoming(HALF, "b:0"), incoming(HALF, "a:1")],
        LATER,
        (S.USDT_RECEIVED, [(HALF, 0, 0, None)] * 2, FULL, 0),
    ),
    (
        "more came",
        exchange(),
        [incoming(FULL + 100)],
        LATER,
        (S.USDT_RECEIVED, [(FULL, 100, 0, "excess")], FULL + 100, 0),
    ),
    (
        "more by less than the network moves",
        exchange(),
        [incoming(FULL + 99)],
        LATER,
        (S.USDT_RECEIVED, [(FULL, 0, 99, None)], FULL + 99, 0),
    ),
    (
        "all and then more at one look",
        exchange(),
        [incoming(HALF, "b:0", LATER), incoming(FULL)],
        LATER,
        (S.USDT_RECEIVED, [(FULL, 0, 0, None), (0, HALF, 0, "excess")], FULL + HALF, 0),
    ),
    ("not final", exchange(), [incoming(FULL, is_final=False)], LATER, (None, NOTHING, 0, 0)),
    ("in time, and not final at the end", exchange(), [incoming(FULL, is_final=False)], END, (None, NOTHING, 0, 0)),
    (
        "in time, and not final for long",
        exchange(),
        [incoming(FULL, is_final=False)],
        END + FINALITY_WAIT,
        (S.EXPIRED, NOTHING, 0, 0),
    ),
    ("too late, and not final", exchange(), [incoming(FULL, at=END, is_final=False)], END, (S.EXPIRED, NOTHING, 0, 0)),
    ("too little, and not final", exchange(), [incoming(HALF, is_final=False)], END, (S.EXPIRED, NOTHING, 0, 0)),
    (
        "the rest in time, and not final at the end",
        PARTIAL,
        [incoming(HALF, "b:0", is_final=False)] * 2,
        END,
        (None, NOTHING, HALF, 0),
    ),
    (
        "told twice, once not final",
        exchange(),
        [incoming(HALF), incoming(HALF), incoming(HALF, is_final=False)],
        LATER,
        (S.PARTIAL, [(HALF, 0, 0, None)], HALF, 0),
    ),
    ("time is not yet up", PARTIAL, NOTHING, END - TICK, (None, NOTHING, HALF, 0)),
    ("time is up", exchange(), NOTHING, END, (S.EXPIRED, NOTHING, 0, 0)),
    ("time is up with a part", PARTIAL, NOTHING, END, (S.EXPIRED, NOTHING, HALF, HALF)),
    (
        "a part seen when time is up",
        exchange(),
        [incoming(HALF)],
        END,
        (S.EXPIRED, [(0, HALF, 0, "underpaid")], HALF, 0),
    ),
    (
        "another part seen when time is up",
        PARTIAL,
        [incoming(1, "b:0")],
        END,
        (S.EXPIRED, [(0, 1, 0, "underpaid")], HALF + 1, HALF),
    ),
    (
        "all in time, seen late",
        exchange(),
        [incoming(FULL, at=END - TICK)],
        END + timedelta(hours=9),
        (S.USDT_RECEIVED, [(FULL, 0, 0, None)], FULL, 0),
    ),
    ("too late", exchange(), [incoming(FULL, at=END)], END, (S.EXPIRED, [(0, FULL, 0, "late")], 0, 0)),
    (
        "the rest too late",
        PARTIAL,
        [incoming(HALF, "b:0", END)],
        END + TICK,
        (S.EXPIRED, [(0, HALF, 0, "late")], HALF, HALF),
    ),
    *(
        (
            f"on top in {status}",
            exchange(status, amount_usdt_received=Usdt(FULL)),
            [incoming(7_00, "b:0", END)],
            END,
            (None, [(0, 7_00, 0, "excess")], FULL + 7_00, 0),
        )
        for status in (S.USDT_RECEIVED, S.RUB_SENDING)
    ),
    *(
        (
            f"after {status}",
            exchange(status, amount_usdt_received=Usdt(5)),
            [incoming(FULL, "b:0", END)],
            END,
            (None, [(0, FULL, 0, f"after_{status}")], 5, 0),
        )
        for status in sorted(FINAL)
    ),
    (
        "nobody was to know the address",
        exchange(S.PENDING),
        [incoming(FULL)],
        LATER,
        (None, [(0, FULL, 0, "not_awaited")], 0, 0),
    ),
    ("moved nothing", exchange(), [incoming(0)], LATER, (None, NOTHING, 0, 0)),
]


class TestDeposits:
    @table(("name", "it", "seen", "now", "wanted"), CASES, ids=[row[0] for row in CASES])
    def test_deposits_decide_the_move_and_the_entries(
        self, name: str, it: Exchange, seen: Sequence[Incoming], now: datetime, wanted: tuple[Any, ...]
    ) -> None:
        """Transfers add up; more than asked, and USDT after `expired`, are suspense (docs/exchanges.md "Rules")."""
        decision = judge_deposits(it, seen, now)
        moved = led(EXCHANGE_MOVES[it.direction], it.status, decision.trigger)
        assert (moved, parts(decision), decision.received, decision.released) == wanted, name

    def test_booked_transfer_is_not_counted_again(self) -> None:
        booked = [transfer_id(ID, "a:0")]
        decision = judge_deposits(PARTIAL, [incoming(HALF, "a:0"), incoming(HALF, "a:1")], LATER, booked)
        assert [each.id for each in decision.transfers] == [transfer_id(ID, "a:1")]
        assert decision.trigger is ExchangeTrigger.FUNDED

    def test_a_transfer_is_known_by_transaction_and_place(self) -> None:
        assert deposit_source("f" * 64, 3) == f"{'f' * 64}:3"
        low, high = transfer_ids(ID)
        assert low <= transfer_id(ID, "zzz") < high

    def test_roubles_are_judged_alike_and_never_rounded(self) -> None:
        it = rub_exchange()
        decision = judge_payments(it, [incoming(1_000_001)], LATER)
        assert (decision.trigger, parts(decision)) == (ExchangeTrigger.FUNDED, [(1_000_000, 1, 0, "excess")])
        assert decision.transfers[0].currency is Currency.RUB
        assert with_received(it, decision).amount_rub_received == Rub(1_000_001)
        assert judge_payments(it, [incoming(1)], LATER).trigger is ExchangeTrigger.UNDERPAID
        assert judge_payments(it, [], END).trigger is ExchangeTrigger.LAPSED

    def test_directions_are_apart(self) -> None:
        with pytest.raises(ValueError, match="takes no USDT"):
            judge_deposits(rub_exchange(), [], NOW)
        with pytest.raises(ValueError, match="takes no RUB"):
            judge_payments(exchange(), [], NOW)

    @given(
        st.lists(
            st.tuples(st.sampled_from("abcdef"), st.integers(1, FULL), st.integers(0, 20), st.booleans()), max_size=8
        ),
        st.randoms(),
    )
    def test_reports_in_any_order_lose_nothing_and_count_nothing_twice(
        self, told: list[tuple[str, int, int, bool]], chance: Any
    ) -> None:
        """A transfer is identified by its transaction and its index there. The chain is polled every minute until after
        the end."""
        chain = {name: (amount, NOW + timedelta(minutes=at)) for name, amount, at, _ in told}
        it = exchange()
        kept: dict[str, ExchangeTransfer] = {}
        for minute in range(25):
            now = NOW + timedelta(minutes=minute)
            seen = [incoming(amount, f"{name}:0", at) for name, (amount, at) in chain.items() if at <= now]
            seen = [*seen, *seen]
            chance.shuffle(seen)
            decision = judge_deposits(it, seen, now, kept.keys())
            before = held_units(it)
            it = with_received(it, decision)
            kept |= {each.id: each for each in decision.transfers}
            if decision.released:
                kept |= {each.id: each for each in released_transfers([*kept.values()], decision.released, "underpaid")}
                assert decision.released == before
            if decision.trigger is not None:
                it = moved_to(it, decision.trigger, now)
            assert sum(each.counted for each in kept.values()) == held_units(it) <= asked_units(it)
            assert (held_units(it) == asked_units(it)) is (it.status is S.USDT_RECEIVED)
        assert {each.id: each.amount for each in kept.values()} == {
            transfer_id(ID, f"{name}:0"): amount for name, (amount, _) in chain.items()
        }
        assert all(each.amount == each.counted + each.suspended + each.rounded for each in kept.values())
        in_time = sum(amount for amount, at in chain.values() if at < END)
        assert it.status is (S.USDT_RECEIVED if in_time >= FULL else S.EXPIRED)
        assert it.status not in AWAITING

    def test_the_latest_are_released_first(self) -> None:
        first, second = judge_deposits(exchange(), [incoming(10), incoming(20, "b:0", LATER)], LATER).transfers
        assert [each.suspended for each in released_transfers([first, second], 20, "failed")] == [20]
        changed = released_transfers([first, second], 25, "failed")
        assert [(each.counted, each.suspended, each.reason) for each in changed] == [
            (0, 20, "failed"),
            (5, 5, "failed"),
        ]
        assert released_transfers([first], 0, "failed") == ()
        with pytest.raises(ValueError, match="more is released"):
            released_transfers([first, second], 31, "failed")
