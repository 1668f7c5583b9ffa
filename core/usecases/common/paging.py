"""Pages of a merchant's lists, newest first and as of one moment, and the filters common to all lists (docs/concepts.md
"Lists")."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Below, Between, R, Snapshot, Unit
from ...domain.days import read_moment
from ...domain.errors import shape_error

T = TypeVar("T")

WALKED_AT_ONCE = 500
"""Records that `walk_newest` reads in one step."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list, and the total number of records."""

    records: list[T]
    number: int
    size: int
    total: int


class MomentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Query values of every list of dated records, as received; None when absent."""

    created_from: str | None = None
    created_to: str | None = None

    def made(self) -> Between:
        """Return a criterion for the moment of creation: `created_from` is inclusive, `created_to` exclusive.

        Raises: Refusal VALIDATION_ERROR.
        """
        return Between(
            None if self.created_from is None else read_moment("created_from", self.created_from),
            None if self.created_to is None else read_moment("created_to", self.created_to),
        )


class ListFilter(MomentFilter, frozen=True, kw_only=True):
    """Query values of a list whose records may have an external id."""

    external_id: str | None = None

    def criteria(self, longest: int) -> dict[str, Any]:
        """Return criteria for records with fields of these names. `longest`: maximum length of an external_id.

        Raises: Refusal VALIDATION_ERROR for a value that no record could have.
        """
        named = {} if self.external_id is None else {"external_id": _external_id(self.external_id, longest)}
        return {**named, "created_at": self.made()}


def _external_id(text: str, longest: int) -> str:
    # Half a surrogate pair cannot arrive by HTTP, but an embedding program can pass one.
    if len(text) > longest or "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise shape_error("external_id", f"has at most {longest} characters, none of them NUL")
    return text


async def list_newest(
    ports: Ports, kind: type[R], number: int, size: int, *, order: str = "-created_at", **criteria: Any
) -> Page[R]:
    """Return a page of all records that meet the criteria."""
    async with ports.storage.snapshot() as seen:
        return await newest(seen, kind, number, size, order=order, **criteria)


async def newest(
    seen: Snapshot, kind: type[R], number: int, size: int, *, order: str = "-created_at", **criteria: Any
) -> Page[R]:
    """Return a page as the snapshot sees it. Unreadable records are counted and left out."""
    total = await seen[kind].total(**criteria)
    found: list[R] = []
    if (number - 1) * size < total:
        found = await seen[kind].page(number, size, order=order, readable=True, **criteria)
    return Page(found, number, size, total)


class Position(msgspec.Struct, frozen=True, order=True):
    """Position in a list by moment of creation and id: behind the record with these values. A newer one is greater."""

    at: datetime
    id: str


async def walk_newest(
    ports: Ports, kind: type[R], made: Between, after: Position | None, fits: Callable[[R], bool], **criteria: Any
) -> AsyncIterator[tuple[list[R], Position]]:
    """Yield the records that `fits` accepts, newest first and records of the same moment by descending id, in batches,
    each with the position behind it. Memory does not grow with the list. Unreadable records are left out.

    `criteria` have an index that ends with `created_at` and `id`, so a step costs the same anywhere in the list.
    """
    while True:
        async with ports.storage.unit() as unit:
            found = await _behind(unit, kind, made, after, criteria)
        if not found:
            return
        last: Any = found[-1]
        after = Position(last.created_at, last.id)
        yield [each for each in found if fits(each)], after


async def _behind(
    unit: Unit, kind: type[R], made: Between, after: Position | None, criteria: dict[str, Any]
) -> list[R]:
    found: list[R] = []
    if after is not None:
        found = await unit[kind].find(
            order="-id", limit=WALKED_AT_ONCE, readable=True, created_at=after.at, id=Below(after.id), **criteria
        )
    older = Between(made.low, made.high if after is None else after.at)
    left = WALKED_AT_ONCE - len(found)
    if left:
        found += await unit[kind].find(order="-created_at", limit=left, readable=True, created_at=older, **criteria)
    return found
