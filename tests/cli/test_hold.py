"""`cambist hold` and `cambist resume` as an operator knows them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Call


def test_a_hold_is_set_shown_and_let_go_with_reasons_in_the_audit_log(call: Call) -> None:
    assert call("account", "create", "Tea").status == 0
    assert call("resume", "--yes").status == 1, "it is not held"
    told = call("hold", "--reason", "the machine was set back", "--json").document
    assert (told["held"], told["held_because"]) == (True, "by_hand")
    shown = call("resume", "--dry-run", "--json")
    assert (shown.status, shown.document["held"]) == (0, True)
    line = next(line for line in call("doctor").out.splitlines() if " hold " in line)
    assert line.startswith("failed")
    assert "an operator said so" in line
    let_go = call("resume", "--yes", "--reason", "compared with the bank", "--json")
    assert (let_go.status, let_go.document["held"]) == (0, False)
    assert next(line for line in call("doctor").out.splitlines() if " hold " in line).startswith("ok")
    assert call("resume", "--yes").status == 1


def test_without_a_yes_it_stays_held(call: Call) -> None:
    assert call("hold").status == 0
    assert call("resume").status != 0
    assert call("resume", "--dry-run", "--json").document["held"] is True


@pytest.mark.parametrize("command", [("resume", "--yes"), ("hold",)])
def test_a_row_that_cannot_be_read_stays_held_and_says_what_to_do(
    call: Call, folder: Path, command: tuple[str, ...]
) -> None:
    assert call("hold").status == 0
    [file] = folder.rglob("cambist.db")
    mark = file.with_name("cambist.db.mark")
    _say(file, "because of what a later version knows")
    before = mark.read_bytes()
    refused = call(*command)
    assert refused.status == 1
    assert "cambist unreadable list" in refused.err
    assert "held_because" in call("unreadable", "list").out
    shown = call("resume", "--dry-run", "--json").document
    assert (shown["held"], shown["held_because"]) == (True, "unreadable")
    assert mark.read_bytes() == before, "the mark beside the file is that of the row"
    _say(file, "by_hand")
    assert call("resume", "--yes", "--json").document["held"] is False


def test_such_a_row_keeps_nobody_from_a_backup(call: Call, folder: Path) -> None:
    assert call("hold").status == 0
    [file] = folder.rglob("cambist.db")
    _say(file, "because of what a later version knows")
    made = call("backup", str(folder / "copy"))
    assert made.status == 0, made.err
    [copied] = (folder / "copy").rglob("cambist.db")
    with closing(sqlite3.connect(copied)) as connection:
        assert connection.execute("SELECT held_since IS NULL FROM installations").fetchone() == (0,)


def _say(file: Path, because: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE installations SET held_because = ?", (because,))
