"""The only three writes that change the number of payments per kind. Each updates the tallies in the same unit, and
the rows of payments that wait for settlement, so both stay exact after crashes and races; no other code adds, moves or
removes a payment.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec.structs import replace

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, R, Snapshot, Unit
from ...domain.payments.payment_links import LinkTotals, link_totals_of
from ...domain.payments.payments import Payment
from ...domain.payments.tallies import TOOK_MONEY, Tally, Turnover, tallies_of, took_money, turnover_of
from ...domain.payments.unsettled import Unsettled, unsettled_of

_BATCH = 1000


def add_payment(unit: Unit, payment: Payment) -> Payment:
    """Write a new payment."""
    unit[Tally].accrue(*tallies_of(payment, 1))
    _replace_unsettled(unit, None, payment)
    return unit[Payment].add(payment)


def save_moved(unit: Unit, before: Payment, after: Payment) -> Payment:
    """Save a payment whose status changed, and return it as saved."""
    return save_all_moved(unit, [(before, after)])[0]


def save_all_moved(unit: Unit, moves: Sequence[tuple[Payment, Payment]]) -> list[Payment]:
    """Save payments whose status changed, as pairs (before, after), and return them as saved."""
    counts: dict[str, Tally] = {}
    for before, after in moves:
        for tally in (*tallies_of(before, -1), *tallies_of(after, 1)):
            known = counts.get(tally.id)
            counts[tally.id] = tally if known is None else replace(tally, count=known.count + tally.count)
        if took_money(before.status, after.status):
            unit[Turnover].accrue(turnover_of(after, 1))
            if after.link_id is not None:
                unit[LinkTotals].accrue(link_totals_of(after, 1))
    unit[Tally].accrue(*counts.values())
    # Save the payments first, so that a unit that lost a race goes stale instead of breaking a rule.
    saved = [unit[Payment].save(after) for _, after in moves]
    for before, after in moves:
        _replace_unsettled(unit, before, after)
    return saved


def remove_payment(unit: Unit, payment: Payment) -> None:
    """Remove a payment, and subtract it from all sums."""
    unit[Tally].accrue(*tallies_of(payment, -1))
    if payment.status in TOOK_MONEY:
        unit[Turnover].accrue(turnover_of(payment, -1))
        if payment.link_id is not None:
            unit[LinkTotals].accrue(link_totals_of(payment, -1))
    unit[Payment].remove(payment)
    _replace_unsettled(unit, payment, None)


def _replace_unsettled(unit: Unit, before: Payment | None, after: Payment | None) -> None:
    old, new = (None if payment is None else unsettled_of(payment) for payment in (before, after))
    if old is not None and new is None:
        unit[Unsettled].remove(old)
    elif old is None and new is not None:
        unit[Unsettled].add(new)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A stored sum that differs from the sum of the payments."""

    id: str
    field: str
    kept: int
    counted: int


async def check_tallies(ports: Ports) -> list[Difference]:
    """Recount everything from the payments, and return the sums that differ; empty when all are correct. A payment that
    took money without a time or an amount is listed itself, and so is a row of a payment that waits for settlement.

    All reads are of one moment, so it may run beside a working service. Memory grows with the number of tallies, not of
    payments.
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
                if payment.link_id is not None:
                    counted[payment.link_id, "payments"] += 1
                    counted[payment.link_id, "amount"] += payment.actual_amount.kopecks if payment.actual_amount else 0
                turnover = turnover_of(payment, 1)
                counted[turnover.id, "payments"] += 1
                counted[turnover.id, "amount"] += turnover.amount.kopecks
            waiting = unsettled_of(payment)
            if waiting is not None:
                counted[waiting.id, "unsettled"] = 1
        async for row in _all(seen, Unsettled):
            kept[row.id, "unsettled"] = 1
        async for tally in _all(seen, Tally):
            kept[tally.id, "count"] = tally.count
        async for turnover in _all(seen, Turnover):
            kept[turnover.id, "payments"] = turnover.payments
            kept[turnover.id, "amount"] = turnover.amount.kopecks
        async for totals in _all(seen, LinkTotals):
            kept[totals.id, "payments"] = totals.payments
            kept[totals.id, "amount"] = totals.amount.kopecks
    return [
        Difference(id=place[0], field=place[1], kept=kept[place], counted=counted[place])
        for place in sorted(counted.keys() | kept.keys())
        if kept[place] != counted[place]
    ]


async def _all(seen: Snapshot, kind: type[R]) -> AsyncIterator[R]:
    """Iterate over every record of a snapshot, in the order of ids."""
    last = ""
    while batch := await seen[kind].find(limit=_BATCH, id=AtLeast(last)):
        for record in batch:
            if record.id != last:
                yield record
        if len(batch) < _BATCH:
            return
        last = batch[-1].id
