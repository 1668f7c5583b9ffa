"""Delta debugging: from many parts that fail together to a few that still do."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def fewest(parts: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]]) -> list[T]:
    """A part of them of which no piece can be left out; many at once are tried first."""
    kept, size = list(parts), len(parts)
    while size > 0:
        start = 0
        while start < len(kept):
            without = kept[:start] + kept[start + size :]
            if await fails(without):
                kept = without
            else:
                start += size
        size //= 2
    return kept
