"""Daily settlement: converts RUB to USDT at one rate for all, exactly once, whatever interrupts it (docs/settlement.md
"When", "Reconciling").

A batch is a row with its rate and cutoff, and a job that settles it, a few payments of one merchant in each unit. A
settled payment is no longer `paid`, so after a crash another worker simply settles the rest, at the batch's own rate.
"""

import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Held, Stale, Unavailable
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account, Caller, Mode
from ...domain.days import iso
from ...domain.errors import Refusal
from ...domain.settlement.settlement import Settlement, SettlementBatch, cutoff_of, last_run, next_run
from ..accounts.accounts import find_account
from ..common.account_time import test_clock_of
from ..common.quarantine import is_held
from ..common.schedule import reschedule_at, set_due
from ..common.units import retrying, unit_of_work
from ..ledger.listing import list_all
from ..refunds.waiting import retry_waiting
from .chunks import settle_chunk
from .rates import market_rate
from .run import HELD, STATEMENT_RACES, Run, hold_on, open_statement
from .withdrawals import pay_out

DAILY = "settlement.daily"
SETTLE = "settlement.run"

NO_RATE = timedelta(minutes=1)
"""Pause before a settlement without a rate is tried again."""

WHILE_HELD = timedelta(minutes=1)
"""Pause before a live settlement checks again whether the installation is still quarantined."""

HELD_BACK = (
    "The installation is held, so live money is not settled. Run `cambist resume`; the daily settlement then follows "
    "by itself"
)
"""Message of the refusal to settle live money in a quarantined installation."""

_HOLD_EVERY = HELD.total_seconds() / 4

log = logging.getLogger("cambist.settlement")

Progress = Callable[[SettlementBatch], None]


def _nobody(_batch: SettlementBatch) -> None:
    """Ignore the progress."""


def first_settlement(ports: Ports) -> Job:
    """Return the recurring job that opens the settlements of each day at 09:00 UTC."""
    now = ports.clock.now()
    return Job(id=DAILY, kind=DAILY, argument="", due=next_run(now), created_at=now)


async def open_daily(ports: Ports, job: Job) -> None:
    """Open today's batch of each mode, for workers to settle. Without a rate, or while live mode is quarantined, try
    the mode again in a minute.

    After an outage this opens the batch of the last due day, which also settles what earlier days left.
    """
    now = ports.clock.now()
    due = next_run(now)
    for mode in Mode:
        try:
            await open_batch(ports, daily_id(mode, last_run(now)), mode, cutoff_of(last_run(now)))
        except Refusal:
            due = now + NO_RATE
    await reschedule_at(ports, job, due, anew=True)


def daily_id(mode: Mode, run: datetime) -> str:
    """Return the batch id of a mode and day."""
    return f"{mode}:{run.date().isoformat()}"


async def open_batch(
    ports: Ports, batch_id: str, mode: Mode, cutoff: datetime, *, account_id: str | None = None, mine: bool = False
) -> SettlementBatch:
    """Return the batch of this id. If it does not exist, open it with the current market rate.

    `mine`: the caller settles the batch itself, and a worker takes it over only if the caller dies.
    Raises: Refusal RATE_UNAVAILABLE; INVALID_STATE for live mode while the installation is quarantined.
    """
    await require_settling(ports, mode)
    known = await ports.storage.get(SettlementBatch, batch_id)
    if known is not None:
        return known
    rate = await market_rate(ports, mode, fresh=True)
    now = ports.clock.now()
    batch = SettlementBatch(
        id=batch_id, mode=mode, account_id=account_id, cutoff=cutoff, rate_market=rate.rate, started_at=now
    )
    leased_until = await ports.storage.now() + HELD if mine else None
    job = Job(
        id=job_id(batch_id),
        kind=SETTLE,
        argument=batch_id,
        due=now,
        created_at=now,
        leased_until=leased_until,
        attempts=1 if mine else 0,
    )
    async with ports.storage.unit() as unit:
        unit[SettlementBatch].add(batch)
        unit[Job].add(job)
        try:
            await unit.commit()
        except Conflict:
            pass
        else:
            return batch
    return await ports.storage.get(SettlementBatch, batch_id) or batch


def job_id(batch_id: str) -> str:
    """Return the id of the one job that settles a batch."""
    return f"{SETTLE}:{batch_id}"


async def require_settling(ports: Ports, mode: Mode) -> None:
    """Refuse to settle live money while the installation is quarantined. Its payments may have been settled, refunded
    and paid out after the backup. Raises: Refusal INVALID_STATE."""
    if await is_held(ports, mode):
        raise Refusal("INVALID_STATE", HELD_BACK)


async def settle_job(ports: Ports, job: Job) -> None:
    """Handle the job of a batch. A live batch waits while the installation is quarantined."""
    try:
        await settle(ports, job)
    except Held:
        log.info("the batch %s waits: the installation is held", job.argument)
        await retrying(ports.storage, lambda unit: _put_off(ports, unit, job))


async def _put_off(ports: Ports, unit: Unit, job: Job) -> None:
    present = await unit[Job].get(job.id)
    # This run renewed the lease, so the version does not show whose job it is. The attempts do.
    if present is not None and present.attempts == job.attempts:
        set_due(unit, present, ports.clock.now() + WHILE_HELD)


async def settle(ports: Ports, job: Job, *, progress: Progress = _nobody) -> None:
    """Settle the rest of a batch. A failure for one merchant does not stop the others; the batch stays open and is
    retried.

    Raises: Stale when another process took over the job; Held for live mode while the installation is quarantined; the
    exception of the last merchant that failed.
    """
    batch = await ports.storage.get(SettlementBatch, job.argument)
    if batch is None or batch.completed_at is not None:
        return
    failed: Exception | None = None
    held_at = ports.clock.monotonic()
    async for account in _accounts(ports, batch):
        if ports.clock.monotonic() - held_at > _HOLD_EVERY:
            # Only chunks renew the lease, and many merchants have nothing due.
            await retrying(ports.storage, lambda unit: hold_on(ports, unit, job))
            held_at = ports.clock.monotonic()
        await _require_no_hold(ports, batch)
        try:
            with ports.clock.entered(test_clock_of(account, batch.mode)):
                await _settle_account(ports, job, batch, account, progress)
        except (Stale, Unavailable):
            raise
        except Exception as fault:
            log.exception("settlement %s failed for %s", batch.id, account.id)
            failed = fault
    if failed is not None:
        raise failed
    # A quarantine that began meanwhile stopped payouts. The batch stays open, so that `resume` continues them.
    await _require_no_hold(ports, batch)
    await _close(ports, job)
    await list_all(ports)


async def _require_no_hold(ports: Ports, batch: SettlementBatch) -> None:
    if await is_held(ports, batch.mode):
        raise Held(HELD_BACK)


async def _accounts(ports: Ports, batch: SettlementBatch) -> AsyncIterator[Account]:
    if batch.account_id is not None:
        async with ports.storage.unit() as unit:
            account = await find_account(unit, batch.account_id)
        yield account
        return
    async with ports.storage.unit() as unit:
        there = await unit[Account].total()
    async for accounts in ports.storage.scan(Account, readable=True):
        there -= len(accounts)
        for account in accounts:
            if not _has_own_days(batch, account):
                yield account
    if there > 0:  # accounts are only added: some are unreadable, and the batch must not end without them
        async for _ in ports.storage.scan(Account):
            pass


def _has_own_days(batch: SettlementBatch, account: Account) -> bool:
    """Return whether the account is settled by a batch of its own (days.py)."""
    return batch.mode is Mode.TEST and account.clock is not None and account.clock.was_moved


@unit_of_work()
async def _close(ports: Ports, unit: Unit, job: Job) -> None:
    present = await unit[SettlementBatch].get(job.argument)
    standing = await unit[Job].get(job.id)
    if present is not None and present.completed_at is None:
        unit[SettlementBatch].save(msgspec.structs.replace(present, completed_at=ports.clock.now()))
    if standing is not None:
        unit[Job].remove(standing)


async def _settle_account(ports: Ports, job: Job, batch: SettlementBatch, account: Account, progress: Progress) -> None:
    run = await Run.of(ports, batch, job, account)
    if batch.was_asked_for:
        await retrying(ports.storage, lambda unit: open_statement(ports, unit, run), again_on=STATEMENT_RACES)
    # The merchant may have read a completed statement, and it is paid out. Newly due payments wait for the next
    # settlement and its rate.
    if not await _is_complete(ports, run):
        await _settle_due(ports, run, progress)
    await retry_waiting(ports, account.id, batch.mode)
    await pay_out(ports, account.id, batch.mode, batch_id=batch.id, settlement_id=await _complete(ports, run))


async def _is_complete(ports: Ports, run: Run) -> bool:
    async with ports.storage.unit() as unit:
        statement = await run.statement(unit)
    return statement is not None and statement.completed_at is not None


async def _settle_due(ports: Ports, run: Run, progress: Progress) -> None:
    while await settle_chunk(ports, run):
        progress(await ports.storage.get(SettlementBatch, run.batch.id) or run.batch)


@unit_of_work()
async def _complete(ports: Ports, unit: Unit, run: Run) -> str | None:
    """Complete the merchant's statement. Return its id, or None if the batch has no statement of the merchant."""
    statement = await run.statement(unit)
    if statement is not None and statement.completed_at is None:
        unit[Settlement].save(msgspec.structs.replace(statement, completed_at=ports.clock.now()))
    return None if statement is None else statement.id


async def settle_now(
    ports: Ports, mode: Mode, *, cutoff: datetime | None = None, progress: Progress = _nobody
) -> SettlementBatch:
    """Settle a batch on an operator's request, to the end: the last daily one, or another one up to `cutoff`.

    A batch that is already settled is returned as it is. Raises: Refusal RATE_UNAVAILABLE; INVALID_STATE while another
    process is settling it, and for live mode while the installation is quarantined.
    """
    batch_id, cutoff = batch_asked(ports, mode, cutoff)
    return await _open_and_settle(ports, batch_id, mode, cutoff, None, progress)


def batch_asked(ports: Ports, mode: Mode, cutoff: datetime | None) -> tuple[str, datetime]:
    """Return id and cutoff of the batch that `settle_now` settles."""
    if cutoff is not None:
        return f"{mode}:{iso(cutoff)}", cutoff
    run = last_run(ports.clock.now())
    return daily_id(mode, run), cutoff_of(run)


async def settle_own(ports: Ports, caller: Caller) -> Settlement:
    """Settle all paid test payments of the caller's account now (docs/settlement.md "When").

    Raises: Refusal RATE_UNAVAILABLE; INVALID_STATE when all of them were deleted at the same time.
    """
    now = ports.clock.now()
    batch_id = f"{caller.mode}:{caller.account_id}:{ports.ids.uuid()}"
    # Include payments that were paid at this very moment.
    cutoff = now + timedelta(microseconds=1)
    await _open_and_settle(ports, batch_id, caller.mode, cutoff, caller.account_id, _nobody)
    async with ports.storage.unit() as unit:
        found = await unit[Settlement].find(batch_id=batch_id, account_id=caller.account_id)
    if not found:
        raise Refusal("INVALID_STATE", "The account's test data was deleted meanwhile")
    return found[0]


async def _open_and_settle(
    ports: Ports, batch_id: str, mode: Mode, cutoff: datetime, account_id: str | None, progress: Progress
) -> SettlementBatch:
    batch = await open_batch(ports, batch_id, mode, cutoff, account_id=account_id, mine=True)
    return await settle_batch(ports, batch, progress)


async def settle_batch(ports: Ports, batch: SettlementBatch, progress: Progress) -> SettlementBatch:
    """Settle an open batch to its end in this process, and return it. Raises: Refusal INVALID_STATE while another
    process is settling it, and for live mode while the installation is quarantined."""
    if batch.completed_at is None:
        await require_settling(ports, batch.mode)
        await settle(ports, await _take_over(ports, batch), progress=progress)
    return await ports.storage.get(SettlementBatch, batch.id) or batch


async def _take_over(ports: Ports, batch: SettlementBatch) -> Job:
    """Claim the batch's job for this caller. Raises: Refusal INVALID_STATE while another process has it."""
    now = await ports.storage.now()

    async def work(unit: Unit) -> Job:
        job = await unit[Job].get(job_id(batch.id))
        if job is None:
            raise Refusal("INVALID_STATE", "The settlement has just been completed by another process")
        held = job.leased_until is not None and job.leased_until > now
        if held and job.version > 0:
            raise Refusal(
                "INVALID_STATE", f"Another process is settling batch {batch.id}, or did within the last minute"
            )
        return unit[Job].save(
            msgspec.structs.replace(job, leased_until=now + HELD, attempts=job.attempts + (0 if held else 1))
        )

    return await retrying(ports.storage, work)
