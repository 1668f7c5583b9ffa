"""Some hundred histories in one process, on databases of their own."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cambist.ports.faults import Unavailable
from tests.contracts.storage_kit import prepare_postgres, prepare_sqlite
from tests.histories.comparing import Difference, difference, shortest
from tests.histories.places import Place, installed_plain, places
from tests.histories.steps import History, drawn
from tests.servers import database

_TRIES = 5


def compared(server: str, only: Sequence[int] | None, seeds: Sequence[int]) -> tuple[list[int], int]:
    """The seeds of histories that were answered unlike, and how many steps were carried out."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder, database(server) as url:
        file = Path(folder, "kit.db")
        asyncio.run(prepare_sqlite(file))
        asyncio.run(prepare_postgres(url))
        with installed_plain(Path(folder)):
            return asyncio.run(_all(file, url, only, seeds))


async def _patiently(every: Sequence[Place], history: History) -> Difference | None:
    """Compare the places, and retry after a broken connection: a busy machine breaks some off."""
    for _ in range(_TRIES - 1):
        try:
            return await difference(every, history)
        except Unavailable as fault:
            print(f"history {history.seed} again: {fault}", flush=True)
    return await difference(every, history)


async def _all(file: Path, url: str, only: Sequence[int] | None, seeds: Sequence[int]) -> tuple[list[int], int]:
    failed, steps = [], 0
    async with places(file, url) as every:
        for seed in seeds:
            history = drawn(seed, only)
            steps += len(history.steps)
            found = await _patiently(every, history)
            if found is not None:
                failed.append(seed)
                print(await shortest(every, found), flush=True)
    return failed, steps


def _memory() -> str | None:
    """Where files are kept in memory."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
