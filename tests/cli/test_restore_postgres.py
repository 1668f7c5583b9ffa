"""`cambist backup` and `cambist restore` on Postgres: one dump, one transaction, held."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cambist.adapters.registry.postgres import PostgresRegistry
from cambist.adapters.storage.postgres import dump as postgres_dump
from cambist.ports.registry import Role
from tests.cli.conftest import Call
from tests.servers import client_programs, database


@pytest.fixture
def programs(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Postgres' own programs, of the server's version, come first."""
    monkeypatch.setenv("PATH", f"{client_programs(server)}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def url(server: str, postgres_template: str, programs: None, call: Call) -> Iterator[str]:
    """A database with one account, of which there is a backup `b1`, and another account that was made since."""
    with database(server, postgres_template) as made:
        call("account", "create", "Before", env=at(made))
        told = call("backup", "b1", "--json", env=at(made))
        assert told.status == 0, told.err
        assert told.err == "0 uploaded files copied; checking\n"
        assert (told.document["sound"], told.document["database"]) == (True, "cambist.dump")
        call("account", "create", "After", env=at(made))
        yield made


def at(url: str) -> dict[str, str]:
    return {"CAMBIST_DATABASE_URL": url}


def accounts(call: Call, url: str) -> list[str]:
    return sorted(each["name"] for each in call("account", "list", "--json", env=at(url)).document["data"])


def hold_line(call: Call, url: str) -> str:
    return next(line for line in call("doctor", env=at(url)).out.splitlines() if " hold " in line)


def test_restored_backup_is_quarantined_until_it_is_resumed(call: Call, url: str, server: str) -> None:
    with database(server) as empty:
        told = call("restore", "b1", "--yes", "--json", env=at(empty))
        assert told.status == 0, told.err
        assert told.document["as_of"] == told.document["made_at"]
        assert accounts(call, empty) == ["Before"]
        assert "restored from a backup" in hold_line(call, empty)
        assert call("resume", "--yes", env=at(empty)).status == 0
        assert hold_line(call, empty).startswith("ok")


def test_dump_and_load_report_each_table_once(url: str, server: str, tmp_path: Path) -> None:
    dumped: list[str] = []
    asyncio.run(postgres_dump.dump(url, tmp_path / "it.dump", dumped.append))
    tables = [each.partition(": ")[2] for each in dumped]
    assert {"accounts", "payments"} <= set(tables)
    assert dumped == [f"table {number}: {name}" for number, name in enumerate(dict.fromkeys(tables), 1)]
    with database(server) as empty:
        loaded: list[str] = []
        asyncio.run(postgres_dump.load(empty, tmp_path / "it.dump", loaded.append, replace=False))
    assert sorted(each.partition(": ")[2] for each in loaded) == sorted(tables)


def test_existing_database_is_replaced_only_on_request(call: Call, url: str) -> None:
    told = call("restore", "b1", "--yes", env=at(url))
    assert (told.status, "not empty" in told.err) == (1, True)
    assert accounts(call, url) == ["After", "Before"]
    told = call("restore", "b1", "--replace", "--yes", env=at(url))
    assert told.status == 0, told.err
    assert accounts(call, url) == ["Before"]
    assert hold_line(call, url).startswith("failed")


def test_a_dump_that_is_cut_off_changes_nothing(call: Call, url: str, server: str, folder: Path) -> None:
    dump = (folder / "b1" / "cambist.dump").read_bytes()
    (folder / "b1" / "cambist.dump").write_bytes(dump[: len(dump) * 3 // 4])
    told = call("restore", "b1", "--replace", "--yes", env=at(url))
    assert (told.status, "checksum" in told.err) == (1, True)
    (folder / "b1" / "cambist.dump").rename(folder / "bare.dump")
    told = call("restore", "bare.dump", "--replace", "--yes", env=at(url))
    assert told.status == 1
    assert accounts(call, url) == ["After", "Before"]
    with database(server) as empty:
        told = call("restore", "bare.dump", "--yes", env=at(empty))
        assert (told.status, "pg_restore failed" in told.err) == (1, True)
        assert asyncio.run(postgres_dump.is_empty(empty))


@pytest.mark.parametrize("role", [*Role])
def test_a_database_in_use_is_refused(call: Call, url: str, role: Role) -> None:
    async def used() -> None:
        registry = PostgresRegistry(url)
        assert await registry.enter(role, alone=False)
        told = await asyncio.to_thread(call, "restore", "b1", "--replace", "--yes", env=at(url))
        await registry.close()
        assert (told.status, "in use" in told.err) == (1, True)

    asyncio.run(used())
    assert accounts(call, url) == ["After", "Before"]


def test_missing_postgres_programs_are_named(call: Call, url: str, folder: Path) -> None:
    nothing = {**at(url), "PATH": str(folder)}
    for arguments in (("backup", "b2"), ("restore", "b1", "--replace", "--yes")):
        told = call(*arguments, env=nothing)
        assert (told.status, "postgresql-client" in told.err) == (1, True)
    assert not (folder / "b2").exists()


def test_no_password_stands_in_the_list_of_processes() -> None:
    shown, password = postgres_dump._without_password(
        "postgresql://me:hun%40ter2@db.example:5433/cambist?sslmode=require"
    )
    assert shown == "postgresql://me@db.example:5433/cambist?sslmode=require"
    assert password == "hun@ter2"


def test_encrypted_dump_is_restored_and_shows_no_plain_word(call: Call, url: str, server: str) -> None:
    told = call("backup", "--encrypt", "b2", "--json", env=at(url))
    assert told.status == 0, told.err
    assert (told.document["sound"], told.document["database"]) == (True, "cambist.dump.encrypted")
    assert not (Path("b2") / "cambist.dump").exists()
    with database(server) as empty:
        told = call("restore", "b2", "--yes", "--json", env=at(empty))
        assert told.status == 0, told.err
        assert accounts(call, empty) == ["After", "Before"]
        assert "restored from a backup" in hold_line(call, empty)
