"""A custom storage. To show the interface, it extends the storage in memory with a counter of wake-ups; a real one
would use a database. `database_url = "desk://anything"` opens it."""

from collections.abc import Sequence

from cambist import CATALOGUE, MemoryStorage, Table
from cambist.ports import Clock, Job, Storage, StorageTools, WakeUp


class DeskStorage(MemoryStorage):
    """Implement cambist.ports.Storage."""

    def __init__(self, clock: Clock, wake_up: WakeUp, catalogue: Sequence[Table] = CATALOGUE) -> None:
        """`catalogue`: the records with their unique rules and indexes. Tests add two records."""
        self.wakes = 0

        async def counted(jobs: Sequence[Job]) -> None:
            self.wakes += 1
            await wake_up(jobs)

        super().__init__(clock, counted, catalogue=catalogue)


async def open_desk(tools: StorageTools) -> Storage:
    """Open the storage. The entry point names this coroutine function. Raise `Unavailable` if the database does not
    answer."""
    return DeskStorage(tools.clock, tools.wake_up)
