"""A copy of a database is recognised by the fingerprint beside it, and held; an original is not."""

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from uuid import uuid4

import pytest

from cambist.adapters.storage.sqlite.fingerprints import FileFingerprints, marks_path
from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.installation import Because, Installation
from cambist.core.domain.payments.orders import PaymentOrder
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.common.quarantine import holds_back, read_hold, read_installation
from cambist.core.usecases.installation.marking import mark_anew
from cambist.core.usecases.installation.resume import resume
from cambist.core.usecases.payments.payments import create_payment
from cambist.frontends.app.compose import App, open_app
from cambist.frontends.operations.backup import back_up
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import Held
from cambist.ports.fingerprints import Fingerprints
from tests.payout_kit import WALLET


class Dying(FileFingerprints):
    """Fingerprints whose process dies at this write, before or after it reached the disk."""

    def __init__(self, database: Path, at: int, *, after: bool) -> None:
        super().__init__(database)
        self.left = at
        self.after = after

    async def write(self, marks: Fingerprints) -> None:
        self.left -= 1
        if self.left < 0 and not self.after:
            raise KeyboardInterrupt
        await super().write(marks)
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path: Path, migrated_file: Path) -> Path:
    """A data folder at head with nothing in it."""
    made = tmp_path / "data"
    made.mkdir()
    shutil.copy(migrated_file, made / "cambist.db")
    return made


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[App]:
    async with open_app(Settings(data_dir=folder)) as app:
        yield app


async def fill(folder: Path, mode: Mode = Mode.LIVE) -> None:
    """An account with a payment."""
    async with opened(folder) as app:
        made = await create_account(app.ports, "Tea")
        account = await app.ports.storage.get(Account, made.account_id)
        assert account is not None
        caller = Caller(account=account, mode=mode, key_id="a-key")
        await create_payment(app.ports, caller, str(uuid4()), lambda: PaymentOrder(amount_rub="100.00"))


async def why_held(folder: Path) -> Because | None:
    """Opened as a process would: why it is held then; None: it is not."""
    async with opened(folder) as app:
        found = await read_hold(app.ports)
    return None if found is None else found.held_because


async def mark(folder: Path) -> None:
    """Write the mark, as a serving process does now and then."""
    async with opened(folder) as app:
        await mark_anew(
            app.ports.storage, app.ports.vault, FileFingerprints(folder / "cambist.db"), app.ports.clock, app.ports.ids
        )


def whole(folder: Path) -> bytes:
    """The file with what its log holds."""
    with closing(sqlite3.connect(folder / "cambist.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "cambist.db").read_bytes()


async def test_database_that_stays_in_place_is_never_quarantined(folder: Path) -> None:
    await fill(folder)
    for _ in range(3):
        assert await why_held(folder) is None
        await mark(folder)
    assert await why_held(folder) is None


async def test_a_folder_that_was_renamed_is_not_held(folder: Path) -> None:
    await fill(folder)
    assert await why_held(folder.rename(folder.with_name("moved"))) is None


async def test_a_folder_that_was_copied_is_held(folder: Path, tmp_path: Path) -> None:
    await fill(folder)
    shutil.copytree(folder, tmp_path / "copy")
    assert await why_held(tmp_path / "copy") is Because.COPIED
    assert await why_held(folder) is None, "the one that it is a copy of goes on"


async def test_a_database_without_its_mark_is_held(folder: Path) -> None:
    await fill(folder)
    marks_path(folder / "cambist.db").unlink()
    assert await why_held(folder) is Because.COPIED


async def test_a_former_state_that_was_put_into_the_file_is_held(folder: Path) -> None:
    """`cp` over a file keeps its place: only the mark is older."""
    await fill(folder)
    former = whole(folder)
    await mark(folder)
    whole(folder)
    for path in folder.glob("cambist.db-*"):
        path.unlink()
    (folder / "cambist.db").write_bytes(former)
    assert await why_held(folder) is Because.OLDER


async def test_a_former_state_of_before_the_mark_is_held(folder: Path) -> None:
    await fill(folder)
    async with opened(folder) as app, app.ports.storage.unit() as unit:
        row = await unit[Installation].get("installation")
        assert row is not None
        unit[Installation].remove(row)
        await unit.commit()
    assert await why_held(folder) is Because.OLDER


async def test_upgraded_database_without_a_fingerprint_is_not_quarantined(folder: Path) -> None:
    await fill(folder)
    marks_path(folder / "cambist.db").unlink()
    with closing(sqlite3.connect(folder / "cambist.db")) as connection:
        connection.execute("DELETE FROM installations")
        connection.commit()
    assert await why_held(folder) is None
    assert marks_path(folder / "cambist.db").exists()


async def test_a_copy_with_nothing_of_live_mode_is_not_held(folder: Path, tmp_path: Path) -> None:
    await fill(folder, Mode.TEST)
    shutil.copytree(folder, tmp_path / "copy")
    assert await why_held(tmp_path / "copy") is None
    await fill(tmp_path / "copy")
    assert await why_held(tmp_path / "copy") is None, "it was marked where it lies"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("first", [False, True])
async def test_crash_while_marking_leaves_matching_fingerprints(
    folder: Path, at: int, *, after: bool, first: bool
) -> None:
    await fill(folder)
    if first:
        marks_path(folder / "cambist.db").unlink()
        with closing(sqlite3.connect(folder / "cambist.db")) as connection:
            connection.execute("DELETE FROM installations")
            connection.commit()
    async with open_app(Settings(data_dir=folder), recognising=False) as app:
        dying = Dying(folder / "cambist.db", at, after=after)
        with pytest.raises(KeyboardInterrupt):
            await mark_anew(app.ports.storage, app.ports.vault, dying, app.ports.clock, app.ports.ids)
    assert await why_held(folder) is None
    await mark(folder)
    assert await why_held(folder) is None


async def test_two_processes_that_mark_at_once_leave_what_fits(folder: Path) -> None:
    await fill(folder)
    async with opened(folder) as one, opened(folder) as other:
        beside = FileFingerprints(folder / "cambist.db")

        class Between(FileFingerprints):
            async def write(self, marks: Fingerprints) -> None:
                await super().write(marks)
                if len(marks.marks) > 1:
                    await mark_anew(other.ports.storage, other.ports.vault, beside, other.ports.clock, other.ports.ids)

        # The other one marks each time between this one's two writes, and a bound ends it.
        before = await read_installation(one.ports.storage, one.ports.vault)
        once = Once(Between(folder / "cambist.db"), beside)
        await mark_anew(one.ports.storage, one.ports.vault, once, one.ports.clock, one.ports.ids)
        assert await read_installation(one.ports.storage, one.ports.vault) != before
    assert await why_held(folder) is None


class Once(FileFingerprints):
    """Writes by the one the first time, by the other from then on."""

    def __init__(self, first: FileFingerprints, then: FileFingerprints) -> None:
        super().__init__(then._database)
        self.ways = [then, first]

    async def write(self, marks: Fingerprints) -> None:
        await (self.ways.pop() if len(self.ways) > 1 else self.ways[0]).write(marks)


async def test_a_backup_is_held_wherever_it_is_opened_until_it_is_resumed(folder: Path, tmp_path: Path) -> None:
    await fill(folder)
    await back_up(Settings(data_dir=folder), tmp_path / "backup", lambda _: None)
    shutil.copytree(tmp_path / "backup", tmp_path / "restored")
    shutil.copy(folder / "vault.key", tmp_path / "restored")
    assert await why_held(tmp_path / "restored") is Because.BACKUP
    assert await why_held(folder) is None
    async with opened(tmp_path / "restored") as app:
        await resume(app.ports, FileFingerprints(tmp_path / "restored" / "cambist.db"))
    assert await why_held(tmp_path / "restored") is None
    assert await why_held(tmp_path / "restored") is None


async def test_a_row_that_cannot_be_read_is_a_hold_and_stops_nobody(folder: Path) -> None:
    await fill(folder)
    with closing(sqlite3.connect(folder / "cambist.db")) as connection:
        connection.execute("UPDATE installations SET held_because = 'of a later version'")
        connection.commit()
    assert await why_held(folder) is Because.UNREADABLE
    async with opened(folder) as app:
        with pytest.raises(Held):
            await app.ports.senders.of_mode("live").sign("wd_1", WALLET, 1_000_000)
        async with app.ports.storage.unit() as unit:
            assert await holds_back(app.ports, unit, Mode.LIVE)


async def test_a_copy_that_is_held_is_as_of_a_moment_that_it_is_not_older_than(folder: Path, tmp_path: Path) -> None:
    await fill(folder)
    async with opened(folder) as app:
        row = await read_installation(app.ports.storage, app.ports.vault)
    shutil.copytree(folder, tmp_path / "copy")
    async with opened(tmp_path / "copy") as app:
        found = await read_hold(app.ports)
    assert row is not None
    assert found is not None
    assert found.as_of == row.marked_at
