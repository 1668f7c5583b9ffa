"""The daily settlement of a test account whose clock was moved: at 09:00 UTC of its own days (DECISIONS 4, 8). The
common one leaves such accounts to it."""

from datetime import datetime, timedelta

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ...ports.storage import Unit
from ..domain.accounts import Mode
from ..domain.errors import Refusal
from ..domain.settlement import cutoff_of, last_run, next_run, own_daily_id
from .again import come_back
from .settlement import NO_RATE, open_batch

OWN_DAILY = "settlement.own"


async def first_own_settlement(unit: Unit, account_id: str, now: datetime, ahead: timedelta) -> None:
    """Write the standing job where there is none yet; to be called when the account's clock, which says `now`, is
    about to be moved, and outside of its world."""
    job_id = f"{OWN_DAILY}:{account_id}"
    if await unit[Job].get(job_id) is None:
        moment = next_run(now)
        unit[Job].add(
            Job(
                id=job_id,
                kind=OWN_DAILY,
                argument=account_id,
                due=moment - ahead,
                created_at=now,
                world=account_id,
                moment=moment,
            )
        )


async def open_own_daily(ports: Ports, job: Job) -> None:
    """Open today's batch of the account, for a worker to settle, or for whoever advances the clock."""
    now = ports.clock.now()
    due, day = next_run(now), last_run(now)
    batch_id = own_daily_id(Mode.TEST, job.argument, day)
    try:
        await open_batch(ports, batch_id, Mode.TEST, cutoff_of(day), account_id=job.argument)
    except Refusal:
        due = now + NO_RATE
    await come_back(ports, job, due, anew=True)
