"""`cambist payout …` (docs/settlement.md "Payouts")."""

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, journal_entry
from cambist.core.usecases.ledger.ledger import post
from cambist.frontends.app.compose import open_app
from cambist.frontends.http.records import MovementView
from cambist.frontends.http.withdrawals import WithdrawalItemView
from cambist.frontends.settings.sources import load
from tests.cli.conftest import Call
from tests.payout_kit import WALLET


def payout(call: Call, *arguments: str) -> Any:
    done = call("payout", *arguments, "--json")
    assert (done.status, done.err) == (0, "")
    return done.document


def credit(folder: Path, account_id: str) -> None:
    """Book 5.0000007 USDT in test mode, as a settlement does."""

    async def book() -> None:
        async with open_app(load({}, {}, folder).settings) as app:
            entry = journal_entry(
                EntryKind.SETTLEMENT,
                f"pay_{app.ports.ids.uuid()}",
                account_id=account_id,
                mode=Mode.TEST,
                at=app.ports.clock.now(),
                postings={BalanceType.CONVERTED_USDT: -500_000_070, BalanceType.AVAILABLE: 500_000_070},
            )
            async with app.ports.storage.unit() as unit:
                post(unit, entry)
                await unit.commit()

    asyncio.run(book())


@pytest.fixture
def account_id(call: Call, folder: Path) -> str:
    """An account with a wallet and some USDT."""
    made: str = call("account", "create", "Merchant", "--json").document["account_id"]
    assert call("account", "set", made, f"payout_wallet={WALLET}").status == 0
    credit(folder, made)
    return made


def test_payout_is_made_listed_and_cancelled(call: Call, account_id: str) -> None:
    assert payout(call, "list") == {"data": []}
    made = payout(call, "now", account_id, "--mode", "test")
    assert made == {
        "withdrawal_id": made["withdrawal_id"],
        "account_id": account_id,
        "mode": "test",
        "status": "pending",
        "amount_usdt": "5.00000000",
        "wallet_address": WALLET,
        "network": "tron",
        "sender": "simulator-chain-test",
        "settlement_id": None,
        "tx_hash": None,
        "failure": None,
        "created_at": made["created_at"],
        "sent_at": None,
        "completed_at": None,
    }
    assert payout(call, "list") == {"data": [made]}
    done = payout(call, "cancel", made["withdrawal_id"], "--reason", "a wrong wallet")
    assert (done["status"], done["failure"]) == ("cancelled", "a wrong wallet")
    assert payout(call, "list", "--account", account_id, "--status", "cancelled") == {"data": [done]}
    assert payout(call, "list", "--status", "pending") == {"data": []}
    text = call("payout", "list").out
    assert made["withdrawal_id"] in text
    assert "5.00000000" in text


def test_transfer_that_the_wallet_sent_is_accepted(call: Call, account_id: str, folder: Path) -> None:
    """As after a restore: the wallet knows more than the database."""
    made = payout(call, "now", account_id, "--mode", "test")
    before = call("payout", "accept", made["withdrawal_id"], "--reason", "the log says so", "--json")
    assert (before.status, before.document["error"]["code"]) == (1, "INVALID_STATE")

    async def send() -> None:
        async with open_app(load({}, {}, folder).settings) as app:
            wallet = app.ports.senders.of_mode("test")
            await wallet.broadcast(await wallet.sign(made["withdrawal_id"], WALLET, 400_000_000))

    asyncio.run(send())
    done = payout(call, "accept", made["withdrawal_id"], "--reason", "the log says so")
    assert (done["status"], done["amount_usdt"], len(done["tx_hash"])) == ("processing", "4.00000000", 64)
    assert payout(call, "now", account_id, "--mode", "test")["amount_usdt"] == "1.00000000"


def test_impossible_command_is_refused_with_its_code(call: Call, account_id: str) -> None:
    def code(*arguments: str) -> str:
        done = call("payout", *arguments, "--json")
        assert done.status == 1
        found: str = done.document["error"]["code"]
        return found

    assert code("now", account_id, "--mode", "live") == "INVALID_STATE"
    assert code("now", "acc_nobody", "--mode", "test") == "ACCOUNT_NOT_FOUND"
    assert code("list", "--account", "acc_nobody") == "ACCOUNT_NOT_FOUND"
    assert code("cancel", "wd_nothing", "--reason", "why") == "WITHDRAWAL_NOT_FOUND"
    made = payout(call, "now", account_id, "--mode", "test")
    assert code("now", account_id, "--mode", "test") == "INVALID_STATE"
    assert code("cancel", made["withdrawal_id"], "--reason", " ") == "VALIDATION_ERROR"
    payout(call, "cancel", made["withdrawal_id"], "--reason", "why")
    assert code("cancel", made["withdrawal_id"], "--reason", "why") == "INVALID_STATE"


def test_missing_argument_is_wrong_usage(call: Call) -> None:
    assert call("payout", "now", "acc_1").status == 2
    assert call("payout", "cancel", "wd_1").status == 2
    assert call("payout", "list", "--status", "gone").status == 2


def test_movements_and_the_lines_of_a_payout(call: Call, account_id: str) -> None:
    """Movements of the balance are listed newest first; the lines of a payout sum to its amount."""
    made = payout(call, "now", account_id, "--mode", "test")
    done = call("movements", account_id, "--mode", "test", "--json")
    assert (done.status, done.err) == (0, "")
    reserved, credited = done.document["data"]
    assert (reserved["kind"], reserved["object_id"], reserved["balance_reserved_usdt"]) == (
        "payout_reserved",
        made["withdrawal_id"],
        "5.00000000",
    )
    assert (credited["number"], credited["kind"], credited["balance_available_usdt"]) == (1, "settlement", "5.00000070")
    done = call("movements", account_id, "--mode", "test", "--balance", "reserved", "--from", credited["created_at"])
    assert (done.status, len(done.out.splitlines())) == (0, 2)
    assert call("movements", account_id, "--json").document == {"data": []}, "live is the default"
    lines = payout(call, "items", made["withdrawal_id"])["data"]
    assert [(line["kind"], line["amount_usdt"]) for line in lines] == [
        ("settlement", "5.00000070"),
        ("carried_out", "-0.00000070"),
    ]
    done = call("payout", "items", made["withdrawal_id"])
    assert (done.status, len(done.out.splitlines())) == (0, 3)


def test_lists_that_the_interface_has_as_csv_are_csv_here_too(call: Call, account_id: str) -> None:
    """The same columns, all rows, the oldest first; only the header for an empty list."""
    made = payout(call, "now", account_id, "--mode", "test")["withdrawal_id"]
    for arguments, view, firsts in (
        (("movements", account_id, "--mode", "test"), MovementView, ["settlement", "payout_reserved"]),
        (("payout", "items", made), WithdrawalItemView, ["settlement", "carried_out"]),
    ):
        done = call(*arguments, "--csv")
        assert (done.status, done.err) == (0, "")
        rows = list(csv.DictReader(done.out.splitlines()))
        assert tuple(rows[0]) == view.__struct_fields__
        assert [row["kind"] for row in rows] == firsts
        assert call(*arguments, "--csv", "--json").status == 2
        assert call(*arguments, "--json", "--csv").status == 2
    assert call("movements", account_id, "--csv").out.strip() == "", "live is the default"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("movements", "acc_none"), "ACCOUNT_NOT_FOUND"),
        (("payout", "items", "wd_none"), "WITHDRAWAL_NOT_FOUND"),
        (("movements", "ACCOUNT", "--from", "yesterday"), "VALIDATION_ERROR"),
        (("movements", "ACCOUNT", "--object-id", "pay_1"), "VALIDATION_ERROR"),
    ],
)
def test_movements_of_what_is_not_there(call: Call, account_id: str, arguments: tuple[str, ...], code: str) -> None:
    done = call(*(account_id if each == "ACCOUNT" else each for each in arguments), "--json")
    assert (done.status, done.document["error"]["code"]) == (1, code)
