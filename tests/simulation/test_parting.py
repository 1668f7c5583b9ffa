"""A world forked at a crash equals the one that its plan describes (parting.py)."""

import os
from itertools import pairwise
from typing import Any

import pytest

from tests.simulation import checkers
from tests.simulation.parting import live_together, together
from tests.simulation.plan import Plan
from tests.simulation.sweep import swept
from tests.simulation.world import World, live


def _plans(story: str, whom: str, *steps: int) -> list[Plan]:
    """Crashes after the first moment of a story."""
    found = [plan for plan in swept(max(steps) + 1, [story]) if plan.blows[0].whom == whom]
    return [found[step] for step in steps]


@pytest.mark.parametrize(("whom", "steps"), [("api0", (0, 37, 90)), ("worker0", (60,))])
def test_a_forked_world_is_the_same_as_one_of_its_own(whom: str, steps: tuple[int, ...]) -> None:
    plans = _plans("refund", whom, *steps)
    (group,) = together(plans)
    outcomes = [outcome for outcome, _ in live_together(group)]
    assert outcomes == [live(plan) for plan in plans]
    assert [outcome.counts["crashes"] for outcome in outcomes] == [1] * len(plans)


def _until_killed(plan: Plan) -> list[str]:
    lines = live(plan, keeps=True).lines
    (last,) = [number for number, line in enumerate(lines) if line.endswith("is killed")]
    return [*lines[: last + 1]]


def test_skipped_plan_was_the_same_until_the_process_was_killed() -> None:
    """Compares all messages and events until then, and the moment."""
    told = live_together(_plans("payment", "api0", *range(16)))
    outcomes = sorted((outcome for outcome, _ in told), key=lambda outcome: outcome.plan.blows[0].steps)
    assert [outcome.plan.blows[0].steps for outcome in outcomes] == [*range(16)]
    pairs = [pair for pair in pairwise(outcomes) if pair[1].is_alike]
    assert len(pairs) > 4
    for before, alike in pairs[::6]:
        assert _until_killed(before.plan) == _until_killed(alike.plan)
        assert not live(alike.plan).faults


def test_steps_that_never_come_are_one_world_without_a_crash() -> None:
    plans = _plans("settlement", "api0", 0, 2000, 3000)
    crashed, alike, lived = [outcome for outcome, _ in live_together(plans)]
    assert crashed.counts["crashes"] == 1
    assert (alike.plan, alike.is_alike, alike.hours) == (plans[1], True, 0.0)
    assert lived == live(plans[2])
    assert lived.counts["crashes"] == 0


def test_fork_reports_the_faults_of_its_world(monkeypatch: pytest.MonkeyPatch) -> None:
    async def judge(world: World, _: Any) -> None:
        world.fault(f"{world.counts['crashes']} crashes")

    monkeypatch.setattr(checkers, "judge", judge)
    told = live_together(_plans("payment", "worker0", 3, 30))
    assert [outcome.faults for outcome, _ in told] == [("1 crashes",)] * 2


def test_a_fork_that_says_nothing_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()

    async def judge(*_: Any) -> None:
        if os.getpid() != here:
            raise SystemExit(0)

    monkeypatch.setattr(checkers, "judge", judge)
    told = live_together(_plans("payment", "worker0", 3, 30))
    assert [outcome.faults for outcome, _ in told] == [("the process of this world ended without a word",), ()]


def test_only_what_differs_in_the_step_alone_is_lived_together() -> None:
    plans = [*swept(150, ["payment", "refund"])]
    groups = [*together(plans)]
    assert [len(group) for group in groups] == [100, 50] * 4
    assert [plan for group in groups for plan in group] == plans
