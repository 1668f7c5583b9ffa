"""Lists of records for operators, over all accounts and both modes. A page starts after the last record of the page
before, so the thousandth page costs as much as the first. Reading a page counts and skips nothing."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Protocol, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import AtLeast, Below, Between, OneOf, Record, Unit
from ...domain.accounts.accounts import Account, Mode
from ..accounts.accounts import storable
from .leaves import Leaf, Place, Way

_NEXT = timedelta(microseconds=1)
_WALK = 1000
_TRIES = 3
_LAST = "~"
"""Sorts after every id."""
_OWNERS = 500
"""Maximum number of accounts whose orders are merged for one page. Each page reads every one of them."""
LOOKED_AT = 20_000
"""Maximum number of records read for one page when no index finds the matching ones."""


class Dated(Protocol):
    """A record that can be listed: its id rises with time."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...


D = TypeVar("D", bound=Dated)
R = TypeVar("R", bound=Record)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Filter and order of a list."""

    account_id: str | None = None
    mode: Mode | None = None
    status: str | None = None
    external_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    newest_first: bool = True

    @property
    def modes(self) -> Sequence[Mode]:
        return tuple(Mode) if self.mode is None else (self.mode,)

    @property
    def span(self) -> Between | None:
        return None if self.since is None and self.until is None else Between(self.since, self.until)


async def browse(
    ports: Ports,
    kind: type[D],
    wanted: Wanted,
    after: D | None,
    limit: int,
    *,
    walked: Sequence[dict[str, Any]] = (),
    statuses: type[Enum] | None = None,
    is_dated: bool = False,
    **criteria: Any,
) -> Leaf[D]:
    """Return the records that follow `after`.

    The kind needs the index (account_id, mode, created_at, id) and, for each of `criteria` used over all accounts, such
    as a status, (status, created_at, id). With an external id and filters, a page covers LOOKED_AT scanned records.

    `walked`: alternative criteria without an index; a record has to meet one of them. The storage searches about
    LOOKED_AT records, and the page ends there. It says so, and where the next page continues. The kind needs
    `statuses` or `is_dated`.

    `statuses`: all statuses of the kind. The status index gives records of all accounts in the order of time; in live
    mode ids may be in another order (`causes.py`). `is_dated`: the kind has the index (created_at, id) for that.
    Without both, the order is that of ids.
    """
    keep: Callable[[Any], bool] | None = None
    if wanted.external_id is not None:
        if not storable(wanted.external_id):
            return Leaf()
        # Few records have this external id. With further criteria, a database might choose an index that matches nearly
        # every record.
        keep, criteria = _fitting(criteria), {"external_id": wanted.external_id}
    async with ports.storage.unit() as unit:
        owners = await _owners(unit, wanted, criteria)
        if statuses is not None and not owners and not criteria:
            criteria["status"] = OneOf(tuple(statuses))
        asked = _spread(criteria)
        if owners:
            keys = [{"account_id": owner, "mode": mode} for owner in owners for mode in wanted.modes]
            asked = [{**key, **each} for key in keys for each in asked]
        elif wanted.mode is not None:
            asked = [{**each, "mode": wanted.mode} for each in asked]
        by = "created_at" if is_dated or owners or wanted.span is not None or criteria else "id"
        ways = [Way(kind, each, wanted.span) for each in asked]
        if not walked:
            found = await sifted(unit, ways, after, limit, keep, by=by, newest_first=wanted.newest_first)
            if wanted.mode is not None and not owners:
                found.ways = ()  # no index has modes over all accounts
            return found
        reach, looked_at = await _reach(unit, ways, after, newest_first=wanted.newest_first)
        ways = [Way(kind, {**way.criteria, **each}, reach) for way in ways for each in walked]
        found = await sifted(unit, ways, after, limit * len(walked), keep, by=by, newest_first=wanted.newest_first)
        page = list({each.id: each for each in found}.values())
        if len(page) >= limit or looked_at is None:
            return Leaf(page[:limit])
        onward = Place(reach.low, "") if wanted.newest_first else Place(reach.high - _NEXT, _LAST)
        return Leaf(page, looked_at=looked_at, onward=onward)


async def _reach(unit: Unit, ways: Sequence[Way], after: Any, *, newest_first: bool) -> tuple[Between, int | None]:
    """Return the span from `after` on that holds about LOOKED_AT records of all ways together, and their number, or
    None for the number if the span covers all remaining records.

    One way may have a million records and another none. So try a reach, count the records in it, and correct the reach.
    """
    rest = _beyond(ways[0].span or Between(), after, newest_first=newest_first)
    sign, share, reach, counted = "-" if newest_first else "", max(1, LOOKED_AT // len(ways)), rest, 0
    for _ in range(_TRIES):
        ends: list[datetime] = []
        for way in ways:
            asked = {**way.criteria, "created_at": rest}
            found = await unit[way.kind].find(order=f"{sign}created_at", offset=share, limit=1, readable=True, **asked)
            ends += [each.created_at for each in found]
        if not ends:
            return rest, None
        reach = Between(max(ends), rest.high) if newest_first else Between(rest.low, min(ends) + _NEXT)
        counted = sum([await unit[way.kind].total(**way.criteria, created_at=reach) for way in ways])
        if 2 * counted >= LOOKED_AT:
            break
        # The reach held more than `share` records a moment ago. It can hold fewer when records moved to another way
        # meanwhile.
        share = share * LOOKED_AT // max(share, counted)
    return reach, counted


def _beyond(span: Between, after: Any, *, newest_first: bool) -> Between:
    """Return the part of a span that begins at a record, including other records of its moment, or behind a place."""
    if after is None:
        return span
    at, is_over = after.created_at, isinstance(after, Place)
    if newest_first:
        return Between(span.low, at if is_over else at + _NEXT)
    return Between(at + _NEXT if is_over else at, span.high)


def _fitting(criteria: dict[str, Any]) -> Callable[[Any], bool] | None:
    """Return a filter for records that meet the criteria. None without criteria."""
    return (lambda each: all(getattr(each, name) == value for name, value in criteria.items())) if criteria else None


async def _owners(unit: Unit, wanted: Wanted, criteria: dict[str, Any]) -> list[str]:
    """Return the accounts whose own orders are merged: the wanted account, or all accounts when a mode is wanted.

    No index over all accounts holds the mode: the database would search a million live records one by one for a few of
    test mode.
    """
    if wanted.account_id is not None:
        return [wanted.account_id]
    if wanted.mode is None or not criteria.keys() <= {"status"}:
        return []
    return await all_owners(unit)


async def all_owners(unit: Unit) -> list[str]:
    """Return the ids of all accounts. Empty when there are too many to merge their records."""
    found = await unit[Account].find(limit=_OWNERS + 1, readable=True)
    return [each.id for each in found] if len(found) <= _OWNERS else []


async def sifted(
    unit: Unit,
    ways: Sequence[Way],
    after: Any,
    limit: int,
    keep: Callable[[Any], bool] | None,
    *,
    most: int | None = LOOKED_AT,
    by: str,
    newest_first: bool,
) -> Leaf[Any]:
    """Return a page of the records that `keep` accepts, among the next `most` records. Without `most` the search has no
    limit."""
    if keep is None:
        return await merged(unit, ways, after, limit, by=by, newest_first=newest_first)
    page: list[Any] = []
    seen = 0
    while len(page) < limit and (most is None or seen < most):
        found = await merged(unit, ways, after, _WALK, by=by, newest_first=newest_first)
        page += filter(keep, found)
        seen += len(found)
        if len(found) < _WALK:
            return Leaf(page[:limit])
        after = found[-1]
    return Leaf(page[:limit]) if len(page) >= limit else Leaf(page, looked_at=seen, onward=after)


async def account_names(ports: Ports, account_ids: Collection[str]) -> dict[str, str]:
    """Return the names of merchants by account id. Ids without an account are left out."""
    async with ports.storage.unit() as unit:
        wanted = tuple(each for each in account_ids if storable(each))
        found = await unit[Account].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []
    return {account.id: account.name for account in found}


async def browse_accounts(
    ports: Ports, part: str | None, after: Account | None, limit: int, *, newest_first: bool = True
) -> Leaf[Account]:
    """Return accounts that follow `after`. With `part`, only accounts with a name that contains it, ignoring case.
    No index holds parts of names, so the search reads accounts until a page is full; there are only as many as
    merchants."""
    wanted = None if part is None else part.casefold()
    keep: Callable[[Account], bool] | None = None if wanted is None else lambda each: wanted in each.name.casefold()
    async with ports.storage.unit() as unit:
        ways = [Way(Account, {})]
        return await sifted(unit, ways, after, limit, keep, most=None, by="id", newest_first=newest_first)


def _spread(criteria: dict[str, Any]) -> list[dict[str, Any]]:
    """Split criteria with several values into criteria with one value each. An index gives an order only for a single
    value."""
    ways: list[dict[str, Any]] = [{}]
    for name, wanted in criteria.items():
        values = wanted.values if isinstance(wanted, OneOf) else (wanted,)
        ways = [{**way, name: value} for way in ways for value in values]
    return ways


async def merged(
    unit: Unit, ways: Sequence[Way], after: Any, limit: int, *, by: str = "created_at", newest_first: bool = True
) -> Leaf[Any]:
    """Return the records that follow `after` in all ways together, in the order of (`by`, id). Each way is first read
    for its share of the page, and further only where needed, so a page costs about its own records and not a page of
    each way."""
    opened = [_Line(unit, way, after, by, newest_first) for way in ways]
    short, share = opened, limit if len(ways) == 1 else limit // max(1, len(ways)) + 2
    page: list[Any] = []
    # Merge what is read so far, then read on only in ways whose next records may still belong on the page.
    while short:
        for line in short:
            await line.read(share)
        found = (record for line in opened for record in line.found)
        page = sorted(found, key=lambda record: (getattr(record, by), record.id), reverse=newest_first)[:limit]
        short = [line for line in opened if not line.is_over and (len(page) < limit or line.ends_before(page[-1]))]
        share = min(2 * share, limit)
    return Leaf(page, ways=ways, by=by)


class _Line:
    """One way, as far as it has been read."""

    def __init__(self, unit: Unit, way: Way, after: Any, by: str, newest_first: bool) -> None:
        self._repository = unit[way.kind]
        self._criteria = way.criteria
        self._span = way.span or Between()
        self._last: Any = after
        self._by = by
        self._newest_first = newest_first
        self.found: list[Any] = []
        self.is_over = False

    def ends_before(self, record: Any) -> bool:
        """Return whether unread records of this way may belong before `record`."""
        place, end = ((getattr(each, self._by), each.id) for each in (self._last, record))
        return bool(place > end if self._newest_first else place < end)

    async def read(self, limit: int) -> None:
        """Read up to `limit` more records: first those of the same moment as the last one, then the later ones."""
        sign = "-" if self._newest_first else ""
        found: list[Any] = []
        onward: dict[str, Any] = {} if self._span == Between() else {self._by: self._span}
        if self._last is not None:
            # `!` sorts before every character that an id contains.
            beyond = Below(self._last.id) if self._newest_first else AtLeast(f"{self._last.id}!")
            onward = {"id": beyond}
            if self._by != "id":
                at = getattr(self._last, self._by)
                same = {**self._criteria, self._by: at, "id": beyond}
                found = await self._repository.find(order=f"{sign}id", limit=limit, readable=True, **same)
                low, high = self._span.low, self._span.high
                onward = {self._by: Between(low, at) if self._newest_first else Between(at + _NEXT, high)}
        if len(found) < limit:
            rest = {**self._criteria, **onward}
            found += await self._repository.find(
                order=f"{sign}{self._by}", limit=limit - len(found), readable=True, **rest
            )
        self.found += found
        self.is_over = len(found) < limit
        self._last = found[-1] if found else self._last
