"""In which order an exchange is refused, and what each rule says (docs/exchanges.md "Making one";
docs/concepts.md "What is refused first")."""

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import CATALOGUE, Refusal, Retry
from cambist.core.domain.exchanges.exchanges import Direction
from cambist.core.domain.exchanges.money import quote_usdt
from cambist.core.domain.exchanges.orders import (
    RUB_RULES,
    RULES,
    ExchangeCase,
    ExchangeOrder,
    Step,
    in_progress,
    judge_exchange,
    new_exchange,
)
from cambist.core.domain.kyc.clients import KycStatus
from cambist.core.domain.money import Usdt
from tests.domain.exchange_kit import (
    BASE,
    END,
    NOW,
    PHONE,
    WALLET,
    S,
    account,
    case,
    client,
    made,
    rub_case,
)
from tests.domain.subscription_kit import refusal
from tests.tables import table

replace = msgspec.structs.replace
INVALID = (400, "VALIDATION_ERROR")
CHEAP = quote_usdt(Usdt.parse("1"), BASE, "2")


def with_order(given: ExchangeCase, **fields: Any) -> ExchangeCase:
    return replace(given, order=replace(given.order, **fields))


def answer(given: ExchangeCase) -> tuple[int, str] | None:
    def judge() -> None:
        for step in Step:
            judge_exchange(given, step)

    return refusal(judge)


class Row(msgspec.Struct, frozen=True):
    """A rule, how an order breaks it, and what that is answered with."""

    rule: str
    spoil: Callable[[ExchangeCase], ExchangeCase]
    answer: tuple[int, str]


ROWS = [
    Row("shape", lambda good: with_order(good, external_id="x" * 41), INVALID),
    Row("phone", lambda good: with_order(good, client_phone="89990000001"), (422, "VALIDATION_ERROR")),
    Row("connected", lambda good: replace(good, account=account(exchange=False)), (400, "FEATURE_NOT_ENABLED")),
    Row("direction is on", lambda good: replace(good, is_on=False), (503, "FEATURE_DISABLED")),
    Row("above zero", lambda good: with_order(good, amount_usdt="0.00000000"), (400, "INVALID_AMOUNT")),
    Row("bank is known", lambda good: replace(good, members=frozenset({"bank1"})), INVALID),
    Row("client", lambda good: replace(good, client=None), (422, "CLIENT_NOT_REGISTERED")),
    Row("rate", lambda good: replace(good, quote=None), (502, "RATE_INVALID")),
    Row("bounds", lambda good: replace(good, quote=good.quote and CHEAP), (400, "AMOUNT_TOO_LOW")),
    Row("one active", lambda good: replace(good, has_active=True), (409, "EXCHANGE_IN_PROGRESS")),
]


class TestOrder:
    def test_there_is_a_row_for_every_rule_in_their_order(self) -> None:
        assert [row.rule for row in ROWS] == [rule.name for rule in RULES]

    def test_steps_are_taken_in_turn(self) -> None:
        for rules in (RULES, RUB_RULES):
            assert all(one.step <= other.step for one, other in pairwise(rules))

    @table("row", ROWS, ids=lambda row: row.rule)
    def test_exchange_that_breaks_one_rule_is_refused_by_it(self, row: Row) -> None:
        assert answer(case()) is None
        assert answer(row.spoil(case())) == row.answer

    @table(("first", "second"), list(combinations(ROWS, 2)), ids=lambda row: row.rule)
    def test_exchange_that_breaks_two_rules_is_refused_by_the_first(self, first: Row, second: Row) -> None:
        assert answer(first.spoil(second.spoil(case()))) == first.answer

    def test_a_step_looks_at_its_own_rules_only(self) -> None:
        """A step does not judge values that are unknown so far."""
        early = replace(case(), client=None, quote=None, has_active=True)
        assert refusal(lambda: judge_exchange(early, Step.ORDER)) is None
        assert refusal(lambda: judge_exchange(early, Step.CLIENT)) == (422, "CLIENT_NOT_REGISTERED")
        assert refusal(lambda: judge_exchange(early, Step.QUOTE)) == (502, "RATE_INVALID")

    @table(
        ("fields", "path"),
        [
            *(
                ({"amount_usdt": text}, "amount_usdt")
                for text in ("", "1e3", "+5", "5.", " 5", "1.000000001", "NaN", "12345678901", "١")
            ),
            *(
                ({"client_bank_id": text}, "client_bank_id")
                for text in ("", "bank", "Bank1", "bank1 ", "bank1\n", "bank-1", "bank٣", "100000000004")
            ),
            ({"external_id": "x" * 41}, "external_id"),
        ],
        ids=ascii,
    )
    def test_a_wrong_shape_names_its_field(self, fields: dict[str, Any], path: str) -> None:
        with pytest.raises(Refusal) as refused:
            judge_exchange(case(**fields), Step.ORDER)
        assert (refused.value.status, refused.value.code) == INVALID
        assert msgspec.to_builtins(refused.value.details)[0]["path"] == path

    @table(
        "phone",
        ["", "+", "79990000001", "+7999000000", "8" * 11, "+" + "1" * 9, "+" + "1" * 16, "+7 9990000001",
         "+7(999)0000001", "+79990000001\n", " +79990000001", "+٧9990000001", "++79990000001"],
        ids=ascii,
    )  # fmt: skip
    def test_a_phone_has_one_spelling(self, phone: str) -> None:
        """`+` and 10 to 15 digits (docs/exchanges.md "Making one"): no second exchange by another spelling of one
        phone."""
        wanted = None if phone == "+7999000000" else (422, "VALIDATION_ERROR")
        assert answer(case(client_phone=phone)) == wanted

    @table("text", ["0", "0.0", "-1", "-0.00000001"])
    def test_an_amount_is_above_zero(self, text: str) -> None:
        assert answer(case(amount_usdt=text)) == (400, "INVALID_AMOUNT")

    def test_an_external_id_has_up_to_40_characters(self) -> None:
        assert answer(case(external_id="x" * 40)) is answer(rub_case(external_id="x" * 40)) is None

    def test_the_least_there_is_is_above_zero(self) -> None:
        assert answer(case(amount_usdt="0.00000001")) is answer(rub_case(amount_rub="0.01")) is None

    def test_order_without_a_rate_may_be_retried_soon(self) -> None:
        with pytest.raises(Refusal) as refused:
            judge_exchange(replace(case(), quote=None), Step.QUOTE)
        assert refused.value.retry_after == 30

    @table(
        ("fields", "wanted"),
        [
            ({"blocked": True}, (403, "CLIENT_BLOCKED")),
            ({"blocked": True, "kyc": KycStatus.REQUIRED, "verified_at": None}, (403, "CLIENT_BLOCKED")),
            *(
                ({"kyc": kyc, "verified_at": None}, (422, "CLIENT_NOT_REGISTERED"))
                for kyc in KycStatus
                if kyc is not KycStatus.VERIFIED
            ),
            ({}, None),
        ],
    )
    def test_the_client_has_passed_kyc_and_is_not_blocked(
        self, fields: dict[str, Any], wanted: tuple[int, str] | None
    ) -> None:
        assert answer(replace(case(), client=client(**fields))) == wanted

    @table(
        ("mode", "phone", "blocked", "wanted"),
        [
            (Mode.TEST, "+70000000007", None, None),
            (Mode.TEST, "+70000000007", False, None),
            (Mode.TEST, "+70000000007", True, (403, "CLIENT_BLOCKED")),
            (Mode.TEST, PHONE, None, (422, "CLIENT_NOT_REGISTERED")),
            (Mode.LIVE, "+70000000007", None, (422, "CLIENT_NOT_REGISTERED")),
        ],
    )
    def test_some_phones_are_verified_in_test_mode(
        self, mode: Mode, phone: str, blocked: bool | None, wanted: tuple[int, str] | None
    ) -> None:
        """In test mode `+7000000000N` are verified (docs/exchanges.md "Making one")."""
        unverified = {"kyc": KycStatus.REQUIRED, "verified_at": None}
        known = None if blocked is None else client(blocked=blocked, **unverified)
        assert answer(replace(case(client_phone=phone), mode=mode, client=known)) == wanted

    @table(
        "body",
        [
            '{"amount_usdt":"1","client_phone":"+79990000001"}',
            '{"amount_usdt":1,"client_phone":"+79990000001","client_bank_id":"bank1"}',
            '{"amount_usdt":"1","client_phone":"+79990000001","client_bank_id":"bank1","amount_rub":"5"}',
        ],
    )
    def test_malformed_order_is_refused(self, body: str) -> None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=ExchangeOrder)

    def test_the_legacy_key_in_the_body_has_no_effect(self) -> None:
        """The header wins, and is required (docs/concepts.md "Idempotency")."""
        assert answer(case(idempotency_key="any text")) is None
        assert made(case(idempotency_key="any text")) == made(case())

    def test_the_answers_that_are_worth_repeating(self) -> None:
        """With RATE_INVALID and FEATURE_DISABLED the same key may be sent again (docs/errors.md "All codes")."""
        assert CATALOGUE["RATE_INVALID"].retry is CATALOGUE["FEATURE_DISABLED"].retry is Retry.SAME_KEY
        assert CATALOGUE["IDEMPOTENCY_TERMINAL"].retry is Retry.NEW_KEY
        assert (in_progress().status, in_progress().code) == (409, "EXCHANGE_IN_PROGRESS")


class TestRub:
    """Exchanges of RUB to USDT are begun by an operator (docs/exchanges.md "RUB to USDT")."""

    def test_the_switch_of_the_other_direction_does_not_matter(self) -> None:
        assert [rule.name for rule in RUB_RULES] == [rule.name for rule in RULES if rule.name != "connected"]
        assert rub_case().account.settings.exchange is False
        assert answer(rub_case()) is None

    @table(
        ("spoiled", "wanted"),
        [
            (rub_case(amount_rub="1.001"), INVALID),
            (rub_case(amount_rub="0.00"), (400, "INVALID_AMOUNT")),
            (rub_case(client_wallet=WALLET[:-1] + "u"), INVALID),
            (rub_case(client_wallet="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), INVALID),
            (rub_case(client_phone="1"), (422, "VALIDATION_ERROR")),
            (rub_case(external_id="x" * 41), INVALID),
            (replace(rub_case(), is_on=False), (503, "FEATURE_DISABLED")),
            (replace(rub_case(), client=None), (422, "CLIENT_NOT_REGISTERED")),
            (replace(rub_case(), quote=None), (502, "RATE_INVALID")),
            (replace(rub_case(), has_active=True), (409, "EXCHANGE_IN_PROGRESS")),
        ],
        ids=lambda value: "" if isinstance(value, ExchangeCase) else value[1],
    )
    def test_rules(self, spoiled: ExchangeCase, wanted: tuple[int, str]) -> None:
        assert answer(spoiled) == wanted


class TestNew:
    def test_from_a_quote(self) -> None:
        it = made(case(external_id="e"))
        assert (it.status, it.direction, it.network) == (S.PENDING, Direction.USDT_TO_RUB, "tron")
        assert (str(it.amount_usdt), str(it.amount_rub), it.rate) == ("100.00000000", "9065.00", "90.65")
        assert (it.expires_at, it.active_slot, it.external_id, it.client_id) == (END, b"digest", "e", "client-1")
        assert (it.client_bank_id, it.client_wallet, it.key_id) == ("bank100000000004", None, "key")

    def test_the_other_way(self) -> None:
        it = made(rub_case())
        assert (it.direction, it.client_bank_id, it.client_wallet) == (Direction.RUB_TO_USDT, None, WALLET)
        assert (str(it.amount_rub), str(it.amount_usdt)) == ("10000.00", "105.94594500")

    def test_only_what_was_judged(self) -> None:
        for wrong in (replace(case(), quote=None), replace(case(), quote=rub_case().quote)):
            with pytest.raises(ValueError, match="not judged"):
                new_exchange(wrong, exchange_id="e", phone=b"", phone_digest=b"", key_id=None, now=NOW)

    def test_no_phone_shows_in_a_repr(self) -> None:
        for given in (case(), rub_case()):
            assert PHONE not in repr(given), "orders are part of cases"
        assert "9990000001" not in repr(made(case()))
