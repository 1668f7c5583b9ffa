"""`cambist notification …`, and what `config check` and `doctor` say of notifications (docs/adapters.md
"Notifications")."""

import asyncio
import os
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import cambist
from cambist.core.usecases.notification_addresses import is_address
from cambist.frontends.app.compose import open_app
from cambist.frontends.app.notification_addresses import begin_receiving
from cambist.frontends.settings import plugins
from cambist.frontends.settings.sources import load
from examples.own_bank.bank import NAME
from tests.cli.conftest import Call


@pytest.fixture(autouse=True)
def bank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's bank is installed, and live mode's."""
    point = EntryPoint(NAME, "examples.own_bank.bank:example", "cambist.banks")

    def installed(*, group: str) -> Sequence[EntryPoint]:
        return [point] if group == point.group else []

    monkeypatch.setattr(plugins, "entry_points", installed)
    monkeypatch.setenv("CAMBIST_BANKS", NAME)
    monkeypatch.setenv("CAMBIST_BASE_URL", "https://pay.example")
    monkeypatch.setenv("CAMBIST_EXAMPLE_URL", "https://bank.example")
    monkeypatch.setenv("CAMBIST_EXAMPLE_TOKEN", "a-token")


def started(call: Call) -> None:
    """The service was started once."""
    assert call("migrate").status == 0

    async def once() -> None:
        settings = load(os.environ, {}, Path.cwd()).settings
        async with open_app(settings) as app:
            await begin_receiving(settings, app.ports)

    asyncio.run(once())


def address(call: Call) -> str:
    [row] = call("notification", "list", "--json").document["data"]
    return str(row["address"])


def test_config_check_before_the_first_start_makes_no_address(call: Call, folder: Path) -> None:
    done = call("config", "check")
    assert (done.status, "known after the first start" in done.out) == (0, True)
    assert call("config", "check", "--json").document["notifications"] is None
    assert not (folder / "cambist-data").exists()
    assert "no address yet" in call("doctor").out or "not looked at" in call("doctor").out


def test_every_command_shows_the_same_address_afterwards(call: Call) -> None:
    started(call)
    found = address(call)
    assert found.startswith(f"https://pay.example/api/v1/notices/{NAME}/")
    for told in (call("notification", "list"), call("config", "check"), call("doctor")):
        assert found in told.out
    [row] = call("config", "check", "--json").document["notifications"]
    assert row == {
        "adapter": NAME,
        "address": found,
        "networks": [],
        "last_notification": None,
        "former_address_until": None,
    }


def test_rotation_of_an_address_is_audited_and_shows_the_formers_end(call: Call) -> None:
    started(call)
    former = address(call)
    done = call("notification", "rotate", NAME, "--reason", "it was posted to a chat", "--json")
    assert done.status == 0, done.err
    assert done.document["address"] == address(call) != former
    assert done.document["former_address_until"] is not None

    async def count(path: str) -> bool:
        async with open_app(load(os.environ, {}, Path.cwd()).settings) as app:
            return await is_address(app.ports, NAME, path.rpartition("/")[2])

    assert asyncio.run(count(former))

    async def audited() -> tuple[str, str | None, str]:
        async with cambist.open(f"sqlite:///{Path.cwd()}/cambist-data/cambist.db") as service:
            from cambist.core.usecases.actions.audit import list_audit

            [entry] = await list_audit(service.ports, limit=10)
            assert former.rpartition("/")[2] not in f"{entry.before}{entry.after}"
            return entry.action, entry.object_id, entry.reason

    assert asyncio.run(audited()) == ("notification.rotate", NAME, "it was posted to a chat")


def test_adapter_without_notifications_is_refused(call: Call) -> None:
    started(call)
    done = call("notification", "rotate", "simulator-test", "--json")
    assert (done.status, done.document["error"]["code"]) == (1, "GATEWAY_NOT_FOUND")


def test_unreachable_base_url_is_a_warning(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    started(call)
    monkeypatch.setenv("CAMBIST_BASE_URL", "http://127.0.0.1:8080")
    assert "set CAMBIST_BASE_URL" in call("doctor").out


def test_an_installation_without_such_adapters_opens_no_database_to_say_so(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAMBIST_BANKS", "simulator")
    assert call("config", "check", "--json").document["notifications"] == []
    assert call("notification", "list", "--json").document == {"data": []}


class TestNetworks:
    """CAMBIST_<ADAPTER>_NOTIFICATION_NETWORKS, or the same in cambist.toml."""

    def test_an_operator_s_are_listed_and_used(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CAMBIST_EXAMPLE_NOTIFICATION_NETWORKS", "203.0.113.0/28, 2001:db8::/48")
        started(call)
        settings = call("config", "check", "--json").document["settings"]
        told = next(each for each in settings if each["name"] == "example_notification_networks")
        assert told["value"] == ["203.0.113.0/28", "2001:db8::/48"]
        assert told["origin"] == "CAMBIST_EXAMPLE_NOTIFICATION_NETWORKS"
        [row] = call("notification", "list", "--json").document["data"]
        assert row["networks"] == ["203.0.113.0/28", "2001:db8::/48"]

    def test_a_file_says_them_too(self, folder: Path) -> None:
        (folder / "cambist.toml").write_text('own_bank_notification_networks = ["203.0.113.5"]\n')
        loaded = load({}, {}, folder)
        assert {name: [*map(str, each)] for name, each in loaded.settings.notification_networks.items()} == {
            "own_bank": ["203.0.113.5/32"]
        }
        assert loaded.warnings == ()

    def test_invalid_network_stops_the_start_and_is_named(self, call: Call) -> None:
        done = call("notification", "list", env={"CAMBIST_EXAMPLE_NOTIFICATION_NETWORKS": "203.0.113.0/99"})
        assert done.status == 1
        assert "CAMBIST_EXAMPLE_NOTIFICATION_NETWORKS: must be networks such as 10.0.0.0/8" in done.err
        assert "203.0.113.0/99" not in done.err
