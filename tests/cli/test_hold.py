"""`cambist hold` and `cambist resume` as an operator knows them."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cambist.core.usecases.actions.audit import list_audit
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from tests.cli.conftest import Call
from tests.payout_kit import WALLET


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


def test_quarantine_stays_without_a_confirmation(call: Call) -> None:
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


def test_settle_says_that_live_money_waits_for_resume(call: Call) -> None:
    assert call("account", "create", "Tea").status == 0
    assert call("hold").status == 0
    refused = call("settle", "--mode", "live")
    assert refused.status == 1
    assert "live money is not settled. Run `cambist resume`" in refused.err
    assert call("settle", "--mode", "test").status == 0


def test_a_transfer_without_an_owner_keeps_the_hold_and_is_named(call: Call, folder: Path) -> None:
    sent = sent_by_the_wallet(folder)
    assert call("hold").status == 0
    shown = call("resume", "--dry-run", "--json")
    assert shown.status == 0
    [open_one] = shown.document["lacking"]
    assert (open_one["operation"], open_one["is_open"]) == (sent, True)
    refused = call("resume", "--yes", "--json")
    assert refused.status == 1
    assert refused.document["error"]["details"] == {"open": [sent]}
    assert f"--assign {sent}=ACCOUNT_ID" in refused.document["error"]["message"]
    assert f"{sent}: --assign" in call("resume").err, "nobody is asked whether to go on"
    assert call("resume", "--dry-run", "--json").document["held"] is True


def test_an_assigned_transfer_is_a_debt_of_its_merchant(call: Call, folder: Path) -> None:
    account_id = call("account", "create", "Tea", "--json").document["account_id"]
    sent = sent_by_the_wallet(folder)
    assert call("hold").status == 0
    let_go = call("resume", "--yes", "--assign", f"{sent}={account_id}", "--json")
    assert (let_go.status, let_go.document["held"]) == (0, False)
    [payout] = call("payout", "list", "--json").document["data"]
    assert (payout["withdrawal_id"], payout["account_id"]) == (sent, account_id)
    assert {sent, "installation"} <= resumed(folder)


def test_a_transfer_that_is_not_ours_is_left_out_and_audited(call: Call, folder: Path) -> None:
    sent = sent_by_the_wallet(folder)
    assert call("hold").status == 0
    assert call("resume", "--yes", "--not-ours", sent).status == 0
    assert call("payout", "list", "--json").document["data"] == []
    assert {sent, "installation"} <= resumed(folder)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("--assign", "wd_1"), 2),
        (("--assign", "wd_1=a", "--assign", "wd_1=b"), 2),
        (("--assign", "wd_1=acc_1"), 1),
        (("--not-ours", "wd_1"), 1),
    ],
)
def test_a_decision_about_nothing_is_refused(call: Call, given: tuple[str, ...], status: int) -> None:
    assert call("hold").status == 0
    assert call("resume", "--yes", *given).status == status
    assert call("resume", "--dry-run", "--json").document["held"] is True


def sent_by_the_wallet(folder: Path) -> str:
    """The id of a payout that the wallet of live mode sent and the database knows nothing of."""
    operation = "wd_00000000-0000-4000-8000-000000000001"

    async def work() -> None:
        async with open_app(Settings(data_dir=folder / "cambist-data")) as app:
            sender = app.ports.senders.of_mode("live")
            await sender.broadcast(await sender.sign(operation, WALLET, 1_000_000))

    asyncio.run(work())
    return operation


def resumed(folder: Path) -> set[str | None]:
    """Return the objects of `resume` in the audit log."""

    async def read() -> set[str | None]:
        async with open_app(Settings(data_dir=folder / "cambist-data")) as app:
            return {row.object_id for row in await list_audit(app.ports, limit=100) if row.action == "resume"}

    return asyncio.run(read())


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
