"""Money: whole numbers of the smallest part, read and printed exactly (docs/concepts.md "Amounts and times")."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.money import Rub, Usdt
from tests.tables import table

RUB_UNITS = st.integers(-(10**12 - 1), 10**12 - 1)
"""Up to 10 digits before the point and 2 behind it."""
USDT_UNITS = st.integers(-(10**18 - 1), 10**18 - 1)

NASTY = (
    "", " ", "-", "--1", "+5", "+", ".", "..", "5.", ".5", "-.5", "-5.", "1..2", "1.2.3", " 5", "5 ", "- 5", "5\n",
    "30.00\n", "\n30.00", "30.00\r", "30.00\0", "\x0030", "\t5", "\u00a05", "1e3", "1E3", "1e-1", "NaN", "nan", "sNaN",
    "Infinity", "-Infinity", "inf", "1_0", "1,5", "1.5,0", "1 000", "1'000", "0x10", "0b1", "0o7", "10j", "1/2", "½",
    "٣", "٣٠.٠٠", "３０", "1٫5", "१०", "²", "Ⅷ", "−5", "5₽", "5 RUB", "RUB", "$5", "5%", "(5)", "1.", "00000000001",
    "12345678901", "12345678901.00", "-12345678901", "9" * 5000, "null", "true", "[]", "{}", '"5"', "5;", "5#",
    "\ud800", "5\u200b", "\ufeff5", "5\u202e",
)  # fmt: skip


@table("text", NASTY, ids=ascii)
@table("parse", [Rub.parse, Usdt.parse], ids=["Rub", "Usdt"])
def test_amount_that_is_no_plain_decimal_is_refused(parse: Callable[[str], Any], text: str) -> None:
    """ASCII digits only, up to 10, then up to 2 (8) decimals; no exponent, plus, space or newline
    (docs/concepts.md "Amounts and times")."""
    with pytest.raises(ValueError, match="decimal string"):
        parse(text)


@table("text", ["12345678901", "-12345678901", "99999999999.99", "00000000001", "9" * 5000])
def test_error_for_a_too_long_amount_names_the_largest(text: str) -> None:
    """docs/concepts.md "Amounts and times"."""
    with pytest.raises(ValueError, match=r"10 digits before the point: the largest is 9999999999\.99\Z"):
        Rub.parse(text)
    with pytest.raises(ValueError, match=r"10 digits before the point: the largest is 9999999999\.99999999\Z"):
        Usdt.parse(text)


def test_error_for_a_malformed_amount_names_no_largest() -> None:
    for text in ("1e3", "1234567890a", "12345678901.00 ", "1.234"):
        with pytest.raises(ValueError, match=r"up to 2 decimals\Z"):
            Rub.parse(text)


def test_decimals_beyond_the_smallest_part_are_refused() -> None:
    """RUB has up to 2 decimals, USDT up to 8 (docs/concepts.md "Amounts and times")."""
    for text in ("1.234", "0.001", "1.000"):
        with pytest.raises(ValueError, match="up to 2 decimals"):
            Rub.parse(text)
        assert str(Usdt.parse(text)).startswith(text)
    for text in ("1.123456789", "0.000000001", "1.000000000"):
        with pytest.raises(ValueError, match="up to 8 decimals"):
            Usdt.parse(text)


@table(
    ("text", "kopecks"),
    [
        ("0", 0),
        ("0.0", 0),
        ("00.10", 10),
        ("30", 3000),
        ("30.5", 3050),
        ("30.05", 3005),
        ("9999999999.99", 999_999_999_999),
        ("0000000030.00", 3000),
        ("-1", -100),
        ("-0.05", -5),
        ("-0", 0),
    ],
)
def test_a_plain_decimal_is_read_to_the_kopeck(text: str, kopecks: int) -> None:
    """A well-formed negative is read too, so that it gets another error than a malformed one (docs/concepts.md "Amounts
    and times")."""
    assert Rub.parse(text) == Rub(kopecks)


@table("units", [1, 99, 100])
def test_negative_amount_is_printed_exactly(units: int) -> None:
    """Amounts below zero print exactly, to the smallest part."""
    assert str(Rub(-units)) == f"-{Rub(units)}"
    assert str(Usdt(-units)) == f"-{Usdt(units)}"


@given(RUB_UNITS)
def test_rub_reads_what_it_prints(kopecks: int) -> None:
    assert Rub.parse(str(Rub(kopecks))) == Rub(kopecks)


@given(USDT_UNITS)
def test_usdt_reads_what_it_prints(units: int) -> None:
    assert Usdt.parse(str(Usdt(units))) == Usdt(units)


@given(RUB_UNITS, USDT_UNITS)
def test_answers_always_print_two_or_eight_decimals(kopecks: int, units: int) -> None:
    """Zero can be read; callers refuse it where it is not allowed (docs/concepts.md "Amounts and times")."""
    assert len(str(Rub(kopecks)).partition(".")[2]) == 2
    assert len(str(Usdt(units)).partition(".")[2]) == 8


@given(st.text())
def test_any_text_is_read_exactly_or_refused_with_a_value_error(text: str) -> None:
    """Whatever is read prints as the same number, and nothing but ValueError comes out."""
    try:
        rub = Rub.parse(text)
    except ValueError:
        return
    assert Rub.parse(str(rub)) == rub
    assert text.isascii()


@given(st.from_regex(r"\A-?[0-9]{1,10}(\.[0-9]{1,2})?\Z"))
def test_every_amount_of_the_documented_shape_is_read(text: str) -> None:
    """The pattern of docs/concepts.md "Amounts and times", and nothing narrower; the value is the text's, digit by
    digit."""
    whole, _, part = text.lstrip("-").partition(".")
    assert abs(Rub.parse(text).kopecks) == int(whole) * 100 + int((part + "00")[:2])


@given(RUB_UNITS, RUB_UNITS)
def test_sums_are_exact(one: int, other: int) -> None:
    assert (Rub(one) + Rub(other)).kopecks == one + other
    assert Rub(one) + Rub(other) - Rub(other) == Rub(one)
    assert Usdt(one) + Usdt(other) - Usdt(other) == Usdt(one)
    assert (Rub(one) < Rub(other)) == (one < other)


@table("other", [Usdt(100), 100, 1.0, "1.00", None], ids=repr)
def test_currencies_do_not_mix(other: Any) -> None:
    """`Rub + Usdt` is a TypeError, and so is money with a bare number; nor are they equal or in an order."""
    rub: Any = Rub(100)
    usdt: Any = Usdt(100)
    sums: tuple[Callable[[], Any], ...] = (
        lambda: rub + other,
        lambda: other + rub,
        lambda: rub - other,
        lambda: other - rub,
        lambda: rub < other,
        lambda: rub >= other,
        lambda: usdt + rub,
        lambda: usdt - rub,
        lambda: usdt < rub,
        lambda: usdt + 1,
    )
    for mixed in sums:
        with pytest.raises(TypeError):
            mixed()
    assert rub != other
    assert usdt != rub
