"""Asking YooKassa: one call and its end, and lists, which are all that it can be searched by."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Refused, Unavailable
from ...provider_http import Answer, ProviderHttp
from .bodies import is_of
from .errors import fault_of
from .shops import Shop
from .wire import Page, Seen

T = TypeVar("T")

_SKEW = timedelta(minutes=5)
"""So far its clock may be behind ours."""
_LIKELY = timedelta(minutes=15)
"""Nearly all that was made of an operation was made so soon: that is listed first, where later days are long."""
_NEARLY_NEXT = timedelta(microseconds=999)
"""An end is rounded up to milliseconds: nothing before it is left out."""
_LIMIT = "100"
"""Objects of a page: the most that it gives."""
_PAGES = 200
"""Of one search. A call of the house ends after 20 s, which is before so many."""


class Calls:
    """Calls as one shop or another."""

    def __init__(self, http: ProviderHttp, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    def __repr__(self) -> str:
        return "<calls of yookassa>"

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which its clock was ahead of ours."""
        return self._http.clock_skew

    async def write(self, shop: Shop, path: str, key: str, body: Mapping[str, Any], shape: type[T]) -> T:
        """POST, under this idempotence key. Raises: Refused; OutcomeUnknown, KeyReused among it; Unavailable;
        NotConfigured."""
        headers = {**shop.headers, "Idempotence-Key": key, "Content-Type": "application/json"}
        answer = await self._http.call("POST", path, writes=True, body=msgspec.json.encode(body), headers=headers)
        return self._decoded(answer, shop, shape)

    async def read(self, shop: Shop, path: str, shape: type[T], query: Mapping[str, str] | None = None) -> T:
        """GET. Raises: Refused, for a 404 and what cannot be an id; Unavailable; NotConfigured."""
        answer = await self._http.call("GET", path, writes=False, query=query, headers=shop.headers)
        return self._decoded(answer, shop, shape)

    async def find(self, shop: Shop, path: str, shape: type[T]) -> T | None:
        """The object, or None where it says that there is none. Raises: Unavailable; NotConfigured."""
        try:
            return await self.read(shop, path, shape)
        except Refused:
            return None

    async def search(
        self, shop: Shop, path: str, kind: str, operation: str, since: datetime, shape: type[T]
    ) -> Sequence[T]:
        """What was made of this operation, out of a list of objects since a moment; the first that is found ends the
        search of that part of the list. Raises: Unavailable; NotConfigured."""
        for begin, end in _windows(since, self._clock.now()):
            found = [
                msgspec.json.decode(raw, type=shape)
                async for seen, raw in self.listed(shop, path, between(begin, end))
                if is_of(seen, kind, operation)
            ]
            if found:
                return found
        return ()

    async def listed(self, shop: Shop, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[Seen, msgspec.Raw]]:
        """All objects of a list, page by page. Raises: Unavailable; NotConfigured."""
        cursor: str | None = None
        for _ in range(_PAGES):
            found, cursor = await self.page(shop, path, query, cursor)
            for each in found:
                yield each
            if cursor is None:
                return
        raise Unavailable("yookassa: a list is too long to be searched")

    async def page(
        self, shop: Shop, path: str, query: Mapping[str, str], cursor: str | None
    ) -> tuple[Sequence[tuple[Seen, msgspec.Raw]], str | None]:
        """A part of a list, and the cursor of the next. Raises: Unavailable; NotConfigured."""
        asked = {"limit": _LIMIT, **query, **({} if cursor is None else {"cursor": cursor})}
        try:
            answer = await self._http.call("GET", path, writes=False, query=asked, headers=shop.headers)
            page = self._decoded(answer, shop, Page)
        except Refused as refused:
            raise Unavailable(f"{refused}, of a list") from None
        try:
            return [(msgspec.json.decode(raw, type=Seen), raw) for raw in page.items], page.next_cursor
        except msgspec.MsgspecError:
            raise Unavailable("yookassa: an object of a list cannot be read") from None

    async def close(self) -> None:
        """Nothing is asked any more."""
        await self._http.close()

    def _decoded(self, answer: Answer, shop: Shop, shape: type[T]) -> T:
        if answer.status != 200:
            raise fault_of(answer, owner=shop.owner, now=self._clock.now())
        return answer.decoded(shape)


def since_moment(moment: datetime) -> dict[str, str]:
    """Asks a list for what was made from then on, by a clock that may be behind."""
    return between(moment - _SKEW, None)


def _windows(since: datetime, now: datetime) -> Sequence[tuple[datetime, datetime | None]]:
    begin, likely = since - _SKEW, since + _LIKELY
    if likely >= now:
        return ((begin, None),)
    return ((begin, likely), (likely, None))


def between(begin: datetime, end: datetime | None) -> dict[str, str]:
    """Asks a list for what was made in this time, by its clock, to the millisecond: it may name a little more."""
    query = {"created_at.gte": _spelt(begin)}
    return query if end is None else {**query, "created_at.lt": _spelt(end + _NEARLY_NEXT)}


def _spelt(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
