"""How operators leaf through what there is, over all accounts and both modes: from one record to those after it, so
that the thousandth page costs what the first does. For a page nothing is counted, and nothing is skipped."""

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
"""Behind every id."""
_OWNERS = 500
"""Accounts whose orders are merged for one page: of more, each page would cost a read of every one."""
LOOKED_AT = 20_000
"""Records that are looked at for one page of those that no index finds."""


class Dated(Protocol):
    """What can be leafed through: ids rise with time."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...


D = TypeVar("D", bound=Dated)
R = TypeVar("R", bound=Record)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which records, in which order."""

    account_id: str | None = None
    mode: Mode | None = None
    status: str | None = None
    external_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Excluded."""
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
    **criteria: Any,
) -> Leaf[D]:
    """The records that follow `after`, of a kind with the indexes (account_id, mode, created_at, id) and, for each
    of `criteria` that is asked for over all accounts, such as a status, (status, created_at, id). Of a merchant's own
    id with criteria a page holds what LOOKED_AT records had of it.

    `walked`: criteria that no index has, of which one is to be fulfilled. The storage looks for them among about
    LOOKED_AT records, and the page ends there: it says so, and from where the next goes on. For a kind with `statuses`.

    `statuses`: all that there are. By the index of each, records of all accounts come in the order of time; ids of live
    mode need not have it (`causes.py`). Without, they come in that of ids.
    """
    keep: Callable[[Any], bool] | None = None
    if wanted.external_id is not None:
        if not storable(wanted.external_id):
            return Leaf()
        # Few have one: by whatever else is asked for a database might prefer the index that nearly all have.
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
        by = "id" if not owners and wanted.span is None and not criteria else "created_at"
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
    """The time from `after` on in which about LOOKED_AT records of all the ways together lie, and how many these are;
    None: all that are left. Some ways have a million of them and others none, so how far each goes is tried, and put
    right by how many that were."""
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
        # There were more than a share of them just now, unless some moved from one way to another meanwhile.
        share = share * LOOKED_AT // max(share, counted)
    return reach, counted


def _beyond(span: Between, after: Any, *, newest_first: bool) -> Between:
    """What of a span is left from a record on, others of its moment included, or from a place on."""
    if after is None:
        return span
    at, is_over = after.created_at, isinstance(after, Place)
    if newest_first:
        return Between(span.low, at if is_over else at + _NEXT)
    return Between(at + _NEXT if is_over else at, span.high)


def _fitting(criteria: dict[str, Any]) -> Callable[[Any], bool] | None:
    """What lets those through that fulfil the criteria."""
    return (lambda each: all(getattr(each, name) == value for name, value in criteria.items())) if criteria else None


async def _owners(unit: Unit, wanted: Wanted, criteria: dict[str, Any]) -> list[str]:
    """The accounts whose own orders are merged: the one that is asked for, and all of them where a mode is. No index
    over all accounts has modes: among a million of live mode the few of test mode would be looked for one by one."""
    if wanted.account_id is not None:
        return [wanted.account_id]
    if wanted.mode is None or not criteria.keys() <= {"status"}:
        return []
    return await all_owners(unit)


async def all_owners(unit: Unit) -> list[str]:
    """All accounts, where there are not too many to merge what each of them has; else none."""
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
    """A page of what `keep` lets through, among the next `most` records (None: among all)."""
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
    """What merchants are named, by their accounts' ids, as far as there are such accounts."""
    async with ports.storage.unit() as unit:
        wanted = tuple(each for each in account_ids if storable(each))
        found = await unit[Account].find(id=OneOf(wanted), limit=len(wanted), readable=True) if wanted else []
    return {account.id: account.name for account in found}


async def browse_accounts(
    ports: Ports, part: str | None, after: Account | None, limit: int, *, newest_first: bool = True
) -> Leaf[Account]:
    """Accounts that follow `after`, those only whose name has `part` in it, in capitals or not. No index holds parts of
    names, so all accounts are walked until a page is full; there are as many as merchants."""
    wanted = None if part is None else part.casefold()
    keep: Callable[[Account], bool] | None = None if wanted is None else lambda each: wanted in each.name.casefold()
    async with ports.storage.unit() as unit:
        ways = [Way(Account, {})]
        return await sifted(unit, ways, after, limit, keep, most=None, by="id", newest_first=newest_first)


def _spread(criteria: dict[str, Any]) -> list[dict[str, Any]]:
    """Criteria with a value each, where some have several: the index gives the order of one value's, and no more."""
    ways: list[dict[str, Any]] = [{}]
    for name, wanted in criteria.items():
        values = wanted.values if isinstance(wanted, OneOf) else (wanted,)
        ways = [{**way, name: value} for way in ways for value in values]
    return ways


async def merged(
    unit: Unit, ways: Sequence[Way], after: Any, limit: int, *, by: str = "created_at", newest_first: bool = True
) -> Leaf[Any]:
    """What follows `after` of all the ways together, in the order of (`by`, id). Of each way about its share is read,
    and more only where that turns out to be needed: a page costs its own records, and not a page of each way."""
    opened = [_Line(unit, way, after, by, newest_first) for way in ways]
    short, share = opened, limit if len(ways) == 1 else limit // max(1, len(ways)) + 2
    page: list[Any] = []
    while short:
        for line in short:
            await line.read(share)
        found = (record for line in opened for record in line.found)
        page = sorted(found, key=lambda record: (getattr(record, by), record.id), reverse=newest_first)[:limit]
        short = [line for line in opened if not line.is_over and (len(page) < limit or line.ends_before(page[-1]))]
        share = min(2 * share, limit)
    return Leaf(page, ways=ways, by=by)


class _Line:
    """One way, as far as it was read."""

    def __init__(self, unit: Unit, way: Way, after: Any, by: str, newest_first: bool) -> None:
        self._shelf = unit[way.kind]
        self._criteria = way.criteria
        self._span = way.span or Between()
        self._last: Any = after
        self._by = by
        self._newest_first = newest_first
        self.found: list[Any] = []
        self.is_over = False

    def ends_before(self, record: Any) -> bool:
        """Whether more of this way may belong before `record`."""
        place, end = ((getattr(each, self._by), each.id) for each in (self._last, record))
        return bool(place > end if self._newest_first else place < end)

    async def read(self, limit: int) -> None:
        """So many more: first what is of the same moment as the last one, then what follows it."""
        sign = "-" if self._newest_first else ""
        found: list[Any] = []
        onward: dict[str, Any] = {} if self._span == Between() else {self._by: self._span}
        if self._last is not None:
            # `!` is the character that nothing in an id precedes.
            beyond = Below(self._last.id) if self._newest_first else AtLeast(f"{self._last.id}!")
            onward = {"id": beyond}
            if self._by != "id":
                at = getattr(self._last, self._by)
                same = {**self._criteria, self._by: at, "id": beyond}
                found = await self._shelf.find(order=f"{sign}id", limit=limit, readable=True, **same)
                low, high = self._span.low, self._span.high
                onward = {self._by: Between(low, at) if self._newest_first else Between(at + _NEXT, high)}
        if len(found) < limit:
            rest = {**self._criteria, **onward}
            found += await self._shelf.find(order=f"{sign}{self._by}", limit=limit - len(found), readable=True, **rest)
        self.found += found
        self.is_over = len(found) < limit
        self._last = found[-1] if found else self._last
