"""Ledger entries of exchanges: each step sums to zero, and at the end value in equals value out, to the last of 8
decimals, in both directions (ARCHITECTURE.md "Money"; docs/exchanges.md "Rules")."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.exchanges.entries import (
    exchange_completed,
    exchange_failed,
    failed_release,
    money_given,
    money_received,
    money_returned,
    money_suspended,
    part_delivered,
    return_reversed,
)
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.exchanges.funds import judge_deposits, judge_payments, with_return
from cambist.core.domain.exchanges.money import shares
from cambist.core.domain.exchanges.payouts import (
    PartStatus,
    PartTrigger,
    paid_out,
    part_moved,
    part_operation,
    payout_parts,
)
from cambist.core.domain.exchanges.returns import ReturnStatus
from cambist.core.domain.ledger import BalanceType, Currency, JournalEntry, currency_of
from cambist.core.domain.money import Rub, Usdt
from tests.domain.exchange_kit import (
    BASE,
    END,
    ID,
    NOW,
    WALLET,
    S,
    bases,
    bought,
    exchange,
    incoming,
    markups,
    posted,
    rub_amounts,
    rub_exchange,
    sold,
    usdt_amounts,
)
from tests.tables import table

P = BalanceType


def is_balanced(*entries: JournalEntry | None) -> Counter[BalanceType]:
    """The balance types after these entries; each entry sums to zero in each currency, and no two are the same."""
    sums: Counter[BalanceType] = Counter()
    known = [entry for entry in entries if entry is not None]
    assert len({entry.id for entry in known}) == len(known)
    for entry in known:
        for currency in Currency:
            assert sum(each.amount for each in entry.postings if currency_of(each.balance_type) is currency) == 0
        sums.update(posted(entry))
    return Counter({balance_type: amount for balance_type, amount in sums.items() if amount})


PAID = tuple(msgspec.structs.replace(part, status=PartStatus.DONE) for part in payout_parts(ID, Rub(9065_00), None))


class TestEntries:
    @given(usdt_amounts, bases, markups, st.integers(0, 10**6))
    def test_usdt_to_rub_from_chain_to_bank(self, amount: Usdt, base: str, markup: str, more: int) -> None:
        it = sold(amount, base, markup)
        if not it.amount_rub.kopecks:
            return
        waiting = msgspec.structs.replace(it, status=S.AWAITING_USDT, amount_usdt_received=Usdt(0))
        (came,) = judge_deposits(waiting, [incoming(amount.units + more)], NOW).transfers
        parts = payout_parts(ID, it.amount_rub, Rub(max(1, it.amount_rub.kopecks // 3)))
        done = [msgspec.structs.replace(part, status=PartStatus.DONE) for part in parts]
        sums = is_balanced(
            money_received(it, came, NOW),
            money_given(it, NOW),
            *(part_delivered(it, part, NOW) for part in done),
            exchange_completed(it, NOW),
        )
        split = shares(it)
        assert sums == Counter(
            {
                balance_type: units
                for balance_type, units in {
                    P.CHAIN: -amount.units - more,
                    P.STOCK_USDT: split.stock.units,
                    P.AVAILABLE: split.merchant.units,
                    P.ROUNDING: split.rounding.units + came.rounded,
                    P.SUSPENSE_USDT: came.suspended,
                    P.STOCK_RUB: -it.amount_rub.kopecks,
                    P.BANK: it.amount_rub.kopecks,
                }.items()
                if units
            }
        )

    @given(rub_amounts, bases, markups, st.integers(0, 10**6))
    def test_rub_to_usdt_from_bank_to_chain(self, amount: Rub, base: str, markup: str, more: int) -> None:
        it = bought(amount, base, markup)
        if not it.amount_usdt.units:
            return
        waiting = msgspec.structs.replace(it, status=S.AWAITING_RUB, amount_rub_received=Rub(0))
        (came,) = judge_payments(waiting, [incoming(amount.kopecks + more)], NOW).transfers
        sums = is_balanced(money_received(it, came, NOW), money_given(it, NOW), exchange_completed(it, NOW))
        split = shares(it)
        assert sums == Counter(
            {
                balance_type: units
                for balance_type, units in {
                    P.BANK: -amount.kopecks - more,
                    P.STOCK_RUB: amount.kopecks,
                    P.SUSPENSE: more,
                    P.STOCK_USDT: -split.total.units,
                    P.CHAIN: it.amount_usdt.units,
                    P.AVAILABLE: split.merchant.units,
                }.items()
                if units
            }
        )

    def test_an_expired_one_leaves_all_in_suspense_until_it_is_sent_back(self) -> None:
        it = exchange()
        (came,) = judge_deposits(it, [incoming(500)], NOW).transfers
        booked = money_received(it, came, NOW)
        assert posted(booked) == {P.CHAIN: -500, P.EXCHANGING_USDT: 500}
        assert booked.id == f"exchange_received:{came.id}:1"
        assert posted(money_suspended(it, 500, NOW)) == {P.EXCHANGING_USDT: -500, P.SUSPENSE_USDT: 500}
        assert money_suspended(it, 0, NOW) is None
        held = with_return(msgspec.structs.replace(came, counted=0, suspended=500), NOW, address=WALLET, sender="one")
        entries = money_received(it, came, NOW), money_suspended(it, 500, NOW), money_returned(it, held, NOW)
        assert is_balanced(*entries) == Counter()

    def test_untransferable_part_of_a_return_is_rounded_away(self) -> None:
        it = exchange()
        (late,) = judge_deposits(it, [incoming(1_00000050, at=END)], END).transfers
        back = money_returned(it, with_return(late, NOW, address=WALLET, sender="one"), NOW)
        assert posted(back) == {P.SUSPENSE_USDT: -1_00000050, P.CHAIN: 1_00000000, P.ROUNDING: 50}

    def test_each_return_is_an_entry_of_its_own_and_may_be_reversed(self) -> None:
        it = rub_exchange()
        (late,) = judge_payments(it, [incoming(777, at=END)], END).transfers
        once = with_return(late, NOW)
        assert once.sent_back is not None
        gone = msgspec.structs.replace(once.sent_back, status=ReturnStatus.REVERSED)
        again = with_return(msgspec.structs.replace(once, sent_back=gone), NOW)
        entries = [money_returned(it, once, NOW), return_reversed(it, once, NOW), money_returned(it, again, NOW)]
        assert len({entry.id for entry in entries}) == 3
        assert is_balanced(*entries) == Counter({P.SUSPENSE: -777, P.BANK: 777})

    def test_nothing_is_booked_of_what_nobody_sends_back(self) -> None:
        (late,) = judge_deposits(exchange(), [incoming(500, at=END)], END).transfers
        with pytest.raises(ValueError, match="nothing"):
            money_returned(exchange(), late, NOW)

    @table(
        ("it", "wanted"),
        [
            (exchange(S.PENDING), {}),
            (exchange(S.AWAITING_USDT), {}),
            (exchange(S.PARTIAL, amount_usdt_received=Usdt(7)), {P.EXCHANGING_USDT: -7, P.SUSPENSE_USDT: 7}),
            (
                exchange(S.USDT_RECEIVED, amount_usdt_received=Usdt.parse("101")),
                {P.EXCHANGING_USDT: -(100 * 10**8), P.SUSPENSE_USDT: 100 * 10**8},
            ),
            (rub_exchange(S.PARTIAL, amount_rub_received=Rub(7)), {P.EXCHANGING_RUB: -7, P.SUSPENSE: 7}),
            (
                rub_exchange(S.USDT_SENDING, amount_rub_received=Rub(10_000_00)),
                {
                    P.EXCHANGING_RUB: -10_000_00,
                    P.SUSPENSE: 10_000_00,
                    P.SENDING: -105_94594500,
                    P.STOCK_USDT: 105_94594500,
                },
            ),
        ],
        ids=lambda value: f"{value.direction}-{value.status}" if isinstance(value, Exchange) else "",
    )
    def test_a_failed_one_gives_the_stock_and_the_client_theirs_back(
        self, it: Exchange, wanted: dict[BalanceType, int]
    ) -> None:
        entry = exchange_failed(it, NOW)
        assert posted(entry) == wanted
        assert failed_release(it) == wanted.get(P.SUSPENSE_USDT, wanted.get(P.SUSPENSE, 0))
        is_balanced(entry)

    @given(usdt_amounts, bases, markups, st.integers(0, 4))
    def test_a_payout_refused_half_way(self, amount: Usdt, base: str, markup: str, count: int) -> None:
        """A payout refused for good is `failed`. The part that the client received is settled as if it were the whole
        exchange (docs/exchanges.md "Rules")."""
        it = sold(amount, base, markup)
        if it.amount_rub.kopecks < 4:
            return
        parts = payout_parts(ID, it.amount_rub, Rub(it.amount_rub.kopecks // 4))
        statuses = [PartStatus.DONE] * count + [PartStatus.FAILED] + [PartStatus.PLANNED] * len(parts)
        parts = tuple(msgspec.structs.replace(part, status=each) for part, each in zip(parts, statuses, strict=False))
        it = msgspec.structs.replace(it, parts=parts)
        waiting = msgspec.structs.replace(it, status=S.AWAITING_USDT, amount_usdt_received=Usdt(0))
        (came,) = judge_deposits(waiting, [incoming(amount.units)], NOW).transfers
        done = [part for part in parts if part.status is PartStatus.DONE]
        sums = is_balanced(
            money_received(it, came, NOW),
            money_given(it, NOW),
            *(part_delivered(it, part, NOW) for part in done),
            exchange_failed(it, NOW),
        )
        paid = paid_out(parts)
        assert sums[P.BANK] == paid.kopecks == -sums[P.STOCK_RUB]
        assert (sums[P.REMITTING], sums[P.EXCHANGING_USDT]) == (0, 0)
        assert sums[P.SUSPENSE_USDT] == failed_release(it)
        assert sums[P.STOCK_USDT] + sums[P.AVAILABLE] + sums[P.ROUNDING] + sums[P.SUSPENSE_USDT] == amount.units

    @table("largest", [None, Rub(5000_00)])
    def test_nothing_is_given_back_while_a_part_may_still_go(self, largest: Rub | None) -> None:
        parts = part_moved(payout_parts(ID, Rub(9065_00), largest), part_operation(ID, 1), PartTrigger.ASKED)
        it = exchange(S.RUB_SENDING, amount_usdt_received=Usdt.parse("100"), parts=parts)
        with pytest.raises(ValueError, match="under way"):
            exchange_failed(it, NOW)
        with pytest.raises(ValueError, match="not done"):
            part_delivered(it, parts[0], NOW)

    def test_the_merchant_is_credited_at_the_end_only(self) -> None:
        """A balance that may be paid out holds nothing that could have to be taken back."""
        it = sold(Usdt.parse("100"), BASE, "2", parts=PAID)
        (came,) = judge_deposits(exchange(), [incoming(100 * 10**8)], NOW).transfers
        on_the_way = [money_received(it, came, NOW), money_given(it, NOW), part_delivered(it, PAID[0], NOW)]
        assert all(P.AVAILABLE not in posted(entry) for entry in on_the_way)
        assert posted(exchange_completed(it, NOW))[P.AVAILABLE] == 2 * 10**8
