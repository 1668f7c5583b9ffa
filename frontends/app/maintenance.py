"""Second half of the composition root: adapters for maintenance outside an open app."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...ports.faults import NotSupported
from ...ports.fingerprints import Beside, Nowhere
from ...ports.registry import ProcessRegistry
from ...ports.vault import Vault, VaultError
from ..settings.plugins import has_own_schema
from ..settings.settings import Settings

KEY_FILE = "vault.key"


def open_registry(settings: Settings) -> ProcessRegistry | None:
    """Return the registry of the processes that share this database. None for a storage in memory, which is not shared,
    and for a storage of another package, which has no registry."""
    url, path = settings.session_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    if path is not None:
        from ...adapters.registry.file import FileRegistry

        return FileRegistry(path)
    from ...adapters.registry.postgres import PostgresRegistry
    from ...adapters.storage.sql.revisions import head

    return PostgresRegistry(url, revision=head())


def open_beside(settings: Settings) -> Beside:
    """Return the marks beside the database that reveal a copy of it. A database in memory or of another package has
    none."""
    url, path = settings.session_url, settings.sqlite_path
    if path is not None:
        from ...adapters.storage.sqlite.fingerprints import FileFingerprints

        return FileFingerprints(path)
    if has_own_schema(url):
        from ...adapters.storage.postgres.fingerprints import PostgresFingerprints

        return PostgresFingerprints(url)
    return Nowhere()


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a database, whether or not an app could open it."""

    kind: str
    version: str
    revision: str | None
    """Revision of the schema; None without a schema."""
    head: str
    """The revision that this program needs."""
    settings: Mapping[str, str]


async def database_facts(settings: Settings) -> DatabaseFacts | None:
    """Return the facts that the database reports; None for a storage in memory or of another package. It changes
    nothing.

    Raises: Unavailable.
    """
    url, path = settings.session_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    from ...adapters.storage.sql.revisions import head

    if path is not None:
        from ...adapters.storage.sqlite.facts import sqlite_facts

        version, revision, said = await sqlite_facts(path)
        return DatabaseFacts(kind="SQLite", version=version, revision=revision, head=head(), settings=said)
    from ...adapters.storage.postgres.facts import postgres_facts

    version, revision, said = await postgres_facts(url)
    return DatabaseFacts(kind="Postgres", version=version, revision=revision, head=head(), settings=said)


def oldest_beside() -> str:
    """Return the oldest revision whose programs may run beside this one."""
    from ...adapters.storage.sql.revisions import BESIDE

    return BESIDE


async def database_damage(settings: Settings, progress: Callable[[str], None]) -> tuple[list[str], str] | None:
    """Return the damage in the database, each place named, and a summary of what was read. None for a storage in memory
    or of another package. It takes time in proportion to the data; `progress` is called for each table.

    Raises: Unavailable.
    """
    url, path = settings.session_url, settings.sqlite_path
    if not has_own_schema(url):
        return None
    if path is not None:
        from ...adapters.storage.sqlite.damage import sqlite_damage

        return await sqlite_damage(path, progress)
    from ...adapters.storage.postgres.damage import postgres_damage

    return await postgres_damage(url, progress)


async def redis_facts(url: str) -> tuple[float, Mapping[str, str]]:
    """Return Redis' clock in Unix seconds, and its own facts. Raises: Unavailable."""
    from ...adapters.counters.redis_facts import redis_facts as ask

    return await ask(url)


def key_file(settings: Settings) -> Path | None:
    """Return the path of the key file; None if the settings contain the keys, or nothing is stored."""
    if settings.vault is not None or settings.storage_url == "memory://":
        return None
    return settings.data_dir / KEY_FILE


def add_vault_key(path: Path) -> int:
    """Add a new key to the key file, used from the next start on, and return its id. Raises: VaultError."""
    from ...adapters.vault.key_file import add_key

    return add_key(path)


def drop_vault_key(path: Path, number: int) -> None:
    """Remove a key from the key file. Raises: VaultError."""
    from ...adapters.vault.key_file import drop_key

    drop_key(path, number)


def encrypt_backup(settings: Settings, source: Path, target: Path) -> int:
    """Encrypt a database's copy with the vault's current key, and return the key's id. Raises: VaultError, OSError."""
    from ...adapters.files.encrypted import encrypt_file

    vault = _vault(settings)
    with source.open("rb") as plain, _create(target) as encrypted:
        encrypt_file(plain, encrypted, vault, _BACKUP)
    return vault.current


def decrypt_backup(settings: Settings, source: Path, target: Path) -> None:
    """Decrypt a database's copy. Raises: VaultError for a file that was altered or has another key; OSError."""
    from ...adapters.files.encrypted import read_parts

    vault = _vault(settings)
    with source.open("rb") as encrypted, _create(target) as plain:
        for part in read_parts(encrypted, vault, _BACKUP):
            plain.write(part)


_BACKUP = "backup"
"""Binds an encrypted copy to its purpose, so that no upload passes for one."""


def _vault(settings: Settings) -> Vault:
    """Return the vault of the settings or of the key file, which must exist. Raises: VaultError."""
    from ...adapters.vault.aes import AesVault
    from ...adapters.vault.key_file import load_or_create

    path = key_file(settings)
    if settings.vault is not None:
        return AesVault(settings.vault.keys, settings.vault.current, settings.vault.pepper)
    if path is None or not path.exists():
        raise VaultError(
            "an encrypted backup needs the vault's keys: put the key file into the data folder, or set "
            "CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER"
        )
    return load_or_create(path)


def _create(path: Path) -> BinaryIO:
    """Create a file that only this user reads."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def copy_database(settings: Settings, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy the SQLite file as of one moment while the service runs, and check the copy page by page.

    `progress` is called with the number of pages left and the total. Raises: NotSupported for another database;
    Unavailable.
    """
    if settings.sqlite_path is None:
        raise NotSupported("this copies SQLite and Postgres only")
    from ...adapters.storage.sqlite.copy import copy

    await copy(settings.sqlite_path, target, progress)


async def copy_sqlite(source: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy any SQLite file in the same way. Raises: Unavailable, also for a damaged file."""
    from ...adapters.storage.sqlite.copy import copy

    await copy(source, target, progress)


def close_sqlite_log(path: Path) -> None:
    """Merge the write-ahead log into the file, so that one file remains. Raises: sqlite3.Error."""
    from ...adapters.storage.sqlite.swap import close_log

    close_log(path)


def swap_sqlite(draft: Path, target: Path, former: Path) -> Path | None:
    """Replace `target` by `draft` in one step, and rename the old file to `former`. Return its path; None: there was
    none.

    Raises: Refused while a process has it open; Unavailable.
    """
    from ...adapters.storage.sqlite.swap import put_in_place

    return put_in_place(draft, target, former)


def is_postgres(settings: Settings) -> bool:
    """Return whether the database is Postgres."""
    return has_own_schema(settings.storage_url) and settings.sqlite_path is None


async def dump_postgres(settings: Settings, target: Path, tell: Callable[[str], None]) -> None:
    """Dump the database as of one moment to the new file `target`. Raises: NotConfigured without pg_dump;
    Unavailable."""
    from ...adapters.storage.postgres import dump as postgres_dump

    await postgres_dump.dump(settings.session_url, target, tell)
    await postgres_dump.check(target)


async def load_postgres(settings: Settings, source: Path, tell: Callable[[str], None], *, replace: bool) -> None:
    """Load the whole database from a dump, or nothing. Raises: NotConfigured without pg_restore; Unavailable."""
    from ...adapters.storage.postgres import dump as postgres_dump

    await postgres_dump.load(settings.session_url, source, tell, replace=replace)


async def is_postgres_empty(settings: Settings) -> bool:
    """Return whether the database has no table. Raises: Unavailable."""
    from ...adapters.storage.postgres import dump as postgres_dump

    return await postgres_dump.is_empty(settings.session_url)
