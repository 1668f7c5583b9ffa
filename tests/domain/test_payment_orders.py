"""In which order POST /payments refuses, what each rule says, and where its bounds are (`orders.RULES`;
docs/payments.md "Taking one"; docs/concepts.md "What is refused first")."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any
from uuid import UUID

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode, Settings
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.accounts.terminals import Terminal, TerminalKind
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payments.orders import (
    RESERVED_METADATA,
    RULES,
    Case,
    Payer,
    PaymentOrder,
    judge,
    kept_metadata,
)
from tests.tables import table

replace = msgspec.structs.replace
NOW = datetime(2026, 8, 8, 12, tzinfo=UTC)
INVALID = (400, "VALIDATION_ERROR")
WRONG = (422, "VALIDATION_ERROR")
METHOD = str(UUID(int=1))
SHOP = Shop(id=str(UUID(int=2)), account_id="acc_1", name="Any", name_folded="any", created_at=NOW, markup="0.03")
SETTINGS = Settings(terminals=True)
PAYER = Payer(full_name="Anna-Maria O'Neil", document_number="AB123")


def with_settings(settings: Settings) -> Caller:
    account = Account(id="acc_1", name="Any", default_shop_id=SHOP.id, created_at=NOW, settings=settings)
    return Caller(account=account, mode=Mode.LIVE, key_id="key_1")


def terminal(**more: Any) -> Terminal:
    fields: dict[str, Any] = {"account_id": "acc_1", "kind": TerminalKind.ORDINARY, "payment_method": "sbp", **more}
    return Terminal(id=METHOD, label="Any", created_at=NOW, **fields)


EXCHANGE = terminal(kind=TerminalKind.EXCHANGE)
GOOD = Case(order=PaymentOrder(amount_rub="100.00"), caller=with_settings(SETTINGS), now=NOW, shop=SHOP, terminal=None)
CHOSEN = replace(GOOD, order=replace(GOOD.order, method_id=METHOD), terminal=terminal())


def asked(given: Case = GOOD, **fields: Any) -> Case:
    return replace(given, order=replace(given.order, **fields))


def paid_by(**fields: Any) -> Case:
    return asked(payer=replace(PAYER, **fields))


def refusal(given: Case) -> tuple[int, str] | None:
    try:
        judge(given)
    except Refusal as refused:
        return refused.status, refused.code
    return None


@table(
    "given",
    [
        GOOD,
        CHOSEN,
        asked(payment_method="sbp"),
        asked(CHOSEN, payment_method="sbp"),
        replace(GOOD, terminal=terminal()),
        asked(method_id=None, shop_id=SHOP.id, ttl_minutes=None),
        asked(external_id="x" * 256, client_email="x" * 254, description="x" * 255),
        asked(client_info={"x": "y" * (4096 - len('{"x":""}'))}, webhook_url="https://shop.example/hook"),
        asked(metadata={"x": "y" * (16 * 1024 - len('{"x":""}'))}),
        asked(metadata={str(number): "" for number in range(50)}),
        asked(client_phone="+1234567890"),
        asked(client_phone="+123456789012345"),
        asked(ttl_minutes=1),
        asked(ttl_minutes=60),
        asked(payer=PAYER),
        paid_by(full_name="x" * 255, document_number="5" * 32, kyc_reference="x" * 256),
        paid_by(kyc_completed_at=NOW.isoformat()),
        asked(amount_rub="30.00"),
        asked(amount_rub="1000000.00"),
        replace(asked(amount_rub="1000000.01"), terminal=terminal()),
        replace(asked(amount_rub="10000.00"), terminal=EXCHANGE),
        replace(asked(amount_rub="80000.00"), terminal=EXCHANGE),
        replace(asked(amount_rub="80000.01"), terminal=terminal()),
        replace(asked(description="x", payer=PAYER), terminal=terminal(required_fields=("description", "payer"))),
    ],
)
def test_order_within_every_bound_is_accepted(given: Case) -> None:
    assert refusal(given) is None


@table(
    "given",
    [
        *(asked(amount_rub=amount) for amount in ("", "1e3", "1.001", "x")),
        *(asked(payment_method=method) for method in ("", "SBP", "card")),
        asked(method_id="x"),
        asked(shop_id="x"),
        asked(webhook_url="x"),
        asked(external_id="x" * 257),
        asked(external_id="\n"),
        asked(client_email="x" * 255),
        asked(description="x" * 256),
        asked(client_phone="+" * 257),
        asked(ttl_minutes=0),
        asked(client_info={"x": "y" * (4097 - len('{"x":""}'))}),
        asked(metadata={"x": "y" * (16 * 1024 + 1 - len('{"x":""}'))}),
        asked(metadata={str(number): "" for number in range(51)}),
        asked(CHOSEN, payment_method="sbp", amount_rub="x"),
        replace(asked(payment_method="sbp"), terminal=terminal(payment_method="card")),
        replace(asked(amount_rub="9999.99"), terminal=EXCHANGE),
        replace(asked(amount_rub="80000.01"), terminal=EXCHANGE),
    ],
)
def test_a_wrong_shape_is_a_bad_request(given: Case) -> None:
    assert refusal(given) == INVALID


@table(
    "given",
    [
        *(paid_by(full_name=name) for name in ("", "  ", "x" * 256, "Anna 2", "Anna, Maria", "Anna\x7f")),
        *(paid_by(document_number=number) for number in ("", "1234", "1" * 33, "AB 123", "AB_123")),
        *(paid_by(kyc_reference=text) for text in ("x" * 257, "\x00")),
        *(paid_by(kyc_completed_at=text) for text in ("", "yesterday", "2026-08-08T12:00:00")),
        paid_by(kyc_completed_at=(NOW + timedelta(microseconds=1)).isoformat()),
        *(asked(client_phone=phone) for phone in ("", "+123456789", "+1234567890123456", "12345678901", "x" * 256)),
        asked(ttl_minutes=61),
    ],
)
def test_a_wrong_value_is_unprocessable(given: Case) -> None:
    assert refusal(given) == WRONG


class Broken(msgspec.Struct, frozen=True):
    """A rule, how an order breaks it, and what that is answered with."""

    rule: str
    spoil: Callable[[Case], Case]
    answer: tuple[int, str]


def unavailable(given: Case) -> Case:
    settings = replace(given.caller.account.settings, acceptance=False)
    return replace(given, caller=with_settings(settings))


def without_selection(given: Case) -> Case:
    settings = replace(given.caller.account.settings, terminals=False)
    return replace(asked(given, method_id=METHOD), caller=with_settings(settings))


BROKEN = [
    Broken("shape", lambda good: asked(good, description="x" * 256), INVALID),
    Broken("values", lambda good: asked(good, client_phone="x"), WRONG),
    Broken("acceptance", unavailable, (422, "PAYMENT_UNAVAILABLE")),
    Broken("shop is known", lambda good: replace(good, shop=None), (400, "SHOP_NOT_FOUND")),
    Broken(
        "shop is known", lambda good: replace(good, shop=replace(SHOP, account_id="acc_2")), (400, "SHOP_NOT_FOUND")
    ),
    Broken("shop is enabled", lambda good: replace(good, shop=replace(SHOP, enabled=False)), (403, "SHOP_DISABLED")),
    Broken(
        "shop has markup", lambda good: replace(good, shop=replace(SHOP, markup=None)), (422, "SHOP_MARKUP_NOT_SET")
    ),
    Broken("selection is on", without_selection, (400, "METHOD_SELECTION_DISABLED")),
    *(
        Broken(
            "method is available",
            lambda good, found=found: replace(asked(good, method_id=METHOD), terminal=found),  # type: ignore[misc]
            (400, "METHOD_NOT_AVAILABLE"),
        )
        for found in (None, terminal(account_id="acc_2"), terminal(enabled=False))
    ),
    Broken(
        "methods agree",
        lambda good: replace(asked(good, payment_method="sbp"), terminal=terminal(payment_method="card")),
        INVALID,
    ),
    Broken("exchange bounds", lambda good: replace(good, terminal=EXCHANGE), INVALID),
    Broken("above zero", lambda good: asked(good, amount_rub="0.00"), (400, "INVALID_AMOUNT")),
    Broken("minimum", lambda good: asked(good, amount_rub="29.99"), (400, "AMOUNT_BELOW_MINIMUM")),
    Broken("maximum", lambda good: asked(good, amount_rub="1000000.01"), (400, "INVALID_AMOUNT")),
    Broken(
        "required fields",
        lambda good: replace(asked(good, description=" "), terminal=terminal(required_fields=("description",))),
        (422, "PAYER_DATA_REQUIRED"),
    ),
]


def test_every_rule_is_broken_by_a_row_and_the_order_is_the_table_s() -> None:
    assert list(dict.fromkeys(each.rule for each in BROKEN)) == [rule.name for rule in RULES]


@table("broken", BROKEN)
def test_each_rule_answers_as_documented(broken: Broken) -> None:
    assert refusal(broken.spoil(GOOD)) == broken.answer


@table(("first", "second"), list(combinations(BROKEN, 2)))
def test_order_that_breaks_two_rules_is_refused_by_the_first(first: Broken, second: Broken) -> None:
    both = first.spoil(second.spoil(GOOD))
    if all(_breaks(each, both) for each in (first, second)):
        assert refusal(both) == first.answer


def _breaks(broken: Broken, given: Case) -> bool:
    """Whether an order breaks a rule, whatever those before it say."""
    (rule,) = (rule for rule in RULES if rule.name == broken.rule)
    try:
        rule.check(given)
    except Refusal:
        return True
    return False


def test_the_missing_fields_are_named_in_the_order_of_the_terminal() -> None:
    required = ("description", "payer", "client_email")
    given = replace(asked(description=" ", client_email="a@b.example"), terminal=terminal(required_fields=required))
    with pytest.raises(Refusal, match="description, payer") as refused:
        judge(given)
    assert refused.value.details == {"missing_fields": ["description", "payer"]}


def test_reserved_keys_of_metadata_are_dropped_and_all_others_kept() -> None:
    given = dict.fromkeys(RESERVED_METADATA, "x") | {"order": 5}
    assert kept_metadata(given) == {"order": 5}
    assert kept_metadata(None) is None
