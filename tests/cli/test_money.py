"""`cambist settle` and `cambist ledger verify` (docs/settlement.md "When"; docs/cli.md "Commands")."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.days import iso
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.payments.payments import create_payment
from cambist.core.usecases.sandbox.sandbox import simulate_payment
from cambist.frontends.app.compose import open_app
from cambist.frontends.operations import checkpoint_file
from cambist.frontends.settings.settings import Settings
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.rates import RateSimulation, RateSimulator
from tests.cli.conftest import Call

FIELDS = [
    "batch_id",
    "mode",
    "cutoff",
    "started_at",
    "completed_at",
    "rate_market",
    "payments",
    "amount_rub",
    "fee_usdt",
    "credit_usdt",
]
SUMS = ("payments", "amount_rub", "fee_usdt", "credit_usdt")
NOTHING = (0, "0.00", "0.00000000", "0.00000000")
ONE = (1, "100.00", "0.03243243", "1.04864864")


async def _pay(data: Path, account_id: str, mode: Mode, at: datetime) -> None:
    async with open_app(Settings(data_dir=data), clock=VirtualClock(at)) as app:
        async with app.ports.storage.unit() as unit:
            account = await unit[Account].get(account_id)
        assert account is not None
        caller = Caller(account=account, mode=mode, key_id="a-key")
        made = await create_payment(app.ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))
        paid = await simulate_payment(app.ports, made.resource, Simulation(status=InvoiceStatus.PAID))
        assert paid.status == "paid"


async def _silence(data: Path) -> None:
    async with open_app(Settings(data_dir=data)) as app:
        [source] = app.ports.rates.of_mode("live")
        assert isinstance(source, RateSimulator)
        await source.simulate(RateSimulation(rate=Decimal("92.50"), silent=True))


class Books:
    """An account in a data folder, and the commands about its money."""

    def __init__(self, call: Call, folder: Path) -> None:
        self.call = call
        self.data = folder / "cambist-data"
        self.account_id: str = call("account", "create", "Tea", "--json").document["account_id"]

    def pay(self, mode: Mode = Mode.TEST, *, days_ago: int = 2) -> None:
        """A payment of 100 RUB that was paid some days ago."""
        asyncio.run(_pay(self.data, self.account_id, mode, datetime.now(UTC) - timedelta(days=days_ago)))

    def settle(self, *arguments: str) -> list[dict[str, Any]]:
        outcome = self.call("settle", *arguments, "--json")
        assert outcome.status == 0, outcome.err
        found: list[dict[str, Any]] = outcome.document["data"]
        return found

    def verify(self, *more: str) -> tuple[int, dict[str, Any]]:
        outcome = self.call("ledger", "verify", "--json", *more)
        return outcome.status, outcome.document

    def held(self) -> dict[str, Any]:
        """Return the expected report on a correct journal, without its head."""
        status, document = self.verify()
        assert (status, document.pop("head")[:7]) == (0, "ledger=")
        return document

    def tamper(self, statement: str) -> None:
        with closing(sqlite3.connect(next(self.data.glob("*.db")))) as connection, connection:
            assert connection.execute(statement).rowcount == 1


@pytest.fixture
def books(call: Call, folder: Path) -> Books:
    return Books(call, folder)


def sums(batch: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(batch[name] for name in SUMS)


def test_settle_takes_both_modes_and_says_what_each_brought(books: Books) -> None:
    books.pay(Mode.LIVE)
    books.pay(Mode.TEST)
    before = datetime.now(UTC)
    live, test = books.settle()
    assert [list(live), list(test)] == [FIELDS, FIELDS]
    assert (live["mode"], test["mode"]) == ("live", "test")
    assert (sums(live), sums(test)) == (ONE, ONE)
    assert live["rate_market"] == test["rate_market"] == "92.50"
    assert live["batch_id"] == f"live:{live['cutoff'][:10]}"
    assert live["cutoff"].endswith("T00:00:00.000Z")
    assert test["cutoff"] >= iso(before)
    for batch in (live, test):
        assert iso(before) <= batch["started_at"] <= batch["completed_at"]
    assert books.verify()[0] == 0


def test_settled_twice_live_shows_the_same_batch_and_test_has_nothing_more(books: Books) -> None:
    books.pay(Mode.LIVE)
    books.pay(Mode.TEST)
    first, second = books.settle(), books.settle()
    assert second[0] == first[0]
    assert sums(second[1]) == NOTHING
    assert second[1]["batch_id"] != first[1]["batch_id"]


def test_live_settles_only_past_days_and_test_settles_up_to_now(books: Books) -> None:
    """Payments paid before 00:00 UTC of the day (docs/settlement.md "When")."""
    books.pay(Mode.LIVE, days_ago=0)
    books.pay(Mode.TEST, days_ago=0)
    live, test = books.settle()
    assert (sums(live), sums(test)) == (NOTHING, ONE)
    [further] = books.settle("--mode", "live", "--cutoff", "now")
    assert sums(further) == ONE
    assert further["batch_id"] == f"live:{further['cutoff']}"


def test_one_mode_only(books: Books) -> None:
    books.pay(Mode.LIVE)
    books.pay(Mode.TEST)
    [test] = books.settle("--mode", "test")
    assert (test["mode"], sums(test)) == ("test", ONE)
    [live] = books.settle("--mode", "live")
    assert (live["mode"], sums(live)) == ("live", ONE)


def test_a_cutoff_leaves_what_was_paid_at_it_or_after(books: Books) -> None:
    books.pay(days_ago=5)
    books.pay(days_ago=2)
    [early] = books.settle("--mode", "test", "--cutoff", iso(datetime.now(UTC) - timedelta(days=3)))
    assert sums(early) == ONE
    [late] = books.settle("--mode", "test")
    assert sums(late) == ONE


def test_people_get_a_table_and_progress_goes_to_standard_error(books: Books) -> None:
    books.pay()
    outcome = books.call("settle", "--mode", "test")
    assert outcome.status == 0
    titles, row = outcome.out.splitlines()
    assert titles.split()[:5] == ["mode", *SUMS[:1], "amount_rub", "fee_usdt", "credit_usdt"]
    assert row.split()[:5] == ["test", *map(str, ONE)]
    assert outcome.err == "test: settled 1 of 1 payments, 100.00 RUB\n"


@pytest.mark.parametrize("moment", ["tomorrow", "2026-11-21", "2026-11-21T09:00:00", "", "9999-01-01T00:00:00Z"])
def test_a_cutoff_that_is_no_moment_or_in_the_future_is_refused(books: Books, moment: str) -> None:
    outcome = books.call("settle", "--cutoff", moment, "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "VALIDATION_ERROR")


def test_settlement_without_a_rate_is_refused(books: Books) -> None:
    books.pay(Mode.LIVE)
    asyncio.run(_silence(books.data))
    outcome = books.call("settle", "--mode", "live", "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "RATE_UNAVAILABLE")


@pytest.mark.parametrize("arguments", [("settle", "--mode", "both"), ("settle", "now"), ("ledger", "verify", "x")])
def test_wrong_usage_is_2(call: Call, arguments: tuple[str, ...]) -> None:
    assert call(*arguments).status == 2


def test_help_says_what_people_need(call: Call) -> None:
    settle = " ".join(call("settle", "--help").out.split())
    for words in ("09:00 UTC", "before 00:00 UTC", "settled once", "may be interrupted", "standard error", "--cutoff"):
        assert words in settle
    verify = " ".join(call("ledger", "verify", "--help").out.split())
    for words in ("Exit 0 when all holds", "Exit 1", "first bad entry", "beside a working service", "standard error"):
        assert words in verify


HELD: dict[str, Any] = {
    "holds": True,
    "proved_before": 0,
    "first_bad_entry": None,
    "bad_balances": [],
    "actions": 1,
    "actions_unsealed": 1,
    "first_bad_action": None,
    "differing": [],
    "bad_values": [],
}


def test_a_ledger_that_holds_is_0(books: Books) -> None:
    assert books.held() == {**HELD, "entries": 0, "unsealed": 0}
    books.pay()
    assert books.held() == {**HELD, "entries": 1, "unsealed": 1}
    books.settle()
    assert books.held() == {**HELD, "entries": 2, "unsealed": 0, "actions": 3, "actions_unsealed": 3}
    outcome = books.call("ledger", "verify")
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.split() for line in outcome.out.splitlines()] == [
        ["holds", "true"],
        ["entries", "2"],
        ["proved", "before", "0"],
        ["unsealed", "0"],
        ["first", "bad", "entry", "-"],
        ["actions", "3"],
        ["actions", "unsealed", "3"],
        ["first", "bad", "action", "-"],
        ["head", *books.call("ledger", "head").out.split()],
    ]


@pytest.mark.parametrize("told", ["text", "file", "folder", "log"])
def test_published_head_is_compared_with_the_chain(books: Books, tmp_path: Path, told: str) -> None:
    books.pay()
    books.settle()
    line = books.call("ledger", "head", "--json").document["head"]
    place = tmp_path / "backup.json"
    place.write_text(f'{{"head": "{line}"}}' if told == "folder" else f"noise\n{line} and more\n")
    given = {"text": line, "file": str(place), "folder": str(tmp_path), "log": str(place)}[told]
    assert books.verify("--from", given)[0] == 0
    status, document = books.verify("--from", line.replace("ledger=2:", "ledger=3:"))
    assert (status, document["first_bad_entry"]) == (1, None)
    assert document["differing"] == ["the head ledger=3 has no place in it: the chain ends at 2"]


def test_verification_continues_from_its_file(books: Books, tmp_path: Path) -> None:
    file = tmp_path / "verified.json"
    since = ("--since", str(file))
    books.pay()
    books.settle()
    assert books.verify(*since)[1]["proved_before"] == 0
    assert (file.stat().st_mode & 0o777, list(tmp_path.glob("*.part"))) == (0o600, [])
    books.pay()
    books.settle()
    status, document = books.verify(*since)
    assert (status, document["proved_before"], document["entries"]) == (0, 2, 4)
    books.tamper("UPDATE journal SET revision = 2 WHERE kind = 'receipt' AND number = 1")
    assert (books.verify(*since)[0], books.verify()[0]) == (0, 1), "the entry was proved before"
    books.tamper("UPDATE ledger_accounts SET balance = balance + 1 WHERE id = (SELECT max(id) FROM ledger_accounts)")
    before = file.read_bytes()
    assert (books.verify(*since)[0], file.read_bytes()) == (1, before)
    file.write_bytes(before.replace(b'"ledger=', b'"ledger=1'))
    outcome = books.call("ledger", "verify", *since)
    assert (outcome.status, "is not what this installation's vault tagged" in outcome.err) == (1, True)
    assert books.call("ledger", "verify", "--from", before[:200].decode(), *since).status == 2


def test_every_row_is_read_again_after_a_week(books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    since = ("--since", str(tmp_path / "verified.json"))
    books.pay()
    books.settle()
    assert books.verify(*since)[0] == 0
    monkeypatch.setattr(checkpoint_file, "COMPLETE_AFTER", timedelta())
    assert books.verify(*since)[1]["proved_before"] == 0


def test_invalid_head_is_wrong_usage(call: Call, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"\xff\x00 no head here")
    for given in (str(empty), str(tmp_path / "gone"), str(tmp_path), "ledger=1:short", "x" * 5000, ""):
        assert call("ledger", "verify", "--from", given).status == 2, given


def test_new_installation_has_nothing_to_tag_again(books: Books) -> None:
    outcome = books.call("ledger", "retag", "--yes", "--json")
    assert (outcome.status, outcome.document) == (0, {"retagged": {}, "rows": 0, "wallets": {}, "left": []})


def test_a_changed_entry_is_1_and_is_named(books: Books) -> None:
    books.pay()
    books.settle()
    books.tamper("UPDATE journal SET revision = 2 WHERE kind = 'receipt'")
    status, document = books.verify()
    bad = document["first_bad_entry"]
    assert (status, document["holds"], document["bad_balances"]) == (1, False, [])
    assert (bad["number"], bad["reason"]) == (1, "is not what was chained")
    assert bad["id"].startswith("receipt:pay_")
    outcome = books.call("ledger", "verify")
    assert outcome.status == 1
    assert f"first bad entry   {bad['id']} 1 is not what was chained" in outcome.out


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("kind = 'garbage'", ("number = 1", 1)),
        ("postings = '[1]'", ("number = 2", 2)),
        ("postings = 'x'", ("number IS NULL", None)),
    ],
)
def test_a_row_that_is_no_entry_is_1_and_its_place_is_named(
    books: Books, change: str, place: tuple[str, int | None]
) -> None:
    books.pay()
    books.settle()
    books.pay()
    which, number = place
    books.tamper(f"UPDATE journal SET {change} WHERE {which}")
    status, document = books.verify()
    assert (status, document["holds"], document["bad_balances"]) == (1, False, [])
    assert document["first_bad_entry"] == {"number": number, "id": None, "reason": "cannot be read"}


def test_a_changed_balance_is_1_and_is_named(books: Books) -> None:
    books.pay()
    books.settle()
    row = f"{books.account_id}:test:available:0"
    books.tamper(f"UPDATE ledger_accounts SET balance = balance + 5 WHERE id = '{row}'")
    status, document = books.verify()
    assert (status, document["holds"], document["first_bad_entry"]) == (1, False, None)
    assert document["bad_balances"] == [{"id": row, "kept": 1_04864869, "counted": 1_04864864}]
    assert f"{row}  104864869  104864864" in books.call("ledger", "verify").out
