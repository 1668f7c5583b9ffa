"""Rules for processes that serve one installation together: all of them must count requests in one place (docs/cli.md
"Serving")."""

import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...ports.faults import NotConfigured
from ...ports.registry import ProcessRegistry, Role
from ..app.compose import system_clock
from ..app.maintenance import open_registry
from ..settings.settings import Settings

_AGAIN = 0.2
"""Seconds between two attempts to register."""

log = logging.getLogger("cambist.registry")


class AnotherServes(NotConfigured):
    """Two processes would serve that must not serve together."""


@asynccontextmanager
async def registered(settings: Settings, *, counts: bool, works: bool) -> AsyncIterator[None]:
    """Register a process that `counts` requests, `works` on jobs, or both, until the end of the block.

    It waits `shutdown_seconds` and one more for a predecessor that is stopping. A process that loses its registration
    (its database was away, and another process came) stops itself. Raises: AnotherServes with the settings to change;
    Unavailable when the database does not answer.
    """
    registry = open_registry(settings)
    if registry is None:
        yield
        return
    lost: list[bool] = []

    def stop() -> None:
        lost.append(True)
        signal.raise_signal(signal.SIGTERM)

    try:
        if counts:
            await _take_place(settings, registry)
        if works:
            await registry.enter(Role.WORKING, alone=False)
        registry.when_lost(stop)
        yield
    finally:
        await registry.close()
    if lost:
        raise AnotherServes(_reason(settings, "which came while the database was away"))


async def _take_place(settings: Settings, registry: ProcessRegistry) -> None:
    """Register as a counting process, and wait for a predecessor to stop. Raises: AnotherServes."""
    clock = system_clock()
    deadline = clock.monotonic() + settings.shutdown_seconds + 1
    told = False
    while not await registry.enter(Role.COUNTING, alone=counts_alone(settings)):
        who = ", ".join(await registry.others(Role.COUNTING)) or "just gone"
        if clock.monotonic() > deadline:
            raise AnotherServes(_reason(settings, who))
        if not told:
            log.warning("another process serves already (%s); waiting for it to stop", who)
            told = True
        await clock.sleep(_AGAIN)


def counts_alone(settings: Settings) -> bool:
    """Return whether a process with these settings must be the only one that counts."""
    return settings.redis_url is None or not settings.storage_url.startswith("postgresql://")


def _reason(settings: Settings, who: str) -> str:
    if not settings.storage_url.startswith("postgresql://"):
        return (
            f"another process serves from this database ({who}): on SQLite one does. Stop it, or name another "
            "CAMBIST_DATA_DIR; several need CAMBIST_DATABASE_URL=postgresql://… and CAMBIST_REDIS_URL"
        )
    if settings.redis_url is None:
        return (
            f"another process serves from this database ({who}), and this one has no CAMBIST_REDIS_URL: with counters "
            "in memory each would grant the whole limit. Set CAMBIST_REDIS_URL for all of them, or stop the other one"
        )
    return (
        f"another process serves from this database without CAMBIST_REDIS_URL ({who}): it counts requests for itself, "
        "so each would grant the whole limit. Set CAMBIST_REDIS_URL there too, or stop it"
    )
