"""`cambist action …`: the first operator's command reports that it waits, and another operator confirms it."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from cambist.core.domain.operators.guarded import Guarded
from cambist.frontends.cli.main import cli
from cambist.frontends.settings.operator import Names, login_name, operator_name
from tests.cli.conftest import Call

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
Env = dict[str, str]


class Operators(NamedTuple):
    """Environments of two operators with their own keys. Changing a payout wallet needs both."""

    olga: Env
    ivan: Env


@pytest.fixture
def by(call: Call) -> Operators:
    made: list[Env] = []
    for name in ("olga", "ivan"):
        env = {"CAMBIST_OPERATOR_NAMES": "key", "CAMBIST_FOUR_EYES": "payout_wallet"}
        signed = made[0] if made else env
        key = call("operator", "create", name, "--json", env=signed).document["operator_key"]
        made.append(env | {"CAMBIST_OPERATOR_KEY": key})
    return Operators(*made)


@pytest.fixture
def account_id(call: Call) -> str:
    made: str = call("account", "create", "Shop", "--json").document["account_id"]
    return made


def test_an_action_waits_is_seen_and_confirmed(call: Call, account_id: str, by: Operators) -> None:
    told = ("account", "set", account_id, f"payout_wallet={WALLET}")
    first = call(*told, "--reason", "by mail", "--json", env=by.olga)
    assert first.status == 3
    asked = first.document
    assert (asked["status"], asked["operator"], asked["action"], asked["reason"]) == (
        "waiting",
        "olga",
        "account.set",
        "by mail",
    )
    assert asked["changes"][1] == {"field": "payout_wallet", "before": "-", "after": WALLET}
    again = call(*told, env=by.olga)
    assert again.status == 3
    assert f"cambist action confirm {asked['action_id']}" in again.out
    assert "Nothing was done yet" in again.out
    assert again.err == ""
    [waiting] = call("action", "list", "--json", env=by.ivan).document["data"]
    assert waiting == asked
    assert asked["action_id"] in call("action", "list", env=by.ivan).out
    own = call("action", "confirm", asked["action_id"], "--json", env=by.olga)
    assert own.status == 1
    assert own.document["error"]["code"] == "INVALID_STATE"
    assert call("account", "show", account_id, "--json").document["settings"]["payout_wallet"] is None
    done = call("action", "confirm", asked["action_id"], "--reason", "called them", env=by.ivan)
    assert done.status == 0
    assert "confirmed" in done.out
    assert call("account", "show", account_id, "--json").document["settings"]["payout_wallet"] == WALLET
    assert call("action", "list", "--json", env=by.ivan).document == {"data": []}
    [shown] = call("action", "list", "--all", "--json").document["data"]
    assert shown == call("action", "show", asked["action_id"], "--json").document
    assert (shown["status"], shown["decided_by"]) == ("confirmed", "ivan")


def test_pending_action_is_rejected(call: Call, account_id: str, by: Operators) -> None:
    action_id = call("account", "set", account_id, f"payout_wallet={WALLET}", "--json", env=by.olga).document[
        "action_id"
    ]
    rejected = call("action", "reject", action_id, "--reason", "not theirs", "--json", env=by.ivan)
    assert (rejected.status, rejected.document["status"]) == (0, "rejected")
    assert call("action", "confirm", action_id, env=by.ivan).status == 1


def test_an_unknown_action_is_refused(call: Call, account_id: str, by: Operators) -> None:
    assert account_id
    for verb in ("show", "confirm", "reject"):
        answer = call("action", verb, "action_none", "--json", env=by.ivan)
        assert (answer.status, answer.document["error"]["code"]) == (1, "ACTION_NOT_FOUND")


class TestNames:
    def test_the_given_name_counts_unless_logins_do(self, tmp_path: Path) -> None:
        login = tmp_path / "loginuid"
        login.write_text("0")
        given = {"CAMBIST_OPERATOR": " olga "}
        assert operator_name(given, login=login) == "olga"
        assert operator_name(given, Names.LOGIN, login=login) == "root"
        assert operator_name({}, login=login) == "root"

    def test_no_variable_changes_a_login(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("LOGNAME", "USER", "SUDO_USER"):
            monkeypatch.setenv(name, "somebody-else")
        assert login_name(tmp_path / "none") == pwd.getpwuid(os.getuid()).pw_name

    @pytest.mark.parametrize("said", ["4294967295", "", "x"])
    def test_operator_without_a_login_is_the_owner_of_the_process(self, tmp_path: Path, said: str) -> None:
        (tmp_path / "loginuid").write_text(said)
        assert login_name(tmp_path / "loginuid") == pwd.getpwuid(os.getuid()).pw_name

    def test_a_user_without_a_name_is_unknown(self, tmp_path: Path) -> None:
        (tmp_path / "loginuid").write_text("4123456789")
        assert login_name(tmp_path / "loginuid") == "unknown"

    def test_with_logins_one_shell_is_one_operator(self, call: Call, account_id: str) -> None:
        """Whatever names it gives itself."""
        logins = {"CAMBIST_OPERATOR_NAMES": "login", "CAMBIST_FOUR_EYES": "payout_wallet"}
        told = ("account", "set", account_id, f"payout_wallet={WALLET}", "--json")
        asked = call(*told, env=logins | {"CAMBIST_OPERATOR": "olga"}).document
        assert asked["operator"] == login_name()
        assert call("action", "confirm", asked["action_id"], env=logins | {"CAMBIST_OPERATOR": "ivan"}).status == 1
        assert call("console", "--operator", "ivan", env=logins).status == 2


GUARDED_COMMANDS: dict[str, str] = {
    "account set": "payout_wallet, limits, webhooks",
    "shop create": "limits",
    "shop set": "limits",
    "key create": "keys",
    "key rotate": "keys",
    "key set": "keys",
    "refund approve": "refunds",
    "refund create": "refunds",
    "payment resolve": "suspense",
    "payment return": "suspense",
    "exchange return": "suspense",
    "payout accept": "operations",
    "operation end": "operations",
    "operator create": "operators",
    "operator end": "operators",
    "resume": "hold",
    "restore": "hold",  # a restored database is on hold
}
"""Commands whose effects may need a second operator, by the names of `CAMBIST_FOUR_EYES`."""
FREE_COMMANDS: dict[str, str] = {
    "account create": "a new account holds nothing and can send nothing",
    "account endpoint": "switches an endpoint that the merchant made",
    "account move": "the account, its money and its settings stay the same in another cell of ours",
    "report order": "a file for the merchant",
    "user invite": "a person of the merchant's, with the rights of the role",
    "user disable": "allows less",
    "user enable": "the person's roles are as they were",
    "user reset": "the person must set a new password, and gets no new right",
    "account headers": "what a receiver that stays the same is sent beside its events",
    "shop rename": "a name",
    "shop disable": "takes less",
    "shop enable": "takes payments of the same terms again",
    "terminal add": "how payers pay",
    "terminal disable": "takes less",
    "terminal enable": "how payers pay",
    "key end": "allows less",
    "client block": "allows less",
    "client unblock": "a client's exchanges pay out what the client paid in",
    "client forget": "removes persons, moves no money",
    "refund reject": "sends nothing",
    "receipt retry": "writes a receipt that failed; moves no money",
    "receipt close": "a note about a receipt",
    "receipt correct": "writes a correction; moves no money",
    "refund settled": "a note about a difference",
    "exchange cancel": "before money arrives",
    "exchange create-rub-usdt": "pays out what the client pays in first",
    "exchange enable": "ends a pause; an account's own switch is guarded",
    "exchange disable": "allows less",
    "settle": "the daily batch, earlier; it pays to guarded wallets",
    "payout cancel": "back to the balance, where the wallet sent nothing",
    "payout now": "the balance, to the guarded wallet",
    "payout retry": "the same transfer",
    "wallet skip": "no transfer",
    "difference settle": "a note about a difference",
    "reconcile": "compares",
    "link create": "a page on which payers pay the merchant",
    "link archive": "takes no more payments",
    "bank import": "compares",
    "action confirm": "is the second operator",
    "action reject": "sends nothing",
    "alarm test": "a message",
    "gateway set": "which banks are asked",
    "provider trial": "asks before each step; moves the operator's own money",
    "notification rotate": "a notification is a hint only",
    "event resend": "the same events, to the guarded address",
    "vault adopt": "what the database checks the machine's keys by",
    "vault drop": "keys of the machine, which settings hold",
    "vault reencrypt": "the same values under another key",
    "vault rotate": "keys of the machine, which settings hold",
    "hold": "sends less",
    "unreadable forget": "a row that no program reads",
    "unreadable retry": "the same work",
}
"""Commands that change something and wait for nobody, with the reason."""
READS = frozenset(
    (
        "serve", "api", "worker", "migrate", "config check", "console", "account endpoints", "account list",
        "user list", "payment list", "payment show", "link list", "link show",
        "account show", "shop list", "terminal list", "key list", "client list", "payment suspense",
        "refund list", "receipt list", "receipt show", "report list", "report file",
        "cell list", "cell map", "cell status",
        "exchange list", "exchange show", "exchange suspense", "payout items", "payout list",
        "wallet addresses",
        "wallet check", "movements", "ledger retag", "ledger head", "ledger verify", "difference list", "action list",
        "action show", "operation list", "operator list", "doctor", "alarm list", "gateway banks", "gateway list",
        "provider check", "notification list", "event list", "logs tail", "vault new", "vault status", "backup",
        "unreadable list", "demo", "trigger", "listen", "mcp", "openapi", "version",
    )
)  # fmt: skip
"""Commands that change nothing an operator could misuse, and the service itself."""


def commands(group: click.Group, path: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}".strip())
        else:
            yield f"{path} {name}".strip()


def test_every_command_says_whether_a_second_operator_may_be_needed() -> None:
    assert set(commands(cli)) == {*GUARDED_COMMANDS, *FREE_COMMANDS, *READS}
    named = {word for words in GUARDED_COMMANDS.values() for word in words.split(", ")}
    assert named == {each.value for each in Guarded}


@pytest.mark.parametrize(
    "command",
    [
        "account set {account} refunds=true",
        "account set {account} refund_approval=auto",
        "account set {account} refund_overdraft_usdt=1000000",
        "account set {account} amount_rub_max=5000000",
        "account set {account} webhook_url=https://other.example/hooks",
        "account set {account} webhook_secret=0123456789abcdef",
        "shop set {shop} markup=0",
        "shop create {account} Cheap --markup 0.001",
        "key create {account} --mode live --name mine",
        "key rotate {account} --mode live",
    ],
)
def test_one_operator_cannot_widen_what_leaves_alone(call: Call, command: str, by: Operators) -> None:
    made = call("account", "create", "Shop", "--json").document
    words = command.format(account=made["account_id"], shop=made["default_shop_id"]).split()
    alone = call(*words, "--json", env=by.olga | {"CAMBIST_FOUR_EYES": "all"})
    assert alone.status == 3, alone.out
    done = call("action", "confirm", alone.document["action_id"], "--json", env=by.ivan | {"CAMBIST_FOUR_EYES": "all"})
    assert (done.status, done.document["status"]) == (0, "confirmed"), done.err
    if words[0] == "key":
        assert set(done.document["secrets"]) == {"api_key", "api_secret"}


def test_operator_signs_in_by_a_key_and_by_nothing_else(call: Call, account_id: str, by: Operators) -> None:
    nobody = {"CAMBIST_OPERATOR_NAMES": "key", "CAMBIST_OPERATOR": "olga"}
    stranger = nobody | {"CAMBIST_OPERATOR_KEY": f"olga:{'0' * 64}"}
    moved = nobody | {"CAMBIST_OPERATOR_KEY": by.ivan["CAMBIST_OPERATOR_KEY"].replace("ivan", "olga")}
    for env in (nobody, stranger, moved):
        refused = call("account", "list", "--json", env=env)
        assert (refused.status, refused.document["error"]["code"]) == (1, "Unauthorized"), env
        assert "0" * 64 not in refused.out + refused.err
    assert call("account", "set", account_id, "acceptance=true", env=by.olga).status == 0


def test_third_operator_needs_two_and_an_ended_key_opens_nothing(call: Call, by: Operators) -> None:
    strict = {"CAMBIST_FOUR_EYES": "operators"}
    asked = call("operator", "create", "vera", "--json", env=by.olga | strict)
    assert asked.status == 3
    done = call("action", "confirm", asked.document["action_id"], "--json", env=by.ivan | strict)
    vera = by.olga | {"CAMBIST_OPERATOR_KEY": done.document["secrets"]["operator_key"]}
    assert [each["name"] for each in call("operator", "list", "--json", env=vera).document["data"]] == [
        "olga",
        "ivan",
        "vera",
    ]
    ending = call("operator", "end", "ivan", "--json", env=by.olga | strict)
    assert ending.status == 3
    assert call("action", "confirm", ending.document["action_id"], env=vera | strict).status == 0
    assert call("operator", "list", env=by.ivan).status == 1
    again = call("operator", "create", "ivan", "--json", env=by.olga)
    assert (again.status, again.document["error"]["code"]) == (1, "INVALID_STATE"), "a name is never used again"


@pytest.mark.parametrize("name", ["", "Olga", "\u043elga", "ol ga", "-olga", "o" * 65])
def test_name_of_an_operator_cannot_look_like_another(call: Call, name: str) -> None:
    refused = call("operator", "create", "--json", "--", name)
    assert (refused.status, refused.document["error"]["code"]) == (1, "VALIDATION_ERROR")


def test_given_names_are_refused_where_two_operators_are_needed(call: Call) -> None:
    refused = call("account", "list", "--json", env={"CAMBIST_FOUR_EYES": "refunds"})
    assert (refused.status, refused.document["error"]["code"]) == (1, "SETTINGS_INVALID")
    assert "operator_names" in refused.document["error"]["message"]
