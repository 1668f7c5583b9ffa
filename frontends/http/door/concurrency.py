"""How much of one name may be under way at once: the streams of a page, the uploads from an address."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ConcurrencyLimit:
    """Counts what is under way by name, in this process. A name without any is forgotten."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._taken: Counter[str] = Counter()

    def has_room(self, name: str) -> bool:
        """Whether one more of this name may begin."""
        return self._taken[name] < self._each

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Count one of this name while the block runs. Ask `has_room` first."""
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

    def __len__(self) -> int:
        """How many names have something under way."""
        return len(self._taken)
