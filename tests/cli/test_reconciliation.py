"""`cambist reconcile` and `cambist difference …` (docs/reconciliation.md)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cambist.adapters.script import Ending, Script, Twist
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.reconciliation.reconciliation import last_comparable
from cambist.ports.reporting import ReportedEntry, ReportedKind, ReportedState
from tests.bank_file_kit import Line, exchange
from tests.cli.conftest import Call

BANK = "simulator-live"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return the script of the simulated bank's list."""
    from cambist.adapters.bank.simulator import simulator

    made = Script()
    monkeypatch.setattr(simulator, "Script", lambda: made)
    from cambist.adapters.bank.simulator import core as simulator_core

    monkeypatch.setattr(simulator_core, "Script", lambda: made)
    return made


def entry(name: str = "b-1") -> ReportedEntry:
    """An entry of the last day that can be compared."""
    noon = datetime.combine(last_comparable(datetime.now(UTC)), datetime.min.time(), MOSCOW) + timedelta(hours=12)
    return ReportedEntry(
        id=name, kind=ReportedKind.PAYMENT, state=ReportedState.DONE, moment=noon, amount_kopecks=490_00
    )


def reconcile(call: Call, *arguments: str) -> tuple[int, Any]:
    done = call("reconcile", *arguments, "--json")
    return done.status, done.document


def test_lists_that_agree_exit_with_0(call: Call, folder: Path) -> None:
    status, told = reconcile(call)
    assert (status, told["status"], told["differences"]) == (0, "agreed", [])
    assert [(each["bank"], each["status"]) for each in told["banks"]] == [(BANK, "agreed")]
    assert f"{BANK}: agreed, 0 entries, 0 differences" in call("reconcile").out


def test_differences_exit_with_1_are_listed_and_settled(call: Call, script: Script) -> None:
    script.entries.invented.append(entry())
    status, told = reconcile(call)
    assert (status, told["status"]) == (1, "different")
    [row] = told["differences"]
    assert (row["difference"], row["bank_id"], row["their_amount_rub"], row["our_amount_rub"]) == (
        "extra",
        "b-1",
        "490.00",
        None,
    )
    assert "490.00" in call("reconcile").out
    assert call("difference", "list", "--json").document["data"] == [row | {"found_at": row["found_at"]}]
    settled = call("difference", "settle", row["difference_id"], "--reason", "made in the cabinet", "--json")
    assert (settled.status, settled.document["settled"]) == (0, True)
    assert call("difference", "list", "--json").document["data"] == []
    assert reconcile(call)[0] == 0
    assert call("difference", "settle", "nothing", "--json").status == 1


def test_a_bank_that_gives_no_list_exits_with_2(call: Call, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.frontends.cli.reconciliation._PAUSES", (0.0,))
    script.entries.calls.extend([Twist(ending=Ending.UNAVAILABLE)] * 2)
    status, told = reconcile(call)
    assert (status, told["status"], told["banks"][0]["status"]) == (2, "failed", "failed")
    script.entries.calls.append(Twist(ending=Ending.UNAVAILABLE))
    assert reconcile(call)[0] == 0, "asked again, it goes on"


def test_a_bank_without_a_list_is_named_and_exits_with_2(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from cambist.adapters.bank.simulator.simulator import SimulatedBank

    monkeypatch.setattr("cambist.core.usecases.reconciliation.reconciliation.ReportingBank", type("No", (), {}))
    assert SimulatedBank is not None
    done = call("reconcile")
    assert (done.status, f"{BANK}: gives no list" in done.out) == (2, True)
    assert reconcile(call)[1]["banks"] == [{"bank": BANK, "owner": None, "status": "no_list"}]


@pytest.mark.parametrize("arguments", [("--day", "yesterday"), ("--day", "2199-01-01"), ("--bank", "nobody")])
def test_impossible_comparison_exits_with_2(call: Call, arguments: tuple[str, ...]) -> None:
    done = call("reconcile", *arguments, "--json")
    assert (done.status, done.document["error"]["code"]) == (2, "VALIDATION_ERROR")


def test_bank_s_file_is_compared_by_its_exit_status(call: Call, folder: Path) -> None:
    day = last_comparable(datetime.now(UTC))
    line = Line(name="doc-1", day=day, time="12:00:00", kopecks=490_00, purpose="Перевод без номера")
    file, empty = folder / "kl_to_1c.txt", folder / "empty.txt"
    file.write_bytes(exchange([line], day, day))
    empty.write_bytes(exchange([], day, day))
    tbank = {
        "CAMBIST_BANKS": "tbank",
        "CAMBIST_TBANK_TERMINAL_KEY": "1700000000000",
        "CAMBIST_TBANK_PASSWORD": "a-password-of-a-test",
    }
    assert call("bank", "import", str(file), "--bank", BANK).status == 2
    agreed = call("bank", "import", str(empty), "--bank", "tbank", "--json", env=tbank)
    assert (agreed.status, agreed.document["operations"]) == (0, 0)
    done = call("bank", "import", str(file), "--bank", "tbank", "--json", env=tbank)
    assert done.status == 1
    [row] = done.document["differences"]
    assert (row["difference"], row["their_amount_rub"]) == ("extra", "490.00")
    assert day.isoformat() in call("bank", "import", str(file), "--bank", "tbank", env=tbank).out
