"""A merchant's lists by pages: the newest first, as of one moment (docs/concepts.md "Lists")."""

from typing import Any, Generic, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import R, Snapshot

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list, and how many records there are in all."""

    records: list[T]
    number: int
    size: int
    total: int


async def list_newest(
    ports: Ports, kind: type[R], number: int, size: int, *, order: str = "-created_at", **criteria: Any
) -> Page[R]:
    """A page of all records that meet the criteria."""
    async with ports.storage.snapshot() as seen:
        return await newest(seen, kind, number, size, order=order, **criteria)


async def newest(
    seen: Snapshot, kind: type[R], number: int, size: int, *, order: str = "-created_at", **criteria: Any
) -> Page[R]:
    """The same of what a snapshot sees. What cannot be read is counted, and left out."""
    total = await seen[kind].total(**criteria)
    found: list[R] = []
    if (number - 1) * size < total:
        found = await seen[kind].page(number, size, order=order, readable=True, **criteria)
    return Page(found, number, size, total)
