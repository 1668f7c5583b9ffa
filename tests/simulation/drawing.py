"""The plan of a seed: random events, most of them timed to coincide with others."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from tests.simulation.applicant_plans import drawn_applicant
from tests.simulation.clock_plans import Rehearsal, drawn_rehearsals
from tests.simulation.journey_plans import Journey, drawn_journeys
from tests.simulation.oddities import with_oddities
from tests.simulation.plan import (
    CALENDAR,
    EVENING,
    FAULTS_END,
    HOUR,
    MIDNIGHT,
    MORNING,
    ODD,
    TIGHT,
    WINDOW_OPENS,
    Blow,
    Membership,
    Order,
    Payer,
    Plan,
    Problem,
    Return,
)
from tests.simulation.proof_plans import drawn_handovers
from tests.simulation.rotation_plans import drawn_rotation
from tests.simulation.swap_plans import drawn_swap
from tests.simulation.weather import FINE, drawn_weather

_AT_ONCE = 3000
"""Orders that are refunded at once are numbered from it."""


def drawn_plan(seed: int, *, orders: int = 20) -> Plan:
    """The plan of a seed."""
    chance = random.Random(f"plan/{seed}")
    plan = Plan(
        seed=seed,
        apis=chance.choice((1, 2, 2, 3)),
        workers=chance.choice((1, 2, 2, 3)),
        merchants=3,
        shuffled=chance.random() < 0.5,
        weather=drawn_weather(chance),
        refuses_invoices=chance.choice((0.0, 0.0, 0.1, 0.5)),
        fails_refunds=chance.choice((0.0, 0.2)),
        reverses_refunds=chance.choice((0.0, 0.3)),
        fails_charges=chance.choice((0.0, 0.5)),
    )
    skews = tuple(round(chance.uniform(-2, 2), 3) for _ in plan.processes) if chance.random() < 0.7 else ()
    plan = msgspec.structs.replace(
        plan,
        skews=skews,
        orders=tuple(_order(number, plan, chance) for number in range(orders)),
        memberships=tuple(_membership(number, plan, chance) for number in range(orders // 6)),
        blows=tuple(_blow(plan, chance) for _ in range(chance.choice((0, 4, 8, 14)))),
    )
    plan = _with_refunds_at_once(_with_clients(plan), random.Random(f"tight/{seed}"))
    return with_oddities(_with_one_victim(plan, random.Random(f"victim/{seed}")))


def _with_refunds_at_once(plan: Plan, chance: random.Random) -> Plan:
    """In a quarter of worlds refunds of settled payments are asked for at one moment, when the merchant's money is paid
    out and its overdraft is enough for one of them."""
    if chance.random() >= 0.25:
        return plan
    at = round(MORNING[1] + chance.uniform(0.0, 1800.0), 3)
    orders = tuple(
        Order(
            number=_AT_ONCE + number,
            at=round(chance.uniform(*EVENING), 3),
            merchant=TIGHT,
            kopecks=100_00,
            payer=Payer.PAYS,
            pays_after=round(chance.uniform(1.0, 60.0), 3),
            returns=(Return(0.0, 100, at=at),),
        )
        for number in range(4)
    )
    return msgspec.structs.replace(plan, orders=(*plan.orders, *orders), overdraft="1.5")


def _with_clients(plan: Plan) -> Plan:
    """Add the later features of worlds. Each has its own random source, so that a new feature leaves the rest of a plan
    unchanged."""
    names = ("swaps", "applicants", "mandates", "rotations", "handovers", "rehearsals", "second thoughts", "prices")
    desk, edge, balance_type, safe, till, stage, mind, tag = (random.Random(f"{name}/{plan.seed}") for name in names)
    rehearsals = drawn_rehearsals(plan.merchants, _moment, stage)
    plan = msgspec.structs.replace(
        plan,
        orders=tuple(_with_second_thoughts(each, mind) for each in plan.orders),
        memberships=tuple(_repriced(_with_losses(each, balance_type), tag) for each in plan.memberships),
        swaps=tuple(drawn_swap(number, plan.merchants, _moment, desk) for number in range(desk.choice((0, 2, 3, 4)))),
        handovers=drawn_handovers(plan.merchants, EVENING, till),
        rehearsals=rehearsals,
        blows=(*plan.blows, *_chain_away(till), *_crashes_on_the_way(plan, rehearsals, stage)),
        rotations=tuple(
            drawn_rotation(number, plan.merchants, _moment, safe)
            for number in safe.sample(range(6), safe.choice((0, 1, 3)))
        ),
        endpoints=tuple(range(plan.merchants)[: safe.choice((0, 0, 1))]),
        fails_remittances=desk.choice((0.0, 0.3)),
        applicants=tuple(drawn_applicant(number, (1, 2), _moment, edge) for number in range(edge.choice((0, 1, 2, 3)))),
    )
    return msgspec.structs.replace(plan, journeys=tuple(_journeys(plan, random.Random(f"journeys/{plan.seed}"))))


def _journeys(plan: Plan, chance: random.Random) -> Iterator[Journey]:
    """Move accounts that no operator changes in the same world."""
    others = {
        *(each.merchant for each in plan.rotations),
        *(each.merchant for each in plan.handovers),
        *(each.merchant for each in plan.rehearsals),
        *(each.merchant for each in plan.applicants),
    }
    free = [number for number in range(plan.merchants) if number not in others and number not in plan.endpoints]
    yield from drawn_journeys(free, _moment, chance)


def _chain_away(chance: random.Random) -> tuple[Blow, ...]:
    if chance.random() >= 0.3:
        return ()
    seconds = round(chance.choice((chance.uniform(1, 100), chance.uniform(100, 4000))), 3)
    return (Blow(at=_moment(chance), kind=Problem.CHAIN_AWAY, seconds=seconds),)


def _crashes_on_the_way(plan: Plan, rehearsals: Sequence[Rehearsal], chance: random.Random) -> Iterator[Blow]:
    """A process that takes requests is killed about when a test clock is moved."""
    for rehearsal in rehearsals:
        moment = rehearsal.at
        for leap in rehearsal.leaps:
            moment = round(moment + leap.after, 3)
            if chance.random() < 0.3:
                whom, seconds = f"api{chance.randrange(plan.apis)}", round(chance.uniform(0.1, 20), 3)
                yield Blow(at=moment, kind=Problem.CRASH, whom=whom, seconds=seconds, steps=chance.randint(0, 400))


def _with_one_victim(plan: Plan, chance: random.Random) -> Plan:
    """In one of eight worlds the only faults are one merchant's receiver and rows, and a bank that hangs."""
    if chance.random() >= 0.125:
        return plan
    victim = chance.randrange(plan.merchants)
    rows = tuple(
        Blow(at=_moment(chance), kind=Problem.ROW_DAMAGED, whom=str(victim), seconds=9000.0)
        for _ in range(chance.choice((0, 3)))
    )
    hangs = Blow(at=30.0, kind=Problem.RECEIVER_HANGS, whom=str(victim), seconds=chance.choice((3000.0, FAULTS_END)))
    bank = Blow(at=_moment(chance), kind=Problem.BANK_HANGS, whom=chance.choice(("north", "south")), seconds=1200.0)
    return msgspec.structs.replace(plan, victim=victim, weather=FINE, skews=(), blows=(hangs, bank, *rows))


def _moment(chance: random.Random) -> float:
    return round(chance.uniform(*(EVENING if chance.random() < 0.6 else MORNING)), 3)


def _order(number: int, plan: Plan, chance: random.Random) -> Order:
    payer = chance.choice((Payer.PAYS, Payer.PAYS, Payer.PAYS, Payer.PAYS, *Payer))
    # Some at the same moment as others, to provoke races between them.
    at = _moment(chance) if chance.random() < 0.6 else round(EVENING[0] + chance.choice((0, 600, 1200)), 3)
    return Order(
        number=number,
        at=at,
        merchant=chance.randrange(plan.merchants),
        kopecks=chance.choice((30_00, 100_00, chance.randint(30_00, 500_000_00))),
        payer=payer,
        pays_after=round(chance.choice((chance.uniform(0, 3), chance.uniform(3, 800))), 3),
        returns=tuple(_return(chance) for _ in range(chance.choice((0, 0, 1, 1, 2, 4)))),
        doubled=chance.random() < 0.2,
    )


def _membership(number: int, plan: Plan, chance: random.Random) -> Membership:
    midnight, morning = WINDOW_OPENS, 13 * HOUR
    moments = [
        midnight + chance.choice((-1.0, 0.0, 0.0, 1.0, chance.uniform(0, 900))),
        midnight + chance.choice((0.0, chance.uniform(0, 900))),
        chance.choice((morning, 2 * midnight)) + chance.uniform(0, 300),
    ]
    return Membership(
        number=number,
        at=round(chance.uniform(60.0, 1500.0), 3),
        merchant=chance.randrange(plan.merchants),
        kopecks=chance.choice((30_00, 490_00)),
        takes_first=chance.random() < 0.7,
        confirms_after=round(chance.uniform(1, 300), 3),
        charges=tuple(round(each, 3) for each in moments),
        cancels_at=round(midnight + chance.uniform(-5, 300), 3) if chance.random() < 0.3 else None,
    )


def _with_second_thoughts(order: Order, chance: random.Random) -> Order:
    """Some refunds are cancelled too late, and some are requested when the payment is settled and paid out."""
    returns = tuple(
        each if chance.random() < 0.8 or each.cancels_after else msgspec.structs.replace(each, cancels_late=True)
        for each in order.returns
    )
    settled = MORNING[1] + chance.uniform(0.0, 1800.0) - order.at
    if chance.random() < 0.1:
        returns = (*returns, Return(after=round(settled, 3), percent=chance.choice((50, 100))))
    return msgspec.structs.replace(order, returns=returns)


def _with_losses(member: Membership, chance: random.Random) -> Membership:
    """Lose the mandate in a third of cases. In the calendar scheme a period begins at midnight UTC."""
    later = MIDNIGHT - WINDOW_OPENS if member.merchant == CALENDAR else 0.0
    member = msgspec.structs.replace(
        member,
        charges=tuple(at + later for at in member.charges),
        cancels_at=None if member.cancels_at is None else member.cancels_at + later,
    )
    if chance.random() >= 0.33:
        return member
    return msgspec.structs.replace(
        member,
        loses_at=round(
            chance.choice((chance.uniform(600, 3000), WINDOW_OPENS + later, chance.uniform(0.5, 12) * HOUR)), 3
        ),
        regains_after=round(chance.uniform(1, 9000), 3) if chance.random() < 0.4 else None,
        rebinds=chance.random() < 0.6,
    )


def _repriced(member: Membership, chance: random.Random) -> Membership:
    """In a third of cases the amount changes while the payer binds: before the page, with a QR out, or just after."""
    if chance.random() >= 0.33:
        return member
    return msgspec.structs.replace(
        member,
        reprices_after=round(member.confirms_after + chance.uniform(-30.0, 150.0), 3),
        reprices_to=chance.choice((20_00, 700_00)),
    )


def _return(chance: random.Random) -> Return:
    until_morning = 13 * HOUR
    return Return(
        round(chance.choice((0.0, chance.uniform(0, 5), chance.uniform(5, 3000), chance.uniform(0, until_morning))), 3),
        chance.choice((1, 20, 50, 100, 100, 120)),
        round(chance.uniform(0, 3), 3) if chance.random() < 0.15 else None,
    )


def _blow(plan: Plan, chance: random.Random) -> Blow:
    kind = chance.choice((Problem.CRASH, Problem.CRASH, Problem.CRASH, *(each for each in Problem if each not in ODD)))
    match kind:
        case Problem.BANK_AWAY | Problem.BANK_HANGS:
            whom = chance.choice(("north", "south"))
        case Problem.RECEIVER_AWAY | Problem.RECEIVER_HANGS | Problem.ROW_DAMAGED:
            whom = str(chance.randrange(plan.merchants))
        case _:
            whom = chance.choice(plan.processes)
    seconds = {
        Problem.CRASH: chance.uniform(0.1, 20),
        Problem.STOP: chance.choice((chance.uniform(0.5, 7), chance.uniform(9, 60))),
        Problem.SET_CLOCK: chance.choice((-1, 1)) * chance.choice((3, 30, 300)),
    }.get(kind, chance.choice((chance.uniform(1, 30), chance.uniform(60, 900))))
    # Most faults happen while most work is done.
    at = (
        _moment(chance) if chance.random() < 0.5 else EVENING[0] + chance.choice((0, 600, 1200)) + chance.uniform(0, 30)
    )
    return Blow(
        at=round(at, 3),
        kind=kind,
        whom=whom,
        seconds=round(seconds, 3),
        steps=chance.randint(0, 400) if kind is Problem.CRASH else 0,
    )
