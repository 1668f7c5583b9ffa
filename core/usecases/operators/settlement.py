"""Settlement of a mode by an operator: it first completes open batches that other processes left, then the requested
one, and reports progress (docs/settlement.md "When")."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ....ports.storage import Below, Between, Unit
from ...domain.accounts.accounts import Mode
from ...domain.payments.payments import PaymentStatus
from ...domain.payments.tallies import EVER, Tally
from ...domain.payments.unsettled import Unsettled, unsettled_ids
from ...domain.settlement.settlement import SettlementBatch
from ..actions.audit import on
from ..settlement.settlement import SETTLE, batch_asked, require_settling, settle_batch, settle_now

_MOST = 1000


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a settlement."""

    batch: SettlementBatch
    of: int
    """Expected number of payments, from those due at the start. The result may differ a little: a merchant whose shop
    has no markup is skipped, and yesterday's payments may be reported late."""
    is_taken_up: bool
    """The batch was already open."""

    def __str__(self) -> str:
        return f"{self.batch.payments} of {max(self.of, self.batch.payments)} payments, {self.batch.amount} RUB"


async def settle_asked(
    ports: Ports, mode: Mode, cutoff: datetime | None, progress: Callable[[Pace], None]
) -> list[SettlementBatch]:
    """Settle a mode to the end on an operator's request. Return the batches in the order of their settlement, the
    requested one last. `cutoff` has the same meaning as in `settle_now`. Each batch is an action of its own in the
    audit log.

    Raises: Refusal RATE_UNAVAILABLE; INVALID_STATE while another process is settling a batch, or may be, up to a minute
    after it was killed; INVALID_STATE for live mode while the installation is quarantined.
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
    """Return unfinished batches over all merchants, the oldest cutoff first. Each has a job."""
    low, high = f"{SETTLE}:{mode}:", f"{SETTLE}:{mode};"
    async with ports.storage.unit() as unit:
        jobs = await unit[Job].find(id=Between(low, high), limit=_MOST)
        found = [await unit[SettlementBatch].get(job.argument) for job in jobs]
    opened = [batch for batch in found if batch and batch.account_id is None and batch.completed_at is None]
    return sorted(opened, key=lambda batch: (batch.cutoff, batch.started_at))


async def _teller(
    ports: Ports, mode: Mode, cutoff: datetime, progress: Callable[[Pace], None], batch: SettlementBatch | None
) -> Callable[[SettlementBatch], None]:
    """Return a callback that reports progress against the sum of the settled and the due payments. Report an open batch
    at once."""
    async with ports.storage.unit() as unit:
        due = await due_by_account(unit, mode, cutoff)
    of = sum(due.values()) + (0 if batch is None else batch.payments)
    if batch is not None:
        progress(Pace(batch=batch, of=of, is_taken_up=True))
    return lambda at: progress(Pace(batch=at, of=of, is_taken_up=batch is not None))


async def due_by_account(unit: Unit, mode: Mode, cutoff: datetime) -> dict[str, int]:
    """Return the number of due paid payments of each merchant, without zeros. Tallies give the merchants; for each,
    this counts the waiting payments."""
    counts = await unit[Tally].sums("count", by="account_id", period=EVER, status=PaymentStatus.PAID)
    found: dict[str, int] = {}
    for account_id, count in counts.items():
        if count > 0:
            span = Between(*unsettled_ids(account_id, mode, high=cutoff))
            found[account_id] = await unit[Unsettled].total(id=span, paid_at=Below(cutoff))
    return {account_id: count for account_id, count in found.items() if count}
