"""Schema upgrades while processes run. The schema defines which older programs may continue
(`adapters/storage/sql/revisions.py: BESIDE`)."""

import re
from collections.abc import Sequence

import msgspec

from ...ports.faults import NotConfigured
from ...ports.registry import Role
from ..app.compose import migrate
from ..app.maintenance import database_facts, oldest_beside, open_registry
from ..settings.settings import Settings

_REVISION = re.compile(r" for schema ([0-9]+)( |$)")


class OlderRuns(NotConfigured):
    """Running processes cannot work on the new schema."""


class Upgraded(msgspec.Struct, frozen=True):
    """An upgraded schema."""

    revision: str
    older: Sequence[str]
    """Running processes that were made for the former schema."""


async def upgrade(settings: Settings) -> Upgraded:
    """Upgrade the schema to this version if the running processes can continue on it.

    Raises: OlderRuns with the processes to stop first; exceptions of `migrate`.
    """
    # On SQLite a single process serves, and it upgrades the schema itself.
    shared = settings.storage_url.startswith("postgresql://")
    facts = await database_facts(settings) if shared else None
    if facts is None or facts.revision is None:
        return Upgraded(await migrate(settings), ())
    running = {name: _made_for(name, facts.revision) for name in await _who_runs(settings)}
    oldest = oldest_beside()
    stopping = [name for name, revision in running.items() if revision < oldest]
    if stopping and facts.revision != facts.head:
        raise OlderRuns(
            f"stop these first, they cannot work on schema {facts.head} (it is for programs from {oldest} on): "
            + ", ".join(stopping)
        )
    revision = await migrate(settings)
    return Upgraded(revision, [name for name, made_for in running.items() if made_for < revision])


async def _who_runs(settings: Settings) -> list[str]:
    """Return the names of the running processes. Raises: Unavailable."""
    registry = open_registry(settings)
    if registry is None:
        return []
    try:
        return sorted({*await registry.others(Role.COUNTING), *await registry.others(Role.WORKING)})
    finally:
        await registry.close()


def _made_for(name: str, present: str) -> str:
    """Return the schema that a process is made for; the present schema if its name does not say."""
    said = _REVISION.search(name)
    return said[1] if said else present
