"""Bringing the schema up beside processes that run: which of them may go on is the schema's word
(`adapters/storage/sql/revisions.py: BESIDE`)."""

import re
from collections.abc import Sequence

import msgspec

from ..ports.faults import NotConfigured
from ..ports.registry import Role
from .compose import migrate
from .maintenance import database_facts, oldest_beside, open_registry
from .settings import Settings

_REVISION = re.compile(r" for schema ([0-9]+)( |$)")


class OlderRuns(NotConfigured):
    """Processes run that cannot work on the schema as it shall become."""


class Upgraded(msgspec.Struct, frozen=True):
    """A schema that was brought up."""

    revision: str
    older: Sequence[str]
    """Processes that run on, and are made for the schema of before."""


async def upgrade(settings: Settings) -> Upgraded:
    """Bring the schema up to this version, if those who run may go on beside it.

    Raises: OlderRuns, naming who must be stopped first; what `migrate` raises.
    """
    # On SQLite one process serves, and does this by itself.
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
    """Raises: Unavailable."""
    registry = open_registry(settings)
    if registry is None:
        return []
    try:
        return sorted({*await registry.others(Role.COUNTING), *await registry.others(Role.WORKING)})
    finally:
        await registry.close()


def _made_for(name: str, present: str) -> str:
    """The schema that a process is made for; one that does not say so is taken for one of the present schema."""
    said = _REVISION.search(name)
    return said[1] if said else present
