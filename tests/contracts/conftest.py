"""Where the storage's contract is tried: in memory, in a SQLite file, on a Postgres server."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.adapters.storage.postgres.postgres import PostgresStorage
from cambist.adapters.storage.sql.schema import metadata
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.ports.storage import Storage
from cambist.ports.tools import WakeUp
from tests.contracts.storage_kit import KIT_CATALOGUE, StorageLocation, prepare_postgres, prepare_sqlite
from tests.poolers import own_pgbouncer
from tests.servers import database, empty


@pytest.fixture(scope="session")
def postgres(server: str) -> str:
    """The URL of a Postgres server."""
    return server


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """A database without a schema."""
    with database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def kit_postgres(postgres: str) -> Iterator[str]:
    """A database with the schema and the tables of the kit, shared by all tests of the session."""

    with database(postgres) as url:
        asyncio.run(prepare_postgres(url))
        yield url


@pytest.fixture(scope="session")
def kit_pooler(kit_postgres: str) -> Iterator[str]:
    """The same database behind a pooler by transaction."""
    with own_pgbouncer(kit_postgres, "transaction") as url:
        yield url


@pytest.fixture(scope="session")
def kit_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and the tables of the kit, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "kit.db"
    asyncio.run(prepare_sqlite(path))
    return path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every storage keeps the contract; a pooler, which may change how a storage works, is left out where a subject's
    records are."""
    if "any_location" in metafunc.fixturenames:
        of_storages = metafunc.definition.path.name.startswith("test_storage_")
        places = ["memory", "sqlite", "postgres", *(["pooled"] if of_storages else [])]
        metafunc.parametrize("any_location", places, indirect=True)


@pytest.fixture
def any_location(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    """An empty place. Not async, because the databases behind it are made in event loops of their own."""
    return _place(request, request.param, tmp_path)


@pytest.fixture(params=["sqlite", "postgres", "pooled"])
def any_shared_location(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    """Return an empty persistent location that can be opened several times at once."""
    return _place(request, request.param, tmp_path)


@pytest.fixture
def any_file(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    """An empty SQLite file."""
    return _place(request, "sqlite", tmp_path)


@pytest.fixture
def any_server(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    """An empty Postgres database."""
    return _place(request, "postgres", tmp_path)


@pytest.fixture
async def place(any_location: StorageLocation) -> AsyncIterator[StorageLocation]:
    """An empty place to open storages on."""
    yield any_location
    await any_location.close()


@pytest.fixture
async def shared_location(any_shared_location: StorageLocation) -> AsyncIterator[StorageLocation]:
    """An empty place that several storages may be open on."""
    yield any_shared_location
    await any_shared_location.close()


@pytest.fixture
async def file_location(any_file: StorageLocation) -> AsyncIterator[StorageLocation]:
    """An empty SQLite file to open storages on."""
    yield any_file
    await any_file.close()


@pytest.fixture
async def server_location(any_server: StorageLocation) -> AsyncIterator[StorageLocation]:
    """An empty Postgres database to open storages on."""
    yield any_server
    await any_server.close()


@pytest.fixture
async def storage(place: StorageLocation) -> Storage:
    """A storage, empty."""
    return await place.open()


def _place(request: pytest.FixtureRequest, name: str, folder: Path) -> StorageLocation:
    if name == "memory":

        async def in_memory(clock: VirtualClock, wake_up: WakeUp) -> Storage:
            return MemoryStorage(clock, wake_up, catalogue=KIT_CATALOGUE)

        return StorageLocation(in_memory, is_shared=False)
    if name == "sqlite":
        path = folder / "app.db"
        shutil.copy(request.getfixturevalue("kit_sqlite"), path)

        async def in_file(clock: VirtualClock, wake_up: WakeUp) -> Storage:
            return await SqliteStorage.open(path, clock, wake_up, catalogue=KIT_CATALOGUE)

        return StorageLocation(in_file, where=str(path))
    url: str = request.getfixturevalue("kit_postgres")
    empty(url, metadata(KIT_CATALOGUE).tables)

    reached, direct = url, None
    if name == "pooled":
        reached, direct = request.getfixturevalue("kit_pooler"), url

    async def on_server(clock: VirtualClock, wake_up: WakeUp) -> Storage:
        return await PostgresStorage.open(reached, clock, wake_up, catalogue=KIT_CATALOGUE, direct_url=direct)

    return StorageLocation(on_server, where=url)
