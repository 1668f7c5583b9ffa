"""Retries of units of work: on a conflict read again and decide again, one unit at a time."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ....ports.bundle import Ports
from ....ports.faults import Conflict, Stale, Unavailable
from ....ports.storage import Queueing, Storage, Unit

T = TypeVar("T")
P = ParamSpec("P")

FREE = 2
"""Number of tries without the fair lock. Two units that meet by chance succeed within them."""
TRIES = 20
"""Maximum number of tries. Each lost try means that another unit won, so the whole makes progress. Twenty losses in a
row are not contention, because a unit with the lock loses only to new arrivals and to other processes."""


class _Lost:
    """Holds the last exception of tries that all lost to other units."""

    __slots__ = ("to",)

    def __init__(self, to: Stale | Conflict) -> None:
        self.to = to


_FOLLOWERS = frozenset(["unknown_outcomes_id"])
"""Unique rules of rows that exist only in certain states of another record, written by any unit that changes that
record. Such a conflict means that another unit made the same change, and reading again finds the row."""


async def retrying(storage: Storage, work: Callable[[Unit], Awaitable[T]], *, again_on: Collection[str] = ()) -> T:
    """Run `work` in a unit and commit it. Start over as often as a record changes meanwhile.

    `work` must therefore only read and write the unit, and must not retry another one. `again_on` names unique rules
    whose Conflict means the same: another unit wrote the same row first, and reading again will find it.
    Raises the exceptions of `work`; Conflict for any other rule, except `_FOLLOWERS`; Unavailable after too many
    losses.
    """
    done = await _tried(storage, work, again_on, FREE)
    if isinstance(done, _Lost):
        # When many units change one record, all of them would read it and all but one lose, again and again.
        async with _turn(storage):
            done = await _tried(storage, work, again_on, TRIES - FREE)
    if isinstance(done, _Lost):
        raise Unavailable(f"{TRIES} times in a row another unit changed the same records") from done.to
    return done


def unit_of_work(
    *, again_on: Collection[str] = ()
) -> Callable[[Callable[Concatenate[Ports, Unit, P], Awaitable[T]]], Callable[Concatenate[Ports, P], Awaitable[T]]]:
    """Decorate a use case `f(ports, unit, ...)`, whose whole body is one unit, to be called as `f(ports, ...)`.

    The body runs as the `work` of `retrying`: it is repeated when another unit changes its records, then committed.
    """

    def decorate(
        use_case: Callable[Concatenate[Ports, Unit, P], Awaitable[T]],
    ) -> Callable[Concatenate[Ports, P], Awaitable[T]]:
        @wraps(use_case)
        async def run(ports: Ports, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await retrying(ports.storage, lambda unit: use_case(ports, unit, *args, **kwargs), again_on=again_on)

        return cast("Callable[Concatenate[Ports, P], Awaitable[T]]", run)

    return decorate


async def retrying_within(
    storage: Storage, work: Callable[[Unit], Awaitable[T]], *, again_on: Collection[str] = ()
) -> T:
    """Run `work` as `retrying` does, inside another unit that is not committed yet. That unit may already have the fair
    lock, so waiting for it here would be a deadlock. Raises as `retrying`."""
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
