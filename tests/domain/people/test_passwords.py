"""Rules of passwords and codes (docs/dashboard.md "Sign-in")."""

import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.passwords import (
    new_password,
    recovery_digest,
    recovery_text,
    totp_address,
    totp_code,
    totp_step,
)
from cambist.core.domain.people.people import read_email
from tests.tables import table

RFC_SECRET = b"12345678901234567890"


@table(
    ("moment", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_codes_are_those_of_rfc_6238(moment: int, code: str) -> None:
    assert totp_code(RFC_SECRET, moment // 30) == code


def test_code_is_valid_one_step_early_or_late_and_once() -> None:
    now, step = 1_000_000_020.0, 1_000_000_020 // 30
    found = [totp_step(RFC_SECRET, totp_code(RFC_SECRET, step + shift), now, 0) for shift in (-2, -1, 0, 1, 2)]
    assert found == [None, step - 1, step, step + 1, None]
    assert totp_step(RFC_SECRET, totp_code(RFC_SECRET, step), now, step) is None


@table("text", ["", "12345", "１２３４５６", "0" * 400, "\0"])
def test_code_of_another_form_is_wrong(text: str) -> None:
    assert totp_step(RFC_SECRET, text, 1e9, 0) is None


@table(
    "text",
    [
        "short",
        "elevenchars",
        "x" * 129,
        "aaaaaaaaaaaaaaaa",
        "123456789012",
        "password1234!",
        "Qwerty123456",
        "parolparol12",
        "olga.shop.olga",
        "abababababab",
        "aaaabbbbcccc",
        "P@ssw0rd!2024",
        "Passw0rd1234!@#$",
        "gfhjkm123456",
        "ghbdtnghbdtn",
        "Cambist-2026!",
        "cambistpayments",
        "1qaz2wsx3edc",
        "qazwsxedcrfv",
        "zyxwvutsrqpo",
        "iloveyou1987",
        "Welcome2cambist",
        "пароль123456",
        "йцукенгшщзхъ",
        "люблюсолнышко12",
        "olga@shop.example",
        "0lg4.Shop2026",
        "79161234567890",
        "passwordpasswordpassword",
        "dragonfootball",
    ],
)
def test_guessable_passwords_are_refused(text: str) -> None:
    with pytest.raises(Refusal):
        new_password(text, ("olga@shop.example", "Shop & Co"))


@table(
    "text",
    [
        "correct horse battery",
        "мой дядя самых честных",
        "x9!kPq2#vLm8",
        "twelve chars",
        "4f9a02b7c1d8",
        "dragon monkey football master",
        "correct horse battery staple",
        "olga buys eleven kettles",
        "8#4%2^9&1*7(3)",
    ],
)
def test_other_passwords_are_accepted(text: str) -> None:
    assert new_password(text, ("olga@shop.example", "Shop & Co")) == text


def test_recovery_code_is_read_in_any_case_and_with_or_without_dashes() -> None:
    code = recovery_text(bytes(range(16)))
    assert len(code) == 19
    assert recovery_digest(code) == recovery_digest(code.upper().replace("-", " "))
    assert recovery_digest(code) != recovery_digest(recovery_text(bytes(range(1, 17))))


def test_address_for_the_app_has_the_secret_in_base32() -> None:
    assert totp_address(b"12345678901234567890", "olga@shop.example", "cambist") == (
        "otpauth://totp/cambist:olga%40shop.example?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=cambist"
    )


@table(
    "text",
    ["", "olga", "olga@", "@shop.example", "a b@shop.example", "a@b@shop.example", "olga@shop", "o\n@shop.example",
     "a,b@shop.example", "олга@shop.example", "a" * 65 + "@shop.example", "olga@" + "s" * 260 + ".example"],
)  # fmt: skip
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        read_email(text)


def test_address_is_kept_in_lower_case() -> None:
    assert read_email("  Olga@Shop.Example ") == "olga@shop.example"
