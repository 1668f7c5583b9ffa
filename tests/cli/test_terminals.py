"""`cambist terminal …` (docs/cli.md "Commands")."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Call, Outcome

Ask = Callable[..., Any]


@pytest.fixture
def ask(call: Call) -> Ask:
    """Call with `--json`, and take the document of a call that must be done."""

    def run(*arguments: str) -> Any:
        outcome: Outcome = call(*arguments, "--json")
        assert (outcome.status, outcome.err) == (0, "")
        return outcome.document

    return run


@pytest.fixture
def account_id(ask: Ask) -> str:
    made: str = ask("account", "create", "Tea")["account_id"]
    return made


def test_a_terminal_with_every_option_is_shown_as_it_was_asked_for(ask: Ask, account_id: str) -> None:
    made = ask(
        "terminal", "add", account_id, "--label", "Обмен", "--method", "sbp", "--kind", "exchange",
        "--require", "client_phone, payer", "--no-own-lifetime", "--direct-link", "--credit-follows-receipt",
        "--route", "simulator-live", "--route", "simulator-test",
    )  # fmt: skip
    assert made == {
        "method_id": made["method_id"],
        "account_id": account_id,
        "label": "Обмен",
        "payment_method": "sbp",
        "kind": "exchange",
        "required_fields": ["client_phone", "payer"],
        "own_lifetime": False,
        "direct_link": True,
        "credit_follows_receipt": True,
        "routes": ["simulator-live", "simulator-test"],
        "enabled": True,
        "created_at": made["created_at"],
    }


def test_a_label_is_enough(ask: Ask, account_id: str) -> None:
    made = ask("terminal", "add", account_id, "--label", "SBP")
    assert (made["payment_method"], made["kind"], made["required_fields"], made["routes"]) == (
        "sbp",
        "ordinary",
        [],
        [],
    )
    assert (made["own_lifetime"], made["direct_link"], made["credit_follows_receipt"]) == (True, False, False)


def test_the_list_has_disabled_ones_too_the_oldest_first(ask: Ask, call: Call, account_id: str) -> None:
    ids = [ask("terminal", "add", account_id, "--label", label)["method_id"] for label in ("A", "B")]
    assert ask("terminal", "disable", ids[0])["enabled"] is False
    listed = ask("terminal", "list", account_id)["data"]
    assert [(each["method_id"], each["enabled"]) for each in listed] == [(ids[0], False), (ids[1], True)]
    for_people = call("terminal", "list", account_id).out
    assert "disabled" in for_people
    assert ask("terminal", "enable", ids[0])["enabled"] is True


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--kind", "other"), "ordinary, exchange"),
        (("--method", "card"), "sbp"),
        (("--require", "phone"), "client_phone, payer, client_email, description"),
        (("--require", "payer,"), "client_phone"),
        (("--route", "nowhere"), "simulator-test"),
    ],
)
def test_invalid_option_is_refused_naming_the_valid_ones(
    call: Call, account_id: str, arguments: tuple[str, ...], told: str
) -> None:
    outcome = call("terminal", "add", account_id, "--label", "T", *arguments, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "VALIDATION_ERROR")
    assert told in outcome.document["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list", "acc_1"), "ACCOUNT_NOT_FOUND"),
        (("add", "acc_1", "--label", "T"), "ACCOUNT_NOT_FOUND"),
        (("disable", "x"), "TERMINAL_NOT_FOUND"),
        (("enable", "x"), "TERMINAL_NOT_FOUND"),
    ],
)
def test_an_unknown_id_is_refused(call: Call, arguments: tuple[str, ...], code: str) -> None:
    outcome = call("terminal", *arguments, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, code)


def test_a_terminal_without_a_label_is_wrong_usage(call: Call, account_id: str) -> None:
    assert call("terminal", "add", account_id).status == 2


def test_the_settings_of_terminals_and_direct_links_are_off_until_set(ask: Ask, account_id: str) -> None:
    before = ask("account", "show", account_id)["settings"]
    after = ask("account", "set", account_id, "terminals=true", "direct_links=true")["settings"]
    assert (before["terminals"], before["direct_links"]) == (False, False)
    assert (after["terminals"], after["direct_links"]) == (True, True)
