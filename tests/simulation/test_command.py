"""What the command prints of a world that fails: how to see it again, and its shortest history (__main__.py)."""

import re
import shlex
import tempfile
from pathlib import Path

import msgspec
import pytest

from tests.simulation import __main__ as command
from tests.simulation.drawing import drawn_plan
from tests.simulation.plan import Plan
from tests.simulation.world import Outcome

SEED = next(seed for seed in range(100) if len(drawn_plan(seed).blows) > 3)


def _fails_with_order_two(plan: Plan, *, keeps: bool = False) -> Outcome:
    faults = ("pay_1 is wrong",) if any(order.number == 2 for order in plan.orders) else ()
    lines = ("a line",) if keeps else ()
    return Outcome(plan=plan, faults=faults, digest="0", steps=0, hours=38.0, counts={}, lines=lines)


@pytest.fixture(autouse=True)
def _no_worlds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "live", _fails_with_order_two)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))


def _commands(said: str) -> list[list[str]]:
    """The arguments of each command that was printed."""
    return [shlex.split(each)[3:] for each in re.findall(r"again: (python -m tests.simulation .*)", said)]


def test_a_seed_that_fails_prints_the_command_that_replays_it_and_is_shortened(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--seed", str(SEED)]) == 1
    whole, short = _commands(capsys.readouterr().out)
    assert whole[:2] == ["--seed", str(SEED)]
    assert short[0] == "--plan"
    plan = msgspec.json.decode(Path(short[1]).read_bytes(), type=Plan)
    assert [order.number for order in plan.orders] == [2]
    assert (plan.blows, plan.memberships) == ((), ())
    for arguments in (whole, short):
        assert command.main(arguments) == 1
        assert Path(arguments[-1]).read_text("utf-8") == "a line\n"


def test_many_worlds_name_the_seeds_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "5", "--hours", "114", "--no-shrink"]) == 1
    said = capsys.readouterr().out
    assert "3 worlds from seed 5, 114 simulated hours" in said
    assert "3 failed: 5 6 7" in said


def test_it_ends_with_the_first_that_fails_where_that_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "5", "--seeds", "50", "--first", "--no-shrink"]) == 1
    assert "1 worlds from seed 5" in capsys.readouterr().out
