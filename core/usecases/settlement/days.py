"""Daily settlement of a test account whose clock was moved, at 09:00 UTC of its own days (docs/settlement.md "When";
docs/sandbox.md "The clock"). The common settlement skips such accounts. A day without due work opens no batch, and an
advance of the clock skips it, because few days of a year have any work."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.jobs import Job
from ....ports.storage import Between, Unit
from ...domain.accounts.accounts import Account, Mode
from ...domain.errors import Refusal
from ...domain.ledger import BalanceType
from ...domain.money import Usdt
from ...domain.payments.unsettled import Unsettled, unsettled_ids
from ...domain.refunds.refunds import PendingReason, Refund, RefundStatus
from ...domain.settlement.settlement import Correction, cutoff_of, last_run, next_run, own_daily_id
from ...domain.settlement.withdrawals import payable
from ..common.schedule import FollowUp, reschedule_at
from ..ledger.ledger import balance_types
from .settlement import NO_RATE, open_batch

OWN_DAILY = FollowUp("settlement.own")


async def first_own_settlement(unit: Unit, account_id: str, now: datetime, ahead: timedelta) -> None:
    """Write the account's recurring job if it does not exist. Call it outside of the account's test clock, before that
    clock, which says `now`, is moved."""
    if await unit[Job].get(OWN_DAILY.id_of(account_id)) is None:
        moment = next_run(now)
        job = OWN_DAILY.first(account_id, moment - ahead, now)
        unit[Job].add(msgspec.structs.replace(job, world=account_id, moment=moment))


async def open_own_daily(ports: Ports, job: Job) -> None:
    """Open today's batch of the account. A worker or the advance of the clock settles it."""
    now = ports.clock.now()
    due, day = next_run(now), last_run(now)
    batch_id = own_daily_id(Mode.TEST, job.argument, day)
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(job.argument)
        waits = account is not None and await anything_waits(ports, unit, account)
    if waits:
        try:
            await open_batch(ports, batch_id, Mode.TEST, cutoff_of(day), account_id=job.argument)
        except Refusal:
            due = now + NO_RATE
    await reschedule_at(ports, job, due, anew=True)


async def anything_waits(ports: Ports, unit: Unit, account: Account) -> bool:
    """Return whether a settlement of the account's test mode would change anything: settle a payment or a correction,
    retry a refund, or pay out."""
    mine: dict[str, Any] = {"account_id": account.id, "mode": Mode.TEST}
    return (
        bool(await unit[Unsettled].find(id=Between(*unsettled_ids(account.id, Mode.TEST)), limit=1, quick=True))
        or bool(await unit[Correction].find(**mine, settlement_id=None, limit=1, quick=True))
        or await _refund_waits(unit, account)
        or await _pays_out(ports, unit, account)
    )


async def _refund_waits(unit: Unit, account: Account) -> bool:
    found = await unit[Refund].find(
        account_id=account.id,
        mode=Mode.TEST,
        status=RefundStatus.PENDING,
        pending_reason=PendingReason.INSUFFICIENT_BALANCE,
        order="created_at",
        limit=1,
    )
    return bool(found)


async def _pays_out(ports: Ports, unit: Unit, account: Account) -> bool:
    if account.settings.payout_wallet is None:
        return False
    try:
        step = ports.senders.of_mode(Mode.TEST).capabilities.step
    except NotConfigured:
        return False
    available = (await balance_types(unit, account.id, Mode.TEST)).get(BalanceType.AVAILABLE, 0)
    return payable(Usdt(available), step) > Usdt(0)
