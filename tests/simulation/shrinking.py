"""Shrink a failing plan to the shortest one that still fails: remove orders, problems and kinds of faults, in the
largest possible groups (delta debugging), until no removal is possible."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from tests.simulation.plan import Plan
from tests.simulation.weather import KINDS

T = TypeVar("T")
Fails = Callable[[Plan], bool]


def shortest(plan: Plan, fails: Fails) -> Plan:
    """Return the shortest failing plan found, starting from a failing one."""
    while True:
        shorter = _shorter(plan, fails)
        if shorter == plan:
            return plan
        plan = shorter


def _shorter(plan: Plan, fails: Fails) -> Plan:
    calm = plan
    for name in _PARTS:
        calm = _without(calm, name, fails)
    stormy = [kind for kind in KINDS if getattr(plan.weather, kind)]
    kinds = _fewest(stormy, lambda kinds: fails(_only(calm, kinds)))
    return _simpler(_only(calm, kinds), fails)


_PARTS = (
    "orders",
    "memberships",
    "swaps",
    "applicants",
    "handovers",
    "rehearsals",
    "rotations",
    "journeys",
    "endpoints",
    "blows",
)
"""The fields of a plan of which some may be left out."""


def _without(plan: Plan, name: str, fails: Fails) -> Plan:
    parts = getattr(plan, name)
    kept = _fewest(parts, lambda some: fails(msgspec.structs.replace(plan, **{name: tuple(some)})))
    return msgspec.structs.replace(plan, **{name: tuple(kept)})


def _only(plan: Plan, kinds: Sequence[str]) -> Plan:
    calm = {kind: 0.0 for kind in KINDS if kind not in kinds}
    return msgspec.structs.replace(plan, weather=msgspec.structs.replace(plan.weather, **calm))


def _simpler(plan: Plan, fails: Fails) -> Plan:
    """Return the plan without the single parts that the failure does not need."""
    for change in (
        {"skews": ()},
        {"shuffled": False},
        {"refuses_invoices": 0.0},
        {"fails_refunds": 0.0},
        {"reverses_refunds": 0.0},
        {"fails_charges": 0.0},
        {"fails_remittances": 0.0},
        {"apis": 1},
        {"workers": 1},
    ):
        less = msgspec.structs.replace(plan, **change)
        if less != plan and fails(less):
            plan = less
    for name, change in _LESS:
        for place, part in enumerate(getattr(plan, name)):
            parts = [*getattr(plan, name)]
            parts[place] = msgspec.structs.replace(part, **change)
            less = msgspec.structs.replace(plan, **{name: tuple(parts)})
            if less != plan and fails(less):
                plan = less
    return plan


_LESS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("orders", {"returns": (), "doubled": False}),
    ("handovers", {"returned_after": None}),
    ("handovers", {"submissions": ()}),
    ("rehearsals", {"leaps": ()}),
    ("rehearsals", {"trials": ()}),
    ("rehearsals", {"subscribes": False}),
)
"""Removable fields of a part, by the plan's field."""


def _fewest(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of them of which no piece can be left out."""
    kept, size = list(parts), len(parts)
    while size > 0:
        start = 0
        while start < len(kept):
            without = kept[:start] + kept[start + size :]
            if fails(without):
                kept = without
            else:
                start += size
        size //= 2
    return kept
