"""The quote that is believed, and the merchant's rate (docs/settlement.md "The rate", "How much")."""

import decimal
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.settlement.rates import (
    Candidate,
    Judgement,
    KnownRate,
    Quote,
    believed,
    is_held,
    is_sound,
    judge,
    may_serve,
    merchant_rate,
    shown,
)
from tests.tables import table

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def quote(rate: str, source: str = "a", *, age: float = 0) -> Quote:
    return Quote(rate=Decimal(rate), at=NOW - seconds(age), source=source)


def known(rate: str = "100", *, age: float = 60, candidate: Candidate | None = None) -> KnownRate:
    at = NOW - seconds(age)
    return KnownRate(id="live", rate=rate, at=at, fetched_at=at, source="a", candidate=candidate)


def level(rate: str, age: float) -> Candidate:
    return Candidate(rate=rate, since=NOW - seconds(age))


@table(
    ("fetched", "held"),
    [(0, True), (29.999, True), (30, False), (3600, False), (-30, True), (-30.001, False)],
)
def test_no_source_is_asked_within_30_seconds(fetched: float, held: bool) -> None:
    assert is_held(known(age=fetched), NOW) is held


def test_sources_are_read_without_a_known_rate() -> None:
    assert not is_held(None, NOW)


@table(("age", "serves"), [(0, True), (299.999, True), (300, False), (-30, True), (-30.001, False)])
def test_the_last_rate_may_be_shown_while_younger_than_5_minutes(age: float, serves: bool) -> None:
    assert may_serve(known(age=age), NOW) is serves


@table(
    ("rate", "age", "sound"),
    [
        ("92.5", 0, True),
        ("92.5", 300, True),
        ("92.5", 300.001, False),
        ("92.5", -30, True),
        ("92.5", -30.001, False),
        ("0", 0, False),
        ("-0", 0, False),
        ("-92.5", 0, False),
        ("NaN", 0, False),
        ("sNaN", 0, False),
        ("Infinity", 0, False),
        ("-Infinity", 0, False),
        ("1e-400", 0, False),
        ("0.009", 0, False),
        ("0.01", 0, True),
        ("999999.99", 0, True),
        ("1000000", 0, False),
        ("1e999999", 0, False),
        ("92." + "1" * 38, 0, True),
        ("92." + "1" * 39, 0, False),
    ],
)
def test_a_sound_quote_is_a_price_of_now(rate: str, age: float, sound: bool) -> None:
    assert is_sound(quote(rate, age=age), NOW) is sound


HELD = level("120", 60)

# Known rate, quotes received, whether more sources are available, believed quote, candidate afterwards.
ROWS: dict[str, tuple[KnownRate | None, list[Quote], bool, Quote | None, Candidate | None]] = {
    "nothing heard": (known(), [], False, None, None),
    "nothing heard, the candidate stays": (known(candidate=HELD), [], False, None, HELD),
    "the first rate ever, more to ask": (None, [quote("5")], True, None, None),
    "the first rate ever, of the only source": (None, [quote("5")], False, quote("5"), None),
    "the first rate ever, two within 10 %": (None, [quote("5"), quote("5.5", "b")], True, quote("5"), None),
    "the first rate ever, far apart": (
        None, [quote("92.50"), quote("9.25", "b")], False, None, level("92.50", 0),
    ),
    "only unsound ones": (None, [quote("0"), quote("NaN", "b")], False, None, None),
    "an unsound one leaves the candidate": (known(candidate=HELD), [quote("120", age=301)], False, None, HELD),
    "the first sound one wins": (known(), [quote("-1"), quote("101", "b")], True, quote("101", "b"), None),
    "the first near one wins": (known(), [quote("101"), quote("100", "b")], True, quote("101"), None),
    "up 10 %": (known(), [quote("110")], True, quote("110"), None),
    "down 10 %": (known(), [quote("90")], True, quote("90"), None),
    "beyond 10 % up, more to ask": (known(), [quote("110.01")], True, None, None),
    "beyond 10 % up": (known(), [quote("110.01")], False, None, level("110.01", 0)),
    "beyond 10 % down": (known(), [quote("89.99")], False, None, level("89.99", 0)),
    "an hour old, more to ask": (known(age=3600), [quote("500")], True, None, None),
    "an hour old, the only source": (known(age=3600), [quote("500")], False, quote("500"), None),
    "an hour old, the second is far off": (
        known(age=3600), [quote("9.25"), quote("92.50", "b")], False, None, level("9.25", 0),
    ),
    "an hour old, the second and the third agree": (
        known(age=3600), [quote("9.25"), quote("92.50", "b"), quote("95", "c")], True, quote("92.50", "b"), None,
    ),
    "of the future, the only source": (known(age=-31), [quote("500")], False, quote("500"), None),
    "just under an hour, guarded": (known(age=3599), [quote("500")], False, None, level("500", 0)),
    "near clears the candidate": (known(candidate=HELD), [quote("100")], True, quote("100"), None),
    "a spike beside a near one": (known(), [quote("150"), quote("100", "b")], False, quote("100", "b"), None),
    "a ripe level beside a near one": (
        known(candidate=level("150", 6000)), [quote("150"), quote("100", "b")], False, quote("100", "b"), None,
    ),
    "two say the same": (known(), [quote("150"), quote("151.5", "b")], True, quote("150"), None),
    "two differ by more than 1 %": (known(), [quote("150"), quote("151.51", "b")], False, None, level("150", 0)),
    "the second and the third agree": (
        known(), [quote("150"), quote("200", "b"), quote("201", "c")], False, quote("200", "b"), None,
    ),
    "one source twice is no second": (known(), [quote("150"), quote("150")], False, None, level("150", 0)),
    "an unsound second does not confirm": (
        known(), [quote("150"), quote("150", "b", age=301)], False, None, level("150", 0),
    ),
    "the level is young": (known(candidate=level("150", 599)), [quote("151")], False, None, level("151", 599)),
    "the level was seen for 10 minutes": (
        known(candidate=level("150", 600)), [quote("151")], False, quote("151"), None,
    ),
    "ripe, but more can be asked": (
        known(candidate=level("150", 600)), [quote("151")], True, None, level("150", 600),
    ),
    "the level may be another source's": (
        known(candidate=level("150", 600)), [quote("200"), quote("151", "b")], False, quote("151", "b"), None,
    ),
    "up to 3 % it is the same level": (
        known(candidate=level("150", 599)), [quote("154.5")], False, None, level("154.5", 599),
    ),
    "another level begins anew": (
        known(candidate=level("150", 600)), [quote("154.51")], False, None, level("154.51", 0),
    ),
}  # fmt: skip


@table("name", ROWS)
def test_quotes_are_believed_or_become_candidates(name: str) -> None:
    before, heard, more, expected, candidate = ROWS[name]
    assert judge(before, heard, NOW, more=more) == Judgement(quote=expected, candidate=candidate)


prices = st.decimals("0.01", "999999", places=8)


@given(before=prices, heard=st.lists(prices, min_size=1, max_size=4), more=st.booleans())
def test_a_lone_jump_is_never_believed_at_once(before: Decimal, heard: list[Decimal], more: bool) -> None:
    quotes = [quote(str(rate), str(place)) for place, rate in enumerate(heard)]
    judged = judge(known(str(before)), quotes, NOW, more=more)
    if judged.quote is not None:
        rate = Fraction(judged.quote.rate)
        near = abs(rate - Fraction(before)) * 10 <= Fraction(before)
        assert near or sum(abs(Fraction(other) - rate) * 100 <= rate for other in heard) >= 2


def test_a_believed_rate_keeps_every_digit_and_no_candidate() -> None:
    text = "92.123456789012345678901234567890"
    record = believed("live", quote(text, age=100), NOW)
    assert record == KnownRate(id="live", rate=text, at=NOW - seconds(100), fetched_at=NOW, source="a")
    assert record.value == Decimal(text)


def test_a_source_that_is_ahead_means_now() -> None:
    assert believed("live", quote("92", age=-20), NOW).at == NOW


@table(
    ("market", "markup", "merchant"),
    [
        ("92.50", "0", "92.50"),
        ("92.50", "0.03", "95.36082474226804123711340206"),
        ("92.50", "0.5", "185"),
        ("92.50", "0.999999", "92500000"),
        ("1", "0.3", "1.428571428571428571428571429"),
    ],
)
def test_merchant_rate_is_market_rate_over_one_less_markup(market: str, markup: str, merchant: str) -> None:
    """Merchant rate = market rate / (1 - markup); 28 significant digits (docs/settlement.md "How much")."""
    assert merchant_rate(Decimal(market), markup) == Decimal(merchant)


@given(market=prices.filter(bool), markup=st.decimals(0, "0.999999", places=6))
def test_merchant_rate_is_exact_to_28_digits(market: Decimal, markup: Decimal) -> None:
    exact = Fraction(market) / (1 - Fraction(markup))
    assert abs(Fraction(merchant_rate(market, str(markup))) - exact) <= exact / 10**27


@table(
    ("market", "markup"),
    [("0", "0"), ("-1", "0"), ("NaN", "0"), ("Infinity", "0"), ("1", "1"), ("1", "-0.1"), ("1", "NaN"), ("1", "x")],
)
def test_invalid_rate_or_markup_is_refused(market: str, markup: str) -> None:
    with pytest.raises(ValueError, match="markup"):
        merchant_rate(Decimal(market), markup)


@table(
    ("rate", "text"),
    [
        ("92.5", "92.50"),
        ("95.36082474", "95.36"),
        ("92.505", "92.51"),
        ("92.515", "92.52"),
        ("92.5149999", "92.51"),
        ("1E+2", "100.00"),
        ("0.01", "0.01"),
        ("999999999999.999", "1000000000000.00"),
    ],
)
def test_a_rate_is_shown_with_two_decimals_half_up(rate: str, text: str) -> None:
    """RUB per 1 USDT, 2 decimals (docs/settlement.md "The rate")."""
    assert shown(Decimal(rate)) == text


def test_nothing_depends_on_the_decimal_context_of_an_embedder() -> None:
    def all_of_it() -> tuple[object, ...]:
        return (
            merchant_rate(Decimal("92.123456789"), "0.03"),
            shown(Decimal("92.505")),
            judge(known("100.123456789"), [quote("110.1358024679")], NOW, more=True),
            is_sound(quote("NaN"), NOW),
        )

    expected = all_of_it()
    usual = decimal.Context()
    hostile = decimal.Context(prec=2, rounding=decimal.ROUND_UP, Emin=-1, Emax=1, traps=list(usual.traps))
    with decimal.localcontext(hostile):
        assert all_of_it() == expected
    kept = decimal.DefaultContext.prec, decimal.DefaultContext.Emax
    decimal.DefaultContext.prec, decimal.DefaultContext.Emax = 2, 1
    try:
        assert all_of_it() == expected
    finally:
        decimal.DefaultContext.prec, decimal.DefaultContext.Emax = kept
