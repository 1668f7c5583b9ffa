"""The composition root's second half: what is asked of adapters outside of an open house, for its maintenance."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ..ports.faults import NotSupported
from ..ports.marks import Beside, Nowhere
from ..ports.registry import ProcessRegistry
from .plugins import has_own_schema
from .settings import Settings


def open_registry(settings: Settings) -> ProcessRegistry | None:
    """The registry of the processes that share this database; None for a storage in memory, which nobody shares, and
    for one from another package, which has no registry."""
    url, path = settings.storage_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    if path is not None:
        from ..adapters.registry.file import FileRegistry

        return FileRegistry(path)
    from ..adapters.registry.postgres import PostgresRegistry
    from ..adapters.storage.sql.revisions import head

    return PostgresRegistry(url, revision=head())


def open_beside(settings: Settings) -> Beside:
    """What stands beside the database and tells a copy of it; nothing does for one in memory or from elsewhere."""
    url, path = settings.storage_url, settings.sqlite_path
    if path is not None:
        from ..adapters.storage.sqlite.marks import FileMarks

        return FileMarks(path)
    if has_own_schema(url):
        from ..adapters.storage.postgres.marks import PostgresMarks

        return PostgresMarks(url)
    return Nowhere()


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A database as it is, whether or not a house could open on it."""

    kind: str
    version: str
    revision: str | None
    """Of the schema; None: there is none yet."""
    head: str
    """The revision that this program needs."""
    settings: Mapping[str, str]


async def database_facts(settings: Settings) -> DatabaseFacts | None:
    """What the database says of itself; None for a storage in memory or from another package. Changes nothing.

    Raises: Unavailable.
    """
    url, path = settings.storage_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    from ..adapters.storage.sql.revisions import head

    if path is not None:
        from ..adapters.storage.sqlite.facts import sqlite_facts

        version, revision, said = await sqlite_facts(path)
        return DatabaseFacts(kind="SQLite", version=version, revision=revision, head=head(), settings=said)
    from ..adapters.storage.postgres.facts import postgres_facts

    version, revision, said = await postgres_facts(url)
    return DatabaseFacts(kind="Postgres", version=version, revision=revision, head=head(), settings=said)


def oldest_beside() -> str:
    """The oldest revision whose programs may run beside this one."""
    from ..adapters.storage.sql.revisions import BESIDE

    return BESIDE


async def database_damage(settings: Settings, progress: Callable[[str], None]) -> tuple[list[str], str] | None:
    """What is damaged in the database, each named, and what was read to know it; None for a storage in memory or from
    another package. Takes as long as there is data; `progress` is told of each table.

    Raises: Unavailable.
    """
    url, path = settings.storage_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    if path is not None:
        from ..adapters.storage.sqlite.damage import sqlite_damage

        return await sqlite_damage(path, progress)
    from ..adapters.storage.postgres.damage import postgres_damage

    return await postgres_damage(url, progress)


async def redis_facts(url: str) -> tuple[float, Mapping[str, str]]:
    """Redis' clock in Unix seconds, and what it says of itself. Raises: Unavailable."""
    from ..adapters.counters.redis_facts import redis_facts as ask

    return await ask(url)


def add_vault_key(path: Path) -> int:
    """A fresh key in the key file, which seals from the next start on; its id. Raises: VaultError."""
    from ..adapters.vault.key_file import add_key

    return add_key(path)


def drop_vault_key(path: Path, number: int) -> None:
    """Take a key out of the key file. Raises: VaultError."""
    from ..adapters.vault.key_file import drop_key

    drop_key(path, number)


async def copy_database(settings: Settings, target: Path, progress: Callable[[int, int], None]) -> None:
    """A copy of the SQLite file as it is at one moment, made beside a working service, and checked page by page.

    `progress` is told how many pages are left, and of how many.
    Raises: NotSupported for another database; Unavailable.
    """
    if settings.sqlite_path is None:
        raise NotSupported("this copies SQLite and Postgres only")
    from ..adapters.storage.sqlite.copy import copy

    await copy(settings.sqlite_path, target, progress)


async def copy_sqlite(source: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """The same of any SQLite file. Raises: Unavailable, also for one that is damaged."""
    from ..adapters.storage.sqlite.copy import copy

    await copy(source, target, progress)


def close_sqlite_log(path: Path) -> None:
    """Leave one file, with nothing in a log beside it. Raises: sqlite3.Error."""
    from ..adapters.storage.sqlite.swap import close_log

    close_log(path)


def swap_sqlite(draft: Path, target: Path, former: Path) -> Path | None:
    """Let `draft` stand as `target` in one step, and what stood there as `former`; None: nothing did.

    Raises: Refused while somebody has it open; Unavailable.
    """
    from ..adapters.storage.sqlite.swap import put_in_place

    return put_in_place(draft, target, former)


def is_postgres(settings: Settings) -> bool:
    """Whether the database is a Postgres."""
    return has_own_schema(settings.storage_url) and settings.sqlite_path is None


async def dump_postgres(settings: Settings, target: Path, tell: Callable[[str], None]) -> None:
    """The database as of one moment, in the new file `target`. Raises: NotConfigured without pg_dump; Unavailable."""
    from ..adapters.storage.postgres import dump as postgres_dump

    await postgres_dump.dump(settings.storage_url, target, tell)
    await postgres_dump.check(target)


async def load_postgres(settings: Settings, source: Path, tell: Callable[[str], None], *, replace: bool) -> None:
    """The database from a dump, all of it or nothing. Raises: NotConfigured without pg_restore; Unavailable."""
    from ..adapters.storage.postgres import dump as postgres_dump

    await postgres_dump.load(settings.storage_url, source, tell, replace=replace)


async def is_postgres_empty(settings: Settings) -> bool:
    """Whether there is no table in it. Raises: Unavailable."""
    from ..adapters.storage.postgres import dump as postgres_dump

    return await postgres_dump.is_empty(settings.storage_url)
