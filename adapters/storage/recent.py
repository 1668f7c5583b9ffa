"""Records that every request asks for and nobody changes for days: kept in memory between two requests.

By samples (py-spy), authentication with its two reads was a tenth of what a new payment cost: SQLite's reading
connection forgets its pages at every commit, and Postgres is a round trip away.
"""

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from ...ports.storage import R
from .kept import Kept
from .unit import Write

_MOST = 10_000
"""Records kept. With one more all are forgotten, which costs a read of each that is asked for again."""


class Recent:
    """What was read by id, and when. For one event loop."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[float, object]] = {}
        self._tables: set[str] = set()
        self._changes = 0

    async def ask(
        self, kept: Kept[R], record_id: str, within: float, read: Callable[[Kept[R], str], Awaitable[R | None]]
    ) -> R | None:
        """The record as it was read at most `within` seconds ago, else as it is read now."""
        place = kept.name, record_id
        found = self._found.get(place)
        now = monotonic()
        if found is not None and now - found[0] <= within:
            return found[1]  # type: ignore[return-value]  # records stand under their table's name
        self._tables.add(kept.name)
        changes = self._changes
        record = await read(kept, record_id)
        if changes == self._changes:  # else one of our own commits may have overtaken the reading
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found[place] = now, record
        return record

    def forget(self, writes: Sequence[Write]) -> None:
        """Our own unit wrote these, or may have: whoever asks from now on reads them."""
        for write in writes:
            if write.kept.name in self._tables:
                self._changes += 1
                self._found.pop((write.kept.name, write.id), None)

    def forget_all(self) -> None:
        """Somebody else wrote something."""
        self._changes += 1
        self._found.clear()
