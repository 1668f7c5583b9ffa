"""Worth of an exchange to the client, the merchant and the service, to the last of 8 decimals, in both directions, and
its payout in parts (docs/exchanges.md "Rules")."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Direction
from cambist.core.domain.exchanges.money import (
    ExchangeTerms,
    check_bounds,
    client_rate,
    depositable,
    quote_usdt,
    shares,
)
from cambist.core.domain.exchanges.payouts import (
    PartStatus,
    PartTrigger,
    all_delivered,
    next_part,
    paid_out,
    part_asked,
    part_moved,
    part_operation,
    payout_parts,
)
from cambist.core.domain.machine import IllegalMove
from cambist.core.domain.money import Rub, Usdt
from tests.domain.exchange_kit import (
    BASE,
    END,
    ID,
    NOW,
    R2U,
    U2R,
    bases,
    bought,
    markups,
    rub_amounts,
    sold,
    usdt_amounts,
)
from tests.tables import table


class TestQuotes:
    def test_usdt_to_rub_by_the_numbers(self) -> None:
        """100 USDT at 92.50 less 2 %: 90.65, so 9065 RUB. They cost 98 USDT; 2 are the merchant's."""
        quote = quote_usdt(Usdt.parse("100"), BASE, "2")
        assert (str(quote.amount_rub), quote.rate) == ("9065.00", "90.65")
        split = shares(sold(Usdt.parse("100"), BASE, "2"))
        assert [str(part) for part in (split.stock, split.merchant, split.rounding, split.client)] == [
            "98.00000000", "2.00000000", "0.00000000", "0.00000000",
        ]  # fmt: skip

    def test_rub_to_usdt_by_the_numbers(self) -> None:
        """10000 RUB at 92.50 are 108.108108… USDT; less 2 % 105.945945 (6 decimals), and the rest is the merchant's."""
        it = bought(Rub.parse("10000"), BASE, "2")
        split = shares(it)
        assert [str(part) for part in (it.amount_usdt, split.client, split.merchant, split.stock, split.rounding)] == [
            "105.94594500", "105.94594500", "2.16216310", "0.00000000", "0.00000000",
        ]  # fmt: skip
        assert it.rate == "94.38775510204081632653061224"

    @table(
        ("direction", "base", "markup", "rate"),
        [
            (U2R, "92.5", "0", "92.50"),
            (U2R, "92.5", "2", "90.65"),
            (U2R, "92.123456789012", "1.2345", "90.98619271495164686"),
            (U2R, "1E+2", "50", "50.00"),
            (U2R, "100", "0.0001", "99.9999"),
            (R2U, "92.5", "0", "92.50"),
            (R2U, "90", "10", "100.00"),
            (R2U, "92.5", "3", "95.36082474226804123711340206"),
        ],
    )
    def test_the_rate_is_shown_with_its_digits(self, direction: Direction, base: str, markup: str, rate: str) -> None:
        """USDT to RUB the base rate is multiplied by one less the markup, RUB to USDT it is divided by that
        (docs/exchanges.md "Rules", "RUB to USDT")."""
        assert client_rate(direction, base, markup) == rate

    @given(bases, markups)
    def test_the_rate_is_exact_one_way_and_close_the_other(self, base: str, markup: str) -> None:
        share = 1 - Fraction(Decimal(markup)) / 100
        assert Fraction(Decimal(client_rate(U2R, base, markup))) == Fraction(Decimal(base)) * share
        other = Fraction(Decimal(client_rate(R2U, base, markup)))
        assert abs(other * share / Fraction(Decimal(base)) - 1) < Fraction(1, 10**26)

    @table(
        ("base", "markup"),
        [("0", "2"), ("-1", "2"), ("NaN", "2"), ("x", "2"), ("Infinity", "2"), ("92", "100"), ("92", "-1"), ("92", "")],
    )
    def test_terms_without_sense_are_refused(self, base: str, markup: str) -> None:
        with pytest.raises(ValueError, match=r"above zero|decimal numbers"):
            ExchangeTerms.of(base, markup)

    @table(
        ("amount", "code"),
        [("0", "AMOUNT_TOO_LOW"), ("999.99", "AMOUNT_TOO_LOW"), ("1000", None), ("1000000", None),
         ("1000000.01", "AMOUNT_TOO_HIGH")],
    )  # fmt: skip
    def test_bounds_are_inclusive(self, amount: str, code: str | None) -> None:
        """1000 to 1000000 RUB (docs/limits.md "Sizes")."""
        if code is None:
            return check_bounds(Rub.parse(amount))
        with pytest.raises(Refusal) as refused:
            check_bounds(Rub.parse(amount))
        assert (refused.value.status, refused.value.code) == (400, code)
        return None

    @given(usdt_amounts)
    def test_depositable_amount_covers_the_amount(self, amount: Usdt) -> None:
        asked = depositable(amount)
        assert asked.units % 100 == 0
        assert 0 <= (asked - amount).units < 100


class TestShares:
    @given(usdt_amounts, bases, markups)
    def test_usdt_in_equals_what_it_is_divided_into(self, amount: Usdt, base: str, markup: str) -> None:
        it = sold(amount, base, markup)
        split, rate = shares(it), Fraction(Decimal(base))
        exact = Fraction(amount.units, 10**8) * rate * (1 - Fraction(Decimal(markup)) / 100)
        assert 0 <= exact - Fraction(it.amount_rub.kopecks, 100) < Fraction(1, 100), "down to kopecks, never more"
        assert split.total == amount
        assert min(split.stock, split.merchant, split.rounding, split.client) >= Usdt(0)
        assert (split.rounding <= Usdt(1), split.client) == (True, Usdt(0))
        value = Fraction(it.amount_rub.kopecks, 100) / rate * 10**8
        assert 0 <= value - split.stock.units < 1, "the stock takes the value of what it gave"
        assert 0 <= amount.units - value - split.merchant.units < 1, "the remainder, rounded down at 8 decimals"

    @given(rub_amounts, bases, markups)
    def test_rub_in_equal_what_their_value_is_divided_into(self, amount: Rub, base: str, markup: str) -> None:
        it = bought(amount, base, markup)
        split = shares(it)
        value = Fraction(amount.kopecks, 100) / Fraction(Decimal(base)) * 10**8
        exact = value * (1 - Fraction(Decimal(markup)) / 100)
        assert split.client == it.amount_usdt
        assert 0 <= exact - it.amount_usdt.units < 100, "down to what TRON moves, never more"
        assert it.amount_usdt.units % 100 == 0
        assert 0 <= value - split.total.units < 1
        assert split.merchant >= Usdt(0)

    @given(usdt_amounts, bases, markups, st.data())
    def test_client_gets_the_rest_of_a_broken_off_payout_back(
        self, amount: Usdt, base: str, markup: str, data: st.DataObject
    ) -> None:
        it = sold(amount, base, markup)
        paid = Rub(data.draw(st.integers(0, it.amount_rub.kopecks)))
        split = shares(it, paid)
        assert split.total == amount
        assert min(split.stock, split.merchant, split.rounding, split.client) >= Usdt(0)
        assert split.rounding <= Usdt(1)
        if it.amount_rub.kopecks:
            owed = Fraction(amount.units * (it.amount_rub - paid).kopecks, it.amount_rub.kopecks)
            assert 0 <= split.client.units - owed < 1, "in the client's favour"

    def test_no_more_is_paid_out_than_was_quoted_nor_less_than_nothing(self) -> None:
        it = sold(Usdt.parse("100"), BASE, "2")
        for paid in (it.amount_rub + Rub(1), Rub(-1)):
            with pytest.raises(ValueError, match="more was paid out"):
                shares(it, paid)


class TestParts:
    @given(rub_amounts, st.none() | rub_amounts)
    def test_parts_sum_to_the_amount_and_keep_the_cap(self, amount: Rub, cap: Rub | None) -> None:
        """A provider cap below the amount is met by several payouts of one exchange (docs/exchanges.md "Rules")."""
        if cap is not None and amount.kopecks > 1000 * cap.kopecks:
            cap = Rub(amount.kopecks // 1000 + 1)
        parts = payout_parts(ID, amount, cap)
        assert sum(part.amount.kopecks for part in parts) == amount.kopecks
        assert all(Rub(0) < part.amount <= (cap or amount) for part in parts)
        assert (
            len({part.operation for part in parts})
            == len(parts)
            == (1 if cap is None else -(-amount.kopecks // cap.kopecks))
        )
        assert payout_parts(ID, amount, cap) == parts

    def test_nothing_is_no_payout(self) -> None:
        for amount, cap in ((Rub(0), None), (Rub(1), Rub(0))):
            with pytest.raises(ValueError, match="more than nothing"):
                payout_parts(ID, amount, cap)

    def test_they_go_one_after_another(self) -> None:
        parts = payout_parts(ID, Rub(250), Rub(100))
        seen = []
        while (part := next_part(parts)) is not None:
            assert all_delivered(parts) is None
            seen.append((part.operation, part.status))
            trigger = PartTrigger.ASKED if part.status is PartStatus.PLANNED else PartTrigger.DELIVERED
            parts = part_moved(parts, part.operation, trigger)
        assert seen == [
            (part_operation(ID, n), status) for n in (1, 2, 3) for status in (PartStatus.PLANNED, PartStatus.SENT)
        ]
        assert (all_delivered(parts), paid_out(parts)) == (True, Rub(250))

    def test_the_bank_may_have_a_part_since_it_was_first_asked_for_it(self) -> None:
        parts = part_asked(payout_parts(ID, Rub(250), Rub(100)), part_operation(ID, 2), NOW)
        assert [(part.status, part.sent_at) for part in parts] == [
            (PartStatus.PLANNED, None),
            (PartStatus.SENT, NOW),
            (PartStatus.PLANNED, None),
        ]
        assert part_asked(parts, part_operation(ID, 2), END) == parts

    def test_after_a_refusal_nothing_is_sent(self) -> None:
        parts = payout_parts(ID, Rub(250), Rub(100))
        asked, delivered, refused = PartTrigger
        for number, trigger in ((1, asked), (1, delivered), (2, asked), (2, refused)):
            parts = part_moved(parts, part_operation(ID, number), trigger, "no" if trigger is refused else None)
        assert (next_part(parts), all_delivered(parts), paid_out(parts)) == (None, False, Rub(100))
        assert parts[1].failure == "no"

    def test_a_repeat_changes_nothing_and_a_done_part_never_fails(self) -> None:
        parts = part_moved(payout_parts(ID, Rub(5), None), part_operation(ID, 1), PartTrigger.ASKED)
        assert part_moved(parts, part_operation(ID, 1), PartTrigger.ASKED) == parts
        with pytest.raises(IllegalMove):
            part_moved(
                part_moved(parts, part_operation(ID, 1), PartTrigger.DELIVERED),
                part_operation(ID, 1),
                PartTrigger.REFUSED,
            )
        with pytest.raises(KeyError):
            part_moved(parts, part_operation(ID, 2), PartTrigger.ASKED)
        assert all_delivered(()) is None
