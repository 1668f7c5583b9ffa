"""Rolls of processes: who is alone stays alone, and who dies is gone at once (docs/cli.md "Serving")."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import asyncpg
import pytest

from cambist.adapters.registry.file import FileRoll
from cambist.adapters.registry.postgres import PostgresRoll
from cambist.ports.faults import Unavailable
from cambist.ports.registry import Part, Roll
from tests.servers import database

OURS = "locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
"""Locks of this module's database: others work on the same server."""

STAYS = """
import asyncio, sys
from pathlib import Path
from cambist.adapters.registry.file import FileRoll
from cambist.adapters.registry.postgres import PostgresRoll
from cambist.ports.registry import Part

async def main():
    where = sys.argv[1]
    roll = PostgresRoll(where) if "://" in where else FileRoll(Path(where))
    print(await roll.enter(Part.COUNTING, alone=True), flush=True)
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
async def rolls(where: str) -> AsyncIterator[Callable[[], Roll]]:
    """Makes rolls of one installation, as many processes would."""
    async with AsyncExitStack() as stack:

        def make() -> Roll:
            roll: Roll = PostgresRoll(where) if "://" in where else FileRoll(Path(where))
            stack.push_async_callback(roll.close)
            return roll

        yield make


@pytest.mark.parametrize(
    ("first", "second", "both"), [(True, True, False), (True, False, False), (False, True, False), (False, False, True)]
)
async def test_only_who_suffers_company_has_it(
    rolls: Callable[[], Roll], first: bool, second: bool, both: bool
) -> None:
    one, other = rolls(), rolls()
    assert await one.enter(Part.COUNTING, alone=first)
    assert await other.enter(Part.COUNTING, alone=second) is both
    assert await other.enter(Part.WORKING, alone=True), "parts are apart"


async def test_who_leaves_makes_room(rolls: Callable[[], Roll]) -> None:
    one, other = rolls(), rolls()
    assert await one.enter(Part.COUNTING, alone=True)
    await one.close()
    assert await other.enter(Part.COUNTING, alone=True)


async def test_others_are_named_and_oneself_is_not(rolls: Callable[[], Roll]) -> None:
    one, other = rolls(), rolls()
    assert await other.others(Part.WORKING) == []
    assert await one.enter(Part.WORKING, alone=False)
    [who] = await other.others(Part.WORKING)
    assert "process " in who
    assert " on " in who
    assert await one.others(Part.WORKING) == []
    assert await other.others(Part.COUNTING) == []


async def test_a_killed_process_is_gone(rolls: Callable[[], Roll], where: str) -> None:
    """kill -9: a restart must not wait for anything to run out."""
    dying = subprocess.Popen([sys.executable, "-c", STAYS, where], stdout=subprocess.PIPE, text=True)
    try:
        assert dying.stdout is not None
        assert (await asyncio.to_thread(dying.stdout.readline)).strip() == "True"
        assert not await rolls().enter(Part.COUNTING, alone=True)
    finally:
        dying.send_signal(signal.SIGKILL)
        dying.communicate(timeout=30)
    next_one = rolls()
    async with asyncio.timeout(10):
        while not await next_one.enter(Part.COUNTING, alone=True):
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
        aclosing(Closing(PostgresRoll(shared, look=0.01))) as kept,
        aclosing(Closing(PostgresRoll(shared))) as other,
    ):
        lost = asyncio.Event()
        kept.roll.when_lost(lost.set)
        assert await kept.roll.enter(Part.COUNTING, alone=True)
        await end_sessions(shared)
        async with asyncio.timeout(10):
            while not await other.roll.others(Part.COUNTING):
                await asyncio.sleep(0.01)
        assert not await other.roll.enter(Part.COUNTING, alone=True)
        assert not lost.is_set()


async def test_who_lost_its_place_to_another_is_told(shared: str) -> None:
    """It must stop: two would count each for itself."""
    async with (
        aclosing(Closing(PostgresRoll(shared, look=0.05))) as kept,
        aclosing(Closing(PostgresRoll(shared))) as other,
    ):
        lost = asyncio.Event()
        kept.roll.when_lost(lost.set)
        assert await kept.roll.enter(Part.COUNTING, alone=True)
        heir, server = await asyncpg.connect(shared), await asyncpg.connect(shared)
        # Who waits in the queue has the place before anybody can ask for it.
        waiting = asyncio.create_task(heir.execute("SELECT pg_advisory_lock(1667329378, 1)"))
        async with asyncio.timeout(10):
            while not await server.fetchval(f"SELECT count(*) FROM pg_locks WHERE NOT granted AND {OURS}"):
                await asyncio.sleep(0.01)
            await server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE granted AND {OURS}")
            await waiting
            await lost.wait()
        await server.close()
        await heir.close()
        assert await other.roll.enter(Part.COUNTING, alone=True)


class Closing:
    """A roll for `aclosing`."""

    def __init__(self, roll: PostgresRoll) -> None:
        self.roll = roll

    async def aclose(self) -> None:
        await self.roll.close()


async def test_a_server_that_does_not_answer_is_a_fault_without_its_password() -> None:
    roll = PostgresRoll("postgresql://cambist:hush-hush@127.0.0.1:1/none")
    with pytest.raises(Unavailable) as caught:
        await roll.enter(Part.COUNTING, alone=True)
    assert "hush-hush" not in str(caught.value)
