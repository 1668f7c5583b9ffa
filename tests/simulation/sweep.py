"""One short story, told once for each step at which a process can be killed: what luck finds seldom, this finds.

An order is paid, half of it is refunded, a member is bound and charged, and the next morning it is settled and paid
out; there are no other faults. The API or the worker dies at its n-th step after a moment of the story, and is started
again.
"""

from collections.abc import Iterator

import msgspec

from tests.simulation.plan import MORNING, WINDOW_OPENS, Blow, Membership, Order, Payer, Plan, Return, Trouble

MOMENTS = {
    "payment": 60.0,
    "binding": 300.0,
    "charge": WINDOW_OPENS,
    "settlement": MORNING[0] + 360.0,
}
"""When something begins, in seconds."""
_STORY = Plan(
    seed=1,
    apis=1,
    workers=1,
    merchants=1,
    orders=(
        Order(
            number=0,
            at=MOMENTS["payment"],
            merchant=0,
            kopecks=100_00,
            payer=Payer.PAYS,
            pays_after=1.0,
            returns=(Return(1.0, 50),),
        ),
    ),
    memberships=(
        Membership(
            number=0,
            at=MOMENTS["binding"],
            merchant=0,
            kopecks=490_00,
            takes_first=True,
            confirms_after=1.0,
            charges=(MOMENTS["charge"],),
        ),
    ),
)


def swept(steps: int, *, every: int = 1) -> Iterator[Plan]:
    """The story, with a crash at each of the first `steps` steps of each process after each moment."""
    for at in MOMENTS.values():
        for whom in _STORY.processes:
            for step in range(0, steps, every):
                blow = Blow(at=at, kind=Trouble.CRASH, whom=whom, seconds=3.0, steps=step)
                yield msgspec.structs.replace(_STORY, blows=(blow,))
