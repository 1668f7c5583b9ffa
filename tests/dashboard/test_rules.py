"""Texts of refused values name the field and the rule in both languages (docs/dashboard.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cambist
from cambist.core.domain.errors import CATALOGUE, FieldFault, Refusal
from cambist.core.domain.people.roles import Role
from cambist.core.domain.wallets import NOBODYS
from cambist.core.domain.web_addresses import web_address_fault
from cambist.frontends.dashboard.app import ROWS
from cambist.frontends.dashboard.rules import sentence_of
from cambist.frontends.dashboard.texts import PAIRS, Texts
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined
from tests.tables import table

ROOT = Path(cambist.__file__).resolve().parent
SOURCES = (
    *("core/domain/setting_readers.py", "core/domain/accounts/key_terms.py", "core/domain/accounts/accounts.py"),
    *("core/domain/people/payment_notes.py", "core/domain/people/views.py", "core/domain/webhooks/resends.py"),
    *("core/domain/people/passwords.py", "core/domain/people/people.py", "core/domain/refunds/orders.py"),
    *("core/domain/payments/payment_links.py",),
    *("core/domain/sandbox_clock.py", "core/domain/webhooks/endpoints.py", "core/domain/webhooks/static_headers.py"),
    *("core/domain/webhooks/wanted.py", "core/usecases/accounts/keys.py", "core/usecases/accounts/shops.py"),
    *("core/usecases/people/factors.py", "core/usecases/people/own_account.py", "core/usecases/people/passkeys.py"),
    *(
        "core/usecases/refunds/refunds.py",
        "core/usecases/common/idempotency.py",
        "core/usecases/common/own_addresses.py",
    ),
    *("frontends/dashboard/web.py", "frontends/dashboard/pages/developers.py"),
)
"""Modules that check the values of the dashboard's forms."""
UNSEEN = {
    "must be a whole number from 7 to 7",
    "must be at least 7",
    "must not be below zero",
    "must be a number from 0 to 7 with up to 4 decimals",
    "7 is no paid payment of a link",
    "a zone is of one machine",
    "the payment was not found",
}
"""Rules of settings that only operators change, and faults that are caught in their module."""
API_ONLY = {
    "AMOUNT_TOO_HIGH",
    "AMOUNT_TOO_LOW",
    "CAP_EXCEEDED",
    "CHARGE_BEFORE_WINDOW",
    "CHARGE_MANDATE_INACTIVE",
    "CHARGE_PERIOD_OCCUPIED",
    "CLIENT_NOT_REGISTERED",
    "DELIVERY_PROOF_CONFLICT",
    "DELIVERY_PROOF_LOCKED",
    "DIRECT_LINK_NOT_ALLOWED",
    "EXCHANGE_IN_PROGRESS",
    "EXCHANGE_RATE_NOT_SUPPORTED",
    "GATEWAY_NOT_FOUND",
    "HEADERS_TOO_LARGE",
    "KEY_ADDRESS_NOT_ALLOWED",
    "KYC_FAILED",
    "KYC_PERSIST_FAILED",
    "KYC_PROCESSING",
    "KYC_REQUIRED",
    "METHOD_NOT_ALLOWED",
    "METHOD_NOT_AVAILABLE",
    "METHOD_SELECTION_DISABLED",
    "MISSING_IDEMPOTENCY_KEY",
    "RATE_INVALID",
    "RATE_UNAVAILABLE",
    "RECURRING_CHARGE_EXHAUSTED",
    "SECOND_OPERATOR_NEEDED",
    "SUSPENSE_NOT_FOUND",
    "TERMINAL_NOT_FOUND",
    "UPLOAD_EXISTS",
    "UPLOAD_FORBIDDEN",
    "UPLOAD_LIMIT",
    "WITHDRAWAL_DISCONTINUED",
}
"""Refusals of operations that no page of the dashboard does."""


def sample(node: ast.expr) -> str | None:
    """The text of a message, with 7 for every value in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "7" for each in node.values)
    return None


def refusals(path: Path) -> Iterator[Refusal]:
    """Each VALIDATION_ERROR that the module raises with a text of its own."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        texts = [sample(each) for each in node.args]
        if node.func.id == "Refusal" and texts[0] == "VALIDATION_ERROR" and texts[1] is not None:
            yield Refusal("VALIDATION_ERROR", texts[1])
        elif node.func.id == "shape_error" and texts[1] is not None:
            yield Refusal("VALIDATION_ERROR", "", details=[FieldFault("reason", texts[1])])
        elif node.func.id == "ValueError" and texts[0] is not None and texts[0] not in UNSEEN:
            yield Refusal("VALIDATION_ERROR", "", details=[FieldFault("reason", texts[0])])


RU, EN = Texts("ru"), Texts("en")


@table("source", SOURCES)
def test_every_rule_of_a_form_has_texts_of_the_dashboard(source: str) -> None:
    for refusal in refusals(ROOT / source):
        what = refusal.details or refusal.message
        told = sentence_of(RU, refusal)
        assert re.search("[а-я]", told.replace("«Причина»", "")), what
        english = sentence_of(EN, refusal)
        assert english != refusal.message, what
        assert "must be" not in english or "must be later" in english, what


def test_every_state_that_refuses_a_form_has_a_text() -> None:
    modules = [*(ROOT / "core/usecases/people").glob("*.py"), *(ROOT / "core/domain/people").glob("*.py")]
    for node in (node for path in modules for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Refusal":
            continue
        texts = [sample(each) for each in node.args]
        if texts[0] == "INVALID_STATE" and texts[1] is not None and "disabled" not in texts[1]:
            assert sentence_of(RU, Refusal("INVALID_STATE", texts[1])) != PAIRS["error.INVALID_STATE"][1], texts[1]


def test_every_refusal_that_a_page_can_get_has_a_text() -> None:
    assert ROWS
    without = {code for code in CATALOGUE if f"error.{code}" not in PAIRS}
    assert without == API_ONLY


def test_texts_from_constants_are_translated_too() -> None:
    for rule in (NOBODYS, web_address_fault("x"), web_address_fault("https://магазин.example/")):
        for t in (RU, EN):
            told = sentence_of(t, Refusal("VALIDATION_ERROR", "", details=[FieldFault("url", rule)]))
            assert "must" not in told


def test_several_faults_are_named_together() -> None:
    faults = [FieldFault("return_url", web_address_fault("x")), FieldFault("alarm_email", "must be an e-mail address")]
    refusal = Refusal("VALIDATION_ERROR", "", details=faults)
    told = sentence_of(RU, refusal)
    assert told.startswith("«Адрес возврата»: адрес http или https")
    assert "«Почта для сообщений о сбое вебхуков»: адрес эл. почты" in told
    assert sentence_of(EN, refusal).startswith("Return address: an http or https address")


async def test_refused_form_names_the_rule_beside_its_field(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/settings")
    await owner.send("/settings/wallet", payout_wallet="no wallet")
    owner.sees("Wallet for payouts: an address of TRON")
    given = next(given for tag, given in owner.page.tags if given.get("name") == "payout_wallet")
    assert (given["value"], given["aria-invalid"]) == ("no wallet", "true")
    assert given["aria-describedby"].split()[0] in owner.page.ids
    assert given["aria-describedby"].split()[0].endswith("-fault")
    await owner.open("/developers/webhooks")
    await owner.send("/developers/webhooks/own", url="not an address")
    owner.sees("Address: an http or https address of at most 2048 Latin characters")
    assert "webhook_url" not in owner.text


async def test_refused_form_says_in_russian_what_is_wrong(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/settings?lang=ru")
    await owner.send("/settings/wallet", payout_wallet="no wallet")
    owner.sees("«Кошелёк для выплат»: адрес TRON")
    await owner.open("/people?lang=ru")
    await owner.send("/people/invite", email="no address")
    owner.sees("«Эл. почта»: нужен адрес вида olga@shop.example")
    await owner.open("/profile?lang=ru")
    await owner.send("/profile/password", present="correct horse battery staple", new="пароль123456")
    owner.sees("частых слов, рядов клавиш, цифр")
