"""The frame around every command: help, statuses, errors, and what start-up loads (docs/cli.md "Answers")."""

from datetime import timedelta
from pathlib import Path

import click
import pytest

from cambist.core.usecases.accounts import accounts as usecases
from cambist.frontends.cli import main as entry
from cambist.frontends.cli.arguments import Duration, assignments
from cambist.frontends.cli.output import colours, fields, printed, progress, shown, table
from tests import tables
from tests.cli.conftest import Call

GROUPS = {
    "account": {"create", "list", "show", "set"},
    "shop": {"create", "rename", "set", "disable", "enable", "list"},
    "key": {"rotate"},
    "config": {"check"},
}


class TestHelp:
    def test_every_command_of_the_contract_is_there(self, call: Call) -> None:
        out = call("--help").out
        for command in ("serve", "demo", "migrate", *GROUPS):
            assert f"\n  {command} " in out
        for group, commands in GROUPS.items():
            out = call(group, "--help").out
            for command in commands:
                assert f"\n  {command} " in out

    @tables.table(
        "command",
        [*((group, each) for group, commands in GROUPS.items() for each in sorted(commands)), ("migrate",)],
        ids=" ".join,
    )
    def test_every_command_that_answers_takes_json(self, call: Call, command: tuple[str, ...]) -> None:
        assert "--json" in call(*command, "--help").out

    def test_help_and_version_load_nothing_heavy(self, spawn: Call) -> None:
        """Start-up is quick: servers, databases and cryptography come with the command that needs them."""
        heavy = {"litestar", "sqlalchemy", "aiohttp", "alembic", "cryptography", "uvicorn", "textual"}
        program = (
            "import sys; from cambist.frontends.cli.main import main\n"
            "try: main()\n"
            f"finally: print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
        )
        for arguments in (["--help"], ["--version"], ["config", "check"], ["account", "--help"]):
            outcome = spawn(*arguments, program=program)
            assert (outcome.status, outcome.err) == (0, "[]\n")


class TestStatuses:
    @tables.table(
        "arguments",
        [
            ("garbage",),
            ("account",),
            ("account", "garbage"),
            ("account", "create"),
            ("account", "create", "A", "B"),
            ("account", "create", "A", "--colour"),
            ("account", "set", "acc_1"),
            ("account", "set", "acc_1", "acceptance"),
            ("account", "set", "acc_1", "=true"),
            ("account", "set", "acc_1", "acceptance=true", "acceptance=false"),
            ("key", "rotate", "acc_1"),
            ("key", "rotate", "acc_1", "--mode", "both"),
            ("key", "rotate", "acc_1", "--mode", "test", "--overlap", "soon"),
            ("serve", "--port", "65536"),
            ("serve", "--workers", "0"),
            ("config", "check", "--json", "more"),
        ],
        ids=" ".join,
    )
    def test_wrong_usage_exits_2_says_so_on_stderr_and_touches_nothing(
        self, call: Call, folder: Path, arguments: tuple[str, ...]
    ) -> None:
        outcome = call(*arguments)
        assert (outcome.status, outcome.out) == (2, "")
        assert "Usage: cambist" in outcome.err
        assert list(folder.iterdir()) == []

    def test_wrong_usage_never_quotes_what_may_be_a_secret(self, call: Call) -> None:
        outcome = call("account", "set", "acc_1", "webhook_secret", "hunter2hunter2hunter2")
        assert outcome.status == 2
        assert "hunter2" not in outcome.err

    def test_an_interrupt_exits_130_and_says_nothing(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        async def interrupted(_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(usecases, "list_accounts", interrupted)
        outcome = call("account", "list", "--json", env={"CAMBIST_DATABASE_URL": "memory://"})
        assert (outcome.status, outcome.out, outcome.err) == (130, "", "")

    def test_an_interrupt_outside_a_command_exits_130_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(entry.cli, "main", interrupted)
        with pytest.raises(SystemExit) as caught:
            entry.main()
        assert caught.value.code == 130

    def test_a_refusal_exits_1_with_the_reason_on_stderr(self, spawn: Call) -> None:
        outcome = spawn("account", "show", "acc_none", env={"CAMBIST_DATABASE_URL": "memory://"})
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.err == (
            "error: There is no account of this id\nhelp: http://127.0.0.1:8080/docs/errors#ACCOUNT_NOT_FOUND\n"
        )

    def test_a_refusal_with_json_is_one_document(self, spawn: Call) -> None:
        outcome = spawn("account", "show", "acc_none", "--json", env={"CAMBIST_DATABASE_URL": "memory://"})
        assert outcome.status == 1
        assert outcome.document == {"error": {"code": "ACCOUNT_NOT_FOUND", "message": "There is no account of this id"}}
        assert outcome.err == (
            "error: There is no account of this id\nhelp: http://127.0.0.1:8080/docs/errors#ACCOUNT_NOT_FOUND\n"
        )


class TestFaults:
    def test_wrong_settings_exit_1_and_are_all_named(self, call: Call) -> None:
        env = {"CAMBIST_PORT": "x", "CAMBIST_LOG_LEVEL": "loud"}
        for arguments in (("config", "check"), ("account", "list"), ("serve",), ("migrate",)):
            outcome = call(*arguments, env=env)
            assert (outcome.status, outcome.out) == (1, "")
            assert outcome.err == (
                "error: CAMBIST_PORT: must be a whole number from 0 to 65535\n"
                "error: CAMBIST_LOG_LEVEL: must be one of: debug, info, warning, error\n"
            )

    def test_wrong_settings_with_json_are_one_document_with_each_fault(self, call: Call) -> None:
        outcome = call("config", "check", "--json", env={"CAMBIST_PORT": "x"})
        assert outcome.status == 1
        error = outcome.document["error"]
        assert error["code"] == "SETTINGS_INVALID"
        assert error["details"] == [
            {"name": "port", "origin": "CAMBIST_PORT", "message": "must be a whole number from 0 to 65535"}
        ]

    def test_a_data_folder_that_cannot_be_made_is_a_message(self, call: Call, folder: Path) -> None:
        (folder / "file").write_text("")
        outcome = call("--data-dir", "file", "account", "list", "--json")
        assert outcome.status == 1
        assert outcome.document["error"]["code"] == "UNAVAILABLE"

    def test_a_database_that_is_none_is_a_message(self, call: Call, folder: Path) -> None:
        (folder / "garbage.db").write_text("this is no database, " * 1000)
        for arguments in (("account", "list"), ("migrate",)):
            outcome = call(*arguments, "--json", env={"CAMBIST_DATABASE_URL": "sqlite:///garbage.db"})
            assert outcome.status == 1
            assert outcome.document["error"]["code"] == "UNAVAILABLE"

    def test_a_database_server_that_is_away_is_a_message_without_the_password(self, call: Call) -> None:
        env = {"CAMBIST_DATABASE_URL": "postgresql://cambist:hunter2@127.0.0.1:1/cambist"}
        for arguments in (("account", "list"), ("migrate",)):
            outcome = call(*arguments, "--json", env=env)
            assert outcome.status == 1
            assert outcome.document["error"]["code"] == "UNAVAILABLE"
            assert "hunter2" not in outcome.out + outcome.err

    def test_a_damaged_key_file_is_a_message(self, spawn: Call, folder: Path) -> None:
        assert spawn("account", "list").status == 0
        for key_file in (folder / "cambist-data").glob("*.key"):
            key_file.write_text("{}")
        outcome = spawn("account", "list", "--json")
        assert outcome.status == 1
        assert outcome.document["error"]["code"] == "VAULT_ERROR"

    def test_warnings_go_to_stderr_and_the_answer_stays_one_document(self, spawn: Call) -> None:
        outcome = spawn("config", "check", "--json", env={"CAMBIST_PROT": "1"})
        assert outcome.status == 0
        assert outcome.document["warnings"] == ["CAMBIST_PROT is no setting; did you mean CAMBIST_PORT?"]
        assert outcome.err == "warning: CAMBIST_PROT is no setting; did you mean CAMBIST_PORT?\n"


class TestConfigCheck:
    def test_every_setting_is_explained_with_its_origin(self, call: Call, folder: Path) -> None:
        """`cambist config check` explains them (docs/cli.md "Settings")."""
        (folder / "cambist.toml").write_text('log_format = "json"\n')
        env = {"CAMBIST_DATABASE_URL": "postgresql://u:hunter2@h/db", "CAMBIST_PORT": "9000"}
        outcome = call("--data-dir", "elsewhere", "config", "check", "--json", env=env)
        explained = {each["name"]: (each["value"], each["origin"]) for each in outcome.document["settings"]}
        assert explained["data_dir"] == ("elsewhere", "--data-dir")
        assert explained["port"] == (9000, "CAMBIST_PORT")
        assert explained["log_format"] == ("json", f"{folder / 'cambist.toml'}: log_format")
        assert explained["host"] == ("127.0.0.1", "default")
        assert explained["database_url"] == ("postgresql://u:***@h/db", "CAMBIST_DATABASE_URL")
        assert explained["base_url"] == ("http://127.0.0.1:9000", "default")
        assert outcome.document["config_file"] == str(folder / "cambist.toml")

    def test_people_read_the_same(self, call: Call) -> None:
        key = "ab" * 32
        outcome = call("config", "check", env={"CAMBIST_VAULT_KEY": key, "CAMBIST_VAULT_PEPPER": key})
        assert outcome.status == 0
        [line] = [line for line in outcome.out.splitlines() if line.startswith("vault_key")]
        assert line.split()[:3] == ["vault_key", "***", "CAMBIST_VAULT_KEY"]
        assert key not in outcome.out + outcome.err

    def test_config_check_opens_nothing(self, call: Call, folder: Path) -> None:
        assert call("config", "check").status == 0
        assert list(folder.iterdir()) == []


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "duration"),
        [
            ("90s", timedelta(seconds=90)),
            ("30m", timedelta(minutes=30)),
            ("24h", timedelta(hours=24)),
            ("7d", timedelta(days=7)),
            ("0s", timedelta(0)),
        ],
    )
    def test_durations(self, text: str, duration: timedelta) -> None:
        assert Duration().convert(text, None, None) == duration

    @tables.table("text", ["", "24", "h", "1.5h", "-1h", "1w", "24 h", "٢h", "24h\n", "1h30m", "9999999s"])
    def test_invalid_duration_is_wrong_usage(self, text: str) -> None:
        with pytest.raises(click.UsageError, match="24h"):
            Duration().convert(text, None, None)

    def test_assignments_split_at_the_first_sign(self) -> None:
        assert assignments(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


class TestOutput:
    def test_columns_are_aligned_and_have_no_trailing_space(self) -> None:
        assert click.unstyle(table(("a", "bb"), [("long", None), ("x", True)])) == "a     bb\nlong  -\nx     true"
        assert click.unstyle(fields({"a": 1, "long": "x"})) == "a     1\nlong  x"

    @tables.table(
        ("environ", "expected"),
        [
            ({}, None),
            ({"NO_COLOR": "1"}, False),
            ({"NO_COLOR": ""}, None),
            ({"FORCE_COLOR": "1"}, True),
            ({"FORCE_COLOR": "0"}, None),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            ({"TERM": "dumb"}, False),
            ({"TERM": "dumb", "FORCE_COLOR": "3"}, True),
        ],
    )
    def test_colours_follow_no_color_and_force_color(self, environ: dict[str, str], expected: bool | None) -> None:
        assert colours(environ) is expected

    def test_colours_of_answers_warnings_and_errors_can_be_forced(self, call: Call) -> None:
        plain = {"NO_COLOR": "", "FORCE_COLOR": ""}
        strange = {"CAMBIST_COLOUR": "red"}
        for arguments in (("config", "check"), ("doctor",), ("account", "show", "acc_1")):
            text = call(*arguments, env={**plain, **strange})
            coloured = call(*arguments, env={**plain, **strange, "FORCE_COLOR": "1"})
            assert "\x1b[" not in text.out + text.err
            assert "\x1b[" in (coloured.err if text.status else coloured.out)
            assert "\x1b[33mwarning:\x1b[0m CAMBIST_COLOUR" in coloured.err
            assert click.unstyle(coloured.err) == text.err
        answer = call("config", "check", "--json", env={**plain, "FORCE_COLOR": "1"})
        assert answer.document["settings"], "JSON has no colours"

    def test_progress_is_one_line_with_its_last_state_without_a_terminal(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with progress() as tell:
            for count in range(100):
                tell(f"table {count}\x07")
        assert capsys.readouterr().err == "table 99\\x07\n"

    def test_progress_rewrites_its_line_on_a_terminal(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")
        with progress() as tell:
            tell("table 1")
            tell("table 2")
        assert capsys.readouterr().err == "\rtable 1\x1b[K\rtable 2\x1b[K\r\x1b[K"

    def test_control_characters_are_escaped(self) -> None:
        assert shown("a\x1b[2Jb\u202ec\nd") == "a\\x1b[2Jb\\u202ec\\nd"

    def test_json_is_utf_8_whatever_the_terminal_is(self, spawn: Call) -> None:
        assert printed({"name": "Чай"}) == '{\n  "name": "Чай"\n}'.encode()
        env = {"PYTHONIOENCODING": "ascii", "CAMBIST_DATA_DIR": "Чай"}
        outcome = spawn("config", "check", "--json", env=env)
        assert outcome.document["settings"][0]["value"] == "Чай"
