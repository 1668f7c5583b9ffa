"""`cambist event list` and `event resend` (docs/cli.md "Commands"; docs/webhooks.md "Looking, and sending again")."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.sources import load
from tests import event_factory
from tests.cli.conftest import Call


@pytest.fixture
def ask(call: Call) -> Any:
    """A command's JSON; it must have been done."""

    def run(*arguments: str) -> Any:
        outcome = call(*arguments, "--json")
        assert outcome.status == 0, outcome.err
        return outcome.document

    return run


@pytest.fixture
def account(ask: Any) -> str:
    found: str = ask("account", "create", "Merchant")["account_id"]
    return found


def happen(folder: Path, account_id: str, mode: Mode = Mode.TEST, object_id: str = "pay_1") -> str:
    """An event, as the service writes it; its id."""

    async def inside() -> str:
        async with open_app(load({}, {}, folder).settings) as app:
            [event] = await event_factory.happen(app.ports, account_id, mode=mode, object_id=object_id)
        return event

    return asyncio.run(inside())


def test_events_are_listed_newest_first_and_by_every_filter(ask: Any, account: str, folder: Path) -> None:
    first = happen(folder, account)
    second = happen(folder, account, Mode.LIVE, "pay_2")

    def found(*arguments: str) -> list[str]:
        return [each["event_id"] for each in ask("event", "list", *arguments)["data"]]

    assert found() == [second, first]
    assert found("--limit", "1") == [second]
    assert found("--account", account) == [second, first]
    assert found("--account", "acc_other") == []
    assert found("--mode", "live") == [second]
    assert found("--object", "pay_1") == [first]
    assert found("--type", "payment.status_changed", "--status", "pending") == [second, first]
    assert found("--status", "delivered") == []
    assert found("--from", "2020-01-01T00:00:00Z", "--to", "2021-01-01T00:00:00Z") == []
    [event] = ask("event", "list", "--object", "pay_1")["data"]
    created = event.pop("created_at")
    assert event == {
        "event_id": first,
        "account_id": account,
        "mode": "test",
        "type": "payment.status_changed",
        "object_id": "pay_1",
        "delivery_status": "pending",
        "attempts": 0,
        "next_attempt_at": None,
        "last_answer": None,
        "last_note": None,
        "delivered_at": None,
    }
    assert created.endswith("Z")


def test_for_people_they_are_a_table(call: Call, account: str, folder: Path) -> None:
    event = happen(folder, account)
    titles, row = call("event", "list").out.splitlines()
    assert titles.split()[:3] == ["created_at", "event_id", "type"]
    assert event in row.split()


def test_named_events_are_sent_again(ask: Any, account: str, folder: Path) -> None:
    events = [happen(folder, account) for _ in range(2)]
    assert ask("event", "resend", *events) == {"events": 2}
    assert {each["delivery_status"] for each in ask("event", "list")["data"]} == {"held"}, "there is no receiver"


def test_a_range_is_sent_again_in_one_mode_or_both(ask: Any, account: str, folder: Path) -> None:
    for mode in (Mode.LIVE, Mode.TEST, Mode.TEST):
        happen(folder, account, mode)
    whole = ("--account", account, "--from", "2020-01-01T00:00:00Z", "--to", "2120-01-01T00:00:00Z")
    assert ask("event", "resend", *whole) == {"events": 3}
    assert ask("event", "resend", *whole, "--mode", "test", "--status", "pending") == {"events": 2}
    assert ask("event", "resend", *whole, "--type", "refund.failed") == {"events": 0}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("evt_00000000-0000-0000-0000-000000000000",), "EVENT_NOT_FOUND"),
        (("--account", "acc_1", "--from", "2020-01-01T00:00:00Z", "--to", "2021-01-01T00:00:00Z"), "ACCOUNT_NOT_FOUND"),
    ],
)
def test_resending_an_unknown_event_is_refused(call: Call, arguments: tuple[str, ...], code: str) -> None:
    outcome = call("event", "resend", *arguments, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, code)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--account", "acc_1"),
        ("--from", "2020-01-01T00:00:00Z", "--to", "2021-01-01T00:00:00Z"),
        ("evt_1", "--account", "acc_1"),
        ("evt_1", "--from", "2020-01-01T00:00:00Z"),
        ("evt_1", "--mode", "test"),
        ("--mode", "both"),
    ],
)
def test_neither_events_nor_a_range_is_wrong_usage(call: Call, arguments: tuple[str, ...]) -> None:
    assert call("event", "resend", *arguments).status == 2


def test_a_moment_without_a_zone_is_refused(call: Call) -> None:
    outcome = call("event", "list", "--from", "2026-01-01T00:00:00", "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "VALIDATION_ERROR")
