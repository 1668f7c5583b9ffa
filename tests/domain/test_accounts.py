"""Accounts and shops: names, markups, settings as an operator writes them (docs/concepts.md "Shops";
docs/cli.md "Commands")."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.account_settings import ACCOUNT_SETTINGS, read_settings, shown_settings
from cambist.core.domain.accounts.accounts import Account, KycDemand, Scheme, Settings, account_name
from cambist.core.domain.accounts.shops import fold_name, shop_markup, shop_name
from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.webhooks.wanted import ALWAYS
from tests.tables import table

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
CONTROL = [
    chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
]


def _account(**changes: object) -> Account:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    values: dict[str, object] = {"id": "acc_1", "name": "A", "default_shop_id": "s", "created_at": now} | changes
    return Account(**values)  # type: ignore[arg-type]  # the tests give fields of the right types


@pytest.mark.parametrize("rule", [shop_name, account_name])
class TestNames:
    def test_a_name_is_trimmed(self, rule: Callable[[str], str]) -> None:
        """1 to 120 characters after trimming (docs/concepts.md "Shops")."""
        assert rule("  Чай и кофе \n") == "Чай и кофе"

    @pytest.mark.parametrize("length", [1, 120])
    def test_one_to_120_characters_are_accepted(self, rule: Callable[[str], str], length: int) -> None:
        assert rule(" " + "Ж" * length + "  ") == "Ж" * length

    @table("text", ["", "   ", "\t\n", "x" * 121, "\u3000"], ids=ascii)
    def test_none_and_more_than_120_are_refused(self, rule: Callable[[str], str], text: str) -> None:
        with pytest.raises(Refusal, match="1 to 120 characters") as caught:
            rule(text)
        assert (caught.value.code, caught.value.status) == ("VALIDATION_ERROR", 400)

    @table("char", CONTROL, ids=ascii)
    def test_control_characters_are_refused(self, rule: Callable[[str], str], char: str) -> None:
        """C0, DEL, C1, and what turns the direction of text (docs/concepts.md "Shops")."""
        with pytest.raises(Refusal, match="control characters"):
            rule(f"Te{char}a")

    def test_a_lone_surrogate_is_refused(self, rule: Callable[[str], str]) -> None:
        """No storage keeps one, and no JSON carries one."""
        with pytest.raises(Refusal):
            rule("Te\ud800a")


@table(
    ("one", "other"),
    [("Tea", "TEA"), ("чай", "ЧАЙ"), ("Straße", "STRASSE"), ("ΐ", "ΐ".upper()), ("Ｔｅａ", "tea"), ("e\u0301", "É")],
)
def test_names_are_compared_ignoring_case(one: str, other: str) -> None:
    """Unique in the account ignoring case, in every alphabet and in every way of composing a letter
    (docs/concepts.md "Shops")."""
    assert fold_name(one) == fold_name(other)


def test_different_names_stay_different() -> None:
    assert len({fold_name(name) for name in ("Tea", "Tee", "Чай", "Tea 2", "Te a")}) == 5


@given(st.text())
def test_a_folded_name_folds_to_itself(name: str) -> None:
    assert fold_name(fold_name(name)) == fold_name(name)


@table("text", ["0", "0.0", "0.03", "0.999999", "0.000001"])
def test_a_markup_is_kept_as_written(text: str) -> None:
    assert shop_markup(text) == text


@table(
    "text",
    ["", "1", "1.0", "-0.03", "+0.03", ".03", "0.", "0,03", "3%", "0.0000001", "3e-2", "0.03\n", "NaN", "0.٣"],
    ids=ascii,
)
def test_a_markup_that_is_no_fraction_below_one_is_refused(text: str) -> None:
    """Merchant rate = market rate / (1 - markup): a markup of 1 would divide by nothing
    (docs/settlement.md "How much")."""
    with pytest.raises(Refusal, match="fraction"):
        shop_markup(text)


CLEARED = (
    "alarm_email", "payout_wallet", "receipt_email", "receipt_mode", "receipt_subject", "receipt_tax_system",
    "receipt_vat", "refund_approval", "return_url", "webhook_events", "webhook_secret", "webhook_url",
)  # fmt: skip


@table(
    ("name", "text", "value"),
    [
        ("acceptance", "false", False),
        ("auto_return", "true", True),
        ("metadata_kb_max", "1", 1),
        ("metadata_kb_max", "64", 64),
        ("ttl_minutes_max", "1", 1),
        ("ttl_minutes_max", "1440", 1440),
        ("amount_rub_max", "30", Rub(3000)),
        ("amount_rub_max", "2500000.50", Rub(250_000_050)),
        ("recurring", "false", False),
        ("exchange", "true", True),
        *(("exchange_markup_percent", text, text) for text in ("0", "2", "0.0001", "9.9999", "50", "50.0000")),
        ("subscription_scheme", "calendar", Scheme.CALENDAR),
        ("subscription_scheme", "window", Scheme.WINDOW),
        ("return_url", "https://shop.example/thanks?order=1", "https://shop.example/thanks?order=1"),
        ("webhook_url", "http://127.0.0.1:9000/hook", "http://127.0.0.1:9000/hook"),
        ("webhook_url", "https://[2001:db8::1]/hook", "https://[2001:db8::1]/hook"),
        ("webhook_secret", "s" * 16, "s" * 16),
        ("payout_wallet", WALLET, WALLET),
        ("refund_overdraft_usdt", "0", Usdt(0)),
        ("refund_overdraft_usdt", "0.00000001", Usdt(1)),
        ("webhook_events", ", ".join(reversed(ALWAYS)), ALWAYS),
        *((name, "", None) for name in CLEARED),
    ],
)
def test_a_setting_is_read_by_its_type(name: str, text: str, value: object) -> None:
    """Booleans are true|false; an empty text clears what may be empty (docs/cli.md "Commands")."""
    assert read_settings({name: text}) == {name: value}


@table(
    ("name", "text"),
    [
        *(("acceptance", text) for text in ("", "True", "yes", "1", "on", "true ")),
        *(("metadata_kb_max", text) for text in ("", "0", "65", "1.5")),
        *(("ttl_minutes_max", text) for text in ("", "0", "1441", "-1", "1.5", "١", "1e2", "+5", "9" * 30, "60\n")),
        *(("amount_rub_max", text) for text in ("", "29.99", "0", "-100", "1e6", "NaN", "1,000", "99999999999")),
        *(("recurring", text) for text in ("", "yes")),
        *(("exchange", text) for text in ("", "on")),
        *(
            ("exchange_markup_percent", text)
            for text in ("", "-1", "50.0001", "51", "100", "1.00001", "01", ".5", "2.", "2%", "1e1", "NaN", "٢", "2\n")
        ),
        *(("subscription_scheme", text) for text in ("", "Window", "rolling")),
        *(("refund_overdraft_usdt", text) for text in ("-0.00000001", "-1")),
        *(("payout_wallet", text) for text in (WALLET[:-1], WALLET[:-1] + "u", WALLET.lower(), f"{WALLET}\n")),
        *(("webhook_secret", text) for text in ("short", "s" * 15, "s" * 257, "with a space inside", "ключ" * 8)),
        ("webhook_secret", "s" * 16 + "\n"),
    ],
    ids=ascii,
)  # fmt: skip
def test_a_setting_of_the_wrong_type_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_settings({name: text})
    assert caught.value.code == "VALIDATION_ERROR"
    assert caught.value.message.startswith(f"{name} must ")


@table("name", sorted(ACCOUNT_SETTINGS))
def test_a_refused_text_is_never_quoted(name: str) -> None:
    """It may be a secret in the wrong place."""
    with pytest.raises(Refusal) as caught:
        read_settings({name: "hunter2 correct horse\0"})
    assert "hunter2" not in f"{caught.value.message} {caught.value.details}"


BAD_ADDRESSES = (
    "shop.example", "//shop.example", "ftp://shop.example", "javascript:alert(1)", "file:///etc/passwd", "https://",
    "https:///path", "https://user@shop.example", "https://user:password@shop.example", "https://shop.example:0",
    "https://shop.example:65536", "https://shop.example:port", "https://[::1", "https://shop example", " https://shop.example",
    "https://shop.example\n", "https://shop.example\\@evil.example", "https://кофе.example/кофе", "https://shop.example/\0",
    "https://shop.example/" + "x" * 2048,
)  # fmt: skip


@table("text", BAD_ADDRESSES, ids=ascii)
@table("name", ["webhook_url", "return_url"])
def test_an_address_is_an_http_url_without_user_of_at_most_2048_characters(name: str, text: str) -> None:
    with pytest.raises(Refusal, match=name):
        read_settings({name: text})


def test_an_unknown_setting_is_refused_with_the_list_of_those_there_are() -> None:
    with pytest.raises(Refusal) as caught:
        read_settings({"colour": "blue"})
    assert "colour" in caught.value.message
    for name in ACCOUNT_SETTINGS:
        assert name in caught.value.message


def test_a_misspelt_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refusal, match=r"'webhok_url' is no setting; did you mean webhook_url\?"):
        read_settings({"webhok_url": "https://a.example"})


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(Refusal) as caught:
        read_settings({"acceptance": "maybe", "auto_return": "true", "ttl_minutes_max": "0"})
    assert isinstance(caught.value.details, list)
    assert [fault.path for fault in caught.value.details if isinstance(fault, FieldFault)] == [
        "acceptance",
        "ttl_minutes_max",
    ]


@table(
    ("names", "value"),
    [
        (("refunds", "terminals", "direct_links", "exchange", "refund_reserve"), False),
        (("acceptance", "auto_return", "kyc_open_page", "proof_reminders", "recurring"), True),
        (("subscription_scheme",), Scheme.WINDOW),
        (("kyc",), KycDemand.OFF),
        (("refund_overdraft_usdt",), Usdt(0)),
    ],
)
def test_new_account_has_the_documented_defaults(names: tuple[str, ...], value: object) -> None:
    """docs/cli.md "A new account"."""
    assert [getattr(Settings(), name) for name in names] == [value] * len(names)


def test_settable_names_are_the_fields_of_settings_and_the_secret() -> None:
    """Merchants could not set a setting that is in the record but not in the table."""
    assert set(ACCOUNT_SETTINGS) == {*Settings.__struct_fields__, "webhook_secret"}, (
        "a field of Settings (domain/accounts/accounts.py) and its row in domain/account_settings.py"
    )


def test_secret_is_shown_only_as_set_or_not() -> None:
    shown = shown_settings(_account(webhook_secret=b"sealed", settings=Settings(amount_rub_max=Rub(5000))))
    assert shown["webhook_secret_set"] is True
    assert shown["amount_rub_max"] == "50.00"
    assert "webhook_secret" not in shown
    assert b"sealed" not in shown.values()


@table(
    ("url", "secret", "receives"),
    [(None, None, False), ("https://a.example", None, False), (None, b"s", False), ("https://a.example", b"s", True)],
)
def test_an_account_receives_once_address_and_secret_are_both_set(
    url: str | None, secret: bytes | None, receives: bool
) -> None:
    """Nothing is sent until both are set (docs/webhooks.md "Webhooks")."""
    assert _account(settings=Settings(webhook_url=url), webhook_secret=secret).receives is receives
