"""A SQLite file that is deleted or replaced while it is open: no write is acknowledged from then on, and an error
reports it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.core.domain.payments.payments import Payment
from cambist.frontends.conformance.storage.kit import StorageLocation, key, payment, put, read
from cambist.ports.faults import Unavailable
from cambist.ports.storage import Storage


def delete(path: Path) -> None:
    path.unlink()


def replace_by_an_empty_file(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.touch()
    fresh.replace(path)


def replace_by_a_copy(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def delete_the_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_the_index(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


HARM = [delete, replace_by_an_empty_file, replace_by_a_copy, delete_the_log, delete_the_index]


async def opened(place: StorageLocation) -> tuple[SqliteStorage, Path]:
    storage: Storage = await place.open()
    assert isinstance(storage, SqliteStorage)
    await put(storage, payment("pay_1"))
    assert storage.lost() is None
    return storage, Path(place.where)


@pytest.mark.parametrize("harm", HARM)
async def test_the_next_commit_is_not_acknowledged(
    file_location: StorageLocation, harm: Callable[[Path], None]
) -> None:
    storage, path = await opened(file_location)
    harm(path)
    with pytest.raises(Unavailable, match="deleted or replaced"):
        await put(storage, payment("pay_2"))
    with pytest.raises(Unavailable):
        await storage.check()


@pytest.mark.parametrize("harm", HARM)
async def test_lost_file_is_reported_and_no_longer_read(
    file_location: StorageLocation, harm: Callable[[Path], None]
) -> None:
    """The lost file may hold a used idempotency key, with the answer to a request."""
    storage, path = await opened(file_location)
    harm(path)
    assert "deleted or replaced" in (storage.lost() or "")
    with pytest.raises(Unavailable):
        await read(storage, Payment, "pay_1")
    with pytest.raises(Unavailable):
        async with storage.unit() as unit:
            await unit[Payment].find(order="-id", limit=10)


async def test_file_put_back_is_another_file(file_location: StorageLocation) -> None:
    """Commits made meanwhile are lost."""
    storage, path = await opened(file_location)
    aside = path.with_name("aside")
    path.rename(aside)
    assert storage.lost()
    aside.rename(path)
    assert storage.lost()
    with pytest.raises(Unavailable):
        await put(storage, key("k1"))
    again = await file_location.open()
    assert await read(again, Payment, "pay_1") is not None
