"""The operator's settlement of a mode: first what was left open by whoever died at it, then what is asked for; with how
far it is of how much (docs/settlement.md "When")."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Below, Between, Unit
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.tallies import EVER, Tally
from ...domain.settlement.settlement import SettlementBatch
from ..acts.audit import on
from ..settlement.settlement import SETTLE, batch_asked, require_settling, settle_batch, settle_now

_MOST = 1000


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How far a settlement is."""

    batch: SettlementBatch
    of: int
    """How many payments it will have settled, by what was due when it began. A little less or more may come: a merchant
    whose shop has no markup waits, and money of yesterday may be heard of late."""
    is_taken_up: bool
    """The batch was open already."""

    def __str__(self) -> str:
        return f"{self.batch.payments} of {max(self.of, self.batch.payments)} payments, {self.batch.amount} RUB"


async def settle_asked(
    ports: Ports, mode: Mode, cutoff: datetime | None, progress: Callable[[Pace], None]
) -> list[SettlementBatch]:
    """Settle a mode by an operator's hand, to the end; the batches in the order in which they were settled, that which
    was asked for last. `cutoff` as `settle_now` has it. Each batch is an act of its own in the audit log.

    Raises: Refusal RATE_UNAVAILABLE; INVALID_STATE while another process is settling a batch, or may be: for a minute
    after it was killed; INVALID_STATE for live mode while the installation is held.
    """
    await require_settling(ports, mode)
    done: list[SettlementBatch] = []
    asked, until = batch_asked(ports, mode, cutoff)
    for batch in await _left_open(ports, mode):
        if batch.id != asked:
            tell = await _teller(ports, mode, batch.cutoff, progress, batch)
            done.append(await settle_batch(on(ports, batch.id), batch, tell))
    tell = await _teller(ports, mode, until, progress, None)
    done.append(await settle_now(on(ports, asked), mode, cutoff=cutoff, progress=tell))
    return done


async def _left_open(ports: Ports, mode: Mode) -> list[SettlementBatch]:
    """Batches of all merchants that are not settled to their end, the oldest cutoff first. Each has a job."""
    low, high = f"{SETTLE}:{mode}:", f"{SETTLE}:{mode};"
    async with ports.storage.unit() as unit:
        jobs = await unit[Job].find(id=Between(low, high), limit=_MOST)
        found = [await unit[SettlementBatch].get(job.argument) for job in jobs]
    opened = [batch for batch in found if batch and batch.account_id is None and batch.completed_at is None]
    return sorted(opened, key=lambda batch: (batch.cutoff, batch.started_at))


async def _teller(
    ports: Ports, mode: Mode, cutoff: datetime, progress: Callable[[Pace], None], batch: SettlementBatch | None
) -> Callable[[SettlementBatch], None]:
    """Tells with the sum of what is settled already and what is due now; at once of a batch that is taken up."""
    async with ports.storage.unit() as unit:
        due = await due_by_account(unit, mode, cutoff)
    of = sum(due.values()) + (0 if batch is None else batch.payments)
    if batch is not None:
        progress(Pace(batch=batch, of=of, is_taken_up=True))
    return lambda at: progress(Pace(batch=at, of=of, is_taken_up=batch is not None))


async def due_by_account(unit: Unit, mode: Mode, cutoff: datetime) -> dict[str, int]:
    """How many payments of a merchant are paid and before the cutoff, where there are any: merchants by the tallies, of
    each a walk along what waits."""
    counts = await unit[Tally].sums("count", by="account_id", period=EVER, status=PaymentStatus.PAID)
    found: dict[str, int] = {}
    for account_id, count in counts.items():
        if count > 0:
            found[account_id] = await unit[Payment].total(
                account_id=account_id,
                mode=mode,
                status=PaymentStatus.PAID,
                created_at=Below(cutoff),
                paid_at=Below(cutoff),
            )
    return {account_id: count for account_id, count in found.items() if count}
