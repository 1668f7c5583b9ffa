"""Registries of processes: a process that runs alone stays alone, and a dead process leaves the registry at once
(docs/cli.md "Serving")."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import asyncpg
import pytest

from cambist.adapters.registry.file import FileRegistry
from cambist.adapters.registry.postgres import PostgresRegistry
from cambist.ports.faults import Unavailable
from cambist.ports.registry import ProcessRegistry, Role
from tests.patience import HANGS
from tests.servers import database

OURS = "locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
"""Locks of this module's database: others work on the same server."""

STAYS = """
import asyncio, sys
from pathlib import Path
from cambist.adapters.registry.file import FileRegistry
from cambist.adapters.registry.postgres import PostgresRegistry
from cambist.ports.registry import Role

async def main():
    where = sys.argv[1]
    registry = PostgresRegistry(where) if "://" in where else FileRegistry(Path(where))
    print(await registry.enter(Role.COUNTING, alone=True), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def shared(server: str) -> Iterator[str]:
    """A database of this module; locks end with their sessions, so tests may share it."""
    with database(server) as url:
        yield url


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "new" / "cambist.db")
    url: str = request.getfixturevalue("shared")
    return url


@pytest.fixture
async def registries(where: str) -> AsyncIterator[Callable[[], ProcessRegistry]]:
    """Makes rolls of one installation, as many processes would."""
    async with AsyncExitStack() as stack:

        def make() -> ProcessRegistry:
            registry: ProcessRegistry = PostgresRegistry(where) if "://" in where else FileRegistry(Path(where))
            stack.push_async_callback(registry.close)
            return registry

        yield make


@pytest.mark.parametrize(
    ("first", "second", "both"), [(True, True, False), (True, False, False), (False, True, False), (False, False, True)]
)
async def test_only_who_suffers_company_has_it(
    registries: Callable[[], ProcessRegistry], first: bool, second: bool, both: bool
) -> None:
    one, other = registries(), registries()
    assert await one.enter(Role.COUNTING, alone=first)
    assert await other.enter(Role.COUNTING, alone=second) is both
    assert await other.enter(Role.WORKING, alone=True), "parts are apart"


async def test_leaving_process_frees_its_slot(registries: Callable[[], ProcessRegistry]) -> None:
    one, other = registries(), registries()
    assert await one.enter(Role.COUNTING, alone=True)
    await one.close()
    assert await other.enter(Role.COUNTING, alone=True)


async def test_others_are_named_and_oneself_is_not(registries: Callable[[], ProcessRegistry]) -> None:
    one, other = registries(), registries()
    assert await other.others(Role.WORKING) == []
    assert await one.enter(Role.WORKING, alone=False)
    [who] = await other.others(Role.WORKING)
    assert "process " in who
    assert " on " in who
    assert await one.others(Role.WORKING) == []
    assert await other.others(Role.COUNTING) == []


async def test_a_killed_process_is_gone(registries: Callable[[], ProcessRegistry], where: str) -> None:
    """kill -9: a restart must not wait for anything to run out."""
    dying = subprocess.Popen([sys.executable, "-c", STAYS, where], stdout=subprocess.PIPE, text=True)
    try:
        assert dying.stdout is not None
        assert (await asyncio.to_thread(dying.stdout.readline)).strip() == "True"
        assert not await registries().enter(Role.COUNTING, alone=True)
    finally:
        dying.send_signal(signal.SIGKILL)
        dying.communicate(timeout=HANGS)
    next_one = registries()
    async with asyncio.timeout(HANGS):
        while not await next_one.enter(Role.COUNTING, alone=True):
            await asyncio.sleep(0.01)


async def end_sessions(url: str) -> None:
    """As a restart of the server does."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def test_a_session_that_was_lost_is_taken_up_again(shared: str) -> None:
    async with (
        aclosing(Closing(PostgresRegistry(shared, look=0.01))) as kept,
        aclosing(Closing(PostgresRegistry(shared))) as other,
    ):
        lost = asyncio.Event()
        kept.registry.when_lost(lost.set)
        assert await kept.registry.enter(Role.COUNTING, alone=True)
        await end_sessions(shared)
        async with asyncio.timeout(HANGS):
            while not await other.registry.others(Role.COUNTING):
                await asyncio.sleep(0.01)
        assert not await other.registry.enter(Role.COUNTING, alone=True)
        assert not lost.is_set()


async def test_process_that_lost_its_slot_is_notified(shared: str) -> None:
    """It must stop: two would count each for itself."""
    async with (
        aclosing(Closing(PostgresRegistry(shared, look=0.05))) as kept,
        aclosing(Closing(PostgresRegistry(shared))) as other,
    ):
        lost = asyncio.Event()
        kept.registry.when_lost(lost.set)
        assert await kept.registry.enter(Role.COUNTING, alone=True)
        heir, server = await asyncpg.connect(shared), await asyncpg.connect(shared)
        # The waiting connection gets the lock before any other can request it.
        waiting = asyncio.create_task(
            heir.execute("SELECT pg_advisory_lock(1667329378, hashtext(current_schema() || 'counting'))")
        )
        async with asyncio.timeout(HANGS):
            while not await server.fetchval(f"SELECT count(*) FROM pg_locks WHERE NOT granted AND {OURS}"):
                await asyncio.sleep(0.01)
            await server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE granted AND {OURS}")
            await waiting
            await lost.wait()
        await server.close()
        await heir.close()
        assert await other.registry.enter(Role.COUNTING, alone=True)


class Closing:
    """A registry for `aclosing`."""

    def __init__(self, registry: PostgresRegistry) -> None:
        self.registry = registry

    async def aclose(self) -> None:
        await self.registry.close()


async def test_a_server_that_does_not_answer_is_a_fault_without_its_password() -> None:
    registry = PostgresRegistry("postgresql://cambist:hush-hush@127.0.0.1:1/none")
    with pytest.raises(Unavailable) as caught:
        await registry.enter(Role.COUNTING, alone=True)
    assert "hush-hush" not in str(caught.value)
