"""Operations that earlier versions gave longer ids: what they sent and a restored database has forgotten is asked
for by both (docs/adapters.md "Operation ids")."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from ....ports.faults import Refused

A = TypeVar("A")


async def find_either(find: Callable[[str], Awaitable[A | None]], operation: str, former: str | None) -> A | None:
    """What a provider knows of an operation, by its id or by the `former` one. Raises: what `find` raises."""
    found = await find(operation)
    if found is not None or former is None:
        return found
    try:
        return await find(former)
    except Refused:
        return None  # it takes no ids of that form, so it never took this one


async def first_known(operations: Sequence[str], pretend: Callable[[str], Awaitable[A]]) -> A:
    """Pretend with the first of these operations that the simulator knows. Raises: Refused when it knows none."""
    for operation in operations:
        with suppress(Refused):
            return await pretend(operation)
    raise Refused("no such operation", reason="not_found")
