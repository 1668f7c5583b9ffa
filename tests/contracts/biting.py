"""Adapters with one planted bug each, and the shipped test that must fail with the words of its rule."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest


class Planted(msgspec.Struct, frozen=True):
    """An adapter with one bug, the shipped test that finds it, and words of the rule in the failure."""

    adapter: type[Any]
    suite: Any
    """The class or the module of the test."""
    test: str
    """The beginning of the test's name."""
    rule: str
    given: tuple[Any, ...] = ()
    """Values of the test's parameters, beside its harness."""


def named(bug: Planted) -> str:
    """Return a row's id: the bug and the test that finds it."""
    return f"{bug.adapter.__name__}-{bug.test}"


Opener = Callable[[AsyncExitStack, type[Any] | None], Awaitable[Any]]
"""Returns the harness of an adapter, or of the adapter without a bug for None."""


async def check_bite(bug: Planted, opened: Opener) -> None:
    """Assert that the shipped test passes without the bug, and fails with the bug by its rule."""
    await _run(bug, opened, None)
    with pytest.raises((AssertionError, pytest.fail.Exception)) as failed:
        await _run(bug, opened, bug.adapter)
    assert bug.rule in str(failed.value), "the failure must name the rule"


async def _run(bug: Planted, opened: Opener, adapter: type[Any] | None) -> None:
    suite = bug.suite() if isinstance(bug.suite, type) else bug.suite
    [test] = [getattr(suite, name) for name in dir(suite) if name.startswith(bug.test)]
    async with AsyncExitStack() as stack:
        harness = await opened(stack, adapter)
        try:
            await test(harness, *bug.given)
        except pytest.skip.Exception as skipped:
            raise RuntimeError(f"the shipped test was skipped: {skipped}") from skipped
