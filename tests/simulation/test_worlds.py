"""Whole worlds (world.py): no work is lost, repeated or left open under faults, and the books agree
(docs/reliability.md "What is checked"). `nox -s simulate` runs many more of them."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.simulation.clock_plans import Leap, Rehearsal, Trial
from tests.simulation.drawing import drawn_plan
from tests.simulation.plan import Blow, Plan, Problem
from tests.simulation.sweep import paired, swept
from tests.simulation.weather import Weather
from tests.simulation.world import World, live

ROOT = Path(__file__).parents[2]


def test_drawn_world_breaks_no_rule() -> None:
    """It has every feature: exchanges, applicants, lost mandates, rotated keys, delivery proofs, changed prices, test
    clocks that move over calls in flight. CI lives through hundreds more (.ci/run). Something must happen: an idle
    world is always right."""
    seed = 21
    plan = drawn_plan(seed)
    outcome = live(plan)
    again = f"python -m tests.simulation --seed {seed} --trace /tmp/trace.txt"
    assert not outcome.faults, "\n".join((*outcome.faults, again))
    assert outcome.hours > 24
    done = outcome.counts
    wanted = ("payments", "refunds at banks", "payouts", "webhooks", "exchanges", "applicants", "subscriptions")
    assert min(done[name] for name in (*wanted, "handovers")) > 0, done
    assert (done["twice at once"] > 0) is (plan.haste > 0), done
    assert done["leaps"] >= sum(len(rehearsal.leaps) for rehearsal in plan.rehearsals), done


def test_account_that_moves_to_another_cell_and_back_loses_nothing() -> None:
    """Both moves die at one of their commits, and are repeated (journeys.py)."""
    plan = drawn_plan(24, orders=3)
    assert max(plan.journeys[0].killed_at) < 100
    outcome = live(plan)
    assert not outcome.faults, "\n".join(outcome.faults)
    assert (outcome.counts["journeys"], min(outcome.counts[name] for name in ("payments", "subscriptions"))) > (1, 0)


def test_a_test_clock_passes_over_calls_that_are_under_way() -> None:
    """A call in flight finishes by the clock's new time, and no other call does. A process stops after one of the first
    steps of a payment, another process moves the clock, and the first one continues before the worker. The test notices
    two planted faults whose seeds change with the code's steps (mutants/former.py): money that arrives too late before
    any poll, and an event that has the time at which its call began."""
    rehearsals, blows = list[Rehearsal](), list[Blow]()
    for number in range(40):
        at = 60.0 * (number + 1)
        trials = (Trial(after=1.0, kopecks=30_00, outcome="paid"),) * 3
        leap = Leap(after=1.3, seconds=8 * 3600)
        rehearsals.append(Rehearsal(number=number, at=at, merchant=number % 3, trials=trials, leaps=(leap,)))
        blows += [
            # Blows come up to 0.27 s after their moments (oddities.py).
            Blow(at=at + 0.7, kind=Problem.STOP, whom="api0", seconds=20.0, steps=number + 1),
            Blow(at=at + 1.0, kind=Problem.APART, whom="api0", seconds=20.0),
            Blow(at=at + 20.6, kind=Problem.STOP, whom="worker0", seconds=1.0),
        ]
    outcome = live(Plan(seed=1, apis=2, workers=1, rehearsals=tuple(rehearsals), blows=tuple(blows)))
    assert not outcome.faults, "\n".join(outcome.faults)
    assert outcome.counts["passed over"] > 0


def test_the_same_seed_is_the_same_world_byte_for_byte(tmp_path: Path) -> None:
    """Its rows, too, in another process whose dictionaries of text differ."""
    seed, file = 21, tmp_path / "trace"
    here = live(drawn_plan(seed, orders=2), keeps=True)
    program = (
        "import sys; from pathlib import Path; from tests.simulation.world import live; "
        "from tests.simulation.drawing import drawn_plan; "
        f"lived = live(drawn_plan({seed}, orders=2), keeps=True); "
        "Path(sys.argv[1]).write_text('\\n'.join((*lived.lines, lived.digest, lived.database)), 'utf-8')"
    )
    environ = {**os.environ, "PYTHONHASHSEED": "3", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program, str(file)], cwd=ROOT, env=environ, check=True, timeout=300)
    assert file.read_text("utf-8") == "\n".join((*here.lines, here.digest, here.database))
    assert len(here.lines) > 100
    assert here.digest != live(drawn_plan(2, orders=1)).digest, "another seed is another world"


def test_a_crash_at_some_steps_of_a_story() -> None:
    """Each step is a world of its own; `--sweep` lives through all of them."""
    plans = [*swept(100, every=70)]
    outcomes = [live(plan) for plan in (*plans[::31], *paired(1, 100))]
    assert not [outcome.faults for outcome in outcomes if outcome.faults]
    assert all(outcome.counts["crashes"] > 0 for outcome in outcomes)
    assert len({outcome.digest for outcome in outcomes}) == len(outcomes)


def test_nothing_keeps_a_world_that_has_ended() -> None:
    """Thousands live in one process, after one another."""
    plan = drawn_plan(2, orders=1)
    live(msgspec.structs.replace(plan, weather=Weather(storage_lost=0.05, provider_lost=0.05, request_lost=0.05)))
    live([*swept(31, ["payment"])][30])  # its API process is killed while it handles a notification
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is World]
