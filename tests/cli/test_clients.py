"""`cambist client …` (docs/cli.md "Commands")."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.kyc.clients import ClientSimulation, simulate_client
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from tests.cli.conftest import Call

PHONE = "+79001234567"


def answered(call: Call, *arguments: str) -> Any:
    done = call(*arguments, "--json")
    assert (done.status, done.err) == (0, "")
    return done.document


@pytest.fixture
def client(call: Call, folder: Path) -> tuple[str, str]:
    """The ids of an account and of a verified client of its test mode."""
    account = answered(call, "account", "create", "Merchant")
    settings = Settings(data_dir=folder / "cambist-data")

    async def play() -> str:
        async with open_app(settings) as app:
            pair = account["test"]
            caller = await authenticate(app.ports, pair["api_key"], pair["api_secret"])
            shown = await simulate_client(app.ports, caller, ClientSimulation(phone=PHONE, kyc_status="verified"))
            return shown.client.id

    return account["account_id"], asyncio.run(play())


def test_a_client_is_blocked_and_unblocked(call: Call, client: tuple[str, str]) -> None:
    account_id, client_id = client
    for command, status in (("block", "blocked"), ("block", "blocked"), ("unblock", "verified")):
        done = answered(call, "client", command, client_id)
        assert (done["client_id"], done["account_id"], done["kyc_status"]) == (client_id, account_id, status)
    assert client_id in call("client", "block", client_id).out


def test_a_client_is_forgotten_once_it_is_said_twice(call: Call, client: tuple[str, str]) -> None:
    account_id, client_id = client
    asked = call("client", "forget", client_id)
    assert asked.status != 0
    assert "cannot be undone" in asked.err
    done = answered(call, "client", "forget", client_id, "--yes", "--reason", "asked by letter")
    assert (done["client_id"], done["account_id"], done["verifier"], done["checks"]) == (
        client_id,
        account_id,
        None,
        [],
    )
    assert answered(call, "client", "list", account_id)["data"] == []
    again = call("client", "forget", client_id, "--yes", "--json")
    assert (again.status, again.document["error"]["code"]) == (1, "CLIENT_NOT_FOUND")


@pytest.mark.parametrize("command", ["block", "unblock"])
@pytest.mark.parametrize("client_id", ["nobody", "é", ""])
def test_a_client_that_is_not_there_is_refused(call: Call, command: str, client_id: str) -> None:
    done = call("client", command, client_id, "--json")
    assert done.status == 1
    assert done.document["error"]["code"] == "CLIENT_NOT_FOUND"


def test_clients_are_listed_without_their_phones(call: Call, client: tuple[str, str]) -> None:
    account_id, client_id = client
    [row] = answered(call, "client", "list", account_id)["data"]
    assert (row["client_id"], row["mode"], row["kyc_status"]) == (client_id, "test", "verified")
    assert answered(call, "client", "list", account_id, "--mode", "live")["data"] == []
    text = call("client", "list", account_id)
    assert client_id in text.out
    assert PHONE[2:] not in text.out + call("client", "list", account_id, "--json").out
    assert call("client", "list", "nobody").status == 1


def test_the_settings_of_kyc(call: Call) -> None:
    account_id = answered(call, "account", "create", "Merchant")["account_id"]
    shown = answered(call, "account", "show", account_id)
    assert (shown["settings"]["kyc"], shown["settings"]["kyc_flow"]) == ("off", "documents")
    answered(call, "account", "set", account_id, "kyc=required", "kyc_flow=redirect")
    assert answered(call, "account", "show", account_id)["settings"]["kyc_flow"] == "redirect"
    assert call("account", "set", account_id, "kyc_flow=phone").status == 1
