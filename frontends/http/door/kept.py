"""What most processes are never asked for: made when it is, without holding up the event loop."""

from asyncio import Lock, to_thread
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is made in a thread when it is first asked for, and kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._making = Lock()

    async def value(self) -> T:
        """Those who ask while it is being made wait for the same."""
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await to_thread(self._make)
        return self._made
