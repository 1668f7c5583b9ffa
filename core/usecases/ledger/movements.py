"""Reading of a merchant's movements (docs/settlement.md "Movements").

A reader first lists the entries booked since, so that the last movement shows the balance of GET /balance. A page is
found by reading only a few movements, because each movement stores how many there were of each sort up to it.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between, OneOf, Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.ledger import BalanceType, EntryKind, JournalEntry
from ...domain.movements import (
    BELIEVED,
    MOVEMENT_KINDS,
    OBJECT_IDS,
    Balance,
    Movement,
    ObjectType,
    Sorts,
    entry_ids,
    movement_id,
    movement_ids,
    movement_of,
    sort_of,
)
from ..accounts.accounts import find_account
from ..common.keyset import Count, Cursor, KeysetPage, Listed, cursor_damaged
from ..common.paging import MomentFilter, Page, Position
from .ledger import balance_types
from .listing import AT_ONCE, fresh_entries, last_movement, list_fresh

MOST = 30
"""Units that one request waits for, some seconds in total. The hourly job and later requests list the rest."""
RETRY_AFTER = 2
"""In seconds."""

_PROBES = 64
"""Movements that one step of a search reads. Few large reads are faster than many small ones, because each read is a
round trip to the server."""

_DIGITS = 18
"""More than the number of a movement has."""

T = TypeVar("T")


class MovementFilter(MomentFilter, frozen=True, kw_only=True):
    """Query values of GET /balance/movements as received; None when absent."""

    kind: str | None = None
    object_type: str | None = None
    object_id: str | None = None
    balance: str | None = None


async def bring_up(ports: Ports, caller: Caller) -> None:
    """List the caller's missing movements. Raises: Refusal PROVIDER_UNAVAILABLE when that takes longer than a request
    may wait; the next request continues.

    The search for missing entries begins near the end of the list. Further back, Postgres may walk over all entries
    listed since its last vacuum. The balance shows whether an older entry is missing, for example after the clock was
    corrected. An entry booked between these reads only causes one more search.
    """
    owner = caller.account_id, caller.mode
    async with ports.storage.unit() as seen:
        last = await last_movement(seen, *owner)
        since = None if last is None else last.at - BELIEVED
        fresh = await fresh_entries(seen, *owner, since)
        balance = await balance_types(seen, *owner)
    after = last
    for entry in fresh:
        after = movement_of(entry, after) or after
    whole = _is_balance(after, balance)
    if (fresh or not whole) and not await list_fresh(ports, *owner, since=since if whole else None, most=MOST):
        raise Refusal("PROVIDER_UNAVAILABLE", "The movements are being listed; try again", retry_after=RETRY_AFTER)


def _is_balance(last: Movement | None, balance: Mapping[BalanceType, int]) -> bool:
    available, reserved, pending = (
        balance.get(each, 0) for each in (BalanceType.AVAILABLE, BalanceType.RESERVED, BalanceType.PENDING)
    )
    if last is None:
        return not (available or reserved or pending)
    after = last.available_after.units, last.reserved_after.units, last.pending_after.kopecks
    return after == (available, reserved, pending)


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Movements of one account and mode with numbers from `low` to below `high`, of some sorts, read by `unit`."""

    unit: Unit
    account_id: str
    mode: Mode
    low: int
    high: int
    sorts: Sorts = Sorts()

    async def counted(self) -> tuple[int, int]:
        """Return the number of movements of the sorts before the span, and up to its end."""
        edges = await self._at({self.low - 1, self.high - 1})
        return self.sorts.count(edges.get(self.low - 1)), self.sorts.count(edges.get(self.high - 1))

    async def edges(self) -> tuple[Movement | None, Movement | None]:
        """Return the last movement before the span, and the last one up to its end."""
        found = await self._at({self.low - 1, self.high - 1})
        return found.get(self.low - 1), found.get(self.high - 1)

    async def of(self, first: int, last: int) -> list[Movement]:
        """Return the movements with the ordinals `first` to `last`, counted from the account's beginning, in order."""
        if first > last:
            return []
        if self.sorts.all:
            span = Between(*movement_ids(self.account_id, self.mode, first, last + 1))
            return await self.unit[Movement].find(id=span, limit=last - first + 1, quick=True)
        numbers = await self.first_where(
            range(first, last + 1), lambda movement, ordinal: self.sorts.count(movement) >= ordinal
        )
        found = await self._at(set(numbers.values()))
        return [found[number] for number in numbers.values()]

    async def first_where(self, wanted: Iterable[T], reached: Callable[[Movement, T], bool]) -> dict[T, int]:
        """For each wanted value, return the number of the first movement that reached it, or `high` if none did. All
        later movements have reached it too. One search finds all values."""
        # Search all values at once: probe several numbers in each range by one read, then keep the part that holds the
        # first hit, until every range is empty.
        bounds = dict.fromkeys(wanted, (self.low, self.high))
        while left := {each: bound for each, bound in bounds.items() if bound[0] < bound[1]}:
            parts = max(_PROBES // len(left), 1) + 1
            places = {
                each: sorted({low + (high - low) * part // parts for part in range(1, parts)})
                for each, (low, high) in left.items()
            }
            seen = await self._at({number for numbers in places.values() for number in numbers})
            for each, numbers in places.items():
                low, high = bounds[each]
                for number in numbers:
                    if reached(seen[number], each):
                        high = number
                        break
                    low = number + 1
                bounds[each] = low, high
        return {each: low for each, (low, _) in bounds.items()}

    async def _at(self, numbers: set[int]) -> dict[int, Movement]:
        wanted = OneOf(tuple(movement_id(self.account_id, self.mode, number) for number in numbers if number))
        if not wanted.values:
            return {}
        found = await self.unit[Movement].find(id=wanted, limit=len(wanted.values), quick=True)
        return {movement.number: movement for movement in found}


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A validated filter."""

    sorts: Sorts
    object_id: str | None
    since: datetime | None
    until: datetime | None

    def takes(self, movement: Movement) -> bool:
        """Return whether the filter matches the movement."""
        return (
            self.sorts.takes(sort_of(movement))
            and (self.object_id is None or self.object_id == movement.object_id)
            and (self.since is None or self.since <= movement.at)
            and (self.until is None or movement.at < self.until)
        )


async def list_movements(ports: Ports, caller: Caller, asked: MovementFilter, number: int, size: int) -> Page[Movement]:
    """Return a page of the caller's movements, newest first.

    Raises: Refusal VALIDATION_ERROR; PROVIDER_UNAVAILABLE as `bring_up`.
    """
    wanted = _read(asked)
    await bring_up(ports, caller)
    offset = (number - 1) * size
    async with ports.storage.unit() as unit:
        if wanted.object_id is not None:
            found = [each for each in await _of_object(unit, caller, wanted.object_id) if wanted.takes(each)]
            return Page(found[::-1][offset : offset + size], number, size, len(found))
        span = await _span(unit, caller, wanted)
        before, until = await span.counted()
        records = await span.of(max(until - offset - size, before) + 1, until - offset)
    return Page(records[::-1], number, size, until - before)


async def browse_movements(
    ports: Ports, caller: Caller, asked: MomentFilter, cursor: Cursor | None, size: int
) -> Listed[Movement]:
    """Return a page of the caller's movements by cursor, newest first. The id in a position is the movement's number.

    Raises: Refusal CURSOR_INVALID, VALIDATION_ERROR; PROVIDER_UNAVAILABLE as `bring_up`.
    """
    wanted = MovementFilter(created_from=asked.created_from, created_to=asked.created_to)
    number = None if cursor is None else _number(cursor)
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        span = await span_of(unit, caller, wanted)
        # Without other filters every number of the span is a row.
        if number is None:
            end = span.high
        elif cursor is not None and cursor.newer:
            end = min(max(number + 1, span.low) + size, span.high)
        else:
            end = max(min(number, span.high), span.low)
        records = (await span.of(max(end - size, span.low), end - 1))[::-1]
    newer = records[0] if records and end < span.high else None
    older = records[-1] if records and end - size > span.low else None
    page = KeysetPage(
        records=records,
        newer=_position(newer) if records or cursor is None else cursor.position,
        older=_position(older),
    )
    return Listed(page=page, count=Count(span.high - span.low))


async def walk_movements(
    ports: Ports, caller: Caller, asked: MovementFilter, after: Position | None
) -> AsyncIterator[tuple[list[Movement], Position]]:
    """Return all matching movements of the caller up to now, newest first, in batches with the position behind each.
    The id in a position is the movement's ordinal among those of its sorts. Raises: as `list_movements`, before the
    first batch."""
    wanted = _read(asked)
    await bring_up(ports, caller)
    return _walked(ports, caller, wanted, None if after is None else int(after.id))


async def _walked(
    ports: Ports, caller: Caller, wanted: _Wanted, end: int | None
) -> AsyncIterator[tuple[list[Movement], Position]]:
    if wanted.object_id is not None:
        async with ports.storage.unit() as unit:
            found = [each for each in await _of_object(unit, caller, wanted.object_id) if wanted.takes(each)]
        if found and end is None:  # an object has a few
            yield found[::-1], Position(found[0].at, "0")
        return
    while end is None or end > 1:
        async with ports.storage.unit() as unit:
            span = await _span(unit, caller, wanted)
            before, until = await span.counted()
            last = until if end is None else end - 1
            end = max(last - AT_ONCE, before) + 1
            records = await span.of(end, last)
        if not records:
            return
        yield records[::-1], Position(records[0].at, str(end))


def _position(movement: Movement | None) -> Position | None:
    return None if movement is None else Position(movement.at, str(movement.number))


def _number(cursor: Cursor) -> int:
    text = cursor.position.id
    if not (text.isdigit() and len(text) < _DIGITS):
        raise cursor_damaged()
    return int(text)


async def movements_of(ports: Ports, account_id: str, mode: Mode, asked: MovementFilter, limit: int) -> list[Movement]:
    """Return the newest movements of an account and mode, newest first, for operators.

    Raises: Refusal ACCOUNT_NOT_FOUND, and as `list_movements`.
    """
    return (await list_movements(ports, await _caller(ports, account_id, mode), asked, 1, limit)).records


async def every_movement_of(
    ports: Ports, account_id: str, mode: Mode, asked: MovementFilter
) -> AsyncIterator[Sequence[Movement]]:
    """Return all movements of an account and mode, as `all_movements`, for operators. Raises: Refusal
    ACCOUNT_NOT_FOUND, and as `list_movements`."""
    return await all_movements(ports, await _caller(ports, account_id, mode), asked)


async def _caller(ports: Ports, account_id: str, mode: Mode) -> Caller:
    async with ports.storage.unit() as unit:
        return Caller(account=await find_account(unit, account_id), mode=mode, key_id="")


async def all_movements(ports: Ports, caller: Caller, asked: MovementFilter) -> AsyncIterator[Sequence[Movement]]:
    """Return all matching movements of the caller up to now, oldest first, in batches. Raises: as `list_movements`,
    before the first batch."""
    wanted = _read(asked)
    await bring_up(ports, caller)
    async with ports.storage.unit() as unit:
        if wanted.object_id is not None:
            found = [each for each in await _of_object(unit, caller, wanted.object_id) if wanted.takes(each)]
            return _lone(found)
        return batches_of(ports, await _span(unit, caller, wanted), wanted.takes)


async def _lone(found: Sequence[Movement]) -> AsyncIterator[Sequence[Movement]]:
    yield found


async def batches_of(ports: Ports, span: Span, takes: Callable[[Movement], bool]) -> AsyncIterator[Sequence[Movement]]:
    """Yield the matching movements of a span, oldest first, each batch read by a unit of its own."""
    for low in range(span.low, span.high, AT_ONCE):
        ends = Between(*movement_ids(span.account_id, span.mode, low, min(low + AT_ONCE, span.high)))
        async with ports.storage.unit() as unit:
            found = await unit[Movement].find(id=ends, limit=AT_ONCE)
        yield [movement for movement in found if takes(movement)]


async def span_of(unit: Unit, caller: Caller, asked: MovementFilter) -> Span:
    """Return the listed movements of a filter without `object_id`. Raises: Refusal VALIDATION_ERROR."""
    return await _span(unit, caller, _read(asked))


async def _span(unit: Unit, caller: Caller, wanted: _Wanted) -> Span:
    last = await last_movement(unit, caller.account_id, caller.mode)
    end = 1 if last is None else last.number + 1
    whole = Span(unit=unit, account_id=caller.account_id, mode=caller.mode, low=1, high=end, sorts=wanted.sorts)
    moments = {moment for moment in (wanted.since, wanted.until) if moment is not None}
    firsts = await whole.first_where(moments, lambda movement, moment: movement.at >= moment)
    low = 1 if wanted.since is None else firsts[wanted.since]
    high = end if wanted.until is None else firsts[wanted.until]
    return msgspec.structs.replace(whole, low=low, high=max(low, high))


async def _of_object(unit: Unit, caller: Caller, object_id: str) -> list[Movement]:
    """Return an object's movements in order. Its entries are found by their ids, and each entry names its movement."""
    wanted = tuple(entry_ids(object_id))
    entries = await unit[JournalEntry].find(id=OneOf(wanted), limit=len(wanted), quick=True)
    places = tuple(
        movement_id(entry.account_id, entry.mode, entry.place)
        for entry in entries
        if entry.place and (entry.account_id, entry.mode) == (caller.account_id, caller.mode)
    )
    return await unit[Movement].find(id=OneOf(places), limit=len(places), quick=True) if places else []


def _read(asked: MovementFilter) -> _Wanted:
    """Validate a filter. Raises: Refusal VALIDATION_ERROR for a value that no movement could have."""
    made = asked.made()
    return _Wanted(
        sorts=Sorts(
            kind=None if asked.kind is None else _kind(asked.kind),
            object_type=None
            if asked.object_type is None
            else read_choice("object_type", asked.object_type, ObjectType),
            balance=None if asked.balance is None else read_choice("balance", asked.balance, Balance),
        ),
        object_id=None if asked.object_id is None else _object_id(asked.object_id),
        since=made.low,
        until=made.high,
    )


def _kind(text: str) -> EntryKind:
    if text.lower() not in MOVEMENT_KINDS:
        raise shape_error("kind", f"must be one of: {', '.join(MOVEMENT_KINDS)}")
    return EntryKind(text.lower())


def _object_id(text: str) -> str:
    if not any(ids.is_prefixed(prefix, text) for prefix in OBJECT_IDS):
        raise shape_error("object_id", f"must be the id of one of: {', '.join(ObjectType)}")
    return text
