"""Rows of differences: written once however often they are found, and closed when they are gone or settled
(docs/reconciliation.md "Differences").
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Below, OneOf, Unit
from ...domain import ids
from ...domain.errors import Refusal
from ...domain.people.notifications import NotificationKind
from ...domain.reconciliation.comparing import Counted, Difference
from ...domain.reconciliation.reconciliation import (
    DIFFERENCE,
    MOST,
    Discrepancy,
    Reconciliation,
    difference_id,
    found_again,
    gone,
)
from ..common.units import retrying, unit_of_work
from ..person_events import note_for_people

_BATCH = 200
_RACES = ("discrepancies_id",)


class Ledgered:
    """Writer of one run's differences; it counts them by kind, to stop at a limit."""

    def __init__(self, ports: Ports, of: Reconciliation, count: Counter[Difference]) -> None:
        self._ports = ports
        self._of = of
        self._count = count
        self.beyond: Counter[Difference] = Counter()
        """Differences above the limit, which were not written."""

    @classmethod
    async def of(cls, ports: Ports, row: Reconciliation) -> "Ledgered":
        """Return a writer that continues the counts of this run after an interruption."""
        async with ports.storage.unit() as unit:
            count = {
                each: await unit[Discrepancy].total(**_of_day(row), run=row.run, difference=each) for each in Difference
            }
        return cls(ports, row, Counter(count))

    async def add(self, found: Sequence[Discrepancy], there: Sequence[Counted]) -> None:
        """Write the differences found. `there` are operations that the bank has after all, should an earlier page have
        missed them.
        """
        kept = []
        for each in found:
            if self._count[each.difference] >= MOST:
                self.beyond[each.difference] += 1
                continue
            self._count[each.difference] += 1
            kept.append(each)
        missed = {difference_id(self._of, Difference.MISSING, each.subject, each.operation) for each in there}
        if kept or missed:
            await retrying(self._ports.storage, lambda unit: self._write(unit, kept, missed), again_on=_RACES)

    async def _write(self, unit: Unit, found: Sequence[Discrepancy], missed: set[str]) -> None:
        wanted = {each.id: each for each in found}
        names = tuple(sorted({*wanted, *missed}))
        before = {each.id: each for each in await unit[Discrepancy].find(id=OneOf(names), limit=len(names))}
        now = self._ports.clock.now()
        for name, each in wanted.items():
            if name in before:
                unit[Discrepancy].save(found_again(before[name], each))
            else:
                unit[Discrepancy].add(each)
                if each.account_id is not None:
                    note_for_people(self._ports, unit, NotificationKind.MISMATCH, each.id)
        for name in missed - wanted.keys():
            if name in before and before[name].closed_at is None:
                unit[Discrepancy].save(gone(before[name], now))


def _of_day(row: Reconciliation) -> Mapping[str, Any]:
    return {"day": row.day, "bank": row.bank, "owner": row.owner}


async def close_gone(ports: Ports, row: Reconciliation, beyond: Mapping[Difference, int], now: datetime) -> int:
    """Close the differences that this finished run did not find again, and return how many are open for the day. For
    kinds above the limit nothing is closed, because not all of them were written.
    """
    kinds = OneOf(tuple(each for each in Difference if not beyond.get(each)))

    async def work(unit: Unit) -> bool:
        old = await unit[Discrepancy].find(
            **_of_day(row), closed_at=None, run=Below(row.run), difference=kinds, limit=_BATCH
        )
        for each in old:
            unit[Discrepancy].save(gone(each, now))
        return len(old) == _BATCH

    while await retrying(ports.storage, work):
        pass
    async with ports.storage.unit() as unit:
        return await unit[Discrepancy].total(**_of_day(row), closed_at=None)


async def open_differences(ports: Ports, row: Reconciliation) -> list[Discrepancy]:
    """Return the open differences of a day, bank and owner, oldest first."""
    async with ports.storage.unit() as unit:
        found = await unit[Discrepancy].find(**_of_day(row), closed_at=None, limit=MOST * len(Difference))
    return sorted(found, key=lambda each: (each.moment, each.id))


async def list_differences(ports: Ports, *, limit: int = 1000) -> list[Discrepancy]:
    """Return all open differences, in the order in which they were found."""
    async with ports.storage.unit() as unit:
        return await unit[Discrepancy].find(closed_at=None, order="found_at", limit=limit, readable=True)


@unit_of_work()
async def settle_difference(ports: Ports, unit: Unit, name: str) -> Discrepancy:
    """Close a difference that an operator has settled with bank and merchant. It stays closed as long as it is found
    unchanged.

    Raises: Refusal NOT_FOUND; INVALID_STATE for a closed difference.
    """
    row = await unit[Discrepancy].get(name) if ids.is_prefixed(DIFFERENCE, name) else None
    if row is None:
        raise Refusal("NOT_FOUND", "No difference of this id")
    if row.closed_at is not None:
        raise Refusal("INVALID_STATE", "The difference is closed")
    return unit[Discrepancy].save(msgspec.structs.replace(row, closed_at=ports.clock.now(), settled=True))
