"""Limit on concurrent activities under one name: streams of a page, uploads from an address."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ConcurrencyLimit:
    """Counter of running activities by name, in this process. Names without any are removed."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._taken: Counter[str] = Counter()

    def has_room(self, name: str) -> bool:
        """Whether another activity may start under this name."""
        return self._taken[name] < self._each

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Count one activity of this name while the block runs. Check `has_room` first."""
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

    def __len__(self) -> int:
        """Number of names with a running activity."""
        return len(self._taken)
