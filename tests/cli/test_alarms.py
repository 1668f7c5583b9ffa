"""`cambist alarm …`, `cambist backup --note`, and the doctor's findings about alarms (docs/alarms.md)."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest

from tests.cli.conftest import Call
from tests.tables import table


class Chat(HTTPServer):
    """Takes a Slack-compatible message at any address."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[bytes] = []

    @property
    def env(self) -> dict[str, str]:
        """The settings that name it."""
        return {"CAMBIST_ALARMS": "slack", "CAMBIST_SLACK_URL": f"http://127.0.0.1:{self.server_port}/hunter2"}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        cast("Chat", self.server).posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - theirs
        """Nothing."""


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_test_is_sent_by_every_channel(call: Call, chat: Chat) -> None:
    done = call("alarm", "test", "--json", env=chat.env)
    assert (done.status, done.document["data"]) == (0, [{"channel": "slack", "taken": True, "fault": None}])
    assert b"This is a test" in chat.posted[0]
    assert call("alarm", "test", "--channel", "email", env=chat.env).status == 1


def test_refusing_channel_is_reported_without_its_address(call: Call, chat: Chat) -> None:
    env = {**chat.env, "CAMBIST_SLACK_URL": "http://127.0.0.1:1/hunter2"}
    done = call("alarm", "test", "--json", env=env)
    assert done.status == 1
    assert not done.document["data"][0]["taken"]
    assert "hunter2" not in done.out + done.err


def test_alarm_test_without_a_channel_is_refused(call: Call) -> None:
    done = call("alarm", "test", "--json")
    assert (done.status, done.document["error"]["code"]) == (1, "NOT_CONFIGURED")


def test_problems_and_channels_are_listed(call: Call, chat: Chat) -> None:
    call("gateway", "set", "simulator-live", "down")
    done = call("alarm", "list", "--json", env=chat.env)
    assert (done.status, done.err) == (0, "")
    assert [each["id"] for each in done.document["problems"]] == ["backup"], "a gateway is told after a minute"
    assert done.document["channels"] == [
        {"channel": "slack", "last_told": None, "knows": 0, "failing_since": None, "fault": None}
    ]
    assert "no alarm channel is set" in call("alarm", "list").out


def test_a_backup_is_noted_by_itself_or_by_word(call: Call, tmp_path: Path) -> None:
    call("account", "create", "Shop")
    assert "backup" in call("alarm", "list").out
    assert call("backup", str(tmp_path / "copy")).status == 0
    assert call("alarm", "list", "--json").document["problems"] == []
    noted = call("backup", "--note", "--json")
    assert noted.status == 0
    assert noted.document["backed_up_at"] > "2026"
    assert call("backup").status == call("backup", str(tmp_path / "x"), "--note").status == 2


@table(
    ("name", "value"),
    [
        *(
            ("ALARM_QUIET_HOURS", value)
            for value in ("22-8", "22:00-22:00", "24:00-08:00", "22:00-08:00 MSK", "22:00-08:00+3")
        ),
        *(("ALARM_QUIET_HOURS", value) for value in ("22:00-08:00+15:00", "22:00-08:00+03:60")),
        *(("ALARMS", value) for value in ("pigeon", "slack,slack", ",")),
        *(("EMAIL_TO", value) for value in ("ops", "a@b\r\nBcc: c@d", "a@b,<c@d>", "a@б.рф", ",".join(["a@b"] * 51))),
        ("EMAIL_TLS", "ssl"),
        *(("TELEGRAM_TOKEN", value) for value in ("hunter2", "123:hunter2", "123456:AA/../hunter2hunter2hunter2")),
        *(("TELEGRAM_CHAT_ID", value) for value in ("ops", "@o", "1.5", "--1")),
        ("SLACK_URL", "https://hooks.example/a b"),
    ],
)
def test_invalid_setting_is_reported_without_its_value(call: Call, name: str, value: str) -> None:
    done = call("config", "check", env={f"CAMBIST_{name}": value})
    assert done.status == 1
    assert f"CAMBIST_{name}" in done.err
    assert "hunter2" not in done.err


def test_quiet_hours_are_shown_as_they_were_written(call: Call) -> None:
    shown = call("config", "check", env={"CAMBIST_ALARM_QUIET_HOURS": "22:30-08:00-05:30"}).out
    assert "22:30-08:00-05:30" in shown


def test_doctor_says_whether_any_channel_is_set(call: Call, chat: Chat) -> None:
    call("account", "create", "Shop")
    assert "nobody is told of problem" in call("doctor").out
    far = {"CAMBIST_BASE_URL": "https://pay.example"}
    warned = [each for each in call("doctor", "--json", env=far).document["checks"] if each["name"] == "alarms"]
    assert [each["level"] for each in warned] == ["warning"]
    assert "problem is told by: slack" in call("doctor", env=chat.env).out
