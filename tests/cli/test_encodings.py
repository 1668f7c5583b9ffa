"""Terminals and files of other encodings than UTF-8 (docs/cli.md "Answers")."""

import codecs
import subprocess
import sys
from pathlib import Path

import pytest

from cambist.adapters.merchants_file import read_merchants
from cambist.adapters.vault.key_file import load_or_create
from cambist.frontends.cli import output
from cambist.ports.faults import NotConfigured
from cambist.ports.vault import VaultError
from tests.cli.conftest import PROGRAM, Call
from tests.patience import HANGS
from tests.tables import table

KEY, PEPPER = "ab" * 32, "cd" * 32


def run(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[bytes]":
    """The command line in a process of its own, with these variables and no others."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=HANGS)


def test_terminal_of_8_bits_is_given_escapes() -> None:
    assert run("account", "create", "Кофейня «Ёж» 😀 ₽", PYTHONUTF8="1").returncode == 0
    listed = run("account", "list", PYTHONUTF8="1", PYTHONIOENCODING="cp1251")
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert "Кофейня «Ёж» \\U0001f600 \\u20bd" in listed.stdout.decode("cp1251")
    refused = run("account", "show", "acc_😀", PYTHONUTF8="1", PYTHONIOENCODING="cp1251")
    assert (refused.returncode, b"Traceback" in refused.stderr) == (1, False)


def test_name_in_another_encoding_than_the_terminals_names_the_encoding() -> None:
    refused = run("account", "create", "Чай", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert refused.returncode == 1
    assert b"set a locale of UTF-8" in refused.stderr


def test_reader_that_goes_early_is_no_fault() -> None:
    """As in `cambist doctor | head -1`."""
    doctor = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}
    )
    assert doctor.stdout is not None
    assert doctor.stderr is not None
    doctor.stdout.close()
    with doctor.stderr:
        assert b"error" not in doctor.stderr.read()
    assert doctor.wait(HANGS) == 1


def test_broken_connection_is_no_reader_that_went(capfd: pytest.CaptureFixture[str]) -> None:
    assert not output.reader_is_gone()


def test_byte_order_mark_of_utf_8_is_passed_over(call: Call, folder: Path) -> None:
    (folder / "cambist.toml").write_bytes(codecs.BOM_UTF8 + b"port = 8099\n")
    (folder / "key").write_bytes(codecs.BOM_UTF8 + KEY.encode() + b"\r\n")
    (folder / "pepper").write_bytes(codecs.BOM_UTF8 + PEPPER.encode())
    env = {"CAMBIST_VAULT_KEY_FILE": "key", "CAMBIST_VAULT_PEPPER_FILE": "pepper"}
    checked = call("config", "check", "--json", env=env)
    assert checked.status == 0, checked.err
    assert "8099" in checked.out
    merchants = folder / "merchants.toml"
    merchants.write_bytes(codecs.BOM_UTF8 + b'[acc_1]\nshop = "x"\n')
    assert read_merchants("bank", merchants, ("shop",)) == {"acc_1": {"shop": "x"}}
    load_or_create(folder / "vault.key")
    (folder / "vault.key").write_bytes(codecs.BOM_UTF8 + (folder / "vault.key").read_bytes())
    assert load_or_create(folder / "vault.key").current == 1


@table("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_file_in_utf_16_says_so(call: Call, folder: Path, encoding: str) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    words = f"it is {encoding[:6].upper()}: save it as UTF-8"

    def written(name: str, text: str) -> Path:
        (folder / name).write_bytes(mark + text.encode(encoding))
        (folder / name).chmod(0o600)
        return folder / name

    written("settings.toml", "port = 8099")
    assert words in call("--config", "settings.toml", "config", "check").err
    env = {"CAMBIST_VAULT_KEY_FILE": str(written("key", KEY)), "CAMBIST_VAULT_PEPPER": PEPPER}
    assert words in call("config", "check", env=env).err
    with pytest.raises(NotConfigured, match=words):
        read_merchants("bank", written("merchants.toml", "[acc_1]"), ("shop",))
    with pytest.raises(VaultError, match=words):
        load_or_create(written("vault.key", "{}"))
