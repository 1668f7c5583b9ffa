"""`cambist exchange …`: the operator's acts on exchanges (docs/exchanges.md "Rules")."""

import pytest

from tests.cli.conftest import Call

ORDER = ("--mode", "test", "--amount-rub", "10000.00", "--client-phone", "+70000000001", "--json")
ADDRESS = ("--address", "TP2XF6cQrytbPzkiympYZe7ptUkDacptok")


@pytest.fixture
def account_id(call: Call) -> str:
    found: str = call("account", "create", "Tea", "--json").document["account_id"]
    return found


def test_an_operator_creates_lists_and_cancels(call: Call, account_id: str) -> None:
    done = call("exchange", "create-rub-usdt", account_id, *ORDER, *ADDRESS)
    made = done.document
    assert (made["status"], made["direction"], made["amount_rub"]) == ("awaiting_rub", "rub_to_usdt", "10000.00")
    assert made["invoice"]
    assert "70000000001" not in done.out + done.err
    listed = call("exchange", "list", account_id, "--json").document["data"]
    assert [each["exchange_id"] for each in listed] == [made["exchange_id"]]
    assert call("exchange", "list", account_id, "--mode", "live", "--json").document["data"] == []
    assert call("exchange", "cancel", made["exchange_id"], "--json").document["status"] == "cancelled"
    again = call("exchange", "cancel", made["exchange_id"], "--json")
    assert (again.status, again.document["error"]["code"]) == (1, "INVALID_STATE")


def test_a_direction_is_switched_off_and_on(call: Call, account_id: str) -> None:
    assert call("exchange", "disable", "rub_to_usdt", "--json").document["enabled"] is False
    refused = call("exchange", "create-rub-usdt", account_id, *ORDER, *ADDRESS)
    assert (refused.status, refused.document["error"]["code"]) == (1, "FEATURE_DISABLED")
    assert call("exchange", "enable", "rub_to_usdt", "--json").document["enabled"] is True
    assert call("exchange", "create-rub-usdt", account_id, *ORDER, *ADDRESS).status == 0


def test_an_unknown_direction_is_wrong_usage(call: Call) -> None:
    assert call("exchange", "disable", "usdt").status == 2


def test_money_that_waits_is_listed_and_sent_back(call: Call, account_id: str) -> None:
    made = call("exchange", "create-rub-usdt", account_id, *ORDER, *ADDRESS).document
    shown = call("exchange", "show", made["exchange_id"], "--json").document
    assert (shown["exchange_id"], shown["transfers"]) == (made["exchange_id"], [])
    assert call("exchange", "suspense", "--account", account_id, "--json").document == {"data": []}
    assert call("exchange", "suspense").status == 0
    refused = call("exchange", "return", made["exchange_id"], "--json")
    assert (refused.status, refused.document["error"]["code"]) == (1, "INVALID_STATE")
    for command in (("show",), ("return",)):
        unknown = call("exchange", *command, "exch_1", "--json")
        assert (unknown.status, unknown.document["error"]["code"]) == (1, "EXCHANGE_NOT_FOUND")
