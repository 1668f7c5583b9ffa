"""Pages of a list by cursor: a page begins behind a record, so the thousandth page costs as much as the first, and rows
that are added meanwhile neither repeat nor hide another row.

Criteria that no index has are compared row by row. Such a page reads SCANNED rows at most; it then says how far it
searched, and the next page continues there.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Below, Between, R, Snapshot
from ...domain.errors import Refusal
from .paging import Position

T = TypeVar("T")

SCANNED = 20_000
"""Maximum number of rows that a page reads when no index leads to its records."""
_NEAR = 2_000
"""Rows that a page reads first."""
COUNTED = 10_000
"""Lists are counted up to this many records. A longer list is only known to be longer."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(microseconds=1)
_BEHIND_ALL = "~"
"""Sorts after every id."""
_NEXT = "!"
"""Makes an id the lowest text above it, because no id has a lower character."""
# Seventeen digits of microseconds end in the year 5138, so every number is a moment.
_CURSOR = re.compile(r"(-?)([0-9]{1,17})\.([A-Za-z0-9_:.-]{0,160}|~)\Z", re.ASCII)


class Cursor(msgspec.Struct, frozen=True):
    """Start of a page: the records behind this position, or with `newer` those before it."""

    position: Position
    newer: bool = False


def write_cursor(cursor: Cursor) -> str:
    """Return the cursor as text for an address. It contains nothing but the position."""
    since = (cursor.position.at - _EPOCH) // _STEP
    return f"{'-' if cursor.newer else ''}{since}.{cursor.position.id}"


def read_cursor(text: str) -> Cursor:
    """Read the result of `write_cursor`. The text comes from an address, so it may be anything.

    Raises: Refusal CURSOR_INVALID.
    """
    found = _CURSOR.match(text)
    if found is None:
        raise cursor_damaged()
    return Cursor(Position(_EPOCH + int(found[2]) * _STEP, found[3]), newer=bool(found[1]))


def cursor_damaged() -> Refusal:
    return Refusal("CURSOR_INVALID", "The address of this page is damaged: start at the top of the list")


class Listing(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The records of a list."""

    kind: type[R]
    criteria: dict[str, Any]
    """Criteria with an index that continues with the moment and the id."""
    also: dict[str, Any] = {}
    """Criteria that this index lacks."""
    made: Between = Between()
    moment: str = "created_at"
    """Field of the moment. A list by id may lack it."""
    ids: Between = Between()
    """Range of ids, for a list by id."""
    is_by_id: bool = False
    """Whether the index continues with the id instead of the moment. Such ids have the order of time."""


class Count(msgspec.Struct, frozen=True):
    """Number of records of a list: exactly, or at least."""

    number: int
    is_exact: bool = True


class KeysetPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list, newest first."""

    records: list[T]
    newer: Position | None = None
    """Position before which the list may have newer records."""
    older: Position | None = None
    """Position behind which the list may have older records."""
    searched_to: datetime | None = None
    """How far the search came, if it read SCANNED rows before the page was full."""


async def keyset_page(seen: Snapshot, wanted: Listing[R], cursor: Cursor | None, size: int) -> KeysetPage[R]:
    """Return a page as the snapshot sees it. Unreadable records are left out."""
    if cursor is not None and cursor.newer:
        page = await _newer(seen, wanted, cursor.position, size)
        # The top of the list is a full page, like any other.
        return page or await keyset_page(seen, wanted, None, size)
    position = None if cursor is None else cursor.position
    found, edge = await _beyond(seen, wanted, position, size + 1, newest_first=True)
    more, found = len(found) > size, found[:size]
    older = _position(wanted, found[-1]) if more else edge
    newer = None if position is None else _position(wanted, found[0]) if found else position
    searched_to = None if edge is None or more else edge.at
    return KeysetPage(records=found, newer=newer, older=older, searched_to=searched_to)


async def _newer(seen: Snapshot, wanted: Listing[R], position: Position, size: int) -> KeysetPage[R] | None:
    """Return the page before a position; None if the list has no full page there."""
    found, edge = await _beyond(seen, wanted, position, size + 1, newest_first=False)
    if len(found) <= size and edge is None:
        return None
    more, found = len(found) > size, found[:size][::-1]
    newer = _position(wanted, found[0]) if edge is None or more else edge
    older = _position(wanted, found[-1]) if found else position
    searched_to = None if edge is None or more else edge.at
    return KeysetPage(records=found, newer=newer, older=older, searched_to=searched_to)


def _position(wanted: Listing[R], record: R) -> Position:
    return Position(getattr(record, wanted.moment, _EPOCH), record.id)


async def _beyond(
    seen: Snapshot, wanted: Listing[R], position: Position | None, limit: int, *, newest_first: bool
) -> tuple[list[R], Position | None]:
    """Return the records beyond a position in one direction, and where the search ended early, if it did."""
    if wanted.is_by_id:
        return await _beyond_id(seen, wanted, position, limit, newest_first=newest_first)
    repository, moment, sign = seen[wanted.kind], wanted.moment, "-" if newest_first else ""
    found: list[R] = []
    rest = wanted.made
    if position is not None:
        if _within(wanted.made, position.at):
            # Records of the same moment: the other side of the position is what the former page showed.
            same = {**wanted.criteria, **wanted.also, moment: position.at}
            beyond = Below(position.id) if newest_first else AtLeast(position.id)
            found = await repository.find(order=f"{sign}id", limit=limit + 1, readable=True, **same, id=beyond)
            found = [each for each in found if each.id != position.id][:limit]
        rest = _rest(wanted.made, position.at, newest_first=newest_first)
    if len(found) >= limit or (rest.low is not None and rest.high is not None and rest.low >= rest.high):
        return found, None
    order, edge, left = f"{sign}{moment}", None, limit - len(found)
    more: list[R] = []
    # A database would compare row after row until the page is full, so find out where SCANNED rows end. Most pages are
    # full long before.
    for scanned in (min(_NEAR, SCANNED), SCANNED) if wanted.also else (None,):
        part, edge = rest, None
        if scanned is not None:
            ends = await repository.find(
                order=order, offset=scanned, limit=1, readable=True, **{**wanted.criteria, moment: rest}
            )
            if ends:
                at = getattr(ends[0], moment)
                edge = Position(at, "" if newest_first else _BEHIND_ALL)
                part = Between(at, rest.high) if newest_first else Between(rest.low, at + _STEP)
        asked = {**wanted.criteria, **wanted.also, moment: part}
        more = await repository.find(order=order, limit=left, readable=True, **asked)
        if len(more) == left or edge is None:
            break
    return found + more, edge


async def _beyond_id(
    seen: Snapshot, wanted: Listing[R], position: Position | None, limit: int, *, newest_first: bool
) -> tuple[list[R], Position | None]:
    """Do the work of `_beyond` for a list whose index continues with the id."""
    repository, order = seen[wanted.kind], "-id" if newest_first else "id"
    also = wanted.also if wanted.made == Between() else {**wanted.also, wanted.moment: wanted.made}
    start = None if position is None else position.id
    low, high = wanted.ids.low, wanted.ids.high
    if start is not None:
        # The position comes from an address, so it may lie outside the range.
        low, high = _span(low, high, start, newest_first=newest_first)
    if low is not None and high is not None and low >= high:
        return [], None
    rest, edge = Between(low, high), None
    if also:
        ends = await repository.find(order=order, offset=SCANNED, limit=1, readable=True, **wanted.criteria, id=rest)
        if ends:
            edge = _position(wanted, ends[0])
            rest = Between(edge.id, rest.high) if newest_first else Between(rest.low, edge.id + _NEXT)
    return await repository.find(order=order, limit=limit, readable=True, **wanted.criteria, **also, id=rest), edge


def _span(low: str | None, high: str | None, start: str, *, newest_first: bool) -> tuple[str | None, str | None]:
    """Return the bounds of the ids beyond a position."""
    if newest_first:
        return low, start if high is None else min(high, start)
    after = start + _NEXT
    return after if low is None else max(low, after), high


def _within(made: Between, at: datetime) -> bool:
    return (made.low is None or made.low <= at) and (made.high is None or at < made.high)


def _rest(made: Between, at: datetime, *, newest_first: bool) -> Between:
    """Return the span of the records that are older or newer than a moment."""
    if newest_first:
        return Between(made.low, at if made.high is None else min(at, made.high))
    after = at + _STEP
    return Between(after if made.low is None else max(after, made.low), made.high)


def cut_page(records: Sequence[T], place: Callable[[T], Position], cursor: Cursor | None, size: int) -> KeysetPage[T]:
    """Return a page of a short list that was read as a whole, newest first. `place`: position of a record."""
    if cursor is not None and cursor.newer:
        end = sum(place(each) > cursor.position for each in records)
        start = max(end - size, 0)
    else:
        start = 0 if cursor is None else sum(place(each) >= cursor.position for each in records)
    found = list(records[start : start + size])
    newer = None if not start or cursor is None else place(found[0]) if found else cursor.position
    return KeysetPage(records=found, newer=newer, older=place(found[-1]) if start + size < len(records) else None)


def with_records(page: KeysetPage[Any], records: list[T]) -> KeysetPage[T]:
    """Return a page with what was made of its records."""
    return KeysetPage(records=records, newer=page.newer, older=page.older, searched_to=page.searched_to)


class Listed(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list, and how many records the list has."""

    page: KeysetPage[T]
    count: Count | None
    """None: not known."""


async def read_listing(ports: Ports, wanted: Listing[R], cursor: Cursor | None, size: int) -> Listed[R]:
    """Return a page of the list, as of one moment."""
    async with ports.storage.snapshot() as seen:
        page = await keyset_page(seen, wanted, cursor, size)
        return Listed(page=page, count=await count(seen, wanted, cursor, page))


def listing_of(kind: type[R], criteria: dict[str, Any], indexed: Sequence[str]) -> Listing[R]:
    """Return a list by its criteria, which include the owner and `created_at`. `indexed`: names of criteria with an
    index of their own, the most selective first. One of them leads to the records."""
    rest = dict(criteria)
    owner = {name: rest.pop(name) for name in ("account_id", "mode")}
    made = rest.pop("created_at")
    name = next((name for name in indexed if name in rest), None)
    led = {} if name is None else {name: rest.pop(name)}
    return Listing(kind=kind, criteria={**owner, **led}, also=rest, made=made)


async def count(seen: Snapshot, wanted: Listing[R], cursor: Cursor | None, page: KeysetPage[R]) -> Count | None:
    """Return how many records the list has, at least. `page` is the page of this cursor.

    With criteria that no index has, only a list of one page is counted, because counting would read every row. None:
    not known.
    """
    if cursor is None and page.older is None:
        return Count(len(page.records))
    if wanted.also or (wanted.is_by_id and wanted.made != Between()):
        return Count(len(page.records), is_exact=False) if cursor is None and page.records else None
    asked = wanted.criteria if wanted.is_by_id else {**wanted.criteria, wanted.moment: wanted.made}
    order = "-id" if wanted.is_by_id else f"-{wanted.moment}"
    beyond = await seen[wanted.kind].find(order=order, offset=COUNTED, limit=1, readable=True, **asked)
    return Count(COUNTED, is_exact=False) if beyond else Count(await seen[wanted.kind].total(**asked))
