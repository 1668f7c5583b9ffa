"""Statement of one Moscow day: the balance before it, what moved it, and the balance after it (docs/dashboard.md
"Balance and payouts").

Balances and numbers come from the movements at the edges of the day, so their cost does not grow with the day. The
sums of each kind need all movements of the day, and are left out of a day with more than SUMMED.
"""

from collections.abc import Iterable
from datetime import date

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.days import iso, moscow_day
from ...domain.ledger import EntryKind
from ...domain.money import Rub, Usdt
from ...domain.movements import Movement, kind_counts
from .movements import MovementFilter, batches_of, bring_up, span_of

SUMMED = 20_000
"""Most movements of a day that are read to sum them by kind."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a balance, or their change."""

    available: Usdt
    reserved: Usdt
    pending: Rub

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(
            available=self.available + other.available,
            reserved=self.reserved + other.reserved,
            pending=self.pending + other.pending,
        )


ZERO = Parts(available=Usdt(0), reserved=Usdt(0), pending=Rub(0))


class KindLine(msgspec.Struct, frozen=True, kw_only=True):
    """All movements of one kind on the day."""

    kind: EntryKind
    count: int
    change: Parts | None
    """None: the day has more than SUMMED movements."""


class DayStatement(msgspec.Struct, frozen=True, kw_only=True):
    """One Moscow day of an account and mode."""

    day: date
    opening: Parts
    lines: tuple[KindLine, ...]
    closing: Parts
    """Of a day that is not over: the balance so far."""


async def read_day(ports: Ports, caller: Caller, day: date) -> DayStatement:
    """Return the statement of a day. Raises: Refusal PROVIDER_UNAVAILABLE while the movements are being listed."""
    since, until = moscow_day(day)
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        span = await span_of(unit, caller, MovementFilter(created_from=iso(since), created_to=iso(until)))
        before, last = await span.edges()
    opening = _after(before)
    counts = kind_counts(before, last)
    change: dict[EntryKind, Parts] | None = None
    if sum(counts.values()) <= SUMMED:
        change = dict.fromkeys(counts, ZERO)
        async for batch in batches_of(ports, span, lambda _: True):
            _sum(change, batch)
    lines = tuple(
        KindLine(kind=kind, count=count, change=None if change is None else change[kind])
        for kind, count in counts.items()
    )
    return DayStatement(day=day, opening=opening, lines=lines, closing=opening if last is None else _after(last))


def _after(movement: Movement | None) -> Parts:
    if movement is None:
        return ZERO
    return Parts(available=movement.available_after, reserved=movement.reserved_after, pending=movement.pending_after)


def _sum(change: dict[EntryKind, Parts], batch: Iterable[Movement]) -> None:
    for each in batch:
        moved = Parts(available=each.available, reserved=each.reserved, pending=each.pending)
        change[each.kind] = change[each.kind] + moved
