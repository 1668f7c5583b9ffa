"""Records that every request asks for and nobody changes for days: kept in memory between two requests.

By samples (py-spy), authentication with its two reads was a tenth of what a new payment cost: SQLite's reading
connection forgets its pages at every commit, and Postgres is a round trip away.
"""

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from ...ports.storage import R
from .kept import Kept
from .unit import Write

_MOST = 600
"""Records of a generation, of which there are two: those of some 300 merchants, at 1 to 2 KB each."""


class Recent:
    """What was read by id, and when. For one event loop."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[float, object]] = {}
        self._before: dict[tuple[str, str], tuple[float, object]] = {}
        """The generation before: what is asked for again moves on, the rest is forgotten with it."""
        self._tables: set[str] = set()
        self._changes = 0

    async def ask(
        self, kept: Kept[R], record_id: str, within: float, read: Callable[[Kept[R], str], Awaitable[R | None]]
    ) -> R | None:
        """The record as it was read at most `within` seconds ago, else as it is read now."""
        place = kept.name, record_id
        found = self._found.get(place) or self._moved_on(place)
        now = monotonic()
        if found is not None and now - found[0] <= within:
            return found[1]  # type: ignore[return-value]  # records stand under their table's name
        self._tables.add(kept.name)
        changes = self._changes
        record = await read(kept, record_id)
        if changes == self._changes:  # else one of our own commits may have overtaken the reading
            self._keep(place, (now, record))
        return record

    def _moved_on(self, place: tuple[str, str]) -> tuple[float, object] | None:
        found = self._before.pop(place, None)
        if found is not None:
            self._keep(place, found)
        return found

    def _keep(self, place: tuple[str, str], found: tuple[float, object]) -> None:
        if len(self._found) >= _MOST:
            self._before, self._found = self._found, {}
        self._found[place] = found

    def forget(self, writes: Sequence[Write]) -> None:
        """Our own unit wrote these, or may have: whoever asks from now on reads them."""
        for write in writes:
            if write.kept.name in self._tables:
                self._changes += 1
                for generation in (self._found, self._before):
                    generation.pop((write.kept.name, write.id), None)

    def forget_all(self) -> None:
        """Somebody else wrote something."""
        self._changes += 1
        self._found.clear()
        self._before.clear()
