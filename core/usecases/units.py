"""How a use case loses gracefully: read again, decide again."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...ports.faults import Stale, Unavailable
from ...ports.storage import Storage, Unit

T = TypeVar("T")

TRIES = 20
"""Each lost try means that another unit won, so the whole makes progress; twenty in a row is not contention."""


async def retrying(storage: Storage, work: Callable[[Unit], Awaitable[T]]) -> T:
    """Run `work` in a unit and commit it, again from the start as often as a record changed under it.

    `work` must therefore do nothing but read and write the unit. Raises what `work` raises; Unavailable when it kept
    losing.
    """
    for _ in range(TRIES):
        async with storage.unit() as unit:
            result = await work(unit)
            try:
                await unit.commit()
            except Stale:
                continue
            return result
    raise Unavailable(f"{TRIES} times in a row another unit changed the same records")
