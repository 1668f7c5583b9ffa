"""Clients that were there before migration 0005 keep what they were."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage import migrate as migrations
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.sql.schema import metadata
from cambist.adapters.storage.sqlite.sqlite import SqliteStorage
from cambist.core.domain.kyc.clients import Client, KycStatus

OLD = """INSERT INTO clients (id, account_id, mode, phone, phone_digest, kyc, created_at, verified_at, blocked, version)
VALUES (?, 'a', 'live', x'01', ?, ?, 1000000, ?, 0, 3)"""


def test_clients_of_before_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent / "migrations"))
    config.attributes["metadata"] = metadata()
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
    engine.dispose()
    with closing(sqlite3.connect(path)) as old, old:
        old.execute(OLD, ("one", b"1", "verified", 2000000))
        old.execute(OLD, ("two", b"2", "failed", None))
    asyncio.run(migrate(f"sqlite:///{path}"))

    async def read() -> list[Client]:
        storage = await SqliteStorage.open(path, VirtualClock())
        async with storage.unit() as unit:
            found = await unit[Client].find()
        await storage.close()
        return found

    one, two = asyncio.run(read())
    assert (one.kyc, one.was_refused, one.updated_at, one.checks, one.version) == (
        KycStatus.VERIFIED,
        False,
        one.created_at,
        0,
        3,
    )
    assert one.verified_at is not None
    assert (two.kyc, two.was_refused, two.level, two.sequence) == (KycStatus.FAILED, True, 0, 0)
