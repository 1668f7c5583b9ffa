"""Finding a command: complete help, and suggestions for misspelt names (docs/cli.md "Finding a command")."""

import os
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from cambist.core.domain.account_settings import ACCOUNT_SETTINGS
from cambist.frontends.cli.main import COMMANDS, HEADINGS, cli
from tests.cli.conftest import Call
from tests.tables import table


def test_the_help_has_five_headings_and_cuts_nothing(call: Call) -> None:
    out = call("--help").out
    assert [heading for heading in HEADINGS if f"\n{heading}:\n" in out] == list(HEADINGS)
    assert len(HEADINGS) == 5
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert "..." not in out.partition("Options:")[2]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("group", ["account", "client", "vault", "payment", "event"])
def test_no_group_cuts_its_commands(call: Call, group: str) -> None:
    assert "..." not in call(group, "--help").out.partition("Options:")[2]


@pytest.mark.parametrize(
    ("words", "meant"), [(("sreve",), "serve"), (("acount", "list"), "account"), (("account", "creat"), "create")]
)
def test_a_command_that_is_misspelt_is_guessed(call: Call, words: tuple[str, ...], meant: str) -> None:
    outcome = call(*words)
    assert outcome.status == 2
    assert f"did you mean {meant}?" in outcome.err


def test_word_unlike_any_command_gets_no_suggestion(call: Call) -> None:
    assert "did you mean" not in call("zzz").err


def test_settings_are_shown_with_form_meaning_and_default(call: Call) -> None:
    said = " ".join(call("account", "set", "--help").out.split())
    for name, setting in ACCOUNT_SETTINGS.items():
        assert f"{name} {setting.meaning} ({setting.form}" in said
    assert "ttl_minutes_max the longest life of a payment, in minutes (1 to 1440). Default: 60" in said


def account_id(call: Call) -> str:
    made: str = call("account", "create", "Shop", "--json").document["account_id"]
    return made


def test_only_a_change_is_reported(call: Call) -> None:
    wanted = ("refunds=true", "ttl_minutes_max=60", f"webhook_secret={'s' * 20}")
    out = call("account", "set", account_id(call), *wanted).out
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "refunds false -> true",
        "ttl_minutes_max 60 (as it was)",
        "webhook_secret set",
    ]


def test_a_setting_that_is_misspelt_is_guessed(call: Call) -> None:
    outcome = call("account", "set", account_id(call), "webook_url=https://a.example")
    assert outcome.status == 1
    assert "'webook_url' is no setting; did you mean webhook_url?" in outcome.err


@table(
    ("typed", "offered"),
    [
        ("cambist vau", {"vault"}),
        ("cambist vault ", {"new", "status", "reencrypt", "rotate", "drop", "adopt"}),
        ("cambist account set --gen", {"--generate-secret"}),
        ("cambist trigger refund.re", {"refund.rejected", "refund.reversed"}),
        ("cambist trigger nothing", set()),
    ],
)
def test_a_shell_completes_commands_options_and_events(typed: str, offered: set[str]) -> None:
    *words, last = typed.split(" ")
    completing = ShellComplete(cli, {}, "cambist", "_CAMBIST_COMPLETE")
    assert {each.value for each in completing.get_completions(words[1:], last)} == offered


def test_a_shell_takes_the_keys_over(call: Call) -> None:
    out = call("account", "create", "It's a shop", "--env", env={"CAMBIST_BASE_URL": "https://pay.example"}).out
    shell = subprocess.run(
        ["/bin/sh", "-c", f'{out}\necho "$ACCOUNT_ID $API_KEY $API_SECRET $CAMBIST_API_KEY $CAMBIST_URL"; env'],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    account, key, secret, again, address = shell.stdout.splitlines()[0].split()
    assert account.startswith("acc_")
    assert (again, address) == (key, "https://pay.example")
    assert key.startswith("svc_test_")
    assert len(secret) == 64
    assert "svc_live_" in out, "the live pair is shown"
    assert "LIVE" not in shell.stdout, "and reaches neither the shell nor its children"


def test_a_new_key_of_the_vault_is_one_that_settings_take(call: Call) -> None:
    made = call("vault", "new", "--id", "2", "--json").document
    assert made["CAMBIST_VAULT_KEY"].startswith("2:")
    assert call("account", "create", "Shop", env=made).status == 0
    assert call("vault", "new", "--json").document != made


def test_one_line_names_the_missing_extra() -> None:
    def run(*arguments: str, lacking: str = "click") -> "subprocess.CompletedProcess[str]":
        hidden = f"import sys; sys.modules['{lacking}'] = None; sys.argv = ['cambist', *sys.argv[1:]]; "
        program = f"{hidden}from cambist.frontends.cli.entry import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, env=os.environ
        )

    lacks = run("account", "list")
    assert (lacks.returncode, lacks.stdout) == (2, "")
    assert lacks.stderr.splitlines() == [
        "error: click is not installed: the command needs the extra, as in "
        "pip install 'cambist[server]' or uvx --from 'cambist[server]' cambist demo"
    ]
    for library in ("mcp", "httpx2"):
        lacks = run("mcp", "--api-key", "svc_test_1", "--api-secret", "a-secret", lacking=library)
        assert (lacks.returncode, lacks.stdout) == (2, "")
        assert lacks.stderr.startswith(f"error: {library}")
        assert lacks.stderr.endswith("or uvx --from 'cambist[mcp]' cambist mcp\n")
    told = run("--version")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("cambist, version ")


def test_an_address_that_is_taken_is_named(call: Call) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = call("serve", "--port", str(port))
    assert outcome.status == 1
    assert f"error: 127.0.0.1:{port}: Address already in use: stop what listens there, or name another" in outcome.err


def test_a_database_that_is_away_is_named_without_its_password(call: Call) -> None:
    url = "postgresql://somebody:hunter2@127.0.0.1:9/nothing"
    outcome = call("account", "list", env={"CAMBIST_DATABASE_URL": url})
    assert outcome.status == 1
    assert "127.0.0.1:9/nothing)" in outcome.err
    assert "hunter2" not in outcome.err
