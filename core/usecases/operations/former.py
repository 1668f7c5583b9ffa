"""Longer operation ids of earlier versions. An operation that a restored database has forgotten is looked up by both
ids (docs/adapters.md "Operation ids").
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from ....ports.faults import Refused

A = TypeVar("A")


async def find_either(find: Callable[[str], Awaitable[A | None]], operation: str, former: str | None) -> A | None:
    """Look up an operation by its id, then by the `former` one. Raises: faults of `find`."""
    found = await find(operation)
    if found is not None or former is None:
        return found
    try:
        return await find(former)
    except Refused:
        return None  # The provider takes no ids of that form, so it never accepted this one.


async def first_known(operations: Sequence[str], pretend: Callable[[str], Awaitable[A]]) -> A:
    """Simulate the first of these operations that the simulator knows. Raises: Refused when it knows none."""
    for operation in operations:
        with suppress(Refused):
            return await pretend(operation)
    raise Refused("no such operation", reason="not_found")
