"""A storage of one's own. To show the way it is the one in memory that comes with cambist, with a count of commits put
around it; yours speaks to a database. `database_url = "desk://anything"` opens it."""

from collections.abc import Sequence

from cambist import CATALOGUE, MemoryStorage, Table
from cambist.ports import Clock, Job, Kick, Storage, StorageTools


class DeskStorage(MemoryStorage):
    """Fills cambist.ports.Storage."""

    def __init__(self, clock: Clock, kick: Kick, catalogue: Sequence[Table] = CATALOGUE) -> None:
        """`catalogue`: the records, their unique rules and indexes; tests bring two records more."""
        self.wakes = 0

        async def counted(jobs: Sequence[Job]) -> None:
            self.wakes += 1
            await kick(jobs)

        super().__init__(clock, counted, catalogue=catalogue)


async def open_desk(tools: StorageTools) -> Storage:
    """What the entry point names: a coroutine function. Raise `Unavailable` when the database does not answer."""
    return DeskStorage(tools.clock, tools.kick)
