"""Combinations of settings with which processes may share one Postgres (docs/cli.md "Serving")."""

from collections.abc import Iterator

import msgspec
import pytest

from cambist.frontends.process.registry import AnotherServes, registered
from cambist.frontends.settings.settings import Settings
from tests.servers import database


@pytest.fixture(scope="module")
def alone(server: str) -> Iterator[Settings]:
    """Return settings without Redis; a refused process waits at most a second."""
    with database(server) as url:
        yield Settings(database_url=url, shutdown_seconds=0)


@pytest.fixture
def shared(alone: Settings) -> Settings:
    return msgspec.structs.replace(alone, redis_url="redis://127.0.0.1:1/0")


async def test_redis_counting_servers_serve_together_and_workers_beside_any(alone: Settings, shared: Settings) -> None:
    async with (
        registered(shared, counts=True, works=False),
        registered(shared, counts=True, works=True),
        registered(alone, counts=False, works=True),
    ):
        pass


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("alone", "alone", "has no CAMBIST_REDIS_URL"),
        ("alone", "shared", "Set CAMBIST_REDIS_URL there too"),
        ("shared", "alone", "has no CAMBIST_REDIS_URL"),
    ],
)
async def test_server_that_counts_for_itself_allows_no_other(
    first: str, second: str, words: str, alone: Settings, shared: Settings
) -> None:
    settings = {"alone": alone, "shared": shared}
    here, there = settings[first], settings[second]
    async with registered(here, counts=True, works=True):
        with pytest.raises(AnotherServes, match=words):
            async with registered(there, counts=True, works=True):
                raise AssertionError
    async with registered(there, counts=True, works=True):
        pass


async def test_a_storage_in_memory_is_shared_by_nobody() -> None:
    settings = Settings(database_url="memory://", shutdown_seconds=0)
    async with registered(settings, counts=True, works=True), registered(settings, counts=True, works=True):
        pass
