"""What a list has read so far, page by page, and how many there are (docs/console.md "Keys")."""

from typing import Any

from ...core.usecases.browse.leaves import COUNTED, Leaf

PAGE = 100


class Pages:
    """The records that were read, and how it goes on behind them."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.complete = False
        """The last record is there, or the last that was looked for."""
        self.looked_at = 0
        """Records that were looked at for what is there, where that were not all."""
        self.onward: Any = None
        """After what one may look further then."""
        self.counted = 0
        """How many there are, as far as they were counted."""

    def renew(self) -> None:
        """Be about to be read from the top. What is there stands until then."""
        self.counted, self.onward = 0, None

    def begin(self, found: list[Any]) -> None:
        """Have this page and no other."""
        self.records, self.looked_at = list(found), 0
        self._end_with(found)

    def add(self, found: list[Any]) -> None:
        """Have this page behind the others."""
        self.records += found
        self._end_with(found)

    def _end_with(self, found: list[Any]) -> None:
        self.complete, self.onward = len(found) < PAGE, None
        if isinstance(found, Leaf):
            self.onward = found.onward
            self.looked_at += found.looked_at

    def may_be_counted(self, found: list[Any]) -> bool:
        """Whether there are more than those of a first page, and an index says how many."""
        return isinstance(found, Leaf) and bool(found.ways) and not self.complete and self.counted <= COUNTED

    @property
    def told(self) -> str:
        """How many there are; where that is not known, how many at least."""
        there, count = len(self.records), self.counted
        if self.complete and self.onward is None:
            return f"{there:,}"
        return f"{count:,}" if count and there <= count <= COUNTED else f"{max(there, min(count, COUNTED)):,}+"
