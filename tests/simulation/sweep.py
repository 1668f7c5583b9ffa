"""Short stories, each run once for every step at which a process can be killed. They find systematically the crashes
that random worlds find rarely.

In each story one thing happens, without other faults. The API or the worker dies at its n-th step after a moment of the
story, and is restarted. With pairs, two such deaths happen in one story, at moments and steps drawn from a seed.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tests.simulation.applicant_plans import Applicant
from tests.simulation.clock_plans import Leap, Rehearsal, Trial
from tests.simulation.plan import (
    CALENDAR,
    MIDNIGHT,
    MORNING,
    WINDOW_OPENS,
    Blow,
    Membership,
    Order,
    Payer,
    Plan,
    Problem,
    Return,
)
from tests.simulation.proof_plans import Handover, Sent, Submission
from tests.simulation.swap_plans import Sending, Swap
from tests.simulation.verifier import Verdict
from tests.simulation.weather import Weather

_BEGINS = 60.0
_LEAPS = 100.0
_SETTLES = MORNING[0] + 360.0
_POLLS = 0.3 * 3600
"""Time of the operators' first visit (operators.py)."""


@dataclass(frozen=True)
class Story:
    """A world without faults, and the moments after which something may die, in seconds."""

    plan: Plan
    moments: tuple[float, ...]


def _order(payer: Payer = Payer.PAYS, *returns: Return, merchant: int = 0, doubled: bool = False) -> Order:
    return Order(
        number=0,
        at=_BEGINS,
        merchant=merchant,
        kopecks=100_00,
        payer=payer,
        pays_after=1.0,
        returns=returns,
        doubled=doubled,
    )


def _member(merchant: int, opens: float) -> Membership:
    return Membership(
        number=0,
        at=300.0,
        merchant=merchant,
        kopecks=490_00,
        takes_first=True,
        confirms_after=1.0,
        charges=(opens,),
    )


def _swap(*sendings: Sending, takes_usdt: bool) -> Swap:
    return Swap(
        number=0, at=_BEGINS, merchant=0, takes_usdt=takes_usdt, amount=100 if takes_usdt else 5000, sendings=sendings
    )


def _applicant(*verdicts: Verdict, by_page: bool) -> Applicant:
    return Applicant(number=0, at=_BEGINS, merchant=1, by_page=by_page, verdicts=verdicts, fills_after=30.0)


def _handover(number: int, of: int) -> Handover:
    """Return a handover whose merchant submits the transaction of handover `of`."""
    sent = Sent(network="TRC20", after=30.0, moves=(1000,))
    submission = Submission(after=1.0, handover=of, sent=0, doubled=True)
    return Handover(
        number=number,
        at=_BEGINS,
        merchant=0,
        kopecks=20_000_00,
        pays_after=1.0,
        once_settled=False,
        sent=(sent,),
        submissions=(submission,),
    )


def _rehearsal() -> Rehearsal:
    trials = Trial(after=1.0, kopecks=100_00), Trial(after=2.0, kopecks=200_00, outcome="paid", returned=True)
    leap = Leap(after=_LEAPS - _BEGINS, seconds=2 * 86_400, rival=3600)
    return Rehearsal(number=0, at=_BEGINS, merchant=0, trials=trials, leaps=(leap,))


def _plan(*orders: Order, merchants: int = 1, **more: object) -> Plan:
    plan = Plan(seed=1, apis=1, workers=1, seldom=True, merchants=merchants, orders=orders)
    return msgspec.structs.replace(plan, **more)


_PARTS = Return(1.0, 40), Return(2.0, 60), Return(3.0, 20, cancels_after=1.0)
STORIES: Mapping[str, Story] = {
    "payment": Story(_plan(_order()), (_BEGINS,)),
    "payment-doubled": Story(_plan(_order(doubled=True)), (_BEGINS,)),
    "payment-late": Story(_plan(_order(Payer.LATE)), (_BEGINS, _BEGINS + 895.0)),
    "mismatch": Story(_plan(_order(Payer.OTHER)), (_BEGINS, _POLLS)),
    "suspense-return": Story(_plan(_order(Payer.TWICE)), (_BEGINS, _POLLS)),
    "refund": Story(_plan(_order(Payer.PAYS, Return(1.0, 100))), (_BEGINS,)),
    "refunds-in-parts": Story(
        _plan(
            _order(Payer.PAYS, Return(1.0, 40), Return(2.0, 60), Return(3.0, 20, cancels_after=1.0), merchant=2),
            merchants=3,
        ),
        (_BEGINS, _POLLS),
    ),
    "refund-reversed": Story(_plan(_order(Payer.PAYS, Return(1.0, 50)), reverses_refunds=1.0), (_BEGINS, _SETTLES)),
    "settlement": Story(_plan(_order()), (_SETTLES,)),
    "payout-dropped": Story(_plan(_order(), weather=Weather(dropped=1.0)), (_SETTLES,)),
    "subscription-window": Story(_plan(memberships=(_member(0, WINDOW_OPENS),)), (300.0, WINDOW_OPENS)),
    "subscription-calendar": Story(
        _plan(memberships=(_member(CALENDAR, MIDNIGHT),), merchants=CALENDAR + 1), (300.0, MIDNIGHT)
    ),
    "exchange-to-rub": Story(_plan(swaps=(_swap(Sending(after=5.0, percent=100), takes_usdt=True),)), (_BEGINS,)),
    "exchange-to-usdt": Story(_plan(swaps=(_swap(Sending(after=5.0, percent=100), takes_usdt=False),)), (_BEGINS,)),
    "exchange-in-parts": Story(
        _plan(swaps=(_swap(Sending(after=5.0, percent=40), Sending(after=20.0, percent=80), takes_usdt=True),)),
        (_BEGINS, _BEGINS + 20.0),
    ),
    "delivery-proof": Story(_plan(handovers=(_handover(0, 0), _handover(1, 0))), (_BEGINS, _BEGINS + 120.0, _SETTLES)),
    "test-clock": Story(_plan(rehearsals=(_rehearsal(),)), (_BEGINS, _LEAPS)),
    "kyc": Story(_plan(applicants=(_applicant(Verdict.RED, Verdict.GREEN, by_page=False),), merchants=2), (_BEGINS,)),
    "kyc-page": Story(_plan(applicants=(_applicant(Verdict.GREEN, by_page=True),), merchants=2), (_BEGINS,)),
}
"""Stories by name, each with the moments from which the steps of a crash are counted."""


def swept(steps: int, names: Sequence[str] = (), *, every: int = 1) -> Iterator[Plan]:
    """The stories of these names, or all, with a crash at each of the first `steps` steps of each process after each
    moment."""
    for name in names or STORIES:
        story = STORIES[name]
        for at in story.moments:
            for whom in story.plan.processes:
                for step in range(0, steps, every):
                    yield msgspec.structs.replace(story.plan, blows=(_crash(at, whom, step),))


def paired(count: int, steps: int, names: Sequence[str] = ()) -> Iterator[Plan]:
    """So many times one of the stories with two crashes, each at one of the first `steps` steps after a moment; the
    second may strike while the first one's work is taken up again."""
    for number in range(count):
        chance = random.Random(f"pair/{number}")
        story = STORIES[chance.choice(list(names or STORIES))]
        first = chance.choice(story.moments)
        second = chance.choice((first, first + 3.0, first + 8.0, *story.moments))
        blows = (_drawn(first, story, steps, chance), _drawn(second, story, steps, chance))
        yield msgspec.structs.replace(story.plan, blows=blows)


def _drawn(at: float, story: Story, steps: int, chance: random.Random) -> Blow:
    return _crash(at, chance.choice(story.plan.processes), chance.randrange(steps))


def _crash(at: float, whom: str, step: int) -> Blow:
    return Blow(at=at, kind=Problem.CRASH, whom=whom, seconds=3.0, steps=step)
