"""Values made on first use in a thread, so that they do not block the event loop. Most processes never need them."""

from asyncio import Lock, to_thread
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is made in a thread on first use, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = Lock()

    async def value(self) -> T:
        """Return the value, and make it on first use. Concurrent callers wait for the same value."""
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await to_thread(self._make)
        return self._made
