"""One merchant in a settlement: what a run knows, what is still due, and the statement that it fills
(docs/settlement.md "Reconciling")."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self

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
from ...domain.settlement.settlement import Correction, Settlement, SettlementBatch, Terms, terms_of
from ..causes import caused_id

CHUNK = 200
"""Payments in a unit. Encoding them takes the event loop for some 40 ms; larger units are hardly faster."""

STATEMENT_RACES = ("settlements_batch", "settlements_id")
"""Unique rules whose Conflict means that another unit opened the statement first: read again."""

HELD = timedelta(seconds=60)
"""How long a run is left alone after each of its units, whoever makes it."""


class Progress(msgspec.Struct):
    """How far a run is."""

    since: datetime | None = None
    """When the last payment that it looked at was created: what lies before need not be walked over again."""
    skipped: set[str] = msgspec.field(default_factory=set)
    """Payments that stay `paid` for now (`_waits`)."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The settling of one merchant in one batch, under the lease of the batch's job."""

    batch: SettlementBatch
    job: Job
    account: Account
    shops: Mapping[str, Shop]
    terms: Mapping[str, Terms]
    """Of each shop that has a markup. Payments of others, and of a shop made since, wait for a later run."""
    by_markup: dict[str, Terms]
    """Of each markup that the run has met."""
    progress: Progress

    @classmethod
    async def of(cls, ports: Ports, batch: SettlementBatch, job: Job, account: Account) -> Self:
        """Read what every chunk needs."""
        found = ports.storage.scan(Shop, account_id=account.id)
        shops = {shop.id: shop async for part in found for shop in part}
        markups = {shop.id: shop.markup for shop in shops.values() if shop.markup is not None}
        met = {markup: terms_of(batch.rate_market, markup) for markup in markups.values()}
        terms = {shop_id: met[markup] for shop_id, markup in markups.items()}
        return cls(batch=batch, job=job, account=account, shops=shops, terms=terms, by_markup=met, progress=Progress())

    def accepted_at(self, payment: Payment | None, shop_id: str) -> tuple[str, Terms]:
        """The markup of a payment, and its terms: of one from before markups were kept, its shop's."""
        markup = (None if payment is None else payment.markup) or self.shops[shop_id].markup or "0"
        terms = self.by_markup.get(markup)
        if terms is None:
            terms = self.by_markup[markup] = terms_of(self.batch.rate_market, markup)
        return markup, terms

    async def statement(self, unit: Unit) -> Settlement | None:
        """The merchant's statement of this batch, where it has one yet."""
        found = await unit[Settlement].find(batch_id=self.batch.id, account_id=self.account.id, quick=True)
        return found[0] if found else None


async def hold_on(ports: Ports, unit: Unit, job: Job) -> None:
    """Renew the lease of a batch's job in the unit itself, so that nothing is written once another runner has it.

    Raises: Stale then.
    """
    present = await unit[Job].get(job.id)
    if present is None or present.attempts != job.attempts:
        raise Stale(f"{job.id} was taken over")
    unit[Job].save(msgspec.structs.replace(present, leased_until=await ports.storage.now() + HELD))


async def open_statement(ports: Ports, unit: Unit, run: Run) -> Settlement:
    """The merchant's statement, made where there is none yet; commit raises Conflict when another unit made it."""
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
    """The next payments to settle, a chunk at most; none when none is left."""
    if not run.terms:
        return []
    cutoff, skipped = run.batch.cutoff, run.progress.skipped
    # Asked for shops, a database may walk along all that they ever had instead of what is still `paid`.
    shops: dict[str, Any] = {} if run.terms.keys() == run.shops.keys() else {"shop_id": OneOf(tuple(run.terms))}
    while True:
        found = await unit[Payment].find(
            account_id=run.account.id,
            mode=run.batch.mode,
            status=PaymentStatus.PAID,
            created_at=Between(run.progress.since, cutoff),
            paid_at=Below(cutoff),
            order="created_at",
            limit=CHUNK + len(skipped),
            **shops,
        )
        due = [payment for payment in found if payment.id not in skipped]
        waits = {payment.id for payment in due if _waits(payment, run)}
        skipped.update(waits)
        if not waits or len(waits) < len(due):
            return [payment for payment in due if payment.id not in waits][:CHUNK]


def _waits(payment: Payment, run: Run) -> bool:
    """Its shop is new, or refunds under way hold all of it."""
    # A symbolic binding brought nothing of which anything could be held, and is settled as that.
    is_held = Rub(0) < payment.refund_taken and payment.refund_taken >= (payment.actual_amount or Rub(0))
    return payment.shop_id not in run.terms or is_held


async def due_corrections(unit: Unit, run: Run) -> list[Correction]:
    """The next corrections to settle, a chunk at most."""
    if not run.terms:
        return []
    return await unit[Correction].find(
        account_id=run.account.id,
        mode=run.batch.mode,
        settlement_id=None,
        since=Below(run.batch.cutoff),
        shop_id=OneOf(tuple(run.terms)),
        limit=CHUNK,
    )
