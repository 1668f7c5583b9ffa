"""Restoring a backup on SQLite: the copy is checked beside the database, put in its place in one step, and held."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from ..core.domain.days import iso_or_none
from ..core.domain.installation import Because, Installation
from ..core.usecases.holding import hold
from ..core.usecases.ledger_check import LedgerReport, verify_ledger
from ..core.usecases.reseal import SealReport, inspect_seals
from ..ports.faults import NotSupported, Refused
from ..ports.presence import Part
from .backup import DATABASE, MANIFEST, UPLOADS, Backup, Progress, copy_uploads, digest
from .compose import migrate, open_house, system_clock
from .settings import Settings
from .upkeep import close_sqlite_log, copy_sqlite, open_roll, swap_sqlite


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in place now."""

    database: str
    made_at: str | None
    """When the backup was made, as it says itself; null for a bare file."""
    as_of: str | None
    """What went out from then on may be unknown to it."""
    former: str | None
    """Where the database is that stood there before; null: there was none."""
    uploads: int
    """Files of clients' documents that were missing and were put back."""
    ledger_holds: bool
    ledger_entries: int
    held: bool = True


async def restore(settings: Settings, source: Path, progress: Progress) -> Restored:
    """Put the backup `source`, a folder that `cambist backup` made or a bare SQLite file, in the place of the database
    that the settings name, which nobody may have open.

    It is copied beside it, its pages, books and seals are checked there, and its schema is brought up; then it is
    renamed. Broken off whenever, the former database or the restored one stands there whole. What stands there is held.
    Raises: Refused for a folder in use, a damaged copy, or keys that do not open it; NotSupported for another database;
    Unavailable, VaultError, OSError.
    """
    if not settings.storage_url.startswith("sqlite:///"):
        raise NotSupported("this restores SQLite only")
    target = await asyncio.to_thread(Path(settings.storage_url.removeprefix("sqlite:///")).absolute)
    copy, manifest = await asyncio.to_thread(_backup_in, source)
    async with alone(settings):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(_clear_drafts, target)
        draft = target.with_name(f".{target.name}.restoring")
        try:
            if manifest is not None:
                progress("checking the checksum")
                await _check_digest(copy, manifest)
            await copy_sqlite(copy, draft, lambda left, pages: progress(f"{left} of {pages} pages left"))
            progress("bringing the schema up; checking the books and the seals")
            installation, ledger, seals = await _held(settings, draft, manifest)
            _require_keys(seals, manifest)
            uploads = await asyncio.to_thread(copy_uploads, copy.parent / UPLOADS, settings.data_dir / UPLOADS)
            former = target.with_name(f"{target.name}.before-{system_clock().now():%Y%m%dT%H%M%SZ}")
            stood = await asyncio.to_thread(swap_sqlite, draft, target, former)
        finally:
            await asyncio.to_thread(_clear_drafts, target)
    return Restored(
        database=str(target),
        made_at=None if manifest is None else manifest.made_at,
        as_of=iso_or_none(installation.as_of),
        former=None if stood is None else str(stood),
        uploads=uploads,
        ledger_holds=ledger.holds,
        ledger_entries=ledger.entries,
    )


@asynccontextmanager
async def alone(settings: Settings) -> AsyncIterator[None]:
    """Nobody serves or works on the database inside, and nobody begins to. Raises: Refused, naming who does."""
    roll = open_roll(settings)
    if roll is None:
        raise NotSupported("who uses a storage from another package cannot be told")
    try:
        for part in Part:
            if not await roll.enter(part, alone=True):
                who = ", ".join(await roll.others(part)) or "a process"
                raise Refused(f"the database is in use ({who}): stop it first")
        yield
    finally:
        await roll.close()


def _backup_in(source: Path) -> tuple[Path, Backup | None]:
    """The database file, and what its manifest says. Raises: Refused."""
    source = source.absolute()
    if source.is_file():
        return source, None
    if not (source / DATABASE).is_file():
        raise Refused(f"{source} holds no backup: neither a database nor a folder with {DATABASE}")
    try:
        return source / DATABASE, msgspec.json.decode((source / MANIFEST).read_bytes(), type=Backup)
    except FileNotFoundError:
        return source / DATABASE, None
    except msgspec.DecodeError as fault:
        raise Refused(f"{source / MANIFEST} cannot be read: {fault}") from fault


async def _check_digest(copy: Path, manifest: Backup) -> None:
    if await asyncio.to_thread(digest, copy) != manifest.database_sha256:
        raise Refused(f"{copy} is not what was backed up: its checksum is another one than {MANIFEST} has")


async def _held(
    settings: Settings, draft: Path, manifest: Backup | None
) -> tuple[Installation, LedgerReport, SealReport]:
    """Bring the copy up to this version and hold it; what its books and seals say."""
    own = msgspec.structs.replace(settings, database_url=f"sqlite:///{draft}", redis_url=None)
    await migrate(own)
    as_of = None if manifest is None else datetime.fromisoformat(manifest.made_at)
    async with open_house(own, recognising=False) as house:
        installation = await hold(house.ports, Because.RESTORED, as_of)
        found = installation, await verify_ledger(house.ports), await inspect_seals(house.ports)
    await asyncio.to_thread(close_sqlite_log, draft)
    return found


def _require_keys(seals: SealReport, manifest: Backup | None) -> None:
    """The keys at hand open all that the backup's own keys opened. Raises: Refused."""
    before = 0 if manifest is None else manifest.unopened
    if seals.unopened_count > before:
        raise Refused(
            f"{seals.unopened_count} sealed values do not open by the keys at hand: put the key file of the backup's "
            "time into the data folder, or set CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER"
        )


def _clear_drafts(target: Path) -> None:
    """What this or an earlier run, which was broken off, had copied."""
    for path in target.parent.glob(f".{target.name}.restoring*"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
