"""`cambist doctor`, `vault` and `backup` as an operator knows them (docs/cli.md "Answers")."""

import asyncio
import os
import random
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from cambist.adapters.registry.file import FileRegistry
from cambist.core.usecases.accounts.accounts import create_account, set_settings
from cambist.core.usecases.operators import doctor as inside
from cambist.core.usecases.operators.findings import Finding, Level
from cambist.frontends.app.compose import open_app
from cambist.frontends.app.maintenance import DatabaseFacts
from cambist.frontends.cli import examine as doctor
from cambist.frontends.cli.main import cli
from cambist.frontends.operations import doctor as around
from cambist.frontends.operations.doctor import (
    Examined,
    check_processes,
    check_secrets,
    check_settings,
    judge_database,
    judge_redis,
)
from cambist.frontends.settings.settings import Settings
from cambist.frontends.settings.sources import load
from cambist.ports.registry import Role
from tests.cli.conftest import Call
from tests.tables import table

KEY, OTHER, PEPPER = "ab" * 32, "cd" * 32, "ef" * 32
SECRET = "a-webhook-secret-of-the-tests"
URL = "postgresql://cambist:hunter2@127.0.0.1/cambist"


def place(environ: dict[str, str], folder: Path = Path("/nonexistent")) -> Examined:
    named = {f"CAMBIST_{name.upper()}": value for name, value in environ.items()}
    return Examined(loaded=load(named, {}, folder), environ=named)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An installation with an account that has a webhook secret: made once, because bringing a schema up takes long."""
    data = tmp_path_factory.mktemp("installed") / "data"

    async def make() -> str:
        async with open_app(Settings(data_dir=data)) as app:
            made = await create_account(app.ports, "Shop")
            wish = {"webhook_secret": SECRET, "webhook_url": "https://a.example/x"}
            await set_settings(app.ports, made.account_id, wish)
        return made.account_id

    return data, asyncio.run(make())


@pytest.fixture
def account(installed: tuple[Path, str], folder: Path) -> str:
    """A copy of it in the working folder."""
    shutil.copytree(installed[0], folder / "cambist-data")
    return installed[1]


class TestDoctor:
    def test_an_installation_that_is_well_exits_0_with_a_line_for_each_check(self, call: Call, account: str) -> None:
        told = call("doctor")
        assert (told.status, told.err) == (0, "")
        lines = [line for line in told.out.splitlines() if line and not line.startswith(" ")]
        *checks, summary = lines
        of_a_app = ["simulators", "notifications", "alarms"]
        assert [line.split()[1] for line in checks] == [*around.CHECKS, *inside.CHECKS, *of_a_app]
        assert {line.split()[0] for line in checks} == {"ok", "warning"}
        assert summary.endswith("0 failed")
        document = call("doctor", "--json").document
        assert document["status"] == "warning"
        assert [each["name"] for each in document["checks"]] == [line.split()[1] for line in checks]
        assert all((each["remedy"] is None) is (each["level"] == "ok") for each in document["checks"])

    def test_full_verifies_all_and_says_so(self, call: Call, account: str) -> None:
        told = {each["name"]: each for each in call("doctor", "--full", "--json").document["checks"]}
        assert told["ledger"]["message"] == "all 0 entries and every balance hold"
        assert told["vault"]["message"] == "all 6 sealed values open, by key 1"
        assert re.fullmatch(r"all \d+ pages of \d+ tables are sound", told["pages"]["message"])

    def test_full_finds_noise_in_the_middle_of_the_file_and_names_where(
        self, call: Call, account: str, folder: Path
    ) -> None:
        file = folder / "cambist-data" / "cambist.db"
        with closing(sqlite3.connect(file)) as database:
            (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'payments'").fetchone()
            (size,) = database.execute("PRAGMA page_size").fetchone()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with file.open("r+b") as pages:
            pages.seek((root - 1) * size)
            pages.write(random.Random(1).randbytes(size))
        told = call("doctor", "--full", "--json")
        found = {each["name"]: each for each in told.document["checks"]}["pages"]
        assert (told.status, found["level"]) == (1, "failed")
        assert "payments: " in found["message"]
        assert "restore" in found["remedy"]
        assert "pages" not in {each["name"] for each in call("doctor", "--json").document["checks"]}

    def test_doctor_creates_nothing_in_an_empty_folder(self, call: Call, folder: Path) -> None:
        told = call("doctor", "--json")
        assert told.status == 1
        levels = {each["name"]: each["level"] for each in told.document["checks"]}
        assert levels["database"] == levels["schema"] == "failed"
        assert list(folder.iterdir()) == []

    def test_a_key_file_that_others_can_read_fails(self, call: Call, account: str, folder: Path) -> None:
        (folder / "cambist-data" / "vault.key").chmod(0o644)
        told = call("doctor")
        assert told.status == 1
        assert "failed   secrets     others on this machine can read" in told.out

    def test_wrong_settings_are_its_first_finding(self, call: Call) -> None:
        told = call("doctor", "--json", env={"CAMBIST_PORT": "hunter2", "CAMBIST_HOST": "a b"})
        assert told.status == 1
        assert {each["name"] for each in told.document["checks"]} == {"settings"}
        assert len(told.document["checks"]) == 2
        assert "hunter2" not in told.out

    def test_a_database_that_is_away_is_one_failure_without_its_password(self, call: Call) -> None:
        url = "postgresql://cambist:hunter2@127.0.0.1:1/cambist"
        told = call("doctor", "--json", env={"CAMBIST_DATABASE_URL": url})
        assert told.status == 1
        levels = {each["name"]: each["level"] for each in told.document["checks"]}
        assert levels["database"] == "failed"
        assert {levels[name] for name in inside.CHECKS} == {"warning"}, "not looked at"
        assert "hunter2" not in told.out + told.err


class TestHanging:
    """One check that hangs must not hang the doctor."""

    @pytest.fixture
    def released(self) -> Iterator[threading.Event]:
        event = threading.Event()
        yield event
        event.set()

    def test_hanging_check_ends_at_its_limit_and_the_others_run(
        self, account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def hangs(_: Any) -> Finding:
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setattr(around, "CHECKS", {**around.CHECKS, "disk": hangs})
        told = dict(self.run(doctor, 3.0))
        assert told["disk"].message == "no answer within 3 s"
        assert told["ledger"].level is Level.OK

    def test_check_that_blocks_its_thread_is_abandoned(
        self, account: str, monkeypatch: pytest.MonkeyPatch, released: threading.Event
    ) -> None:
        async def blocks(_: Any) -> Finding:
            released.wait(60)
            raise AssertionError

        monkeypatch.setattr(around, "CHECKS", {"settings": around.CHECKS["settings"], "disk": blocks})
        monkeypatch.setattr(doctor, "_MARGIN", 0.1)
        names = [name for name, _ in self.run(doctor, 0.2)]
        assert names == ["settings", "doctor"]

    def run(self, room: Any, limit: float) -> list[tuple[str, Finding]]:
        with click.Context(cli):
            return list(room.examine(full=False, limit=limit))


SAFE = {"database_url": URL, "redis_url": "redis://127.0.0.1/0", "vault_key": KEY, "vault_pepper": PEPPER}


@table(
    ("environ", "level", "words"),
    [
        ({}, Level.OK, "none is unsafe"),
        (SAFE, Level.OK, "none is unsafe"),
        ({"base_url": "http://api.example"}, Level.WARNING, "base_url is http"),
        ({"app_url": "http://app.example"}, Level.WARNING, "the dashboard is not served"),
        ({"base_url": "https://api.example"}, Level.WARNING, "trusted_proxies is empty"),
        ({"base_url": "https://api.example", "trusted_proxies": "10.0.0.1"}, Level.OK, "none is unsafe"),
        ({"trusted_proxies": "10.0.0.1 0.0.0.0/0"}, Level.FAILED, "whole world"),
        ({"database_url": "memory://"}, Level.FAILED, "in memory"),
        ({"four_eyes": "refunds", "operator_names": "login"}, Level.OK, "none is unsafe"),
        ({"log_level": "debug"}, Level.WARNING, "debug"),
        ({"shutdown_seconds": "0"}, Level.WARNING, "shutdown_seconds"),
        ({"database_url": URL}, Level.WARNING, "key file"),
        ({**SAFE, "database_url": "postgresql://u@db.example/c"}, Level.WARNING, "does not ask for TLS"),
        ({**SAFE, "database_url": "postgresql://u@db.example/c?sslmode=verify-full"}, Level.OK, "none is unsafe"),
        (
            {**SAFE, "database_direct_url": "postgresql://db.example/c"},
            Level.WARNING,
            "database_direct_url does not ask",
        ),
        ({**SAFE, "redis_url": "redis://:p@redis.example/0"}, Level.WARNING, "without TLS"),
        ({**SAFE, "redis_url": "rediss://redis.example/0"}, Level.WARNING, "no password"),
        ({**SAFE, "redis_url": "redis+sentinel://:p@127.0.0.1,r.example/c"}, Level.WARNING, "without TLS"),
        ({**SAFE, "redis_url": "rediss+sentinel://r.example/c"}, Level.WARNING, "no password"),
        ({"prot": "1"}, Level.WARNING, "did you mean CAMBIST_PORT"),
    ],
)
async def test_settings_that_are_dangerous_together(environ: dict[str, str], level: Level, words: str) -> None:
    finding = await check_settings(place(environ))
    assert (finding.level, words in finding.message) == (level, True), finding
    assert "hunter2" not in finding.message


class TestSecretFiles:
    @pytest.mark.parametrize(("mode", "level"), [(0o600, Level.OK), (0o400, Level.OK), (0o640, Level.FAILED)])
    async def test_a_file_of_a_secret_is_its_owners(self, tmp_path: Path, mode: int, level: Level) -> None:
        for name, value in (("vault_key", KEY), ("vault_pepper", PEPPER)):
            (tmp_path / name).write_text(value)
            (tmp_path / name).chmod(mode)
        named = {f"{name}_file": str(tmp_path / name) for name in ("vault_key", "vault_pepper")}
        assert (await check_secrets(place(named))).level is level

    async def test_a_settings_file_counts_only_when_it_holds_a_secret(self, tmp_path: Path) -> None:
        config = tmp_path / "cambist.toml"
        config.write_text("port = 1\n")
        config.chmod(0o644)
        (tmp_path / "vault.key").touch(0o600)
        assert (await check_secrets(place({"data_dir": str(tmp_path)}, tmp_path))).level is Level.OK
        config.write_text(f'vault_key = "{KEY}"\nvault_pepper = "{PEPPER}"\n')
        assert (await check_secrets(place({"data_dir": str(tmp_path)}, tmp_path))).level is Level.FAILED

    async def test_a_settings_file_may_restrict_the_networks_of_notifications(self, tmp_path: Path) -> None:
        (tmp_path / "cambist.toml").write_text('tbank_notification_networks = ["203.0.113.0/28"]\n')
        (tmp_path / "vault.key").touch(0o600)
        assert (await check_secrets(place({"data_dir": str(tmp_path)}, tmp_path))).level is Level.OK


@table(
    ("said", "level"),
    [
        ({"fsync": "on", "full_page_writes": "on", "connections": "5", "max_connections": "100"}, Level.OK),
        ({"synchronous_commit": "on", "shared_sessions": "off", "lost_settings": ""}, Level.OK),
        ({"synchronous_commit": "remote_apply"}, Level.OK),
        ({"synchronous_commit": "local"}, Level.FAILED),
        ({"synchronous_commit": "remote_write"}, Level.FAILED),
        ({"shared_sessions": "on"}, Level.FAILED),
        ({"lost_settings": "lock_timeout"}, Level.FAILED),
        ({"fsync": "off"}, Level.FAILED),
        ({"full_page_writes": "off"}, Level.FAILED),
        ({"synchronous_commit": "off"}, Level.FAILED),
        ({"transaction_read_only": "on"}, Level.FAILED),
        ({"connections": "90", "max_connections": "100"}, Level.WARNING),
        ({"journal_mode": "delete"}, Level.WARNING),
        ({"location": "system 7 timeline 00000001 table 5"}, Level.OK),
        ({"location": ""}, Level.WARNING),
    ],
)
def test_database_settings_decide_the_level(said: dict[str, str], level: Level) -> None:
    facts = DatabaseFacts(kind="Postgres", version="15", revision="0001", head="0001", settings=said)
    assert judge_database(facts, is_live=True).level is level


def test_lesser_commits_by_default_are_a_warning_without_live_mode() -> None:
    said = {"synchronous_commit": "local"}
    facts = DatabaseFacts(kind="Postgres", version="15", revision="0001", head="0001", settings=said)
    finding = judge_database(facts, is_live=False)
    assert (finding.level, "a failover loses" in finding.message) == (Level.WARNING, True)


NOW = datetime(2026, 11, 21, tzinfo=UTC)


@table(
    ("apart", "policy", "level"),
    [
        (0, "noeviction", Level.OK),
        (0, "volatile-lru", Level.OK),
        (0, "allkeys-lru", Level.WARNING),
        (5, "noeviction", Level.WARNING),
        (60, "noeviction", Level.FAILED),
    ],
)
def test_redis_settings_decide_the_level(apart: int, policy: str, level: Level) -> None:
    said = {"redis_version": "7", "maxmemory_policy": policy}
    assert judge_redis(NOW + timedelta(seconds=apart), NOW, said).level is level


@table(
    ("silent", "replicas", "level", "words"),
    [
        ("", "1", Level.OK, "answers"),
        ("s2:26379", "1", Level.WARNING, "s2:26379"),
        ("", "0", Level.WARNING, "no replica"),
    ],
)
def test_redis_with_sentinels_needs_all_of_them_and_a_replica(
    silent: str, replicas: str, level: Level, words: str
) -> None:
    finding = judge_redis(NOW, NOW, {"silent_sentinels": silent, "connected_slaves": replicas})
    assert (finding.level, words in finding.message) == (level, True)


@pytest.mark.parametrize(
    ("roles", "level", "words"),
    [
        ((), Level.WARNING, "no process"),
        ((Role.COUNTING,), Level.FAILED, "none works on jobs"),
        ((Role.WORKING,), Level.WARNING, "none serves"),
        ((Role.COUNTING, Role.WORKING), Level.OK, "serving: 1, working: 1"),
    ],
)
async def test_processes_of_which_a_part_is_missing(
    tmp_path: Path, roles: tuple[Role, ...], level: Level, words: str
) -> None:
    registry = FileRegistry(tmp_path / "cambist.db")
    for role in roles:
        await registry.enter(role, alone=False)
    finding = await check_processes(place({"data_dir": str(tmp_path)}))
    assert (finding.level, words in finding.message) == (level, True), finding
    await registry.close()


class TestVault:
    def test_a_key_file_is_rotated_in_four_commands(self, call: Call, account: str, folder: Path) -> None:
        assert call("vault", "status", "--json").document["in_use"] == {"1": 6}
        rotated = call("vault", "rotate", "--json").document
        assert (rotated["current"], Path(rotated["key_file"]).name) == (2, "vault.key")
        early = call("vault", "drop", "1")
        assert (early.status, "6 values are sealed with key 1" in early.err) == (1, True)
        done = call("vault", "reencrypt", "--json")
        assert (done.status, done.document["reencrypted"], done.document["droppable"]) == (0, 6, [1])
        assert call("vault", "drop", "1").status == 0
        status = call("vault", "status", "--json")
        assert (status.status, status.document["keys"], status.document["in_use"]) == (0, [2], {"2": 6})
        again = call("account", "set", account, f"webhook_secret={SECRET}")
        assert again.status == 0
        assert SECRET not in "".join(outcome.out + outcome.err for outcome in (done, status, early))

    def test_keys_of_the_settings_are_resealed_the_same_way(self, call: Call, account: str, folder: Path) -> None:
        env = {"CAMBIST_VAULT_KEY": f"1:{KEY}", "CAMBIST_VAULT_PEPPER": PEPPER}
        (folder / "cambist-data" / "vault.key").unlink()
        refused = call("account", "set", account, "webhook_secret=", env=env)
        assert (refused.status, "CAMBIST_VAULT_PEPPER has another pepper" in refused.err) == (1, True)
        assert call("vault", "adopt", "--yes", env=env).status == 0
        assert call("account", "set", account, "webhook_secret=", env=env).status == 0
        assert call("account", "set", account, f"webhook_secret={SECRET}", env=env).status == 0
        # The key that tagged the books is lost: an operator says that they are true.
        assert call("ledger", "verify", env=env).status == 1
        assert call("ledger", "retag", "--yes", env=env).status == 0
        assert call("ledger", "verify", env=env).status == 0
        both = {**env, "CAMBIST_VAULT_KEY": f"2:{OTHER},1:{KEY}"}
        lost = call("vault", "status", env={**env, "CAMBIST_VAULT_KEY": f"2:{OTHER}"})
        assert (lost.status, "CAMBIST_VAULT_KEY has none of the keys" in lost.err) == (1, True)
        assert call("vault", "reencrypt", env=both).status == 0
        assert call("vault", "status", env={**env, "CAMBIST_VAULT_KEY": f"2:{OTHER}"}).status == 0
        for command in (("vault", "rotate"), ("vault", "drop", "1")):
            refused = call(*command, env=both)
            assert (refused.status, "CAMBIST_VAULT_KEY" in refused.err) == (1, True)

    def test_key_file_of_another_installation_is_refused(self, call: Call, account: str, folder: Path) -> None:
        """Doctor reports it under `vault`; `serve` reports it before it listens."""
        call("--data-dir", "other", "account", "create", "Tea")
        shutil.copy(folder / "other" / "vault.key", folder / "cambist-data" / "vault.key")
        for command in (("account", "list"), ("serve", "--port", "0"), ("vault", "status"), ("backup", "b1")):
            refused = call(*command)
            words = "the key file cambist-data/vault.key has another pepper than this database"
            assert (refused.status, words in refused.err) == (1, True), (command, refused)
        found = {each["name"]: each for each in call("doctor", "--json").document["checks"]}
        assert (found["vault"]["level"], "another pepper" in found["vault"]["message"]) == ("failed", True)

    def test_a_running_service_keeps_its_keys(self, call: Call, account: str, folder: Path) -> None:
        """It would not get a fresh key, and could not decrypt values of other processes that have it."""
        registry = FileRegistry(folder / "cambist-data" / "cambist.db")
        assert asyncio.run(registry.enter(Role.COUNTING, alone=True))
        before = (folder / "cambist-data" / "vault.key").read_bytes()
        refused = call("vault", "rotate")
        asyncio.run(registry.close())
        assert (refused.status, f"process {os.getpid()}" in refused.err) == (1, True)
        assert (folder / "cambist-data" / "vault.key").read_bytes() == before

    def test_a_lost_key_file_is_never_replaced_beside_accounts(self, call: Call, account: str, folder: Path) -> None:
        """Fresh keys would open nothing, and every API secret would be wrong."""
        (folder / "cambist-data" / "vault.key").unlink()
        refused = call("account", "list")
        assert (refused.status, "is missing" in refused.err) == (1, True)
        assert not (folder / "cambist-data" / "vault.key").exists()


class TestBackup:
    def test_damaged_ledger_is_copied_and_reported(self, call: Call, account: str, folder: Path) -> None:
        database = sqlite3.connect(folder / "cambist-data" / "cambist.db", isolation_level=None)
        database.execute(
            "INSERT INTO ledger_accounts (id, owner, mode, balance_type, balance, version)"
            " VALUES ('a:live:pending:0', 'a', 'live', 'pending', 5, 0)"
        )
        database.close()
        told = call("backup", "copy", "--json")
        assert (told.status, told.document["sound"], told.document["ledger_holds"]) == (1, False, False)
        assert (folder / "copy" / "cambist.db").exists()

    @pytest.mark.parametrize(("url", "words"), [(URL, "pg_dump"), ("memory://", "Postgres only")])
    def test_other_databases_are_sent_elsewhere(self, call: Call, folder: Path, url: str, words: str) -> None:
        told = call("backup", "copy", env={"CAMBIST_DATABASE_URL": url})
        assert (told.status, words in told.err) == (1, True)
        assert list(folder.iterdir()) == []
