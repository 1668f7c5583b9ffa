"""A failing plan is shrunk to its necessary parts (shrinking.py), and runs again from its file."""

import msgspec

from tests.simulation.drawing import drawn_plan
from tests.simulation.plan import Plan, Problem
from tests.simulation.shrinking import shortest

SEED = next(
    seed for seed in range(1000) if len(drawn_plan(seed).blows) > 4 and drawn_plan(seed).weather.storage_unanswered
)


def test_shrinking_drops_all_that_the_failure_does_not_need() -> None:
    def fails(plan: Plan) -> bool:
        numbers = {order.number for order in plan.orders}
        return {3, 11} <= numbers and plan.weather.storage_unanswered > 0 and len(plan.blows) >= 2

    short = shortest(drawn_plan(SEED), fails)
    assert [order.number for order in short.orders] == [3, 11]
    assert [bool(order.returns) for order in short.orders] == [False, False]
    assert len(short.blows) == 2
    assert {kind for kind in short.weather.__struct_fields__ if getattr(short.weather, kind)} == {"storage_unanswered"}
    assert (short.apis, short.workers, short.skews, short.shuffled) == (1, 1, (), False)


def test_shrinking_keeps_only_the_needed_parts_of_a_rehearsal() -> None:
    def fails(plan: Plan) -> bool:
        return any(rehearsal.leaps for rehearsal in plan.rehearsals)

    plan = next(plan for plan in map(drawn_plan, range(100)) if fails(plan) and len(plan.rehearsals) > 1)
    short = shortest(plan, fails)
    assert [(bool(each.leaps), each.trials, each.subscribes) for each in short.rehearsals] == [(True, (), False)]
    assert (short.orders, short.handovers, short.blows) == ((), (), ())


def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    plan = drawn_plan(SEED)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_seed_draws_the_same_plan_and_all_troubles_are_drawn() -> None:
    assert drawn_plan(7) == drawn_plan(7)
    drawn = [blow.kind for seed in range(60) for blow in drawn_plan(seed).blows]
    assert set(drawn) == set(Problem)
