"""Values as the console shows them (docs/console.md "Keys")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.money import Rub, Usdt
from cambist.frontends.console.texts import plain, styled

_UNITS = st.integers(min_value=-(10**17), max_value=10**17)


@given(_UNITS)
def test_an_amount_is_grouped_and_loses_no_digit(units: int) -> None:
    for amount in (Rub(units), Usdt(units)):
        shown = plain(amount)
        assert shown.replace(",", "") == str(amount)
        whole = shown.partition(".")[0].lstrip("-").split(",")
        assert [len(each) for each in whole[1:]] == [3] * (len(whole) - 1)
        assert 1 <= len(whole[0]) <= 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1000.00 RUB asked, 999.00 RUB came", "1,000.00 RUB asked, 999.00 RUB came"),
        ("available 1234567.00000001 USDT → -2000.50 RUB", "available 1,234,567.00000001 USDT → -2,000.50 RUB"),
        ("order 20261123.00 of 5000.00 RUB", "order 20261123.00 of 5,000.00 RUB"),
        ("order A-1000.00 RUB", "order A-1000.00 RUB"),
        ("x1000.00 RUB", "x1000.00 RUB"),
        ("1000.00 RUBLES", "1000.00 RUBLES"),
    ],
)
def test_amounts_within_a_text_are_grouped_and_nothing_else_is(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_amount_drops_its_commas_before_its_digits() -> None:
    assert styled(Rub(1_234_567_89), width=12).plain == "1,234,567.89"
    assert styled(Rub(12_345_678_89), width=12).plain == "12345678.89"
