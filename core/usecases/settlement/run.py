"""One merchant in a settlement: the data of a run, its due payments, and its statement (docs/settlement.md
"Reconciling")."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Self

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Stale
from ....ports.jobs import Job
from ....ports.storage import Below, Between, OneOf, Unit
from ...domain import ids
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop
from ...domain.money import Rub
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.payments.unsettled import Unsettled, unsettled_ids
from ...domain.settlement.settlement import Correction, Settlement, SettlementBatch, Terms, terms_of
from ..common.causes import caused_id
from .evidence import correction_faults, payment_faults

CHUNK = 200
"""Payments per unit of work. Encoding them blocks the event loop for about 40 ms, and larger units are hardly
faster."""

STATEMENT_RACES = ("settlements_batch", "settlements_id")
"""Unique rules whose Conflict means that another unit opened the statement first, so the work reads again."""

log = logging.getLogger("cambist.settlement")

HELD = timedelta(seconds=60)
"""Lease of a run, renewed by each of its units. Other processes leave the run alone until it expires."""


class Progress(msgspec.Struct):
    """Progress of a run."""

    since: datetime | None = None
    """Creation time of the last payment read. Earlier payments need not be read again."""
    skipped: set[str] = msgspec.field(default_factory=set)
    """Payments and corrections that this run does not settle."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Settlement of one merchant in one batch, under the lease of the batch's job."""

    batch: SettlementBatch
    job: Job
    account: Account
    shops: Mapping[str, Shop]
    by_markup: dict[str, Terms]
    """Terms by markup, filled as the run meets markups."""
    progress: Progress

    @classmethod
    async def of(cls, ports: Ports, batch: SettlementBatch, job: Job, account: Account) -> Self:
        """Read the data that every chunk needs."""
        found = ports.storage.scan(Shop, account_id=account.id)
        shops = {shop.id: shop async for part in found for shop in part}
        return cls(batch=batch, job=job, account=account, shops=shops, by_markup={}, progress=Progress())

    def accepted_at(self, markup: str | None, shop_id: str) -> tuple[str, Terms]:
        """Return a payment's markup and its terms. `markup` None: use the shop's.

        Raises: ValueError when there is no markup, or it is impossible.
        """
        markup = markup or self.shops[shop_id].markup
        if markup is None:
            raise ValueError("neither the payment nor its shop has a markup")
        terms = self.by_markup.get(markup)
        if terms is None:
            terms = self.by_markup[markup] = terms_of(self.batch.rate_market, markup)
        return markup, terms

    def terms_fault(self, markup: str | None, shop_id: str) -> str | None:
        """Return why a payment has no terms. None when it has terms, or its shop is newer than this run."""
        if shop_id not in self.shops:
            return None
        try:
            self.accepted_at(markup, shop_id)
        except (ValueError, ArithmeticError) as fault:
            return str(fault) if markup is None else f"its markup {markup!r} is no fraction from 0 to below 1"
        return None

    async def statement(self, unit: Unit) -> Settlement | None:
        """Return the merchant's statement of this batch, or None."""
        found = await unit[Settlement].find(batch_id=self.batch.id, account_id=self.account.id, quick=True)
        return found[0] if found else None


async def hold_on(ports: Ports, unit: Unit, job: Job) -> None:
    """Renew the lease of a batch's job in the same unit, so that the unit fails once another process has the job.

    Raises: Stale in that case.
    """
    present = await unit[Job].get(job.id)
    if present is None or present.attempts != job.attempts:
        raise Stale(f"{job.id} was taken over")
    unit[Job].save(msgspec.structs.replace(present, leased_until=await ports.storage.now() + HELD))


async def open_statement(ports: Ports, unit: Unit, run: Run) -> Settlement:
    """Return the merchant's statement, and create it if needed. Commit raises Conflict when another unit created it."""
    known = await run.statement(unit)
    if known is not None:
        return known
    batch = run.batch
    return unit[Settlement].add(
        Settlement(
            id=caused_id(ports, batch.mode, ids.SETTLEMENT, batch.id, run.account.id),
            batch_id=batch.id,
            account_id=run.account.id,
            mode=batch.mode,
            cutoff=batch.cutoff,
            rate_market=batch.rate_market,
            started_at=batch.started_at,
        )
    )


async def due_payments(unit: Unit, run: Run) -> list[Payment]:
    """Return the next payments to settle, at most one chunk. Empty when no payment is left.

    A payment that the journal contradicts, or whose markup is invalid, is logged and stays `paid`.
    """
    cutoff, skipped = run.batch.cutoff, run.progress.skipped
    while True:
        span = Between(*unsettled_ids(run.account.id, run.batch.mode, run.progress.since, cutoff))
        rows = await unit[Unsettled].find(id=span, paid_at=Below(cutoff), limit=CHUNK + len(skipped))
        waiting = tuple(row.payment_id for row in rows if row.payment_id not in skipped)
        found = await unit[Payment].find(id=OneOf(waiting), limit=len(waiting)) if waiting else []
        due = [payment for payment in sorted(found, key=_made) if payment.status is PaymentStatus.PAID]
        # A refund may have taken some between the two reads.
        skipped |= {*waiting} - {payment.id for payment in due}
        faults = await payment_faults(unit, due[:CHUNK])
        for payment in due:
            fault = faults.get(payment.id) or run.terms_fault(payment.markup, payment.shop_id)
            if fault is not None:
                log.error("%s is not settled: %s", payment.id, fault)
            if fault is not None or is_held(payment) or payment.shop_id not in run.shops:
                skipped.add(payment.id)
        kept = [payment for payment in due[:CHUNK] if payment.id not in skipped]
        if kept or not due:
            return kept


def _made(payment: Payment) -> tuple[datetime, str]:
    return payment.created_at, payment.id


def is_held(payment: Payment) -> bool:
    """Return whether refunds in progress have taken all of a payment, so that nothing is left to settle yet."""
    # The payment of a symbolic amount that binds a payment method has no money to hold back, and is settled as it is.
    return Rub(0) < payment.refund_taken and payment.refund_taken >= (payment.actual_amount or Rub(0))


async def due_corrections(unit: Unit, run: Run) -> list[tuple[Correction, Payment | None]]:
    """Return the next corrections to settle with their payments, at most one chunk. A correction that the journal
    contradicts is logged and skipped."""
    skipped = run.progress.skipped
    while True:
        found = await unit[Correction].find(
            account_id=run.account.id,
            mode=run.batch.mode,
            settlement_id=None,
            since=Below(run.batch.cutoff),
            limit=CHUNK + len(skipped),
        )
        due = [correction for correction in found if correction.id not in skipped][:CHUNK]
        faults = await correction_faults(unit, due)
        kept = []
        for correction in due:
            payment = await unit[Payment].get(correction.payment_id)
            fault = faults.get(correction.id)
            if fault is None:
                fault = run.terms_fault(None if payment is None else payment.markup, correction.shop_id)
            if fault is not None:
                log.error("the correction of %s is not settled: %s", correction.id, fault)
            if fault is not None or correction.shop_id not in run.shops:
                skipped.add(correction.id)
            else:
                kept.append((correction, payment))
        if kept or not due:
            return kept
