"""`cambist restore`: a checked copy in the place of the database in one step, held; or nothing at all."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cambist.adapters.registry.file import FileRegistry
from cambist.adapters.storage.sql.revisions import head
from cambist.adapters.storage.sqlite import swap as sqlite_swap
from cambist.adapters.storage.sqlite.migrate import sqlite_current
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.frontends.app.compose import open_app
from cambist.frontends.operations import backup as backups
from cambist.frontends.operations import restore as room
from cambist.frontends.settings.settings import Settings
from cambist.ports.registry import Role
from tests.cli.conftest import Call

SECRET = "a-webhook-secret-of-the-tests"


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def data(folder: Path) -> Path:
    return folder / "cambist-data"


@pytest.fixture
def backup(call: Call, folder: Path, data: Path) -> Path:
    """A backup with one account, of which another was made since; it has a secret that is sealed."""
    made = call("account", "create", "Before", "--json").document["account_id"]

    async def seal() -> None:
        async with open_app(Settings(data_dir=data)) as app:
            await set_settings(app.ports, made, {"webhook_secret": SECRET, "webhook_url": "https://a.example/x"})

    asyncio.run(seal())
    assert call("backup", str(folder / "b1"), "--since", str(folder / "verified.json")).status == 0
    assert (folder / "verified.json").exists()
    call("account", "create", "After")
    return folder / "b1"


def accounts(call: Call) -> list[str]:
    return sorted(each["name"] for each in call("account", "list", "--json").document["data"])


def test_restored_database_is_quarantined_and_the_former_is_kept(call: Call, backup: Path, data: Path) -> None:
    told = call("restore", str(backup), "--yes", "--json")
    assert told.status == 0, told.err
    assert told.document["held"] is True
    assert told.document["made_at"] == told.document["as_of"]
    assert accounts(call) == ["Before"]
    line = next(line for line in call("doctor").out.splitlines() if " hold " in line)
    assert "restored from a backup" in line
    with closing(sqlite3.connect(told.document["former"])) as former:
        assert former.execute("SELECT count(*) FROM accounts").fetchone() == (2,)
    assert list(data.glob(".*")) == [], "no draft is left"
    assert call("resume", "--yes").status == 0
    assert next(line for line in call("doctor").out.splitlines() if " hold " in line).startswith("ok")


def test_an_empty_place_needs_the_keys_and_then_takes_it(call: Call, backup: Path, data: Path, folder: Path) -> None:
    other = {"CAMBIST_DATA_DIR": str(folder / "other")}
    told = call("restore", str(backup), "--yes", env=other)
    assert (told.status, "vault.key is missing" in told.err) == (1, True)
    assert not (folder / "other" / "cambist.db").exists()
    (folder / "other").mkdir(exist_ok=True)
    shutil.copy(data / "vault.key", folder / "other")
    assert call("restore", str(backup), "--yes", env=other).status == 0


def test_keys_that_do_not_open_it_are_refused(call: Call, backup: Path, folder: Path) -> None:
    env = {
        "CAMBIST_DATA_DIR": str(folder / "other"),
        "CAMBIST_VAULT_KEY": "ab" * 32,
        "CAMBIST_VAULT_PEPPER": "cd" * 32,
    }
    told = call("restore", str(backup), "--yes", env=env)
    assert (told.status, "CAMBIST_VAULT_PEPPER has another pepper" in told.err) == (1, True)
    assert not (folder / "other" / "cambist.db").exists()


@pytest.mark.parametrize("role", [*Role])
def test_a_folder_in_use_is_refused(call: Call, backup: Path, data: Path, role: Role) -> None:
    async def used() -> None:
        registry = FileRegistry(data / "cambist.db")
        assert await registry.enter(role, alone=False)
        told = await asyncio.to_thread(call, "restore", str(backup), "--yes")
        await registry.close()
        assert (told.status, "is in use" in told.err) == (1, True)

    asyncio.run(used())
    assert accounts(call) == ["After", "Before"]


def test_a_file_that_a_command_has_open_is_refused(call: Call, backup: Path, data: Path) -> None:
    with closing(sqlite3.connect(data / "cambist.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM accounts").fetchone()
        told = call("restore", str(backup), "--yes")
        assert (told.status, "has" in told.err) == (1, True)
    assert accounts(call) == ["After", "Before"]


def test_altered_backup_is_refused(call: Call, backup: Path, data: Path) -> None:
    with (backup / "cambist.db").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    told = call("restore", str(backup), "--yes")
    assert (told.status, "checksum" in told.err) == (1, True)
    assert accounts(call) == ["After", "Before"]


def test_a_bare_file_is_checked_page_by_page(call: Call, backup: Path, data: Path, folder: Path) -> None:
    content = bytearray((backup / "cambist.db").read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    (folder / "bare.db").write_bytes(bytes(content))
    told = call("restore", str(folder / "bare.db"), "--yes")
    assert told.status == 1
    assert accounts(call) == ["After", "Before"]
    shutil.copy(backup / "cambist.db", folder / "bare.db")
    assert call("restore", str(folder / "bare.db"), "--yes").status == 0
    assert accounts(call) == ["Before"]


def test_a_former_file_that_is_damaged_is_replaced_and_its_log_taken_away(call: Call, backup: Path, data: Path) -> None:
    (data / "cambist.db").write_bytes(b"not a database at all, " * 1000)
    (data / "cambist.db-wal").write_bytes(b"a log of it")
    told = call("restore", str(backup), "--yes", "--json")
    assert told.status == 0, told.err
    assert Path(told.document["former"]).read_bytes().startswith(b"not a database")
    assert not (data / "cambist.db-wal").exists(), "it would be taken for the new one's"
    assert accounts(call) == ["Before"]


def test_restore_without_a_confirmation_does_nothing(call: Call, backup: Path) -> None:
    assert call("restore", str(backup)).status != 0
    assert accounts(call) == ["After", "Before"]


STEPS = ("copy_sqlite", "migrate", "_held", "copy_uploads", "swap_sqlite")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_broken_off_anywhere_the_one_or_the_other_stands_there_whole(
    call: Call, backup: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    real = getattr(room, step)

    def dies(*given: object) -> object:
        if not after:
            raise Died
        done = real(*given)
        if asyncio.iscoroutine(done):

            async def awaited() -> None:
                await done
                raise Died

            return awaited()
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(room, step, dies)
        with pytest.raises(Died):
            call("restore", str(backup), "--yes")
    stands = ["Before"] if after and step == "swap_sqlite" else ["After", "Before"]
    assert accounts(call) == stands
    assert call("restore", str(backup), "--yes").status == 0, "another run is not in its own way"


@pytest.mark.parametrize("call_of", ["link", "fsync"])
def test_a_swap_that_fails_leaves_the_former(
    tmp_path: Path, migrated_file: Path, monkeypatch: pytest.MonkeyPatch, call_of: str
) -> None:
    draft, target = tmp_path / "draft", tmp_path / "app.db"
    shutil.copy(migrated_file, draft)
    shutil.copy(migrated_file, target)

    def fails(*_: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched:
        patched.setattr(os, call_of, fails)
        if call_of == "link":
            assert sqlite_swap.put_in_place(draft, target, tmp_path / "former") == tmp_path / "former"
        else:
            with pytest.raises(Exception, match="cannot be put in place"):
                sqlite_swap.put_in_place(draft, target, tmp_path / "former")
    assert sqlite_current(target) == head()


def test_folder_without_a_backup_is_refused(call: Call, backup: Path, folder: Path) -> None:
    (folder / "empty").mkdir()
    told = call("restore", str(folder / "empty"), "--yes")
    assert (told.status, "holds no backup" in told.err) == (1, True)


class TestEncrypted:
    """`cambist backup --encrypt` (docs/operations.md "Backup and restore")."""

    @pytest.fixture
    def encrypted(self, call: Call, folder: Path, backup: Path) -> Path:
        """A second backup, encrypted, which has both accounts; a third one exists since."""
        told = call("backup", "--encrypt", str(folder / "b2"), "--json")
        assert told.status == 0, told.err
        assert (told.document["sound"], told.document["encryption_key"]) == (True, 1)
        call("account", "create", "Later")
        return folder / "b2"

    def test_encrypted_backup_holds_no_plain_word_and_is_restored(
        self, call: Call, encrypted: Path, backup: Path, data: Path
    ) -> None:
        assert {path.name for path in encrypted.iterdir()} == {"cambist.db.encrypted", "backup.json", "uploads"}
        assert b"Before" in (backup / "cambist.db").read_bytes(), "a plain one shows names"
        assert b"Before" not in (encrypted / "cambist.db.encrypted").read_bytes()
        assert (encrypted / "cambist.db.encrypted").stat().st_mode & 0o077 == 0
        assert list(data.glob(".*")) == [], "no plain copy is left"
        told = call("restore", str(encrypted), "--yes", "--json")
        assert told.status == 0, told.err
        assert (told.document["held"], told.document["ledger_holds"]) == (True, True)
        assert accounts(call) == ["After", "Before"]
        assert list(data.glob(".*")) == []

    def test_encrypted_backup_opens_after_its_key_was_replaced(self, call: Call, encrypted: Path) -> None:
        assert call("vault", "rotate").status == 0
        assert call("restore", str(encrypted), "--yes").status == 0
        assert accounts(call) == ["After", "Before"]

    def test_other_keys_and_missing_keys_do_not_open_an_encrypted_backup(
        self, call: Call, encrypted: Path, folder: Path
    ) -> None:
        other = {"CAMBIST_DATA_DIR": str(folder / "other")}
        told = call("restore", str(encrypted), "--yes", env=other)
        assert (told.status, "put the key file into the data folder" in told.err) == (1, True)
        other |= {"CAMBIST_VAULT_KEY": "ab" * 32, "CAMBIST_VAULT_PEPPER": "cd" * 32}
        told = call("restore", str(encrypted), "--yes", env=other)
        assert (told.status, "does not open" in told.err) == (1, True)
        left = {path.suffix for path in (folder / "other").iterdir()}
        assert left == {".lock"}, "neither a database nor a plain copy"

    @pytest.mark.parametrize("of_manifest", [True, False])
    def test_altered_or_shortened_encrypted_backup_is_refused(
        self, call: Call, encrypted: Path, of_manifest: bool
    ) -> None:
        """By the checksum; and without a manifest by the encryption itself."""
        copy = encrypted / "cambist.db.encrypted"
        content = copy.read_bytes()
        if not of_manifest:
            (encrypted / "backup.json").unlink()
        for altered in (content[:-1], content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1]), b""):
            copy.write_bytes(altered)
            told = call("restore", str(encrypted), "--yes")
            assert told.status == 1
            assert ("checksum" in told.err) is of_manifest
        assert accounts(call) == ["After", "Before", "Later"]

    def test_failed_encryption_leaves_neither_backup_nor_plain_copy(
        self, call: Call, backup: Path, data: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(backups, "encrypt_backup", fails)
        assert call("backup", "--encrypt", str(folder / "b2")).status == 1
        assert not (folder / "b2").exists()
        assert list(folder.glob(".*")) == list(data.glob(".*")) == []

    def test_plain_copies_of_killed_processes_are_deleted(
        self, call: Call, backup: Path, data: Path, folder: Path
    ) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        for process in (ended.pid, os.getpid(), os.getppid()):
            (data / f".backup.{process}").mkdir()
            (data / f".backup.{process}" / "cambist.db").write_text("plain")
        assert call("backup", "--encrypt", str(folder / "b2")).status == 0
        assert [path.name for path in data.glob(".*")] == [f".backup.{os.getppid()}"], "it may be at work"

    def test_note_takes_no_encryption(self, call: Call) -> None:
        assert call("backup", "--note", "--encrypt").status == 2
