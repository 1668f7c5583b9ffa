"""What one read of a list that is leafed through gives: some records, how it goes on, and by what it is counted."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Between

T = TypeVar("T")
U = TypeVar("U")

COUNTED = 10_000
"""Records to which a list is counted. Of one that is longer no more is said than that it is."""


class Way(msgspec.Struct, frozen=True):
    """Records that one index gives in order: those of a kind that fulfil the criteria."""

    kind: type[Any]
    criteria: dict[str, Any]
    span: Between | None = None
    """Those only whose place in the order is in it."""


class Place(msgspec.Struct, frozen=True):
    """From where a list goes on, where that is no record of it: what is of this moment was looked at."""

    created_at: datetime
    id: str


class Leaf(list[T]):
    """Records of a list, in its order."""

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
        """By which all of the list come; none where it cannot be counted so."""
        self.by = by
        """The field of its order."""
        self.looked_at = looked_at
        """Records that were looked at for those that fit, where not all were: the leaf ends with these."""
        self.onward = onward
        """After what one may look further then."""

    def of(self, records: Iterable[U]) -> "Leaf[U]":
        """The same leaf, with these told of its records."""
        return Leaf(records, ways=self.ways, by=self.by, looked_at=self.looked_at, onward=self.onward)


async def counted(ports: Ports, leaf: Leaf[Any]) -> int:
    """How many records the list has; COUNTED + 1 where they are more than COUNTED. Of each way no more are walked, by
    its own index. Raises: Unavailable."""
    count = 0
    async with ports.storage.unit() as unit:
        for way in leaf.ways:
            asked = way.criteria if way.span is None else {**way.criteria, leaf.by: way.span}
            shelf, left = unit[way.kind], COUNTED - count
            if await shelf.find(order=leaf.by, offset=left, limit=1, readable=True, **asked):
                return COUNTED + 1
            count += await shelf.total(**asked)
    return count
