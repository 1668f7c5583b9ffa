"""`cambist hold` and `cambist resume` as an operator knows them."""

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
