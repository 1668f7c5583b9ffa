"""Calls of YooKassa's API, and its lists, which are the only way to search."""

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
"""Tolerance for YooKassa's clock being behind ours."""
_LIKELY = timedelta(minutes=15)
"""Nearly every object is created within this time after its operation. This part is listed first, because the list of
later days may be long."""
_NEARLY_NEXT = timedelta(microseconds=999)
"""The end of a period is rounded up to milliseconds, so that no earlier object is missed."""
_LIMIT = "100"
"""Objects per page: YooKassa's maximum."""
_PAGES = 200
"""Maximum pages of one search. The app ends a call after 20 s, which is sooner."""


class Calls:
    """Calls with any shop's credentials."""

    def __init__(self, http: ProviderHttp, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    def __repr__(self) -> str:
        return "<calls of yookassa>"

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which YooKassa's clock was ahead of ours."""
        return self._http.clock_skew

    async def write(self, shop: Shop, path: str, key: str, body: Mapping[str, Any], shape: type[T]) -> T:
        """POST with this idempotence key. Raises: Refused; OutcomeUnknown, including KeyReused; Unavailable;
        NotConfigured."""
        headers = {**shop.headers, "Idempotence-Key": key, "Content-Type": "application/json"}
        answer = await self._http.call("POST", path, writes=True, body=msgspec.json.encode(body), headers=headers)
        return self._decoded(answer, shop, shape)

    async def read(self, shop: Shop, path: str, shape: type[T], query: Mapping[str, str] | None = None) -> T:
        """GET. Raises: Refused for a 404 or a malformed id; Unavailable; NotConfigured."""
        answer = await self._http.call("GET", path, writes=False, query=query, headers=shop.headers)
        return self._decoded(answer, shop, shape)

    async def find(self, shop: Shop, path: str, shape: type[T]) -> T | None:
        """Return the object, or None if YooKassa says that it does not exist. Raises: Unavailable; NotConfigured."""
        try:
            return await self.read(shop, path, shape)
        except Refused:
            return None

    async def search(
        self, shop: Shop, path: str, kind: str, operation: str, since: datetime, shape: type[T]
    ) -> Sequence[T]:
        """Search a list since a moment for objects of this operation. The list is searched in two periods; the first
        period with a match ends the search. Raises: Unavailable; NotConfigured."""
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
        """Iterate over all objects of a list, page by page. Raises: Unavailable; NotConfigured."""
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
        """Return a page of a list and the next page's cursor. Raises: Unavailable; NotConfigured."""
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
        """Close the connections."""
        await self._http.close()

    def _decoded(self, answer: Answer, shop: Shop, shape: type[T]) -> T:
        if answer.status != 200:
            raise fault_of(answer, owner=shop.owner, now=self._clock.now())
        return answer.decoded(shape)


def since_moment(moment: datetime) -> dict[str, str]:
    """Build the query for objects created since a moment, allowing for a slow clock."""
    return between(moment - _SKEW, None)


def _windows(since: datetime, now: datetime) -> Sequence[tuple[datetime, datetime | None]]:
    begin, likely = since - _SKEW, since + _LIKELY
    if likely >= now:
        return ((begin, None),)
    return ((begin, likely), (likely, None))


def between(begin: datetime, end: datetime | None) -> dict[str, str]:
    """Build the query for objects created in a period, in milliseconds. The rounding may add objects just outside
    it."""
    query = {"created_at.gte": _spelt(begin)}
    return query if end is None else {**query, "created_at.lt": _spelt(end + _NEARLY_NEXT)}


def _spelt(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
