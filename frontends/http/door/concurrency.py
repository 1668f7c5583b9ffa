"""Places of which one name has so many at once: the streams of a page, the uploads from an address."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ConcurrencyLimit:
    """Counts who is inside, by name, in this process. Names that nobody has are forgotten."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._taken: Counter[str] = Counter()

    def has_room(self, name: str) -> bool:
        """Whether one more of this name may come in."""
        return self._taken[name] < self._each

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Have a place inside. Whether there is one was asked before."""
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

    def __len__(self) -> int:
        """How many names have a place."""
        return len(self._taken)
