"""The rules of payment links: what an order may say, and what a payer may fill in (docs/payment-links.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payment_links import (
    FillFault,
    LinkField,
    LinkStatus,
    PaymentLink,
    PaymentLinkOrder,
    read_amount,
    read_answer,
    read_terms,
    status_of,
)
from tests.tables import table

NOW = datetime(2026, 8, 8, 12, tzinfo=UTC)
ACCOUNT = Account(
    id="acc_1",
    name="Any",
    default_shop_id=str(UUID(int=2)),
    created_at=NOW,
    settings=Settings(amount_rub_max=Rub(100_000_00)),
)
LINK = PaymentLink(id="plink_1", account_id="acc_1", mode=Mode.TEST, shop_id="s", description="Class", created_at=NOW)


def order(**said: Any) -> PaymentLinkOrder:
    return PaymentLinkOrder(**{"description": "Class", **said})


def in_days(days: float, seconds: float = 0) -> str:
    return (NOW + timedelta(days=days, seconds=seconds)).isoformat()


@table(
    ("said", "status", "path"),
    [
        ({"description": " "}, 400, "description"),
        ({"description": "x" * 256}, 400, "description"),
        ({"description": "a\nb"}, 400, "description"),
        ({"success_text": "x" * 256}, 400, "success_text"),
        ({"external_id": "x" * 257}, 400, "external_id"),
        ({"shop_id": "mine"}, 400, "shop_id"),
        ({"metadata": {str(number): 1 for number in range(51)}}, 400, "metadata"),
        ({"amount_rub": "ten"}, 400, "amount_rub"),
        ({"amount_rub": "29.99"}, 422, "amount_rub"),
        ({"amount_rub": "100000.01"}, 422, "amount_rub"),
        ({"amount_rub": "50", "amount_min_rub": "40"}, 400, "amount_rub"),
        ({"amount_rub": "50", "amount_max_rub": "60"}, 400, "amount_rub"),
        ({"amount_min_rub": "29.99"}, 422, "amount_min_rub"),
        ({"amount_min_rub": "60.01", "amount_max_rub": "60"}, 422, "amount_min_rub"),
        ({"payments_max": 2}, 400, "payments_max"),
        ({"reusable": True, "payments_max": 0}, 400, "payments_max"),
        ({"reusable": True, "payments_max": 10_001}, 400, "payments_max"),
        ({"expires_at": "tomorrow"}, 400, "expires_at"),
        ({"expires_at": in_days(0)}, 422, "expires_at"),
        ({"expires_at": in_days(30, 1)}, 422, "expires_at"),
        ({"fields": [LinkField(label=str(number)) for number in range(6)]}, 400, "fields"),
        ({"fields": [LinkField(label=" ")]}, 400, "fields[0].label"),
        ({"fields": [LinkField(label="Name"), LinkField(label="x" * 61)]}, 400, "fields[1].label"),
        ({"fields": [LinkField(label="Name"), LinkField(label="Name")]}, 422, "fields[1].label"),
        ({"fields": [LinkField(label="Name", kind="card")]}, 400, "fields[0].kind"),
        ({"fields": [LinkField(label="a", kind="email"), LinkField(label="b", kind="email")]}, 422, "fields[1].kind"),
    ],
)
def test_order_that_breaks_a_rule_is_refused_with_its_field(said: dict[str, Any], status: int, path: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_terms(order(**said), ACCOUNT, NOW)
    details: Any = refused.value.details
    assert (refused.value.status, details[0].path) == (status, path)


def test_terms_follow_from_what_the_order_says() -> None:
    single = read_terms(order(amount_rub="2500"), ACCOUNT, NOW)
    assert (single.amount, single.payments_max, single.expires_at) == (Rub(2500_00), 1, None)
    many = read_terms(order(reusable=True, amount_max_rub="100000", expires_at=in_days(30)), ACCOUNT, NOW)
    assert (many.amount, many.amount_max, many.payments_max) == (None, Rub(100_000_00), None)
    assert read_terms(order(reusable=True, payments_max=10_000), ACCOUNT, NOW).payments_max == 10_000


@table(
    ("changes", "taken", "status"),
    [
        ({}, 0, LinkStatus.ACTIVE),
        ({}, 1, LinkStatus.USED_UP),
        ({"payments_max": None}, 10**6, LinkStatus.ACTIVE),
        ({"payments_max": 3}, 2, LinkStatus.ACTIVE),
        ({"payments_max": 3}, 3, LinkStatus.USED_UP),
        ({"expires_at": NOW}, 0, LinkStatus.EXPIRED),
        ({"expires_at": NOW + timedelta.resolution}, 0, LinkStatus.ACTIVE),
        ({"expires_at": NOW, "archived_at": NOW}, 0, LinkStatus.ARCHIVED),
    ],
)
def test_status_follows_from_record_time_and_payments(changes: dict[str, Any], taken: int, status: LinkStatus) -> None:
    assert status_of(replace(LINK, **changes), NOW, taken) is status


@table(
    ("typed", "amount"),
    [
        ("1500", Rub(1500_00)),
        (" 1 500,50 ₽ ", Rub(1500_50)),
        ("1\u00a0500.5", Rub(1500_50)),
        ("", FillFault.MISSING),
        ("much", FillFault.NO_AMOUNT),
        ("1.234,50", FillFault.NO_AMOUNT),
        ("-40", FillFault.TOO_LOW),
        ("29.99", FillFault.TOO_LOW),
        ("100000.01", FillFault.TOO_HIGH),
    ],
)
def test_amount_is_read_as_people_type_it(typed: str, amount: Rub | FillFault) -> None:
    assert read_amount(LINK, typed, Rub(100_000_00)) == amount


def test_amount_of_the_link_cannot_be_typed_over() -> None:
    assert read_amount(replace(LINK, amount=Rub(50_00)), "30", Rub(100_00)) == Rub(50_00)
    bounded = replace(LINK, amount_min=Rub(100_00), amount_max=Rub(200_00))
    typed = [read_amount(bounded, text, Rub(1000_00)) for text in ("99.99", "100", "200", "200.01")]
    assert typed == [FillFault.TOO_LOW, Rub(100_00), Rub(200_00), FillFault.TOO_HIGH]


@table(
    ("kind", "typed", "answer"),
    [
        (None, " Anna ", "Anna"),
        (None, " ", FillFault.MISSING),
        (None, "x" * 256, FillFault.TOO_LONG),
        (None, "a\tb", FillFault.TOO_LONG),
        ("email", "a@b.example", "a@b.example"),
        ("email", "a.b.example", FillFault.NO_EMAIL),
        ("phone", "+7 (900) 123-45-67", "+79001234567"),
        ("phone", "8 900 123 45 67", "+79001234567"),
        ("phone", "12", FillFault.NO_PHONE),
    ],
)
def test_answer_is_read_by_the_kind_of_its_field(kind: str | None, typed: str, answer: str | FillFault) -> None:
    assert read_answer(LinkField(label="Any", kind=kind), typed) == answer
    if not typed.strip():
        assert read_answer(LinkField(label="Any", kind=kind, required=False), typed) is None


@given(st.text(max_size=40))
def test_no_text_of_a_payer_is_an_error(typed: str) -> None:
    amount = read_amount(LINK, typed, Rub(100_000_00))
    assert isinstance(amount, FillFault) or Rub(30_00) <= amount <= Rub(100_000_00)
    for kind in (None, "email", "phone"):
        read_answer(LinkField(label="Any", kind=kind), typed)
