"""Comparison of a bank's list with our records for a day (docs/reconciliation.md). It proceeds in time spans and saves
its position, so that any process can continue after a crash.

The comparison moves nothing: it writes differences for a person.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, Conflict, Stale, Unavailable, Unreadable
from ....ports.reporting import BookedList, ReportedEntry, ReportingBank
from ...domain.accounts.accounts import Mode
from ...domain.days import iso, moscow_day
from ...domain.errors import Refusal, shape_error
from ...domain.reconciliation.comparing import (
    MARGIN,
    Booked,
    Counted,
    Difference,
    Standing,
    Subject,
    Sweep,
    differences,
    matters,
)
from ...domain.reconciliation.reconciliation import (
    Discrepancy,
    Reconciliation,
    ReconciliationStatus,
    comparable_from,
    compared,
    discrepancy,
    failed,
    reconciliation_id,
    started,
)
from .counted import counted_between, known, others_between
from .discrepancies import Ledgered, close_gone
from .payments import payments_between
from .scope import Scope, scope_of

STRETCH = timedelta(minutes=30)
"""Time span of the bank's list between two saves of the position."""
_PAGES = 10_000
"""Most pages of one time span; a longer list is taken for endless."""
_AT_ONCE = 200
"""Operations looked up together."""

_FAILURES = (*NO_ANSWER, Unreadable)
"""Faults after which the rest of the day cannot be compared."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Result of comparing one bank with the credentials of one owner."""

    bank: str
    result: Reconciliation | None = None
    """None if the bank gives no list."""

    @property
    def has_failed(self) -> bool:
        return self.result is not None and self.result.status is ReconciliationStatus.FAILED

    def is_of(self, bank: str, owner: str) -> bool:
        """Return whether the result belongs to these credentials."""
        return self.bank == bank and self.result is not None and self.result.owner == owner


def banks_to_compare(ports: Ports, name: str | None) -> Sequence[str]:
    """Return the banks of live mode, or the named one. Raises: Refusal VALIDATION_ERROR."""
    live = [bank.name for bank in ports.banks.of_mode(Mode.LIVE)]
    if name is None:
        return live
    if name not in live:
        raise shape_error("bank", f"must be one of live mode: {', '.join(live) or 'there is none'}")
    return [name]


def check_comparable(ports: Ports, day: date) -> None:
    """Check that the day can be compared. Raises: Refusal VALIDATION_ERROR for a day that is not over, or too
    recent.
    """
    begin = comparable_from(day)
    if ports.clock.now() < begin:
        raise shape_error("day", f"can be compared from {iso(begin)} on")


async def reconcile(
    ports: Ports, day: date, name: str | None = None, *, but: Sequence[Compared] = ()
) -> list[Compared]:
    """Compare a day with every bank of live mode, or one, to the end. A bank that fails does not stop the others. `but`
    are results of a run just before; only its failures are repeated.

    Raises: Refusal VALIDATION_ERROR; INVALID_STATE while another process compares the same day.
    """
    check_comparable(ports, day)
    results: list[Compared] = []
    for each in banks_to_compare(ports, name):
        bank = ports.banks.named(each)
        if not isinstance(bank, ReportingBank):
            results.append(Compared(bank=each))
            continue
        for owner in bank.owners():
            done = next((one for one in but if one.is_of(each, owner) and not one.has_failed), None)
            results.append(done or Compared(bank=each, result=await reconcile_owner(ports, bank, owner, day)))
    return results


async def reconcile_owner(
    ports: Ports, bank: BookedList, owner: str, day: date, *, stretches: int | None = None, afresh: bool = False
) -> Reconciliation:
    """Compare a day with the credentials of one owner, from the saved position. With `stretches`, compare at most that
    many time spans; the comparison may then still be running. `afresh`: begin anew, because the list may be another
    one.

    Raises: Refusal INVALID_STATE while another process compares the same day; Unavailable of the storage.
    """
    try:
        scope = await scope_of(ports, bank, owner)
        run = _Run(ports, scope, await _begin(ports, scope, day, afresh=afresh), day)
        try:
            return await run.carry(stretches)
        except _FAILURES as fault:
            return await run.fail(fault)
    except (Stale, Conflict):
        raise Refusal("INVALID_STATE", "Another process compares this day already: wait for its result") from None


async def ended_late(ports: Ports, bank: ReportingBank, owner: str, rows: Sequence[Reconciliation]) -> list[date]:
    """Return the days of these comparisons whose number of operations at the bank differs from the number at their
    start.
    """
    scope = await scope_of(ports, bank, owner)
    days = []
    for row in rows:
        day = date.fromisoformat(row.day)
        if row.counted not in (None, await _counted(ports, scope, day)):
            days.append(day)
    return days


async def _counted(ports: Ports, scope: Scope, day: date) -> int | None:
    """Count the day's operations; None if some cannot be read, which the comparison itself reports."""
    try:
        return await counted_between(ports, scope, *moscow_day(day))
    except Unreadable:
        return None


async def _begin(ports: Ports, scope: Scope, day: date, *, afresh: bool) -> Reconciliation:
    bank = scope.bank.name
    before = await ports.storage.get(Reconciliation, reconciliation_id(bank, day.isoformat(), scope.owner))
    row = started(before, bank, day, scope.owner, ports.clock.now(), afresh=afresh)
    if row == before:
        return row
    if before is None or row.run != before.run:
        row = msgspec.structs.replace(row, counted=await _counted(ports, scope, day))
    async with ports.storage.unit() as unit:
        saved = unit[Reconciliation].add(row) if before is None else unit[Reconciliation].save(row)
        await unit.commit()
    return saved


class _Run:
    """One process working on a comparison."""

    def __init__(self, ports: Ports, scope: Scope, row: Reconciliation, day: date) -> None:
        self._ports = ports
        self._scope = scope
        self._row = row
        self._begin, self._end = moscow_day(day)
        self._sweep = Sweep(row.judged_until, self._end)
        self._told: list[datetime] = []
        """Start times of judged entries that are not counted yet. An entry that is read again must not count twice."""

    async def carry(self, stretches: int | None) -> Reconciliation:
        """Compare to the end, or for `stretches` time spans and then until most of the list read so far need not be
        read again: an operation that ended days later holds the saved position back until the list reaches its end.
        Raises: faults of the bank's list and of the storage; Stale.
        """
        now = self._ports.clock.now()
        # Read the list from a margin before the saved position to a margin after the day, because bank and service
        # may date the same operation differently.
        since = listed = self._row.judged_until - MARGIN
        last = self._end + MARGIN
        written = await Ledgered.of(self._ports, self._row)
        # Operations other than payments are few: load the whole day. Payments are loaded a margin ahead of the list.
        self._sweep.hold([each async for each in others_between(self._ports, self._scope, listed, last)])
        held = listed
        while listed < now and (listed < last or self._sweep.waits()):
            upto = min(listed + STRETCH, now)
            until = min(upto + MARGIN, last)
            if held < until:
                self._sweep.hold([each async for each in payments_between(self._ports, self._scope, held, until)])
                held = until
            # Compare the bank's entries with the loaded records, then report records whose entry can no longer come.
            async for page in self._pages(listed, upto):
                await self._compare(page, written)
            listed = upto
            await self._lack(self._sweep.lacking(listed), written)
            if stretches is not None:
                stretches -= 1
            is_over = listed >= last and not self._sweep.waits()
            if not is_over:
                # All entries before this position are judged, so a crash loses only the work after it.
                position = self._sweep.judged_until(listed)
                await self._note(msgspec.structs.replace(self._row, judged_until=position))
                if stretches is not None and stretches <= 0 and (position - since) * 2 >= listed - since:
                    return self._row
        # The list is complete: every record still without an entry is missing there.
        await self._lack(self._sweep.lacking(None), written)
        return await self._finish(written)

    async def fail(self, fault: Exception) -> Reconciliation:
        """Record that the day cannot be compared now. Raises: Stale."""
        return await self._note(failed(self._row, str(fault), self._ports.clock.now()))

    async def _finish(self, written: Ledgered) -> Reconciliation:
        now = self._ports.clock.now()
        left = await close_gone(self._ports, self._row, written.beyond, now)
        return await self._note(compared(self._row, left + sum(written.beyond.values()), now))

    async def _note(self, row: Reconciliation) -> Reconciliation:
        """Save the position. Raises: Stale when another process has taken the comparison over."""
        async with self._ports.storage.unit() as unit:
            over = sum(each < row.judged_until for each in self._told)
            self._row = unit[Reconciliation].save(msgspec.structs.replace(row, entries=row.entries + over))
            await unit.commit()
        self._told = [each for each in self._told if each >= row.judged_until]
        return self._row

    async def _pages(self, since: datetime, until: datetime) -> AsyncIterator[Sequence[ReportedEntry]]:
        """Iterate over the pages of a time span. Raises: faults of the bank's list; Unavailable for an endless list."""
        cursor, bank = None, self._scope.bank
        for _ in range(_PAGES):
            # An unreadable list says nothing about payments, so it does not affect the gateway's status.
            page = await bank.entries(self._scope.owner, since, until, cursor)
            yield [each for each in page.entries if since <= each.moment < until]
            if page.next_cursor is None:
                return
            if page.next_cursor == cursor:
                raise Unavailable(f"{bank.name}: the list comes to the same place again")
            cursor = page.next_cursor
        raise Unavailable(f"{bank.name}: the list of {STRETCH} is too long")

    async def _compare(self, page: Sequence[ReportedEntry], written: Ledgered) -> None:
        """Sort entries that agree with the preloaded records from the others, and look the others up: the preloaded
        records may be minutes old, and lack money in suspense.
        """
        asked: list[Booked] = []
        for entry in page:
            booked = _booked(entry)
            is_judged = self._begin <= booked.moment < self._end
            if is_judged and booked.moment >= self._row.judged_until:
                self._told.append(booked.moment)
            ours = self._sweep.match(booked)
            if not is_judged or (ours is None and not matters(booked)):
                continue
            if ours is None or differences(ours, booked):
                asked.append(booked)
        for start in range(0, len(asked), _AT_ONCE):
            await self._look_up(asked[start : start + _AT_ONCE], written)

    async def _look_up(self, asked: Sequence[Booked], written: Ledgered) -> None:
        ours = await known(self._ports, self._scope, {each.operation for each in asked if each.operation is not None})
        found: list[Discrepancy] = []
        there: list[Counted] = []
        now = self._ports.clock.now()
        for booked in asked:
            mine = ours.get(booked.operation or "")
            is_second = mine is not None and self._sweep.is_second(mine.operation, booked.id)
            told = differences(None if is_second else mine, booked)
            if mine is not None and not is_second and Difference.EXTRA not in told:
                self._sweep.found(mine.operation, booked.id)
                there.append(mine)
            found += [discrepancy(self._row, difference, mine, booked, now) for difference in told]
        await written.add(found, there)

    async def _lack(self, lacking: Sequence[Counted], written: Ledgered) -> None:
        """Write operations that the list should have and lacks, after reading their current state."""
        for start in range(0, len(lacking), _AT_ONCE):
            part = lacking[start : start + _AT_ONCE]
            ours = await known(self._ports, self._scope, {each.operation for each in part})
            now = self._ports.clock.now()
            missed = [mine for mine in ours.values() if differences(mine, None)]
            await written.add([discrepancy(self._row, Difference.MISSING, mine, None, now) for mine in missed], ())


def _booked(entry: ReportedEntry) -> Booked:
    return Booked(
        id=entry.id,
        subject=Subject(entry.kind.value),
        standing=Standing(entry.state.value),
        moment=entry.moment,
        kopecks=entry.amount_kopecks,
        operation=entry.operation,
        reference=entry.reference,
        fee=entry.fee_kopecks,
    )
