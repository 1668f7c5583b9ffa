"""A page of a list: its records, where the list continues, and how to count it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between

T = TypeVar("T")
U = TypeVar("U")

COUNTED = 10_000
"""Lists are counted up to this many records. For a longer list, the answer is only that it is longer."""


class Way(msgspec.Struct, frozen=True):
    """Records that one index returns in order: records of a kind that meet the criteria."""

    kind: type[Any]
    criteria: dict[str, Any]
    span: Between | None = None
    """Only records whose field of the order is in this span."""
    by: str | None = None
    """Field by which they are counted, if it is another one than that of the list."""


class Place(msgspec.Struct, frozen=True):
    """Position from which a list continues when no record marks it. Everything before it has been read."""

    created_at: datetime
    id: str


class Leaf(list[T]):
    """A page of a list, in its order."""

    def __init__(
        self,
        records: Iterable[T] = (),
        *,
        ways: Sequence[Way] = (),
        by: str = "id",
        looked_at: int = 0,
        onward: Any = None,
    ) -> None:
        super().__init__(records)
        self.ways = ways
        """The ways that return the whole list. Empty when the list cannot be counted by them."""
        self.by = by
        """Field that the list is ordered by."""
        self.looked_at = looked_at
        """Number of records read for this page, if the search stopped before the end of the list."""
        self.onward = onward
        """Record or place after which that search continues."""

    def of(self, records: Iterable[U]) -> "Leaf[U]":
        """Return the same page with these records in place of its own."""
        return Leaf(records, ways=self.ways, by=self.by, looked_at=self.looked_at, onward=self.onward)


async def counted(ports: Ports, leaf: Leaf[Any]) -> int:
    """Return the number of records in the list, or COUNTED + 1 when it is more than COUNTED. Each way counts at most
    that many, by its own index. Raises: Unavailable."""
    count = 0
    async with ports.storage.unit() as unit:
        for way in leaf.ways:
            asked = way.criteria if way.span is None else {**way.criteria, leaf.by: way.span}
            repository, left = unit[way.kind], COUNTED - count
            if await repository.find(order=way.by or leaf.by, offset=left, limit=1, readable=True, **asked):
                return COUNTED + 1
            count += await repository.total(**asked)
    return count
