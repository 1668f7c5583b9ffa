"""Worlds with one odd condition and no other faults, so that unnecessary waiting shows: unreadable rows, few slots
while a bank hangs, few permits while most receivers hang, a machine whose clock is set; and faults of processes just
when payouts are signed or a test clock leaps. Each has its own random source."""

import random

import msgspec

from tests.simulation.clock_plans import rushed
from tests.simulation.plan import EVENING, SETTLES, Blow, Order, Payer, Plan, Problem
from tests.simulation.weather import FINE

CROWD = 10
"""Merchants with hanging receivers, beside the one that every such world has."""
AHEAD = 1200.0
"""Seconds by which a machine's clock is ahead, for a while."""


def with_oddities(plan: Plan) -> Plan:
    """Return the plan of a seed, with unusual events added."""
    chance = random.Random(f"oddities/{plan.seed}")
    if plan.victim is not None:
        others = [str(number) for number in range(plan.merchants) if number != plan.victim]
        spoilt = _blow(Problem.EVENT_SPOILT, chance.uniform(*EVENING), chance.choice(others))
        plan = msgspec.structs.replace(plan, slots=2, blows=(*plan.blows, _or_unread(plan, spoilt)))
        return _with_crowd(plan, chance) if chance.random() < 0.5 else plan
    if chance.random() < 0.125:
        return _on_one_machine(plan, chance)
    plan = _with_rushes(plan, random.Random(f"rushes/{plan.seed}"))
    plan = _with_bad_payday(plan, random.Random(f"payday/{plan.seed}"))
    if random.Random(f"haste/{plan.seed}").random() < 0.25:
        plan = msgspec.structs.replace(plan, haste=0.5)
    if chance.random() < 0.25:
        breaks = _blow(Problem.CLAIM_BREAKS, chance.uniform(*EVENING), "worker0")
        return msgspec.structs.replace(plan, blows=(*plan.blows, breaks))
    return plan


def _or_unread(plan: Plan, spoilt: Blow) -> Blow:
    """In a third of them it is a delivery, and one of the settlement: hardly anything asks for that receiver again."""
    chance = random.Random(f"left out/{plan.seed}")
    if chance.random() < 2 / 3:
        return spoilt
    return _blow(Problem.DELIVERY_SPOILT, SETTLES - chance.uniform(1.0, 60.0), spoilt.whom)


def _with_bad_payday(plan: Plan, chance: random.Random) -> Plan:
    """In a quarter of them payouts are signed while workers die, stand still and cannot write; and the wallet may be
    slow, and not remember."""
    if chance.random() >= 0.25:
        return plan
    workers = [name for name in plan.processes if name.startswith("worker")]
    lasts = {Problem.STOP: (9.0, 30.0), Problem.DISK_FULL: (0.1, 2.0)}
    kinds = (Problem.CRASH, Problem.STOP, Problem.DISK_FULL, Problem.DISK_FULL, Problem.STORAGE_FAILS)
    blows = tuple(
        _blow(
            kind, SETTLES + chance.uniform(0.5, 15.0), chance.choice(workers), chance.uniform(*lasts.get(kind, (1, 9)))
        )
        for kind in kinds
        for _ in range(chance.choice((0, 1, 2)))
    )
    wallet_finds, signs_for = chance.random() < 0.5, chance.choice((0.0, 10.0))
    if chance.random() < 0.5:
        # Longer than a lease: another worker has it signed meanwhile.
        blows += (_blow(Problem.SIGNER_STOPS, SETTLES - 1.0, "", chance.uniform(9.0, 30.0)),)
    return msgspec.structs.replace(plan, blows=(*plan.blows, *blows), wallet_finds=wallet_finds, signs_for=signs_for)


def _with_rushes(plan: Plan, chance: random.Random) -> Plan:
    """Where one process can advance a test clock while another one stands still, half of the first leaps pass over
    calls that the latter has in hand. Workers may stand still just when it goes on, so that merchants are quicker."""
    rehearsals, blows = list(plan.rehearsals), list(plan.blows)
    workers = [name for name in plan.processes if name.startswith("worker")]
    for number, rehearsal in enumerate(plan.rehearsals):
        if plan.apis == 1 or not rehearsal.leaps or chance.random() < 0.5:
            continue
        after, seconds = rehearsal.leaps[0].after - 0.3, chance.uniform(8.0, 25.0)
        rehearsals[number] = rushed(rehearsal, after, chance)
        # A world begins with wishes, and sets its blows up to 0.27 s later, from when on their moments count.
        at, steps = rehearsal.at + after, chance.randint(5, 80)
        blows.append(msgspec.structs.replace(_blow(Problem.STOP, at - 0.27, "api0", seconds), steps=steps))
        blows.append(_blow(Problem.APART, at, "api0", seconds))
        if chance.random() < 0.5:
            blows += [_blow(Problem.STOP, at + seconds - 0.1, each, 0.5) for each in workers]
    return msgspec.structs.replace(plan, rehearsals=tuple(rehearsals), blows=tuple(blows))


def _with_crowd(plan: Plan, chance: random.Random) -> Plan:
    """Add merchants with hanging receivers, more than there are permits, and events for these and for receivers that
    answer at once."""
    crowd = range(plan.merchants, plan.merchants + CROWD)
    others = [number for number in range(plan.merchants) if number != plan.victim]
    orders = tuple(
        Order(
            number=1000 + number,
            at=1500.0,
            merchant=merchant,
            kopecks=30_00,
            payer=Payer.PAYS,
            pays_after=round(chance.uniform(1.0, 30.0), 3),
        )
        for number, merchant in enumerate([*crowd, *crowd, *others, *others])
    )
    hang = tuple(_blow(Problem.RECEIVER_HANGS, 30.0, str(merchant), 4000.0) for merchant in crowd)
    return msgspec.structs.replace(
        plan,
        merchants=plan.merchants + CROWD,
        crowd=CROWD,
        workers=1,  # the only worker, so its permits are all there are
        permits=10,  # two are reserved for good receivers; a receiver that hangs since holds one
        orders=(*plan.orders, *orders),
        blows=(*plan.blows, *hang),
    )


def _on_one_machine(plan: Plan, chance: random.Random) -> Plan:
    """API, worker and database go by one clock. It is set while there is much to do, receivers hang, and the worker is
    killed; and set back."""
    plan = msgspec.structs.replace(plan, machine=True, apis=1, workers=1, weather=FINE, skews=())
    blows: list[Blow] = []
    for burst in (0.0, 600.0, 1200.0):
        began = EVENING[0] + burst - 5.0
        blows += [_blow(Problem.RECEIVER_HANGS, began, str(each), 30.0) for each in range(plan.merchants)]
        blows += [
            _blow(Problem.SET_CLOCK, began, "machine", AHEAD),
            _blow(Problem.CRASH, began + chance.uniform(5.0, 30.0), "worker0", chance.uniform(1.0, 20.0)),
            _blow(Problem.SET_CLOCK, began + chance.uniform(15.0, 45.0), "machine", -AHEAD),
        ]
    return msgspec.structs.replace(plan, blows=tuple(blows))


def _blow(kind: Problem, at: float, whom: str, seconds: float = 0.0) -> Blow:
    return Blow(at=round(at, 3), kind=kind, whom=whom, seconds=round(seconds, 3))
