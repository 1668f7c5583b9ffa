"""`cambist account endpoints`, and sending again to a further endpoint (docs/webhooks.md "Further endpoints")."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.webhooks.endpoints import EndpointOrder
from cambist.core.usecases.webhooks.endpoints import create_endpoint
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.sources import load
from tests.cli.conftest import Call
from tests.cli.test_audit import rows
from tests.cli.test_events import account, ask, happen

__all__ = ["account", "ask"]

URL = "https://books.example/hooks"
WHOLE = ("--from", "2020-01-01T00:00:00Z", "--to", "2120-01-01T00:00:00Z")


def made(folder: Path, account_id: str) -> str:
    """The id of a further endpoint of test mode."""

    async def inside() -> str:
        async with open_app(load({}, {}, folder).settings) as app:
            found = await app.ports.storage.get(Account, account_id)
            assert found is not None
            caller = Caller(account=found, mode=Mode.TEST, key_id="svc_test_1")
            new = await create_endpoint(app.ports, caller, str(uuid4()), lambda: EndpointOrder(url=URL))
        return new.resource.endpoint.id

    return asyncio.run(inside())


def test_all_endpoints_of_an_account_are_listed(ask: Any, account: str, folder: Path) -> None:
    endpoint = made(folder, account)
    listed = ask("account", "endpoints", account)["data"]
    assert [(each["endpoint"], each["mode"], each["url"]) for each in listed] == [
        ("own", "live", None),
        ("own", "test", None),
        (endpoint, "test", URL),
    ]
    happen(folder, account)
    [*_, further] = ask("account", "endpoints", account)["data"]
    assert (further["breaker"], further["pending"], further["failed"], further["event_types"]) == (
        "closed",
        1,
        0,
        "all",
    )


def test_an_operator_switches_an_endpoint_off_and_on(ask: Any, account: str, folder: Path) -> None:
    endpoint = made(folder, account)
    assert ask("account", "endpoint", endpoint, "--off", "--reason", "x") == {
        "endpoint": endpoint,
        "state": "off",
    }
    happen(folder, account)
    assert [each["state"] for each in ask("account", "endpoints", account)["data"]] == ["on", "on", "off"]
    assert ask("account", "endpoint", endpoint, "--on")["state"] == "on"
    actions = [each for each in rows() if each.action == "account.endpoint"]
    assert [(each.object_id, each.reason) for each in actions] == [(endpoint, "x"), (endpoint, "")]


def test_an_account_that_is_none_is_refused(call: Call) -> None:
    outcome = call("account", "endpoints", "acc_1", "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "ACCOUNT_NOT_FOUND")


def test_events_are_sent_again_to_a_further_endpoint(ask: Any, account: str, folder: Path) -> None:
    event = happen(folder, account)
    happen(folder, account, Mode.LIVE)
    endpoint = made(folder, account)
    assert ask("event", "resend", event, "--endpoint", endpoint) == {"events": 1}
    [*_, further] = ask("account", "endpoints", account)["data"]
    assert further["pending"] == 1
    assert ask("event", "resend", "--account", account, *WHOLE, "--endpoint", endpoint) == {"events": 1}


@pytest.mark.parametrize("endpoint", ["we_1", "we_00000000-0000-0000-0000-000000000000"])
def test_an_endpoint_that_is_none_is_refused(call: Call, account: str, folder: Path, endpoint: str) -> None:
    event = happen(folder, account)
    for arguments in ((event,), ("--account", account, *WHOLE)):
        outcome = call("event", "resend", *arguments, "--endpoint", endpoint, "--json")
        assert (outcome.status, outcome.document["error"]["code"]) == (1, "WEBHOOK_ENDPOINT_NOT_FOUND")


def test_static_headers_are_read_from_standard_input(call: Call, account: str) -> None:
    outcome = call("account", "headers", account, "--json", typed="Authorization: Bearer 7f3a\nX-Tenant: books\n")
    assert outcome.document == {"account_id": account, "header_names": ["Authorization", "X-Tenant"]}
    assert call("account", "headers", account, "--clear", "--json").document["header_names"] == []
    assert call("account", "headers", account, "--json", typed="no colon\n").status == 2
