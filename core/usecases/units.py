"""How a use case loses gracefully: read again, decide again, one at a time."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

from ...ports.faults import Conflict, Stale, Unavailable
from ...ports.storage import Queueing, Storage, Unit

T = TypeVar("T")

FREE = 2
"""Tries that wait for nobody: two that meet by chance are through after them."""
TRIES = 20
"""Each lost try means that another unit won, so the whole makes progress; twenty in a row is not contention: who waited
for its turn loses only to who comes fresh and to other processes."""


class _Lost:
    """Tries that other units overtook; the last of them."""

    __slots__ = ("to",)

    def __init__(self, to: Stale | Conflict) -> None:
        self.to = to


_FOLLOWERS = frozenset(["unknown_outcomes_id"])
"""Rules of rows that come and go with the state of another record, in whatever unit moves that one: another unit moved
it likewise, and reading again will find the row."""


async def retrying(storage: Storage, work: Callable[[Unit], Awaitable[T]], *, again_on: Collection[str] = ()) -> T:
    """Run `work` in a unit and commit it, again from the start as often as a record changed under it.

    `work` must therefore do nothing but read and write the unit; least of all retry another one. `again_on` names
    unique rules whose Conflict means the same: another unit wrote what this one was about to write, and reading again
    will find it.
    Raises what `work` raises; Conflict for any rule that is neither named nor one of `_FOLLOWERS`; Unavailable when it
    kept losing.
    """
    done = await _tried(storage, work, again_on, FREE)
    if isinstance(done, _Lost):
        # Of many that move one record all would read it and all but one lose, again and again.
        async with _turn(storage):
            done = await _tried(storage, work, again_on, TRIES - FREE)
    if isinstance(done, _Lost):
        raise Unavailable(f"{TRIES} times in a row another unit changed the same records") from done.to
    return done


async def retrying_within(
    storage: Storage, work: Callable[[Unit], Awaitable[T]], *, again_on: Collection[str] = ()
) -> T:
    """The same for what another unit leads to before it is committed: that one may have the turn already, and who waits
    for it here would wait for ever. Raises as `retrying`."""
    done = await _tried(storage, work, again_on, TRIES)
    if isinstance(done, _Lost):
        raise Unavailable(f"{TRIES} times in a row another unit changed the same records") from done.to
    return done


async def _tried(
    storage: Storage, work: Callable[[Unit], Awaitable[T]], again_on: Collection[str], times: int
) -> T | _Lost:
    lost: Stale | Conflict = Stale("never tried")
    for _ in range(times):
        async with storage.unit() as unit:
            result = await work(unit)
            try:
                await unit.commit()
            except Stale as stale:
                lost = stale
                continue
            except Conflict as conflict:
                if conflict.rule not in again_on and conflict.rule not in _FOLLOWERS:
                    raise
                lost = conflict
                continue
            return result
    return _Lost(lost)


def _turn(storage: Storage) -> AbstractAsyncContextManager[Any]:
    return storage.turn() if isinstance(storage, Queueing) else nullcontext()
