"""The commands on a real data folder (docs/cli.md "Answers")."""

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.storage.sqlite import file as sqlite_file
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.usecases.accounts.request_log import Noted, RequestLog
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from tests.cli.conftest import Call, Outcome

SECRET = "a-webhook-secret-of-the-tests"
ISO = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")

Ask = Callable[..., Any]


@pytest.fixture
def ask(call: Call) -> Ask:
    """Call with `--json`, and take the document of a call that must be done."""

    def run(*arguments: str) -> Any:
        outcome: Outcome = call(*arguments, "--json")
        assert outcome.status == 0
        is_warned = any(re.match("webhook_secret=.", each) for each in arguments)
        assert outcome.err.startswith("warning: the secret stood on the command line") if is_warned else not outcome.err
        return outcome.document

    return run


@pytest.fixture
def account(ask: Ask) -> Any:
    """A new account, as `account create` shows it."""
    return ask("account", "create", "Чайная")


class TestAccount:
    def test_create_answers_exactly_what_the_contract_says(self, account: Any) -> None:
        """Scripts read these names (docs/cli.md "A new account")."""
        assert set(account) == {"account_id", "default_shop_id", "live", "test"}
        for mode in ("live", "test"):
            assert set(account[mode]) == {"api_key", "api_secret"}
            assert account[mode]["api_key"].startswith(f"svc_{mode}_")
            assert re.fullmatch("[0-9a-f]{64}", account[mode]["api_secret"])

    def test_create_for_people_shows_keys_and_secrets_once(self, call: Call) -> None:
        outcome = call("account", "create", "Tea")
        assert outcome.status == 0
        for pattern in (
            r"acc_[0-9a-f-]{36}",
            r"svc_live_[0-9a-f]{32}  [0-9a-f]{64}",
            r"svc_test_[0-9a-f]{32}  [0-9a-f]{64}",
        ):
            assert re.search(pattern, outcome.out)
        assert "cannot be shown again" in outcome.out

    def test_accounts_outlive_the_call(self, ask: Ask, account: Any) -> None:
        second = ask("account", "create", "Second")
        listed = ask("account", "list")["data"]
        assert [each["account_id"] for each in listed] == [account["account_id"], second["account_id"]]
        assert [each["name"] for each in listed] == ["Чайная", "Second"]

    def test_show_gives_settings_and_keys(self, ask: Ask, account: Any) -> None:
        shown = ask("account", "show", account["account_id"])
        assert shown["default_shop_id"] == account["default_shop_id"]
        assert ISO.fullmatch(shown["created_at"])
        assert shown["settings"] == {
            "acceptance": True,
            "alarm_email": None,
            "amount_rub_max": "1000000.00",
            "auto_return": True,
            "brand_color": None,
            "brand_contact": None,
            "brand_success_text": None,
            "direct_links": False,
            "exchange": False,
            "exchange_markup_percent": "2",
            "kyc": "off",
            "kyc_flow": "documents",
            "kyc_open_page": True,
            "payer_retry": False,
            "payout_wallet": None,
            "proof_reminders": True,
            "receipt_email": None,
            "receipt_mode": None,
            "receipt_subject": None,
            "receipt_tax_system": None,
            "receipt_vat": None,
            "metadata_kb_max": 16,
            "recurring": True,
            "refund_approval": None,
            "refund_overdraft_usdt": "0.00000000",
            "refund_reserve": False,
            "refunds": False,
            "return_url": None,
            "second_person": False,
            "subscription_scheme": "window",
            "terminals": False,
            "ttl_minutes_max": 60,
            "webhook_events": None,
            "webhook_secret_set": False,
            "webhook_url": None,
        }
        assert [(key["mode"], key["api_key"], key["ends_at"]) for key in shown["keys"]] == [
            (mode, account[mode]["api_key"], None) for mode in ("live", "test")
        ]

    def test_set_changes_by_name_and_shows_whether_a_secret_is_set(self, ask: Ask, call: Call, account: Any) -> None:
        wishes = (
            "webhook_url=https://a.example/?x=1",
            f"webhook_secret={SECRET}",
            "amount_rub_max=50000",
            "acceptance=false",
        )
        settings = ask("account", "set", account["account_id"], *wishes)["settings"]
        assert settings == ask("account", "show", account["account_id"])["settings"]
        assert settings["webhook_url"] == "https://a.example/?x=1"
        assert (settings["webhook_secret_set"], settings["amount_rub_max"], settings["acceptance"]) == (
            True,
            "50000.00",
            False,
        )
        plain = call("account", "set", account["account_id"], "webhook_url=http://пример.рф/h")
        assert "-> http://xn--e1afmkfd.xn--p1ai/h" in plain.out
        assert "warning: live webhooks do not leave for an http address" in plain.err
        cleared = ask("account", "set", account["account_id"], "webhook_url=", "webhook_secret=")["settings"]
        assert (cleared["webhook_url"], cleared["webhook_secret_set"]) == (None, False)

    def test_a_replaced_secret_shows_until_when_the_old_one_signs(self, ask: Ask, account: Any) -> None:
        ask("account", "set", account["account_id"], f"webhook_secret={SECRET}")
        shown = ask("account", "set", account["account_id"], f"webhook_secret={SECRET}-2")
        assert ISO.fullmatch(shown["previous_webhook_secret_until"])

    def test_set_refuses_unknown_names_listing_the_allowed(self, call: Call, account: Any) -> None:
        outcome = call("account", "set", account["account_id"], "colour=blue", "--json")
        assert outcome.status == 1
        error = outcome.document["error"]
        assert error["code"] == "VALIDATION_ERROR"
        for name in ("acceptance", "webhook_secret", "webhook_url"):
            assert name in error["message"]

    def test_secrets_are_shown_once_and_never_again(self, call: Call, account: Any, folder: Path) -> None:
        """Neither by a later command, nor by an error, nor are they readable in the data folder."""
        account_id, other = account["account_id"], f"{SECRET}-other"
        outcomes = [
            call("account", "set", account_id, f"webhook_secret={SECRET}"),
            call("account", "set", account_id, f"webhook_secret={SECRET}", "--json"),
            call("account", "set", account_id, f"webhook_secret={other}", "garbage=1"),
            call("account", "set", account_id, f"webhook_url={SECRET}"),
            *(
                call(*words, *json)
                for words in (("account", "list"), ("account", "show", account_id))
                for json in ((), ("--json",))
            ),
            call("key", "rotate", account_id, "--mode", "test", "--json"),
            call("account", "show", account_id, "--json"),
            call("config", "check"),
        ]
        said = "".join(outcome.out + outcome.err for outcome in outcomes)
        stored = b"".join(path.read_bytes() for path in (folder / "cambist-data").iterdir())
        for secret in (SECRET, account["live"]["api_secret"], account["test"]["api_secret"]):
            assert secret not in said
            assert secret.encode() not in stored
        for key in ("live", "test"):
            assert account[key]["api_key"].encode() in stored


class TestShop:
    def test_shops_from_creation_to_the_list(self, ask: Ask, account: Any) -> None:
        account_id = account["account_id"]
        tea = ask("shop", "create", account_id, "Tea", "--markup", "0.05")
        assert (tea["account_id"], tea["name"], tea["enabled"], tea["markup"]) == (account_id, "Tea", True, "0.05")
        assert ask("shop", "create", account_id, "Bare")["markup"] is None
        renamed = ask("shop", "rename", tea["shop_id"], "Чай")
        assert (renamed["shop_id"], renamed["name"]) == (tea["shop_id"], "Чай")
        assert ask("shop", "disable", tea["shop_id"])["enabled"] is False
        listed = ask("shop", "list", account_id)
        assert listed["default_shop_id"] == account["default_shop_id"]
        assert [(shop["name"], shop["enabled"]) for shop in listed["data"]] == [
            ("Default", True),
            ("Чай", False),
            ("Bare", True),
        ]
        assert ask("shop", "enable", tea["shop_id"])["enabled"] is True
        assert ask("shop", "set", tea["shop_id"], "markup=0.01", "return_url=https://a.example")["markup"] == "0.01"

    def test_the_default_shop_is_not_disabled(self, call: Call, account: Any) -> None:
        outcome = call("shop", "disable", account["default_shop_id"], "--json")
        assert outcome.status == 1
        assert outcome.document["error"]["code"] == "INVALID_STATE"

    def test_a_taken_name_is_refused(self, call: Call, account: Any) -> None:
        """The unique rule of the database comes back as words."""
        outcome = call("shop", "create", account["account_id"], " DEFAULT ", "--json")
        assert outcome.status == 1
        assert outcome.document["error"]["code"] == "VALIDATION_ERROR"
        assert "of this name" in outcome.err

    def test_people_see_the_state_of_each_shop(self, call: Call, ask: Ask, account: Any) -> None:
        ask("shop", "disable", ask("shop", "create", account["account_id"], "Tea")["shop_id"])
        lines = call("shop", "list", account["account_id"]).out.splitlines()
        assert [line.split()[1:] for line in lines] == [
            ["name", "state", "markup"],
            ["Default", "default", "0.03"],
            ["Tea", "disabled", "-"],
        ]


class TestKey:
    def test_rotate_gives_a_new_pair_and_ends_the_old_one(self, ask: Ask, account: Any) -> None:
        rotated = ask("key", "rotate", account["account_id"], "--mode", "test")
        assert set(rotated) == {"account_id", "mode", "api_key", "api_secret", "replaced"}
        assert rotated["api_key"] != account["test"]["api_key"]
        assert re.fullmatch("[0-9a-f]{64}", rotated["api_secret"])
        assert [old["api_key"] for old in rotated["replaced"]] == [account["test"]["api_key"]]
        keys = {key["api_key"]: key["ends_at"] for key in ask("account", "show", account["account_id"])["keys"]}
        assert keys[rotated["api_key"]] is None
        assert keys[account["live"]["api_key"]] is None
        assert keys[account["test"]["api_key"]] == rotated["replaced"][0]["ends_at"]

    def test_rotate_with_an_overlap_ends_the_old_pair_later(self, ask: Ask, account: Any) -> None:
        rotated = ask("key", "rotate", account["account_id"], "--mode", "live", "--overlap", "24h")
        shown = ask("account", "show", account["account_id"])["keys"]
        [created] = [key["created_at"] for key in shown if key["api_key"] == rotated["api_key"]]
        ends = rotated["replaced"][0]["ends_at"]
        assert ends > created
        assert ends[11:] == created[11:]

    def test_a_key_of_fewer_rights_from_creation_to_end(self, ask: Ask, call: Call, account: Any) -> None:
        """docs/concepts.md "Keys with fewer rights"."""
        account_id, name = account["account_id"], ("--mode", "live", "--name", "report")
        made = ask(
            "key", "create", account_id, *name, "--right", "refunds", "--right", "read", "--address", "10.0.0.0/8"
        )
        assert re.fullmatch("[0-9a-f]{64}", made["api_secret"])
        [listed] = [each for each in ask("key", "list", account_id)["data"] if each["name"] == "report"]
        assert (listed["rights"], listed["addresses"]) == (["read", "refunds"], ["10.0.0.0/8"])
        assert (listed["api_key"], listed["last_used_at"], listed["ends_at"]) == (made["api_key"], None, None)
        changed = ask("key", "set", made["api_key"], "--all-rights", "--address", "::1")
        assert (changed["rights"], changed["addresses"]) == (None, ["::1/128"])
        rotated = ask("key", "rotate", account_id, *name)
        [listed] = [each for each in ask("key", "list", account_id)["data"] if each["api_key"] == rotated["api_key"]]
        assert (listed["name"], listed["addresses"]) == ("report", ["::1/128"])
        assert ask("key", "end", rotated["api_key"])["ends_at"] is not None
        for wrong in (
            ("end", account["live"]["api_key"]),
            ("end", rotated["api_key"]),
            ("set", "svc_live_x", "--all-rights"),
        ):
            assert call("key", *wrong, "--json").document["error"]["code"] in ("INVALID_STATE", "KEY_NOT_FOUND")
        assert call("key", "set", made["api_key"]).status == 2
        assert call("key", "create", account_id, *name, "--right", "all").status == 2

    def test_people_see_both_pairs(self, call: Call, account: Any) -> None:
        outcome = call("key", "rotate", account["account_id"], "--mode", "test")
        assert outcome.status == 0
        assert account["test"]["api_key"] in outcome.out
        assert re.search(r"X-Api-Secret  [0-9a-f]{64}", outcome.out)


class TestLogs:
    def test_requests_of_an_account_are_listed_oldest_first(self, ask: Ask, call: Call, account: Any) -> None:
        """docs/concepts.md "Your requests"."""
        account_id, path = account["account_id"], "/api/v1/payments/{payment_id}"

        async def ask_twice() -> None:
            async with open_app(Settings()) as app:
                log, now = RequestLog(), app.ports.clock.monotonic() - 60
                for status, code in ((200, None), (404, "PAYMENT_NOT_FOUND")):
                    now += 10
                    asked = (account_id, Mode.TEST, "svc_test_a", "GET", path, ())
                    log.note(Noted(*asked, status, code, now, now, "mine\x1b"))
                    await log.flush(app.ports)

        asyncio.run(ask_twice())
        tail = ("logs", "tail", account_id, "--mode", "test", "--since", "1h", "--no-follow")
        lines = call(*tail).out.splitlines()
        assert [line.split("  ")[1:4] for line in lines] == [["200", "GET", path], ["404", "GET", path]]
        assert "\x1b" not in "".join(lines)
        failed = call(*tail, "--failed", "--json").out.splitlines()
        assert [msgspec.json.decode(line)["code"] for line in failed] == ["PAYMENT_NOT_FOUND"]
        assert call("logs", "tail", account_id, "--mode", "live", "--since", "1h", "--no-follow").out == ""
        assert call("logs", "tail", "acc_none", "--mode", "live", "--no-follow").status == 1


class TestMigrate:
    def test_migrate_names_the_revision_and_may_be_repeated(self, ask: Ask) -> None:
        first = ask("migrate")
        assert first["revision"]
        assert ask("migrate") == first


class TestProcesses:
    def test_one_call_after_another_in_processes_of_their_own(self, spawn: Call, folder: Path) -> None:
        """stdout is one document, stderr is silent, the data folder carries everything from call to call."""
        created = spawn("account", "create", "Чай", "--json")
        assert (created.status, created.err) == (0, "")
        account_id = created.document["account_id"]
        shown = spawn("account", "show", account_id, "--json")
        assert (shown.status, shown.err) == (0, "")
        assert shown.document["name"] == "Чай"
        assert (folder / "cambist-data").is_dir()

    def test_the_data_folder_is_its_owners_alone(self, spawn: Call, folder: Path) -> None:
        assert spawn("account", "create", "Tea").status == 0
        assert (folder / "cambist-data").stat().st_mode & 0o077 == 0

    def test_data_folder_follows_its_setting(self, spawn: Call, folder: Path) -> None:
        env = {"CAMBIST_DATA_DIR": str(folder / "by-variable")}
        assert spawn("account", "create", "Tea", env=env).status == 0
        assert spawn("--data-dir", "by-flag", "account", "create", "Tea", env=env).status == 0
        assert sorted(path.name for path in folder.iterdir()) == ["by-flag", "by-variable"]

    def test_a_schema_of_a_later_version_is_a_message(self, call: Call, folder: Path) -> None:
        assert call("account", "create", "Tea").status == 0
        [database] = (folder / "cambist-data").glob("*.db")
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = 'ffff'")
        for arguments in (("account", "list"), ("migrate",)):
            outcome = call(*arguments, "--json")
            assert outcome.status == 1
            assert outcome.document["error"]["code"] == "SCHEMA_MISMATCH"

    def test_a_locked_database_is_a_message(self, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert call("account", "create", "Tea").status == 0
        monkeypatch.setattr(sqlite_file, "BUSY_PATIENT", 0.02)
        [database] = (folder / "cambist-data").glob("*.db")
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            outcome = call("account", "create", "Coffee", "--json")
        assert outcome.status == 1
        assert outcome.document["error"]["code"] == "UNAVAILABLE"
        assert len(call("account", "list", "--json").document["data"]) == 1
