"""The last filter of log lines (docs/operations.md "Logs"): values that look secret or personal are masked, ids and
times stay readable."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.frontends.telemetry.masking import mask_event, masked
from tests.tables import table

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
DIGITS = st.text("0123456789", min_size=1, max_size=1)
WORDS = st.lists(st.sampled_from(["payment", "was", "refused:", "bank", "(again)", "[1]", "at", "—", "не"]), max_size=6)


def line(before: list[str], found: str, after: list[str]) -> str:
    """A log line with something in its middle."""
    return " ".join((*before, found, *after))


def luhn(digits: str) -> str:
    """The digits with the check digit that makes a card number of them."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 if place % 2 else 2)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)


SECRETS = st.one_of(
    st.builds(
        lambda mode, tail: (f"svc_{mode}_{tail}", tail), st.sampled_from(["live", "test"]), HEX.map(lambda h: h[:32])
    ),
    HEX.map(lambda secret: (secret, secret)),
    HEX.map(lambda secret: (f"Authorization: Bearer {secret[:20]}", secret[:20])),
    HEX.map(lambda secret: (f"{{'X-Api-Secret': '{secret[:24]}'}}", secret[:24])),
    HEX.map(lambda secret: (f'"webhook_secret":"w {secret[:20]}"', secret[:20])),
    HEX.map(lambda word: (f"redis://:{word[:12]}@cache:6379/0", word[:12])),
    HEX.map(lambda word: (f"https://bank.example/pay?token={word[:12]}&to=1", word[:12])),
    st.text("0123456789", min_size=9, max_size=9).map(lambda tail: (f"+79{tail}", f"79{tail}"[:7])),
    st.text("0123456789", min_size=9, max_size=9).map(lambda tail: (f"89{tail}", f"89{tail}"[:7])),
    st.text("123456789", min_size=15, max_size=15).map(luhn).map(lambda card: (card, card)),
    st.text("123456789", min_size=15, max_size=15)
    .map(luhn)
    .map(lambda card: (" ".join(re.findall("....", card)), card[:4])),
    st.text("123456789", min_size=10, max_size=10).map(lambda number: (f"{number[:4]} {number[4:]}", number[4:])),
    st.text("ABCDEF0123456789", min_size=5, max_size=32).map(lambda word: (f"document_number={word}", f"={word}")),
    st.text("abcdef", min_size=6, max_size=12).map(lambda word: (f"{word}@merchant.example", word)),
)


@given(WORDS, SECRETS, WORDS)
def test_nothing_secret_stays_in_a_line(before: list[str], secret: tuple[str, str], after: list[str]) -> None:
    written, hidden = secret
    assert hidden not in masked(line(before, written, after))


@given(WORDS, SECRETS, WORDS)
def test_masking_twice_is_masking_once(before: list[str], secret: tuple[str, str], after: list[str]) -> None:
    once = masked(line(before, secret[0], after))
    assert masked(once) == once


@given(st.text(max_size=300))
def test_any_text_can_be_masked_and_stays_masked(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@given(st.uuids(), st.datetimes(), st.integers(0, 10**9))
def test_ids_times_and_counts_stay_as_they_are(uuid: Any, moment: Any, count: int) -> None:
    text = (
        f"payment pay_{uuid} of acc_{uuid}:test at {moment.isoformat()}Z, job payment.watch:pay_{uuid}, {count} of 64"
    )
    assert masked(text) == text


@table(
    "text",
    [
        "metrics at http://127.0.0.1:9464/metrics",
        "settlement live:2026-11-21 failed for acc_01a1fe8a-2fd0-7afa-982c-acea65de4112",
        'File "/srv/cambist/core/usecases/jobs.py", line 112, in run',
        "jobs under way did not end in 10 s; their leases bring them back",
        "no rate from rapira: HTTP 503",
        "is it open? yes",
    ],
)
def test_harmless_text_is_not_masked(text: str) -> None:
    assert masked(text) == text


def test_a_phone_keeps_its_last_four_digits_as_payer_contacts_do() -> None:
    assert masked("phone of +79161237788") == "phone of ***7788"


def test_every_field_of_a_line_is_masked_however_deep() -> None:
    event: dict[str, Any] = {
        "event": "paid by +79161237788",
        "client_phone": "anything",
        "status": 200,
        "seen": [{"payer_name": "Anna", "note": "card 4111 1111 1111 1111"}, ("svc_live_0a1b2c",)],
        "fault": ValueError("+79161237788"),
        "payer_name": None,
    }
    assert mask_event(event) == {
        "event": "paid by ***7788",
        "client_phone": "***",
        "status": 200,
        "seen": [{"payer_name": "***", "note": "card ***"}, ["svc_live_***"]],
        "fault": "***7788",
        "payer_name": None,
    }


def test_a_long_text_takes_linear_time() -> None:
    """Patterns that try a place again and again would take minutes here."""
    for piece in ("1 ", "a@", "://", "?a", "authorization ", "0123456789abcdef", "+7", "a.b-"):
        assert len(masked(piece * 20_000)) > 0
