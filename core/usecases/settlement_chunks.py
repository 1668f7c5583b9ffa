"""The units of a settlement: some payments of one merchant, each settled with its ledger entry, its line of the
statement, and its event (DECISIONS 4)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from ...ports.bundle import Ports
from ...ports.faults import Stale
from ...ports.jobs import Job
from ...ports.storage import Below, Between, OneOf, Unit
from ..domain import ids
from ..domain.accounts import Account, Shop
from ..domain.events import EventType
from ..domain.ledger import EntryKind, JournalEntry, Purse, journal_entry
from ..domain.money import Rub
from ..domain.payments import Payment, PaymentStatus
from ..domain.refunds import Refund, holds_money
from ..domain.settlement import (
    Correction,
    ItemKind,
    Line,
    Settlement,
    SettlementBatch,
    SettlementItem,
    Terms,
    Worth,
    item_id,
    lines_of,
    terms_of,
)
from .ledger import post
from .outbox import announce, event_of_payment, payment_payload
from .tallies import save_all_moved
from .units import retrying

CHUNK = 200
"""Payments in a unit. Encoding them takes the event loop for some 40 ms; larger units are hardly faster."""

HELD = timedelta(seconds=60)
"""How long a run is left alone after each of its units, whoever makes it."""


class Place(msgspec.Struct):
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
    place: Place

    @classmethod
    async def of(cls, ports: Ports, batch: SettlementBatch, job: Job, account: Account) -> Self:
        """Read what every chunk needs."""
        found = ports.storage.scan(Shop, account_id=account.id)
        shops = {shop.id: shop async for part in found for shop in part}
        terms = {
            shop.id: terms_of(batch.rate_market, shop.markup) for shop in shops.values() if shop.markup is not None
        }
        return cls(batch=batch, job=job, account=account, shops=shops, terms=terms, place=Place())

    async def statement(self, unit: Unit) -> Settlement | None:
        """The merchant's statement of this batch, where it has one yet."""
        found = await unit[Settlement].find(batch_id=self.batch.id, account_id=self.account.id, quick=True)
        return found[0] if found else None


class _Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What one payment, or one correction, brought."""

    object_id: str
    """Of the ledger's entry."""
    payment_id: str
    shop_id: str
    lines: Sequence[Line]
    amount: Rub
    """What refunds left."""
    worth: Worth


async def open_statement(ports: Ports, unit: Unit, run: Run) -> Settlement:
    """The merchant's statement, made where there is none yet; commit raises Conflict when another unit made it."""
    known = await run.statement(unit)
    if known is not None:
        return known
    batch = run.batch
    return unit[Settlement].add(
        Settlement(
            id=ids.prefixed(ids.SETTLEMENT, ports.ids.uuid()),
            batch_id=batch.id,
            account_id=run.account.id,
            mode=batch.mode,
            cutoff=batch.cutoff,
            rate_market=batch.rate_market,
            started_at=batch.started_at,
        )
    )


async def settle_chunk(ports: Ports, run: Run) -> bool:
    """Settle the next payments and corrections of the merchant; False when none are left.

    Raises: Stale when another runner has taken the job over.
    """

    async def work(unit: Unit) -> datetime | bool:
        payments = await _due_payments(unit, run)
        corrections = await _due_corrections(unit, run)
        if not payments and not corrections:
            return False
        await _hold_on(ports, unit, run)
        statement = await open_statement(ports, unit, run)
        settled = await _settle_payments(ports, unit, run, statement, payments)
        settled += [_settle_correction(unit, run, statement, correction) for correction in corrections]
        _write_lines(unit, run, statement, settled)
        post(unit, *(_entry(ports, run, each) for each in settled))
        _add_up(unit, run, statement, settled)
        return payments[-1].created_at if payments else True

    done = await retrying(ports.storage, work, again_on=("settlements_batch",))
    if isinstance(done, datetime):
        run.place.since = done
    elif not done and run.place.since is not None:
        # Money that the bank told of late may have made an older payment due meanwhile.
        run.place.since = None
        return True
    return bool(done)


async def _due_payments(unit: Unit, run: Run) -> list[Payment]:
    if not run.terms:
        return []
    cutoff, skipped = run.batch.cutoff, run.place.skipped
    # Asked for shops, a database may walk along all that they ever had instead of what is still `paid`.
    shops: dict[str, Any] = {} if run.terms.keys() == run.shops.keys() else {"shop_id": OneOf(tuple(run.terms))}
    while True:
        found = await unit[Payment].find(
            account_id=run.account.id,
            mode=run.batch.mode,
            status=PaymentStatus.PAID,
            created_at=Between(run.place.since, cutoff),
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
    return payment.shop_id not in run.terms or payment.refund_taken >= (payment.actual_amount or Rub(0))


async def _due_corrections(unit: Unit, run: Run) -> list[Correction]:
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


async def _hold_on(ports: Ports, unit: Unit, run: Run) -> None:
    """Renew the lease in the unit itself, so that nothing is written once another runner has the job."""
    job = await unit[Job].get(run.job.id)
    if job is None or job.attempts != run.job.attempts:
        raise Stale(f"{run.job.id} was taken over")
    unit[Job].save(msgspec.structs.replace(job, leased_until=await ports.storage.now() + HELD))


async def _settle_payments(
    ports: Ports, unit: Unit, run: Run, statement: Settlement, payments: Sequence[Payment]
) -> list[_Settled]:
    account = await unit[Account].get(run.account.id) or run.account
    now = ports.clock.now()
    settled: list[_Settled] = []
    moves: list[tuple[Payment, Payment]] = []
    for payment in payments:
        paid, terms = payment.actual_amount or Rub(0), run.terms[payment.shop_id]
        taken = await _taken(unit, payment) if payment.refund_taken > Rub(0) else []
        left = paid - payment.refund_taken
        worth = terms.worth(left)
        after = msgspec.structs.replace(
            payment,
            status=PaymentStatus.SETTLED,
            settled_at=now,
            settlement_id=statement.id,
            amount_usdt=worth.credit,
            sequence=payment.sequence + 1,
        )
        payload = payment_payload(ports, after, payment.status, shop_name=run.shops[payment.shop_id].name)
        event = event_of_payment(ports, after, EventType.PAYMENT_STATUS_CHANGED, payload)
        announce(ports, unit, event, receives=account.receives)
        moves.append((payment, after))
        settled.append(
            _Settled(
                object_id=payment.id,
                payment_id=payment.id,
                shop_id=payment.shop_id,
                lines=lines_of(payment.id, paid, taken, terms),
                amount=left,
                worth=worth,
            )
        )
    save_all_moved(unit, moves)
    return settled


async def _taken(unit: Unit, payment: Payment) -> list[tuple[str, Rub]]:
    """What refunds took out of the payment so far, the first taken first."""
    refunds = await unit[Refund].find(payment_id=payment.id, order="id", quick=True)
    held = [refund for refund in refunds if holds_money(refund)]
    return [(refund.id, refund.taken_rub) for refund in held if refund.taken_rub is not None]


def _settle_correction(unit: Unit, run: Run, statement: Settlement, correction: Correction) -> _Settled:
    worth = run.terms[correction.shop_id].worth(correction.amount)
    line = Line(
        kind=ItemKind.CORRECTION,
        object_id=correction.id,
        amount=correction.amount,
        fee=worth.fee,
        credit=worth.credit,
    )
    unit[Correction].save(msgspec.structs.replace(correction, settlement_id=statement.id))
    return _Settled(
        object_id=correction.id,
        payment_id=correction.payment_id,
        shop_id=correction.shop_id,
        lines=[line],
        amount=correction.amount,
        worth=worth,
    )


def _write_lines(unit: Unit, run: Run, statement: Settlement, settled: Sequence[_Settled]) -> None:
    for each in settled:
        markup = run.shops[each.shop_id].markup or "0"
        for line in each.lines:
            unit[SettlementItem].add(
                SettlementItem(
                    id=item_id(statement.id, line, each.payment_id),
                    settlement_id=statement.id,
                    payment_id=each.payment_id,
                    shop_id=each.shop_id,
                    kind=line.kind,
                    amount=line.amount,
                    markup=markup,
                    fee=line.fee,
                    credit=line.credit,
                )
            )


def _entry(ports: Ports, run: Run, settled: _Settled) -> JournalEntry:
    """RUB to the service, and its USDT for them."""
    kopecks, worth = settled.amount.kopecks, settled.worth
    return journal_entry(
        EntryKind.SETTLEMENT,
        settled.object_id,
        account_id=run.account.id,
        mode=run.batch.mode,
        at=ports.clock.now(),
        postings={
            Purse.PENDING: -kopecks,
            Purse.CONVERTED_RUB: kopecks,
            Purse.CONVERTED_USDT: -worth.market.units,
            Purse.AVAILABLE: worth.credit.units,
            Purse.FEES: worth.fee.units,
            Purse.ROUNDING: worth.rounding.units,
        },
    )


def _add_up(unit: Unit, run: Run, statement: Settlement, settled: Sequence[_Settled]) -> None:
    sums = {
        "payments": sum(1 for each in settled for line in each.lines if line.kind is ItemKind.PAYMENT),
        "amount": sum(each.amount.kopecks for each in settled),
        "fee": sum(each.worth.fee.units for each in settled),
        "credit": sum(each.worth.credit.units for each in settled),
    }
    for field, by in sums.items():
        unit[Settlement].increase(statement.id, field, by)
        unit[SettlementBatch].increase(run.batch.id, field, by)
    unit[Settlement].increase(statement.id, "items", sum(len(each.lines) for each in settled))
