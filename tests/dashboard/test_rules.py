"""Russian texts of refused values name the field and the rule (docs/dashboard.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cambist
from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.people.roles import Role
from cambist.core.domain.wallets import NOBODYS
from cambist.core.domain.web_addresses import web_address_fault
from cambist.frontends.dashboard.rules import in_russian
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode, joined

ROOT = Path(cambist.__file__).resolve().parent
SOURCES = (
    *("core/domain/setting_readers.py", "core/domain/accounts/key_terms.py", "core/domain/accounts/accounts.py"),
    *("core/domain/people/payment_notes.py", "core/domain/webhooks/resends.py"),
    *("core/domain/people/passwords.py", "core/domain/people/people.py", "core/domain/refunds/orders.py"),
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
    "a zone is of one machine",
    "the payment was not found",
}
"""Rules of settings that only operators change, and faults that are caught in their module."""


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


@pytest.mark.parametrize("source", SOURCES)
def test_every_rule_of_a_form_has_a_russian_text(source: str) -> None:
    for refusal in refusals(ROOT / source):
        told = in_russian(refusal)
        what = refusal.details or refusal.message
        assert told is not None, what
        assert re.search("[а-я]", told.replace("«Причина»", "")), what


def test_texts_from_constants_are_russian_too() -> None:
    for rule in (NOBODYS, web_address_fault("x"), web_address_fault("https://магазин.example/")):
        told = in_russian(Refusal("VALIDATION_ERROR", "", details=[FieldFault("url", rule)]))
        assert told is not None
        assert "must" not in told


def test_several_faults_are_named_together() -> None:
    faults = [FieldFault("return_url", web_address_fault("x")), FieldFault("alarm_email", "must be an e-mail address")]
    told = in_russian(Refusal("VALIDATION_ERROR", "", details=faults))
    assert told is not None
    assert told.startswith("«Адрес возврата»: адрес http или https")
    assert "«Почта для тревог»: адрес эл. почты" in told


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
