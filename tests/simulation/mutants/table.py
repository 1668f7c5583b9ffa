"""Realistic slips of the code, each of which a world must notice within 200 seeds (docs/reliability.md "Mutants").

It imports nothing of the package: what is mutated is loaded after it (trying.py)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.mutants.exchanging import CLIENTS, EXCHANGES
from tests.simulation.mutants.former import FORMER
from tests.simulation.mutants.money import LEDGER, PAYMENTS, REFUNDS, SETTLEMENT
from tests.simulation.mutants.recurring import SUBSCRIPTIONS
from tests.simulation.mutants.slips import Slip
from tests.simulation.mutants.testing import CLOCKS, PROOFS
from tests.simulation.mutants.work import JOBS, KEYS, WEBHOOKS

if TYPE_CHECKING:
    from tests.simulation.plan import Plan

ROOMS = (
    *(PAYMENTS, REFUNDS, SETTLEMENT, LEDGER, SUBSCRIPTIONS, EXCHANGES, CLIENTS),
    *(PROOFS, CLOCKS, KEYS, JOBS, WEBHOOKS, FORMER),
)

MUTANTS: dict[str, Slip] = {name: slip for room in ROOMS for name, slip in room.items()}
"""By what each does."""


def subject_of(name: str) -> "Callable[[Plan], bool]":
    """Whether what a mutant is about occurs in a plan: it does in all, if nothing else is known."""
    if name in EXCHANGES:
        return lambda plan: bool(plan.swaps)
    if name in CLIENTS:
        return lambda plan: bool(plan.applicants)
    if name in PROOFS:
        return lambda plan: bool(plan.handovers)
    if name in CLOCKS:
        return lambda plan: any(rehearsal.leaps for rehearsal in plan.rehearsals)
    if name in FORMER:
        return lambda plan: (
            plan.victim is not None or plan.machine or any(blow.kind == "claim breaks" for blow in plan.blows)
        )
    return lambda _: True
