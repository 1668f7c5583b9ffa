"""The end of a refund that waits for money and gets none (docs/refunds.md "The money")."""

from datetime import datetime, timedelta

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.refunds.refunds import PendingReason, Refund, RefundTrigger, gives_up_at, is_given_up, waits_for_money
from ..common.quarantine import holds_back
from ..common.schedule import reschedule
from ..operations.engine import begin
from .progress import REFUNDS
from .steps import move

_LATER = timedelta(hours=1)
"""Pause while a refund cannot be judged: the installation is quarantined, so its balance may lack recent settlements,
or the bank does not say whether it executed the refund.
"""


async def give_up(ports: Ports, job: Job) -> None:
    """Try the refund a last time, since money may have come back without a settlement. Reject it, with its event, if it
    still waits and its time is over.

    In an installation that may have forgotten the refund's execution, the bank is polled first: an executed refund is
    never rejected.
    """
    ask = await _may_be_executed(ports, job.argument)
    begun = await begin(REFUNDS, ports, job.argument, ask=ask)

    async def next_due(unit: Unit) -> datetime | None:
        refund, now = await unit[Refund].get(job.argument), ports.clock.now()
        if refund is None or not waits_for_money(refund):
            return None
        if not is_given_up(refund, now):
            return gives_up_at(refund)
        if begun.fault is not None or await holds_back(ports, unit, refund.mode):
            return now + _LATER
        await move(ports, unit, refund, (RefundTrigger.REJECTED,), failure=PendingReason.INSUFFICIENT_BALANCE.value)
        return None

    await reschedule(ports, job, next_due)


async def _may_be_executed(ports: Ports, refund_id: str) -> bool:
    async with ports.storage.unit() as unit:
        subject = await REFUNDS.load(ports, unit, refund_id)
    return subject is not None and await REFUNDS.may_be_executed(ports, subject)
