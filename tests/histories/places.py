"""The four storages that answer each history: memory, a SQLite file, a Postgres database, and a storage from an entry
point. They are opened once for many histories; between two histories only rows are removed, and time goes on."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.adapters.storage.table.unit import WakeUp
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE, START
from cambist.frontends.settings.plugins import opened_storage
from cambist.ports.storage import Storage
from cambist.ports.tools import StorageTools
from tests.histories.running import Answer, Runner
from tests.histories.steps import History

Opened = Callable[[VirtualClock, WakeUp], Awaitable[Storage]]


class ResetClock(VirtualClock):
    """A virtual clock that each history finds at its beginning."""

    def begin_again(self) -> None:
        self._elapsed = 0


class Place:
    """One storage, and how to empty it."""

    def __init__(self, name: str, opened: Opened, empty: Callable[[frozenset[str]], Awaitable[None]] | None) -> None:
        """`empty` takes all rows out of these tables; None: it is opened anew for each history."""
        self.name = name
        self._opened = opened
        self._empty = empty
        self._clock = ResetClock(START)
        self._woken_up: list[list[str]] = []
        self._storage: Storage | None = None
        self._left: frozenset[str] = frozenset()
        """The tables that the last history may have written to."""

    async def answers(self, history: History) -> list[Answer]:
        """Run the history in this storage and return its answers."""
        self._clock.begin_again()
        if self._storage is None or self._empty is None:
            self._storage = await self._opened(self._clock, self._note)
        elif self._left:
            await self._empty(self._left)
        self._left = history.tables
        return await Runner(self._storage, self._clock, self._woken_up).run(history)

    async def close(self) -> None:
        if self._storage is not None:
            await self._storage.close()

    async def _note(self, jobs: Any) -> None:
        self._woken_up.append([job.id for job in jobs])


@asynccontextmanager
async def places(file: Path, postgres: str | None, *, plug_in: bool = True) -> AsyncIterator[list[Place]]:
    """The storages: on this file and this database, which have the kit's tables, and in memory."""

    async def memory(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        return MemoryStorage(clock, wake_up, catalogue=KIT_CATALOGUE)

    async def sqlite(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        return await SqliteStorage.open(file, clock, wake_up, catalogue=KIT_CATALOGUE)

    async def plain(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        return await opened_storage("plain", StorageTools(url="plain://here", clock=clock, wake_up=wake_up))

    beside = sqlite3.connect(file, isolation_level=None)

    async def empty_file(tables: frozenset[str]) -> None:
        beside.execute("PRAGMA synchronous=OFF")
        beside.executescript("BEGIN IMMEDIATE;" + _deletes(tables) + "COMMIT;")

    made = [Place("memory", memory, None), Place("sqlite", sqlite, empty_file)]
    if plug_in:
        made.append(Place("plug-in", plain, None))
    connection: Any = None
    if postgres is not None:
        connection = await asyncpg.connect(postgres)
        await connection.execute("SET synchronous_commit = off")
        # Other tests of the session leave rows there.
        await connection.execute(_deletes(frozenset(table.name for table in KIT_CATALOGUE)))
        made.append(Place("postgres", _on(postgres), lambda tables: connection.execute(_deletes(tables))))
    try:
        yield made
    finally:
        for place in made:
            await place.close()
        beside.close()
        if connection is not None:
            await connection.close()


def _on(url: str) -> Opened:
    async def opened(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        return await PostgresStorage.open(url, clock, wake_up, catalogue=KIT_CATALOGUE, connections=3)

    return opened


def _deletes(tables: frozenset[str]) -> str:
    return "".join(f"DELETE FROM {name};" for name in sorted(tables))


@contextmanager
def installed_plain(folder: Path) -> Iterator[None]:
    """The storage plain.py, as pip would leave a package that brings it: found by its entry point."""
    described = folder / "plainstore-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plainstore\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[cambist.storages]\nplain = tests.histories.plain:open_plain\n")
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def shown(answers: Mapping[str, Answer]) -> dict[str, str]:
    """Answers of the same step, for people: from shortly before the first place at which they differ."""
    texts = {name: msgspec.json.encode(answer).decode() for name, answer in answers.items()}
    alike = next((at for at, signs in enumerate(zip(*texts.values(), strict=False)) if len(set(signs)) > 1), 0)
    start = max(0, alike - 200)
    return {name: text[start : start + 1500] for name, text in texts.items()}
