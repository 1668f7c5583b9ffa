"""A backup of an installation: a folder from which another one can be restored, but for the vault's keys."""

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

from ..adapters.durable import sync
from ..core.domain.chains import heads_in
from ..core.domain.days import iso
from ..core.domain.errors import Refusal
from ..core.domain.installation import Because
from ..core.usecases.chains import present_head
from ..core.usecases.holding import hold
from ..core.usecases.installation.backups import note_backup
from ..core.usecases.ledger.check import LedgerReport, verify_ledger
from ..core.usecases.operators.reseal import SealReport, inspect_seals
from ..ports.database_urls import sqlite_url
from ..ports.faults import Refused, Unavailable, Unreadable
from .compose import open_house, system_clock
from .maintenance import close_sqlite_log, copy_database, database_facts, dump_postgres, is_postgres
from .settings import Settings

DATABASE, DUMP, UPLOADS, MANIFEST = "cambist.db", "cambist.dump", "uploads", "backup.json"
log = logging.getLogger("cambist.backup")

_UPLOAD = re.compile(r"[0-9a-f]{64}\Z")

Progress = Callable[[str], None]


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds; it lies beside it as `backup.json`."""

    made_at: str
    cambist: str
    database: str
    database_bytes: int
    database_sha256: str
    uploads: int
    """Files of clients' documents."""
    ledger_holds: bool
    ledger_entries: int
    vault_keys: tuple[int, ...]
    """The ids of the keys that open what is sealed in it. The keys themselves are not in it."""
    unopened: int
    """Sealed values that no key at hand opens."""
    head: str | None = None
    """Where the chains of the ledger and the audit log end in it, for `cambist ledger verify --from`; null in backups
    of before this was noted, and where they bear no tag of the vault."""
    schema: str | None = None
    """The revision of the database's schema; null in backups of before this was noted."""

    @property
    def is_sound(self) -> bool:
        """What was copied is as it should be. The copy itself is exact in any case."""
        return self.ledger_holds and not self.unopened


async def back_up(settings: Settings, target: Path, progress: Progress) -> Backup:
    """Make the folder `target`, beside a working service: the database as of one moment, and the uploaded files. Of
    Postgres it is a dump, of which books and seals are those of the database just then.

    It appears whole and checked, or not at all. The files are copied after the database, so every document that it
    speaks of is there, unless it was deleted meanwhile, as a decided check's is.
    Raises: Refused when something is there already; Unavailable, NotSupported, VaultError, OSError.
    """
    target = await asyncio.to_thread(target.absolute)
    if await asyncio.to_thread(target.exists):
        raise Refused(f"{target} is there already: name a new folder")
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    draft.mkdir(mode=0o700, parents=True)
    try:
        began = system_clock().now()
        head = None
        if is_postgres(settings):
            copy = draft / DUMP
            # Before the dump: what is sealed meanwhile may not be in it.
            head = await _head_of(settings)
            await dump_postgres(settings, copy, progress)
        else:
            copy = draft / DATABASE
            await copy_database(settings, copy, lambda left, pages: progress(f"{left} of {pages} pages left"))
        files = await asyncio.to_thread(copy_uploads, settings.data_dir / UPLOADS, draft / UPLOADS)
        progress(f"{files} uploaded files copied; checking")
        ledger, seals = await (_looked_at(settings, head) if copy.name == DUMP else _verified(settings, copy, began))
        facts = await database_facts(settings)
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
            head=head if is_postgres(settings) else ledger.tagged_head,
            schema=None if facts is None else facts.revision,
        )
        await asyncio.to_thread(_finish, draft, made)
        draft.rename(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync(target.parent)
    if made.is_sound:
        await _noted(settings, began)
    return made


async def _noted(settings: Settings, began: datetime) -> None:
    """A backup that cannot be noted is one all the same; it alarms."""
    try:
        async with open_house(settings, patient=True) as house:
            await note_backup(house.ports, began)
    except (Unavailable, Unreadable) as fault:
        log.warning("the backup could not be noted in the database: %s", fault)


async def _verified(settings: Settings, database: Path, as_of: datetime) -> tuple[LedgerReport, SealReport]:
    """Open the copy as the service would, and prove the books and the seals in it. It is held: who serves from it one
    day does not know what went out since."""
    own = msgspec.structs.replace(settings, database_url=sqlite_url(database), redis_url=None)

    async with open_house(own, recognising=False) as house:
        await hold(house.ports, Because.BACKUP, as_of)
        found = await verify_ledger(house.ports), await inspect_seals(house.ports)
    await asyncio.to_thread(close_sqlite_log, database)
    return found


async def _head_of(settings: Settings) -> str | None:
    """None where it cannot be told: the dump, and the check of the books, name why."""
    try:
        async with open_house(settings) as house:
            return await present_head(house.ports)
    except (Refusal, Unavailable):
        return None


async def _looked_at(settings: Settings, head: str | None) -> tuple[LedgerReport, SealReport]:
    """Books and seals of the database itself: a dump cannot be looked into."""
    async with open_house(settings) as house:
        books = await verify_ledger(house.ports, against=heads_in(head or ""))
        return books, await inspect_seals(house.ports)


def copy_uploads(source: Path, target: Path) -> int:
    """How many were not there. One that is deleted while it is copied is left out."""
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
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finish(draft: Path, made: Backup) -> None:
    """Everything is on disk before the backup gets its name."""
    manifest = draft / MANIFEST
    manifest.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    manifest.chmod(0o600)
    for path in draft.rglob("*"):
        sync(path)
    sync(draft)
