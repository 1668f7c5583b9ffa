"""The three writes that change how many payments there are of which kind. Each moves the tallies in the same unit, so
that counts are exact whatever crashes or races; nobody else adds, moves or removes a payment."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec.structs import replace

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, R, Snapshot, Unit
from ...domain.payments.payments import Payment
from ...domain.payments.tallies import TOOK_MONEY, Tally, Turnover, tallies_of, took_money, turnover_of

_BATCH = 1000


def add_payment(unit: Unit, payment: Payment) -> Payment:
    """Write a new payment."""
    unit[Tally].accrue(*tallies_of(payment, 1))
    return unit[Payment].add(payment)


def save_moved(unit: Unit, before: Payment, after: Payment) -> Payment:
    """Save a payment whose status changed, and return it as it will stand."""
    return save_all_moved(unit, [(before, after)])[0]


def save_all_moved(unit: Unit, moves: Sequence[tuple[Payment, Payment]]) -> list[Payment]:
    """Save payments whose status changed (as they were, as they are), and return them as they will stand."""
    counts: dict[str, Tally] = {}
    for before, after in moves:
        for tally in (*tallies_of(before, -1), *tallies_of(after, 1)):
            known = counts.get(tally.id)
            counts[tally.id] = tally if known is None else replace(tally, count=known.count + tally.count)
        if took_money(before.status, after.status):
            unit[Turnover].accrue(turnover_of(after, 1))
    unit[Tally].accrue(*counts.values())
    return [unit[Payment].save(after) for _, after in moves]


def remove_payment(unit: Unit, payment: Payment) -> None:
    """Take a payment away, with all that it counted for."""
    unit[Tally].accrue(*tallies_of(payment, -1))
    if payment.status in TOOK_MONEY:
        unit[Turnover].accrue(turnover_of(payment, -1))
    unit[Payment].remove(payment)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A sum that is not what the payments add up to."""

    id: str
    field: str
    kept: int
    counted: int


async def check_tallies(ports: Ports) -> list[Difference]:
    """Count everything anew from the payments, and name what is kept differently; empty when all is right. A payment
    that took money and does not say when or how much is named itself.

    All of it is read as of one moment, so it may run beside a working service. Memory grows with the number of
    tallies, not with that of payments.
    """
    counted: Counter[tuple[str, str]] = Counter()
    kept: Counter[tuple[str, str]] = Counter()
    async with ports.storage.snapshot() as seen:
        async for payment in _all(seen, Payment):
            for tally in tallies_of(payment, 1):
                counted[tally.id, "count"] += 1
            if payment.status in TOOK_MONEY and (payment.paid_at is None or payment.actual_amount is None):
                counted[payment.id, "paid_at"] += 1
            elif payment.status in TOOK_MONEY:
                turnover = turnover_of(payment, 1)
                counted[turnover.id, "payments"] += 1
                counted[turnover.id, "amount"] += turnover.amount.kopecks
        async for tally in _all(seen, Tally):
            kept[tally.id, "count"] = tally.count
        async for turnover in _all(seen, Turnover):
            kept[turnover.id, "payments"] = turnover.payments
            kept[turnover.id, "amount"] = turnover.amount.kopecks
    return [
        Difference(id=place[0], field=place[1], kept=kept[place], counted=counted[place])
        for place in sorted(counted.keys() | kept.keys())
        if kept[place] != counted[place]
    ]


async def _all(seen: Snapshot, kind: type[R]) -> AsyncIterator[R]:
    """Every record of a snapshot, in the order of ids."""
    last = ""
    while batch := await seen[kind].find(limit=_BATCH, id=AtLeast(last)):
        for record in batch:
            if record.id != last:
                yield record
        if len(batch) < _BATCH:
            return
        last = batch[-1].id
