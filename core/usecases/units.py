"""How a use case loses gracefully: read again, decide again."""

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from ...ports.faults import Conflict, Stale, Unavailable
from ...ports.storage import Storage, Unit

T = TypeVar("T")

TRIES = 20
"""Each lost try means that another unit won, so the whole makes progress; twenty in a row is not contention."""


async def retrying(storage: Storage, work: Callable[[Unit], Awaitable[T]], *, again_on: Collection[str] = ()) -> T:
    """Run `work` in a unit and commit it, again from the start as often as a record changed under it.

    `work` must therefore do nothing but read and write the unit. `again_on` names unique rules whose Conflict means
    the same: another unit wrote what this one was about to write, and reading again will find it.
    Raises what `work` raises; Conflict for any other rule; Unavailable when it kept losing.
    """
    for _ in range(TRIES):
        async with storage.unit() as unit:
            result = await work(unit)
            try:
                await unit.commit()
            except Stale:
                continue
            except Conflict as conflict:
                if conflict.rule not in again_on:
                    raise
                continue
            return result
    raise Unavailable(f"{TRIES} times in a row another unit changed the same records")
