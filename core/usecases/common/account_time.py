"""Test clocks: run code in the time of a test account's objects (docs/sandbox.md "The clock"), by the account's id or
by an object of it.

Requests enter it at the guard, and jobs in their runner. Payers and operators enter it by the object that they name.
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.clock import TestClock
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.accounts.accounts import TEST, Account, Mode, Owned
from ...domain.sandbox_clock import TOGETHER

P = ParamSpec("P")
T = TypeVar("T")

_AGAIN = timedelta(seconds=5)
"""Pause before a worker checks again a job that it left to an advance."""


class OwnedRecord(Owned, Protocol):
    """A stored object with an owner."""

    @property
    def version(self) -> int: ...


def test_clock_of(account: Account, mode: Mode) -> TestClock | None:
    """Return the test clock of an account's objects. None in live mode."""
    if mode is not TEST:
        return None
    clock = account.clock
    return TestClock(account.id) if clock is None else TestClock(account.id, clock.ahead, clock.is_advancing)


def as_moved(ports: Ports, account: Account | None) -> TestClock | None:
    """Return the current test clock with its latest offset, from an account that was just read. Code that entered it
    before an advance is behind by that advance. A job that an advance runs keeps its own moment."""
    here = ports.clock.test_clock
    there = None if here is None or account is None else test_clock_of(account, TEST)
    return there if here and there and there.offset > here.offset + TOGETHER else here


async def find_test_clock(unit: Unit, account_id: str, mode: Mode) -> TestClock | None:
    """Return the account's test clock, read in a unit. None for an unknown account."""
    if mode is not TEST:
        return None
    account = await unit[Account].get(account_id)
    return None if account is None else test_clock_of(account, mode)


@asynccontextmanager
async def living_with(ports: Ports, account_id: str, mode: Mode) -> AsyncIterator[None]:
    """Run the block in the time of the account and mode."""
    async with ports.storage.unit() as unit:
        test_clock = await find_test_clock(unit, account_id, mode)
    with ports.clock.entered(test_clock):
        yield


OfObject = Callable[Concatenate[Ports, str, P], Awaitable[T]]
OfAccount = Callable[Concatenate[Ports, str, Mode, P], Awaitable[T]]


def in_test_time(*kinds: type[OwnedRecord]) -> Callable[[OfObject[P, T]], OfObject[P, T]]:
    """Decorate a use case for payers and operators, whose caller names an object of these kinds by its id. It runs in
    the time of the object. A caller that is already in a test clock stays in it, because it is the object's own."""

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
    """Decorate a use case whose caller names an account and a mode in the same way."""

    @functools.wraps(use_case)
    async def entered(ports: Ports, account_id: str, mode: Mode, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if ports.clock.test_clock is not None:
            return await use_case(ports, account_id, mode, *args, **kwargs)
        async with living_with(ports, account_id, mode):
            return await use_case(ports, account_id, mode, *args, **kwargs)

    return entered


async def test_clock_of_job(ports: Ports, job: Job) -> TestClock | None:
    """Return the test clock of a claimed job."""
    if job.world is None:
        return None
    async with ports.storage.unit() as unit:
        return await find_test_clock(unit, job.world, TEST)


async def leave_to_the_advance(ports: Ports, job: Job) -> None:
    """Put a claimed job back as it was, because the advance of its test clock will run it in order. Raises: Stale."""
    now = await ports.storage.now()
    async with ports.storage.unit() as unit:
        present = await unit[Job].get(job.id)
        if present is not None and present.version == job.version:
            attempts = present.attempts - 1
            unit[Job].save(msgspec.structs.replace(present, due=now + _AGAIN, leased_until=None, attempts=attempts))
            await unit.commit()
