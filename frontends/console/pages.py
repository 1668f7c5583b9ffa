"""Records that a list has read so far, page by page, and their number (docs/console.md "Keys")."""

from typing import Any

from ...core.usecases.browse.leaves import COUNTED, Leaf

PAGE = 100


class Pages:
    """Records read so far, and the position from which reading continues."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.complete = False
        """Whether the end of the list, or of the scan, is reached."""
        self.looked_at = 0
        """Number of scanned records, if the filters have no index and only a part was scanned."""
        self.onward: Any = None
        """Position to continue a partial scan from."""
        self.counted = 0
        """Counted total, up to a limit; 0 if not counted."""

    def renew(self) -> None:
        """Prepare for reading from the top. The old records stay until the first page arrives."""
        self.counted, self.onward = 0, None

    def begin(self, found: list[Any]) -> None:
        """Replace all records with this page."""
        self.records, self.looked_at = list(found), 0
        self._end_with(found)

    def add(self, found: list[Any]) -> None:
        """Append this page."""
        self.records += found
        self._end_with(found)

    def _end_with(self, found: list[Any]) -> None:
        self.complete, self.onward = len(found) < PAGE, None
        if isinstance(found, Leaf):
            self.onward = found.onward
            self.looked_at += found.looked_at

    def may_be_counted(self, found: list[Any]) -> bool:
        """Return whether the list is longer than its first page and an index can count it."""
        return isinstance(found, Leaf) and bool(found.ways) and not self.complete and self.counted <= COUNTED

    @property
    def told(self) -> str:
        """The number of records as text, with `+` if only a lower bound is known."""
        there, count = len(self.records), self.counted
        if self.complete and self.onward is None:
            return f"{there:,}"
        return f"{count:,}" if count and there <= count <= COUNTED else f"{max(there, min(count, COUNTED)):,}+"
