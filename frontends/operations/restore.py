"""Restore of a backup: it is checked, replaces the database in one step, and is held."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from ...core.domain.chains import heads_in
from ...core.domain.days import iso_or_none
from ...core.domain.installation import Because, Installation
from ...core.usecases.common.quarantine import hold
from ...core.usecases.ledger.check import LedgerReport, verify_ledger
from ...core.usecases.operators.reencrypt import KeyReport, inspect_keys
from ...ports.database_urls import sqlite_url
from ...ports.faults import NotSupported, Refused
from ...ports.registry import Role
from ...ports.vault import VaultError
from ..app.compose import migrate, open_app, system_clock
from ..app.maintenance import (
    close_sqlite_log,
    copy_sqlite,
    database_facts,
    decrypt_backup,
    is_postgres,
    is_postgres_empty,
    load_postgres,
    open_registry,
    swap_sqlite,
)
from ..settings.settings import Settings
from .backup import DATABASE, DUMP, ENCRYPTED, MANIFEST, UPLOADS, Backup, Progress, copy_uploads, digest


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a restore."""

    database: str
    made_at: str | None
    """Time of the backup, from its manifest; null for a bare file."""
    as_of: str | None
    """Operations sent after this time may be missing in the database."""
    former: str | None
    """Path of the former database; null: there was none."""
    uploads: int
    """Number of missing document files that were restored."""
    ledger_holds: bool
    ledger_entries: int
    held: bool = True


async def restore(settings: Settings, source: Path, progress: Progress, *, replace: bool = False) -> Restored:
    """Replace the database of the settings by the backup `source`, and hold it. No process may use the database.

    On SQLite the backup is a folder made by `cambist backup`, or a bare file. It is copied beside the database; its
    pages, books and encrypted values are checked there, and its schema is upgraded; then it is renamed. After an
    interruption at any moment, either the former or the restored database is in place, complete.

    On Postgres the backup is a folder, and the database must be empty; with `replace` it may have the same schema, and
    its tables are dropped in the transaction that fills them again. Books and encrypted values are checked afterwards.

    Raises: Refused for a database in use or not empty, a damaged copy, or keys that do not decrypt it; NotSupported for
    a storage of another package; NotConfigured without pg_restore; Unavailable, VaultError, OSError.
    """
    if is_postgres(settings):
        return await _restore_postgres(settings, source, progress, replace=replace)
    if settings.sqlite_path is None:
        raise NotSupported("a storage from another package is restored by what its package says")
    return await _restore_sqlite(settings, settings.sqlite_path, source, progress)


async def _restore_sqlite(settings: Settings, target: Path, source: Path, progress: Progress) -> Restored:
    target = await asyncio.to_thread(target.absolute)
    copy, manifest = await asyncio.to_thread(_backup_in, source, DATABASE)
    async with alone(settings):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(_clear_drafts, target)
        draft = target.with_name(f".{target.name}.restoring")
        own = msgspec.structs.replace(settings, database_url=sqlite_url(draft), redis_url=None)
        try:
            await _check_digest(copy, manifest, progress)
            async with _decrypted(settings, copy, progress) as plain:
                await copy_sqlite(plain, draft, lambda left, pages: progress(f"{left} of {pages} pages left"))
            found = await _held(own, manifest, progress)
            await asyncio.to_thread(close_sqlite_log, draft)
            _require_keys(found.seals, manifest)
            uploads = await asyncio.to_thread(copy_uploads, copy.parent / UPLOADS, settings.data_dir / UPLOADS)
            former = target.with_name(f"{target.name}.before-{system_clock().now():%Y%m%dT%H%M%SZ}")
            stood = await asyncio.to_thread(swap_sqlite, draft, target, former)
        finally:
            await asyncio.to_thread(_clear_drafts, target)
    return _told(found, manifest, database=str(target), former=None if stood is None else str(stood), uploads=uploads)


async def _restore_postgres(settings: Settings, source: Path, progress: Progress, *, replace: bool) -> Restored:
    copy, manifest = await asyncio.to_thread(_backup_in, source, DUMP)
    async with alone(settings):
        empty = await is_postgres_empty(settings)
        if not empty:
            await _require_replaceable(settings, manifest, replace=replace)
        await _check_digest(copy, manifest, progress)
        async with _decrypted(settings, copy, progress) as plain:
            await load_postgres(settings, plain, progress, replace=not empty)
        # If the process is killed here, the tables have changed: the next process that opens them detects that and
        # holds.
        found = await _held(settings, manifest, progress)
        _require_keys(found.seals, manifest)
        uploads = await asyncio.to_thread(copy_uploads, copy.parent / UPLOADS, settings.data_dir / UPLOADS)
    return _told(found, manifest, database=settings.database_location, former=None, uploads=uploads)


async def _require_replaceable(settings: Settings, manifest: Backup | None, *, replace: bool) -> None:
    """Refuse a database that must not be replaced. Raises: Refused."""
    if not replace:
        raise Refused("the database is not empty: name an empty one, or say --replace, which drops what is there")
    facts = await database_facts(settings)
    if facts is None or manifest is None or facts.revision != manifest.schema:
        raise Refused("the database is of another schema than the backup: name an empty one")


def _told(found: "_Found", manifest: Backup | None, *, database: str, former: str | None, uploads: int) -> Restored:
    return Restored(
        database=database,
        made_at=None if manifest is None else manifest.made_at,
        as_of=iso_or_none(found.installation.as_of),
        former=former,
        uploads=uploads,
        ledger_holds=found.ledger.holds,
        ledger_entries=found.ledger.entries,
    )


@asynccontextmanager
async def alone(settings: Settings) -> AsyncIterator[None]:
    """Ensure that no process serves or works on the database inside the block. Raises: Refused, with the processes'
    names."""
    registry = open_registry(settings)
    if registry is None:
        raise NotSupported("who uses a storage from another package cannot be told")
    try:
        for role in Role:
            if not await registry.enter(role, alone=True):
                who = ", ".join(await registry.others(role)) or "a process"
                raise Refused(f"the database is in use ({who}): stop it first")
        yield
    finally:
        await registry.close()


def _backup_in(source: Path, name: str) -> tuple[Path, Backup | None]:
    """Return the path of the database's copy, and its manifest. Raises: Refused."""
    source = source.absolute()
    if source.is_file():
        return source, None
    if (source / f"{name}{ENCRYPTED}").is_file():
        name = f"{name}{ENCRYPTED}"
    if not (source / name).is_file():
        raise Refused(f"{source} holds no backup of such a database: neither a file nor a folder with {name}")
    try:
        return source / name, msgspec.json.decode((source / MANIFEST).read_bytes(), type=Backup)
    except FileNotFoundError:
        return source / name, None
    except msgspec.DecodeError as fault:
        raise Refused(f"{source / MANIFEST} cannot be read: {fault}") from fault


async def _check_digest(copy: Path, manifest: Backup | None, progress: Progress) -> None:
    if manifest is None:
        return
    progress("checking the checksum")
    if await asyncio.to_thread(digest, copy) != manifest.database_sha256:
        raise Refused(f"{copy} is not what was backed up: its checksum is another one than {MANIFEST} has")


@asynccontextmanager
async def _decrypted(settings: Settings, copy: Path, progress: Progress) -> AsyncIterator[Path]:
    """Give the plain copy: an encrypted one is decrypted into the data folder for the duration of the block. Raises:
    Refused when the keys do not open it."""
    if copy.suffix != ENCRYPTED:
        yield copy
        return
    progress("decrypting")
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    plain = settings.data_dir / f".{copy.stem}.restoring-plain"
    plain.unlink(missing_ok=True)  # an earlier restore may have been killed
    try:
        try:
            await asyncio.to_thread(decrypt_backup, settings, copy, plain)
        except VaultError as fault:
            raise Refused(f"{copy} does not open: {fault}") from fault
        yield plain
    finally:
        plain.unlink(missing_ok=True)


class _Found(msgspec.Struct, frozen=True):
    """Findings about a restored database."""

    installation: Installation
    ledger: LedgerReport
    seals: KeyReport


async def _held(settings: Settings, manifest: Backup | None, progress: Progress) -> _Found:
    """Upgrade the restored database and hold it. Return the findings about its books and encrypted values."""
    progress("bringing the schema up; checking the books and the seals")
    await migrate(settings)
    as_of = None if manifest is None else datetime.fromisoformat(manifest.made_at)
    async with open_app(settings, recognising=False) as app:
        installation = await hold(app.ports, Because.RESTORED, as_of)
        told = None if manifest is None else manifest.head
        ledger = await verify_ledger(app.ports, against=heads_in(told or ""))
        return _Found(installation, ledger, await inspect_keys(app.ports))


def _require_keys(seals: KeyReport, manifest: Backup | None) -> None:
    """Check that the available keys decrypt every value that the backup's own keys decrypted. Raises: Refused."""
    before = 0 if manifest is None else manifest.unopened
    if seals.unopened_count > before:
        raise Refused(
            f"{seals.unopened_count} sealed values do not open by the keys at hand: put the key file of the backup's "
            "time into the data folder, or set CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER"
        )


def _clear_drafts(target: Path) -> None:
    """Delete the drafts of this run and of earlier, interrupted ones."""
    for path in target.parent.glob(f".{target.name}.restoring*"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
