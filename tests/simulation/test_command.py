"""Output of the command for a failing world: how to repeat it, and its shortest history (__main__.py)."""

import os
import re
import shlex
import signal
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path

import msgspec
import pytest

from tests.simulation import __main__ as command
from tests.simulation import running
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
    monkeypatch.setattr(running, "live", _fails_with_order_two)
    monkeypatch.setattr(command, "KEPT", tmp_path / "worlds.jsonl")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))


def _commands(said: str) -> list[list[str]]:
    """The arguments of each command that was printed."""
    return [shlex.split(each)[3:] for each in re.findall(r"again: (python -m tests.simulation .*)", said)]


def test_failing_seed_is_shortened_and_printed_with_its_replay_command(
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


def test_run_with_first_ends_at_the_first_failing_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "5", "--seeds", "50", "--first", "--no-shrink"]) == 1
    assert "1 worlds from seed 5" in capsys.readouterr().out


@pytest.mark.parametrize(("is_lost", "done"), [(False, 2), (True, 3)])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_resumes_where_it_was_at_the_same_commit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: int, is_lost: bool, done: int
) -> None:
    """At once, or after a world in which what the signal raises `is_lost`: as in whatever Python calls by itself. A
    tree that is no commit keeps nothing."""
    lived, ends = list[int](), [7]

    def live(plan: Plan) -> Outcome:
        if plan.seed in ends:
            ends.clear()
            with suppress(KeyboardInterrupt) if is_lost else nullcontext():
                os.kill(os.getpid(), by)
        lived.append(plan.seed)
        return Outcome(plan=plan, faults=(), digest="0", steps=0, hours=38.0, counts={})

    monkeypatch.setattr(running, "live", live)
    monkeypatch.setattr(command, "_clean_commit", lambda: "a" * 40)
    wish = ["--seed", "5", "--seeds", "5"]
    with pytest.raises(SystemExit, match="130"):
        command.main(wish)
    assert f"interrupted; the same command goes on. So far: {done} worlds from seed 5" in capsys.readouterr().out
    assert command.main(wish) == 0
    assert lived == [5, 6, 7, 8, 9]
    said = capsys.readouterr().out
    assert f"{done} of 5 worlds lived before" in said
    assert "5 worlds from seed 5, 190 simulated hours" in said
    assert command.main([*wish, "--anew"]) == 0
    assert lived[5:] == [5, 6, 7, 8, 9]
    monkeypatch.setattr(command, "_clean_commit", lambda: None)
    assert command.main(wish) == 0
    assert lived[10:] == [5, 6, 7, 8, 9]


def test_speed_and_remaining_time_are_printed_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def live(plan: Plan) -> Outcome:
        return Outcome(plan=plan, faults=(), digest="0", steps=0, hours=38.0, counts={})

    monkeypatch.setattr(running, "EVERY", 0.0)
    monkeypatch.setattr(running, "live", live)
    assert command.main(["--seed", "5", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"1 of 2 worlds, 38 h; \d+ a minute, \d.\d\d s of CPU each, \d+ min left", said)
