"""The end of a refund that waits for money and gets none (docs/refunds.md "The money")."""

from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.refunds.refunds import PendingReason, Refund, RefundTrigger, gives_up_at, is_given_up, waits_for_money
from ..holding import holds_back
from ..operations.engine import begin
from ..schedule import reschedule
from .progress import REFUNDS
from .steps import move

_HELD = timedelta(hours=1)
"""A copy's balance may lack what was settled since: until somebody compared it, nobody is told that there is none."""


async def give_up(ports: Ports, job: Job) -> None:
    """The job: try the refund a last time, since money may have come back otherwise than by a settlement, and reject it
    with its event where it still waits and its time is over."""
    await begin(REFUNDS, ports, job.argument)

    async def next_due(unit: Unit) -> datetime | None:
        refund, now = await unit[Refund].get(job.argument), ports.clock.now()
        if refund is None or not waits_for_money(refund):
            return None
        if not is_given_up(refund, now):
            return gives_up_at(refund)
        if await holds_back(unit, refund.mode):
            return now + _HELD
        await move(ports, unit, refund, (RefundTrigger.REJECTED,), failure=PendingReason.INSUFFICIENT_BALANCE.value)
        return None

    await reschedule(ports, job, next_due)
