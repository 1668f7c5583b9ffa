"""In which order POST and PATCH of /subscriptions refuse, and what each rule says (`RULES`, `PATCH_RULES`;
docs/subscriptions.md "Making one"; docs/concepts.md "What is refused first")."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode, Scheme
from cambist.core.domain.accounts.terminals import TerminalKind
from cambist.core.domain.errors import Refusal
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import BindingCharge
from cambist.core.domain.subscriptions.moves import repriced
from cambist.core.domain.subscriptions.orders import (
    RULES,
    SubscriptionCase,
    SubscriptionOrder,
    judge_subscription,
    new_subscription,
)
from cambist.core.domain.subscriptions.patches import PATCH_RULES, PatchCase, Prices, SubscriptionPatch, judge_patch
from cambist.core.domain.subscriptions.periods import COUNT_HIGHEST, Interval
from cambist.core.domain.subscriptions.subscriptions import Binding
from tests.domain.subscription_kit import (
    BOUND_AT,
    METHOD_ID,
    SHOP_ID,
    S,
    caller,
    order_case,
    refusal,
    shop,
    subscription,
    terminal,
)
from tests.tables import table

INVALID = (400, "VALIDATION_ERROR")
AMOUNT = (400, "INVALID_AMOUNT")
replace = msgspec.structs.replace


def with_order(case: SubscriptionCase, **fields: Any) -> SubscriptionCase:
    return replace(case, order=replace(case.order, **fields))


class Row(msgspec.Struct, frozen=True):
    """A rule, how an order breaks it, and what that is answered with."""

    rule: str
    spoil: Callable[[SubscriptionCase], SubscriptionCase]
    answer: tuple[int, str]


def _spoil_shop(**fields: Any) -> Callable[[SubscriptionCase], SubscriptionCase]:
    return lambda good: replace(good, shop=None if good.shop is None else replace(good.shop, **fields))


def _spoil_account(**fields: Any) -> Callable[[SubscriptionCase], SubscriptionCase]:
    def spoil(good: SubscriptionCase) -> SubscriptionCase:
        account = good.caller.account
        changed = replace(account, settings=replace(account.settings, **fields))
        return replace(good, caller=replace(good.caller, account=changed))

    return spoil


def _spoil_terminal(**fields: Any) -> Callable[[SubscriptionCase], SubscriptionCase]:
    return lambda good: replace(good, terminal=None if good.terminal is None else replace(good.terminal, **fields))


ROWS = [
    Row("shape", lambda good: with_order(good, interval="year"), INVALID),
    Row("acceptance", _spoil_account(acceptance=False), (422, "PAYMENT_UNAVAILABLE")),
    Row("shop is known", _spoil_shop(account_id="acc_2"), (400, "SHOP_NOT_FOUND")),
    Row("shop is enabled", _spoil_shop(enabled=False), (403, "SHOP_DISABLED")),
    Row("shop has markup", _spoil_shop(markup=None), (422, "SHOP_MARKUP_NOT_SET")),
    Row("selection is on", _spoil_account(terminals=False), (400, "METHOD_SELECTION_DISABLED")),
    Row("method is available", _spoil_terminal(enabled=False), (400, "METHOD_NOT_AVAILABLE")),
    Row("above zero", lambda good: with_order(good, amount_rub="0.00"), AMOUNT),
    Row("required fields", _spoil_terminal(required_fields=("client_phone",)), (422, "PAYER_DATA_REQUIRED")),
]
GOOD = order_case(method_id=METHOD_ID)


def answer(case: SubscriptionCase) -> tuple[int, str] | None:
    return refusal(lambda: judge_subscription(case))


class TestOrder:
    def test_there_is_a_row_for_every_rule_in_their_order(self) -> None:
        assert [row.rule for row in ROWS] == [rule.name for rule in RULES]

    @table("row", ROWS, ids=lambda row: row.rule)
    def test_order_that_breaks_one_rule_is_refused_by_it(self, row: Row) -> None:
        assert answer(GOOD) is None
        assert answer(row.spoil(GOOD)) == row.answer

    @table(("first", "second"), list(combinations(ROWS, 2)), ids=lambda row: row.rule)
    def test_order_that_breaks_two_rules_is_refused_by_the_first(self, first: Row, second: Row) -> None:
        assert answer(first.spoil(second.spoil(GOOD))) == first.answer

    @table(
        ("fields", "path"),
        [
            *(({"amount_rub": text}, "amount_rub") for text in ("", "1e3", "+5", "5.", "1.001", " 5", "12345678901")),
            ({"interval": "Month"}, "interval"),
            *(({"interval": i, "interval_count": 0}, "interval_count") for i in Interval),
            *(({"interval": i, "interval_count": COUNT_HIGHEST[i] + 1}, "interval_count") for i in Interval),
            *(({"description": text}, "description") for text in ("", "  \n", "x" * 33, "a\0b")),
            ({"external_id": "x" * 257}, "external_id"),
            ({"client_ref": "x" * 257}, "client_ref"),
            ({"client_phone": "1" * 33}, "client_phone"),
            ({"shop_id": "shop"}, "shop_id"),
            ({"method_id": "method"}, "method_id"),
            *(
                ({"success_url": url}, "success_url")
                for url in ("", "tea", "javascript:alert(1)", "ftp://shop.example/", "https://x/" + "x" * 2040)
            ),
            ({"binding_charge": "last"}, "binding_charge"),
        ],
    )
    def test_a_wrong_shape_names_its_field(self, fields: dict[str, Any], path: str) -> None:
        with pytest.raises(Refusal) as refused:
            judge_subscription(order_case(**fields))
        assert (refused.value.status, refused.value.code) == INVALID
        assert msgspec.to_builtins(refused.value.details)[0]["path"] == path

    @table(
        "fields",
        [
            *({"interval": i, "interval_count": n} for i in Interval for n in (1, COUNT_HIGHEST[i])),
            {"description": f"  {'x' * 32}  "},
            {"description": "x"},
            {"external_id": "x" * 256, "client_ref": "x" * 256, "client_phone": "1" * 32},
            {"external_id": "", "client_ref": "", "client_phone": ""},
            {"success_url": "https://x/" + "x" * 2038},
            {"binding_charge": "none"},
            {"amount_rub": "9999999999.99"},
            {"amount_rub": "0.01"},
        ],
    )
    def test_order_within_the_rules_is_accepted(self, fields: dict[str, Any]) -> None:
        """Up to 10 digits; the least amount of one-off payments does not hold here."""
        assert answer(order_case(**fields)) is None

    @table("text", ["0", "0.00", "-1.00"])
    def test_an_amount_is_above_zero(self, text: str) -> None:
        assert answer(order_case(amount_rub=text)) == AMOUNT

    @table(
        ("change", "wanted"),
        [
            ({"shop": None}, (400, "SHOP_NOT_FOUND")),
            ({"terminal": None}, (400, "METHOD_NOT_AVAILABLE")),
            ({"terminal": terminal(account_id="acc_2")}, (400, "METHOD_NOT_AVAILABLE")),
            ({"terminal": terminal(kind=TerminalKind.EXCHANGE)}, (400, "METHOD_NOT_AVAILABLE")),
            ({"terminal": terminal(required_fields=("payer",))}, (422, "PAYER_DATA_REQUIRED")),
            ({"terminal": terminal(required_fields=("description",))}, None),
            ({"shop": shop()}, None),
        ],
    )
    def test_shops_and_terminals(self, change: dict[str, Any], wanted: tuple[int, str] | None) -> None:
        assert answer(replace(GOOD, **change)) == wanted

    @table(
        "body",
        [
            '{"amount_rub":"1","interval":"day"}',
            '{"amount_rub":1,"interval":"day","description":"t"}',
            '{"amount_rub":"1","interval":"day","description":"t","interval_count":1.5}',
            '{"amount_rub":"1","interval":"day","description":"t","cap_amount_rub":"1"}',
            '{"amount_rub":"1","interval":"day","description":"t","cap_window_rub":"1"}',
        ],
    )
    def test_malformed_order_is_refused(self, body: str) -> None:
        """Unknown keys, caps included, are refused (docs/subscriptions.md "Making one")."""
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=SubscriptionOrder)


class TestNew:
    def new(self, case: SubscriptionCase, url: str | None = None) -> Any:
        return new_subscription(case, subscription_id="sub_1", binding_url=url, key_id="key", now=BOUND_AT)

    def test_defaults(self) -> None:
        it = self.new(order_case(description="  Tea "), "https://pay.example/s/sub_1")
        assert (it.status, it.mode, it.shop_id, it.scheme) == (S.PENDING_BINDING, Mode.TEST, SHOP_ID, Scheme.WINDOW)
        assert (it.interval_count, it.binding_charge, it.description) == (1, BindingCharge.FIRST, "Tea")
        assert (it.cap_amount, it.cap_window) == (it.amount, None), "the cap always equals `amount_rub`"
        assert (it.binding_url_pending, it.current_period_start, it.anchor) == (False, None, None)

    @table(("given", "method_id"), [(GOOD, METHOD_ID), (replace(GOOD, terminal=None), None)])
    def test_subscription_names_its_terminal(self, given: SubscriptionCase, method_id: str | None) -> None:
        assert self.new(given).method_id == method_id

    def test_subscription_without_a_link_waits_for_one(self) -> None:
        assert self.new(order_case()).binding_url_pending is True

    def test_the_phone_is_kept_masked_only(self) -> None:
        it = self.new(order_case(client_phone="+70000001234", client_ref="c", external_id="e", binding_charge="none"))
        assert (it.phone_mask, it.client_ref, it.external_id, it.binding_charge) == ("***1234", "c", "e", "none")
        assert "0000001234" not in repr(it)

    def test_the_scheme_is_the_accounts_at_creation(self) -> None:
        calendar = replace(order_case(), caller=caller(subscription_scheme=Scheme.CALENDAR))
        assert self.new(calendar).scheme is Scheme.CALENDAR


BINDING = Binding(operation="sub_1:1", requested_at=BOUND_AT)
PRESENT = subscription(cap_window=Rub(300_00), consent=Rub(150_00))


def patched(patch: dict[str, Any], **more: Any) -> PatchCase:
    return PatchCase(**{"patch": SubscriptionPatch(**patch), "subscription": PRESENT, **more})


def patch_answer(case: PatchCase) -> tuple[int, str] | Prices:
    return refusal(lambda: judge_patch(case)) or judge_patch(case)


PATCH_ROWS = [
    ("shape", {"amount_rub": "x"}, INVALID),
    ("subscription is found", None, (404, "SUBSCRIPTION_NOT_FOUND")),
    ("state", S.PAUSED, (409, "INVALID_STATE")),
    ("window cap", {"cap_window_rub": "1"}, INVALID),
    ("above zero", {"cap_amount_rub": "0"}, AMOUNT),
    ("within cap", {"amount_rub": "160", "cap_amount_rub": "155"}, AMOUNT),
    ("within consent", {"cap_amount_rub": "150.01"}, AMOUNT),
]


class TestPatch:
    def test_there_is_a_row_for_every_rule_in_their_order(self) -> None:
        assert [row[0] for row in PATCH_ROWS] == [rule.name for rule in PATCH_RULES]

    @table("first", range(len(PATCH_ROWS)))
    def test_patch_is_refused_by_the_first_rule_that_it_breaks(self, first: int) -> None:
        """The fields that break a rule are those of its row and of the rows after it; the earlier win."""
        wish: dict[str, Any] = {}
        present = msgspec.structs.replace(PRESENT, cap_window=None)
        for _, spoil, _ in reversed(PATCH_ROWS[first:]):
            if isinstance(spoil, dict):
                wish |= spoil
            elif spoil is not None:
                present = msgspec.structs.replace(present, status=S.PAUSED)
        missing = PATCH_ROWS[first][1] is None
        case = patched(wish, subscription=None if missing else present)
        assert patch_answer(case) == PATCH_ROWS[first][2]

    @table(
        ("patch", "wanted"),
        [
            ({}, INVALID),
            ({"amount_rub": None, "cap_amount_rub": None}, INVALID),
            ({"amount_rub": "50"}, Prices(amount=Rub(50_00), cap_amount=Rub(50_00), cap_window=Rub(300_00))),
            (
                {"amount_rub": "50", "cap_amount_rub": "70"},
                Prices(amount=Rub(50_00), cap_amount=Rub(70_00), cap_window=Rub(300_00)),
            ),
            ({"cap_amount_rub": "150.01"}, AMOUNT),
            ({"amount_rub": "151", "cap_amount_rub": "151"}, AMOUNT),
            ({"cap_amount_rub": "150"}, Prices(amount=Rub(100_00), cap_amount=Rub(150_00), cap_window=Rub(300_00))),
            ({"cap_window_rub": None}, Prices(amount=Rub(100_00), cap_amount=Rub(100_00), cap_window=None)),
            ({"cap_window_rub": "7"}, Prices(amount=Rub(100_00), cap_amount=Rub(100_00), cap_window=Rub(7_00))),
            (
                {"amount_rub": "150", "cap_amount_rub": "150"},
                Prices(amount=Rub(150_00), cap_amount=Rub(150_00), cap_window=Rub(300_00)),
            ),
            ({"amount_rub": "0.01"}, Prices(amount=Rub(1), cap_amount=Rub(1), cap_window=Rub(300_00))),
            ({"amount_rub": "100.00"}, Prices(amount=Rub(100_00), cap_amount=Rub(100_00), cap_window=Rub(300_00))),
            ({"amount_rub": "150"}, AMOUNT),
            ({"cap_amount_rub": "99.99"}, AMOUNT),
            ({"amount_rub": "0"}, AMOUNT),
            ({"cap_amount_rub": "-1"}, AMOUNT),
            ({"cap_amount_rub": "1.001"}, INVALID),
            ({"cap_window_rub": ""}, INVALID),
        ],
    )
    def test_patch_is_judged_by_the_resulting_prices(
        self, patch: dict[str, Any], wanted: tuple[int, str] | Prices
    ) -> None:
        """A patch needs at least one of three fields (docs/subscriptions.md "Changing and ending"); null removes the
        window cap; the rules compare the resulting prices."""
        assert patch_answer(patched(patch)) == wanted

    @table(
        ("patch", "wanted"),
        [
            ({"amount_rub": "300", "cap_amount_rub": "300"}, (Rub(300_00), Rub(300_00))),
            ({"amount_rub": "40"}, (Rub(40_00), Rub(40_00))),
            ({"amount_rub": "100.01"}, AMOUNT),
            ({"cap_amount_rub": "300"}, AMOUNT),
            ({"cap_amount_rub": "99"}, AMOUNT),
            ({"amount_rub": "50", "cap_amount_rub": "60"}, AMOUNT),
        ],
    )
    def test_until_the_payer_confirms_amounts_are_free_and_equal(self, patch: dict[str, Any], wanted: Any) -> None:
        """A cap above the amount could not survive the confirmation (docs/subscriptions.md "Changing and ending")."""
        answer = patch_answer(patched(patch, subscription=subscription(S.PENDING_BINDING, binding=BINDING)))
        assert (answer if isinstance(answer, tuple) else (answer.amount, answer.cap_amount)) == wanted

    @table("status", S)
    def test_only_active_and_pending_ones_are_changed(self, status: Any) -> None:
        """The state comes before the amounts."""
        possible = status in (S.ACTIVE, S.PENDING_BINDING)
        case = patched({"amount_rub": "150"}, subscription=subscription(status))
        assert patch_answer(case) == (AMOUNT if possible else (409, "INVALID_STATE"))

    @table("body", ['{"interval":"day"}', '{"external_id":"e"}', '{"amount_rub":5}', "[]"])
    def test_malformed_patch_is_refused(self, body: str) -> None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=SubscriptionPatch)

    def test_a_null_removes_the_window_cap_and_is_absent_elsewhere(self) -> None:
        read = msgspec.json.decode(b'{"amount_rub":null,"cap_window_rub":null}', type=SubscriptionPatch)
        assert read == SubscriptionPatch(cap_window_rub=None)
        prices = judge_patch(patched({"cap_window_rub": None}))
        after = repriced(
            PRESENT, amount=prices.amount, cap_amount=prices.cap_amount, cap_window=prices.cap_window, now=BOUND_AT
        )
        assert (after.amount, after.cap_amount, after.cap_window, after.sequence) == (Rub(100_00), Rub(100_00), None, 0)
