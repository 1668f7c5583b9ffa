"""`cambist act …`: the first command says what it waits for, another operator's confirms it."""

import os
import pwd
from pathlib import Path

import pytest

from cambist.frontends.operator import Names, login_name, operator_name
from tests.cli.conftest import Call

WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
OLGA = {"CAMBIST_OPERATOR": "olga", "CAMBIST_FOUR_EYES": "payout_wallet"}
IVAN = OLGA | {"CAMBIST_OPERATOR": "ivan"}


@pytest.fixture
def account_id(call: Call) -> str:
    made: str = call("account", "create", "Shop", "--json").document["account_id"]
    return made


def test_an_act_waits_is_seen_and_confirmed(call: Call, account_id: str) -> None:
    told = ("account", "set", account_id, f"payout_wallet={WALLET}")
    first = call(*told, "--reason", "by mail", "--json", env=OLGA)
    assert first.status == 3
    asked = first.document
    assert (asked["status"], asked["operator"], asked["act"], asked["reason"]) == (
        "waiting",
        "olga",
        "account.set",
        "by mail",
    )
    assert asked["changes"][1] == {"field": "payout_wallet", "before": "-", "after": WALLET}
    again = call(*told, env=OLGA)
    assert again.status == 3
    assert f"cambist act confirm {asked['act_id']}" in again.out
    assert "Nothing was done yet" in again.out
    assert again.err == ""
    [waiting] = call("act", "list", "--json", env=IVAN).document["data"]
    assert waiting == asked
    assert asked["act_id"] in call("act", "list", env=IVAN).out
    own = call("act", "confirm", asked["act_id"], "--json", env=OLGA)
    assert own.status == 1
    assert own.document["error"]["code"] == "INVALID_STATE"
    assert call("account", "show", account_id, "--json").document["settings"]["payout_wallet"] is None
    done = call("act", "confirm", asked["act_id"], "--reason", "called them", env=IVAN)
    assert done.status == 0
    assert "confirmed" in done.out
    assert call("account", "show", account_id, "--json").document["settings"]["payout_wallet"] == WALLET
    assert call("act", "list", "--json", env=IVAN).document == {"data": []}
    [shown] = call("act", "list", "--all", "--json").document["data"]
    assert shown == call("act", "show", asked["act_id"], "--json").document
    assert (shown["status"], shown["decided_by"]) == ("confirmed", "ivan")


def test_it_is_rejected(call: Call, account_id: str) -> None:
    act_id = call("account", "set", account_id, f"payout_wallet={WALLET}", "--json", env=OLGA).document["act_id"]
    rejected = call("act", "reject", act_id, "--reason", "not theirs", "--json", env=IVAN)
    assert (rejected.status, rejected.document["status"]) == (0, "rejected")
    assert call("act", "confirm", act_id, env=IVAN).status == 1


def test_an_unknown_act_is_refused(call: Call, account_id: str) -> None:
    assert account_id
    for verb in ("show", "confirm", "reject"):
        answer = call("act", verb, "act_none", "--json", env=IVAN)
        assert (answer.status, answer.document["error"]["code"]) == (1, "ACT_NOT_FOUND")


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
    def test_who_did_not_log_in_is_whom_the_process_belongs_to(self, tmp_path: Path, said: str) -> None:
        (tmp_path / "loginuid").write_text(said)
        assert login_name(tmp_path / "loginuid") == pwd.getpwuid(os.getuid()).pw_name

    def test_a_user_without_a_name_is_unknown(self, tmp_path: Path) -> None:
        (tmp_path / "loginuid").write_text("4123456789")
        assert login_name(tmp_path / "loginuid") == "unknown"

    def test_with_logins_one_shell_is_one_operator(self, call: Call, account_id: str) -> None:
        """Whatever names it gives itself."""
        logins = {"CAMBIST_OPERATOR_NAMES": "login"}
        told = ("account", "set", account_id, f"payout_wallet={WALLET}", "--json")
        asked = call(*told, env=OLGA | logins).document
        assert asked["operator"] == login_name()
        assert call("act", "confirm", asked["act_id"], env=IVAN | logins).status == 1
        assert call("console", "--operator", "ivan", env=logins).status == 2
