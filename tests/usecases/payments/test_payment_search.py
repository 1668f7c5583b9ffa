"""What the text of a search means, and cursors as they come from an address (docs/dashboard.md "Payments")."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.vault.memory import MemoryVault
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.common.encrypted import payer_email_digest
from cambist.core.usecases.common.keyset import Cursor, read_cursor, write_cursor
from cambist.core.usecases.common.paging import Position
from cambist.core.usecases.payments.list import PaymentFilter, PaymentSearch
from cambist.core.usecases.payments.search import payment_id_of, read_as, readings_of
from tests.tables import table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VAULT = MemoryVault()
ACCOUNT = Account(id="acc_1", name="Merchant", default_shop_id="shop", created_at=EPOCH)
CALLER = Caller(account=ACCOUNT, mode=Mode.TEST, key_id="k")
DIGEST = (payer_email_digest(VAULT, CALLER, "anna@shop.example") or b"").hex()
ID = "pay_01a21ea4-2c55-7c99-82bc-e03e87ee0495"


@table(
    ("text", "expected"),
    [
        ("order-77", "order"),
        ("1490", "order phone=1490 amount=1490.00"),
        ("149", "order amount=149.00"),
        ("1490.5", "order amount=1490.50"),
        ("1490,50", "order amount=1490.50"),
        ("1 490,50 ₽", "order amount=1490.50"),
        ("1\u202f490,50\u202f₽", "order amount=1490.50"),
        ("1,490.50", "order amount=1490.50"),
        ("1490 руб.", "order amount=1490.00"),
        ("заказ-5", "order"),
        ("\ud800", ""),
        ("***4567", "order phone=4567"),
        ("+7 (900) 123-45-67", "order phone=4567"),
        ("89001234567", "order phone=4567"),
        ("1490.555", "order"),
        ("-5", "order"),
        ("anna@shop.example", f"email={DIGEST} order"),
        (" ANNA@Shop.example", f"email={DIGEST} order"),
        ("a\0b", ""),
        ("a" * 257, ""),
        ("1" * 400, ""),
        ("١٤٩٠", "order"),
        ("0", "order amount=0.00"),
    ],
)
def test_text_of_a_search_has_these_meanings(text: str, expected: str) -> None:
    shown = []
    for reading in readings_of(text):
        asked = read_as(VAULT, CALLER, PaymentFilter(status="paid"), reading, text)
        assert asked.status == "paid"
        value = asked.amount_rub or asked.phone_tail or asked.email_digest
        shown.append(reading.value if value is None else f"{reading}={value}")
    assert " ".join(shown) == expected


@table(
    ("text", "found"),
    [
        (ID, True),
        (f" {ID.upper()} ", True),
        (ID.removeprefix("pay_"), True),
        (ID[:-1], False),
        ("pay_", False),
        ("ref_01a21ea4-2c55-7c99-82bc-e03e87ee0495", False),
    ],
)
def test_payment_id_is_known_with_and_without_its_prefix(text: str, found: bool) -> None:
    assert payment_id_of(text) == (ID if found else None)


@given(st.timedeltas(timedelta(0), timedelta(days=1_000_000)), st.booleans())
def test_cursor_comes_back_as_it_was_written(since: timedelta, newer: bool) -> None:
    for object_id in (ID, "", "~", "acc_1:test:000000000001"):
        cursor = Cursor(Position(EPOCH + since, object_id), newer=newer)
        assert read_cursor(write_cursor(cursor)) == cursor


@given(st.text(max_size=200))
def test_any_other_text_is_no_cursor(text: str) -> None:
    try:
        at = read_cursor(text).position.at
    except Refusal:
        return
    assert EPOCH <= at < datetime(6000, 1, 1, tzinfo=UTC)


@table(
    "text",
    [
        *("", "2", "-", ".", "1", "x.pay_1", "1.a/b", "1.'--", "1.a b", "1.\0", "1.é", "١.a", "1.~~"),
        *(f"{'9' * 18}.{ID}", f"1.{'a' * 161}", f"1.{ID}\n", f"--1.{ID}"),
    ],
)
def test_damaged_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_cursor(text)
    assert (refused.value.code, refused.value.status) == ("CURSOR_INVALID", 400)


def test_searches_are_filters_with_more_fields() -> None:
    assert set(PaymentSearch.__struct_fields__) - set(PaymentFilter.__struct_fields__) == {
        "number",
        "amount_rub",
        "phone_tail",
        "email_digest",
    }
