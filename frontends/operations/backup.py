"""Backup of an installation: a folder from which another one can be restored, except for the vault's keys."""

import asyncio
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from ...adapters.durable import sync
from ...core.domain.chains import heads_in
from ...core.domain.days import iso
from ...core.domain.errors import Refusal
from ...core.domain.installation import Because
from ...core.usecases.common.chains import present_head
from ...core.usecases.common.quarantine import hold
from ...core.usecases.installation.backups import note_backup
from ...core.usecases.ledger.check import LedgerReport
from ...core.usecases.operators.reencrypt import KeyReport, inspect_keys
from ...ports.database_urls import sqlite_url
from ...ports.faults import Refused, Unavailable, Unreadable
from ..app.compose import open_app, system_clock
from ..app.maintenance import (
    close_sqlite_log,
    copy_database,
    database_facts,
    dump_postgres,
    encrypt_backup,
    is_postgres,
)
from ..settings.settings import Settings
from .checkpoint_file import verify_since

DATABASE, DUMP, UPLOADS, MANIFEST = "cambist.db", "cambist.dump", "uploads", "backup.json"
ENCRYPTED = ".encrypted"
"""Suffix of an encrypted copy of the database."""
log = logging.getLogger("cambist.backup")

_PLAIN = ".backup."
"""Start of the names of folders with plain copies that are about to be encrypted; the process's number follows."""
_UPLOAD = re.compile(r"[0-9a-f]{64}\Z")

Progress = Callable[[str], None]


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a backup, stored in it as `backup.json`."""

    made_at: str
    cambist: str
    database: str
    database_bytes: int
    database_sha256: str
    uploads: int
    """Number of files of clients' documents."""
    ledger_holds: bool
    ledger_entries: int
    vault_keys: tuple[int, ...]
    """Ids of the keys that decrypt its values. The keys themselves are not in the backup."""
    unopened: int
    """Number of encrypted values that no available key decrypts."""
    head: str | None = None
    """End of the chains of the ledger and the audit log in the backup, for `cambist ledger verify --from`. Null if the
    chains have a fault."""
    encryption_key: int | None = None
    """Id of the vault's key that encrypts the copy of the database; null if it is not encrypted. Documents always
    are."""
    schema: str | None = None
    """Revision of the database's schema; null for an empty database."""

    @property
    def is_sound(self) -> bool:
        """Whether the copied data is valid. The copy itself is exact in any case."""
        return self.ledger_holds and not self.unopened


async def back_up(
    settings: Settings, target: Path, progress: Progress, *, encrypt: bool = False, since: Path | None = None
) -> Backup:
    """Make the folder `target` while the service runs: the database as of one moment, and the uploaded files. A
    Postgres database is dumped, and its books and encrypted values are checked in the database itself.

    The folder appears complete and checked, or not at all. Files are copied after the database, so every document in
    the database has its file, unless it was deleted meanwhile, as for a decided check. With `encrypt`, the plain copy
    is made and checked in the data folder, and only its encrypted form is written to `target`. `since`: file with the
    checkpoint from which the ledger is verified (checkpoint_file.py). Raises: Refused when the
    target exists already; Unavailable, NotSupported, VaultError, OSError.
    """
    target = await asyncio.to_thread(target.absolute)
    if await asyncio.to_thread(target.exists):
        raise Refused(f"{target} is there already: name a new folder")
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    draft.mkdir(mode=0o700, parents=True)
    plain = draft
    try:
        if encrypt:
            plain = settings.data_dir / f"{_PLAIN}{os.getpid()}"
            await asyncio.to_thread(_clear_plain, settings.data_dir)
            plain.mkdir(mode=0o700, parents=True)
        began = system_clock().now()
        head = None
        if is_postgres(settings):
            copy = plain / DUMP
            # Read the head before the dump: entries chained meanwhile may be missing in the dump.
            head = await _head_of(settings)
            await dump_postgres(settings, copy, progress)
        else:
            copy = plain / DATABASE
            await copy_database(settings, copy, lambda left, pages: progress(f"{left} of {pages} pages left"))
        files = await asyncio.to_thread(copy_uploads, settings.data_dir / UPLOADS, draft / UPLOADS)
        progress(f"{files} uploaded files copied; checking")
        ledger, seals = await (
            _looked_at(settings, head, since) if copy.name == DUMP else _verified(settings, copy, began, since)
        )
        facts, key = await database_facts(settings), None
        if encrypt:
            progress("encrypting")
            source, copy = copy, draft / f"{copy.name}{ENCRYPTED}"
            key = await asyncio.to_thread(encrypt_backup, settings, source, copy)
        made = Backup(
            made_at=iso(began),
            cambist=version("cambist"),
            database=copy.name,
            database_bytes=copy.stat().st_size,
            database_sha256=await asyncio.to_thread(digest, copy),
            uploads=files,
            ledger_holds=ledger.holds,
            ledger_entries=ledger.entries,
            vault_keys=tuple(seals.in_use),
            unopened=seals.unopened_count,
            encryption_key=key,
            head=head if is_postgres(settings) else ledger.tagged_head,
            schema=None if facts is None else facts.revision,
        )
        await asyncio.to_thread(_finish, draft, made)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    finally:
        if plain != draft:
            shutil.rmtree(plain, ignore_errors=True)
    sync(target.parent)
    if made.is_sound:
        await _noted(settings, began)
    return made


def _clear_plain(data_dir: Path) -> None:
    """Delete plain copies that killed processes left. Processes of containers have the same number again and again."""
    for path in data_dir.glob(f"{_PLAIN}*"):
        process = path.name.removeprefix(_PLAIN)
        if process == str(os.getpid()) or not (process.isdigit() and _lives(int(process))):
            shutil.rmtree(path, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


async def _noted(settings: Settings, began: datetime) -> None:
    """Record the backup in the database. If that fails, the backup is still valid, but an alarm about its age may
    follow."""
    try:
        async with open_app(settings, patient=True) as app:
            await note_backup(app.ports, began)
    except (Unavailable, Unreadable) as fault:
        log.warning("the backup could not be noted in the database: %s", fault)


async def _verified(
    settings: Settings, database: Path, as_of: datetime, since: Path | None
) -> tuple[LedgerReport, KeyReport]:
    """Open the copy as the service does, and verify its books and encrypted values. The copy is held, because a service
    that starts from it later does not know what was sent since."""
    own = msgspec.structs.replace(settings, database_url=sqlite_url(database), redis_url=None)

    async with open_app(own, recognising=False) as app:
        await hold(app.ports, Because.BACKUP, as_of)
        found = await verify_since(app.ports, since), await inspect_keys(app.ports)
    await asyncio.to_thread(close_sqlite_log, database)
    return found


async def _head_of(settings: Settings) -> str | None:
    """Return the head, or None if it cannot be read: the dump and the check of the books report the reason."""
    try:
        async with open_app(settings) as app:
            return await present_head(app.ports)
    except (Refusal, Unavailable):
        return None


async def _looked_at(settings: Settings, head: str | None, since: Path | None) -> tuple[LedgerReport, KeyReport]:
    """Verify the books and encrypted values of the database itself, because a dump cannot be opened."""
    async with open_app(settings) as app:
        books = await verify_since(app.ports, since, against=heads_in(head or ""))
        return books, await inspect_keys(app.ports)


def copy_uploads(source: Path, target: Path) -> int:
    """Copy the uploads that the target lacks, and return their number. A file deleted during the copy is left out."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    count = 0
    for path in sorted(source.iterdir()) if source.exists() else ():
        if not _UPLOAD.match(path.name) or (target / path.name).exists():
            continue
        try:
            shutil.copy2(path, target / path.name)
        except FileNotFoundError:
            (target / path.name).unlink(missing_ok=True)
            continue
        count += 1
    return count


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finish(draft: Path, made: Backup) -> None:
    """Write the manifest and sync everything to disk before the backup gets its name."""
    manifest = draft / MANIFEST
    manifest.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    manifest.chmod(0o600)
    for path in draft.rglob("*"):
        sync(path)
    sync(draft)
