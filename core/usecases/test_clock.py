"""Entering the time in which the objects of a test account live (docs/sandbox.md "The clock"): by its id, or by an
object of it.

Requests enter at the guard, jobs where they are run, payers and operators by the object that they name.
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from ...ports.bundle import Ports
from ...ports.clock import TestClock
from ...ports.jobs import Job
from ...ports.storage import Unit
from ..domain.accounts.accounts import TEST, Account, Mode, Owned
from ..domain.sandbox_clock import TOGETHER

P = ParamSpec("P")
T = TypeVar("T")

_AGAIN = timedelta(seconds=5)
"""After it a worker looks again at a job that it left to whoever advances the clock."""


class OwnedRecord(Owned, Protocol):
    """One that is stored."""

    @property
    def version(self) -> int: ...


def test_clock_of(account: Account, mode: Mode) -> TestClock | None:
    """The test clock of an account's objects; none in live mode."""
    if mode is not TEST:
        return None
    clock = account.clock
    return TestClock(account.id) if clock is None else TestClock(account.id, clock.ahead, clock.is_advancing)


def as_moved(ports: Ports, account: Account | None) -> TestClock | None:
    """The test clock in force as it is by now, of an account that was read just now. Who entered it before an advance
    is behind by as much as that led over; a job that an advance runs stays at its own moment."""
    here = ports.clock.test_clock
    there = None if here is None or account is None else test_clock_of(account, TEST)
    return there if here and there and there.offset > here.offset + TOGETHER else here


async def find_test_clock(unit: Unit, account_id: str, mode: Mode) -> TestClock | None:
    """The same, read in a unit; none where there is no such account."""
    if mode is not TEST:
        return None
    account = await unit[Account].get(account_id)
    return None if account is None else test_clock_of(account, mode)


@asynccontextmanager
async def living_with(ports: Ports, account_id: str, mode: Mode) -> AsyncIterator[None]:
    """Be inside where the objects of the account and mode live."""
    async with ports.storage.unit() as unit:
        test_clock = await find_test_clock(unit, account_id, mode)
    with ports.clock.entered(test_clock):
        yield


OfObject = Callable[Concatenate[Ports, str, P], Awaitable[T]]
OfAccount = Callable[Concatenate[Ports, str, Mode, P], Awaitable[T]]


def in_test_time(*kinds: type[OwnedRecord]) -> Callable[[OfObject[P, T]], OfObject[P, T]]:
    """For a use case whose caller names an object, of one of these kinds, by its id and comes from no test clock:
    payers and operators. It runs where the object lives. Whoever comes from a test clock came from the object's own."""

    def wrap(use_case: OfObject[P, T]) -> OfObject[P, T]:
        @functools.wraps(use_case)
        async def entered(ports: Ports, object_id: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if ports.clock.test_clock is not None:
                return await use_case(ports, object_id, *args, **kwargs)
            async with ports.storage.unit() as unit:
                test_clock = await _test_clock_of_object(unit, kinds, object_id)
            with ports.clock.entered(test_clock):
                return await use_case(ports, object_id, *args, **kwargs)

        return entered

    return wrap


async def _test_clock_of_object(unit: Unit, kinds: Iterable[type[OwnedRecord]], object_id: str) -> TestClock | None:
    for kind in kinds:
        found = await unit[kind].get(object_id)
        if found is not None:
            return await find_test_clock(unit, found.account_id, found.mode)
    return None


def in_test_time_of_account(use_case: OfAccount[P, T]) -> OfAccount[P, T]:
    """The same, for a use case whose caller names an account and a mode."""

    @functools.wraps(use_case)
    async def entered(ports: Ports, account_id: str, mode: Mode, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if ports.clock.test_clock is not None:
            return await use_case(ports, account_id, mode, *args, **kwargs)
        async with living_with(ports, account_id, mode):
            return await use_case(ports, account_id, mode, *args, **kwargs)

    return entered


async def test_clock_of_job(ports: Ports, job: Job) -> TestClock | None:
    """Where a claimed job is to be done."""
    if job.world is None:
        return None
    async with ports.storage.unit() as unit:
        return await find_test_clock(unit, job.world, TEST)


async def leave_to_the_advance(ports: Ports, job: Job) -> None:
    """Put a claimed job back as it was: whoever advances its test clock does it, in its turn. Raises: Stale."""
    now = await ports.storage.now()
    async with ports.storage.unit() as unit:
        present = await unit[Job].get(job.id)
        if present is not None and present.version == job.version:
            attempts = present.attempts - 1
            unit[Job].save(msgspec.structs.replace(present, due=now + _AGAIN, leased_until=None, attempts=attempts))
            await unit.commit()
