"""Payments that were paid before there was a ledger: migration 0003 books what came, so that they can be settled and
refunded as any other (ARCHITECTURE.md "Money")."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import create_async_engine

from cambist.adapters.clock import VirtualClock
from cambist.adapters.storage import migrate as migrations
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.sql.schema import metadata
from cambist.adapters.storage.table.codec import microseconds
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.ledger import SERVICE, EntryKind, JournalEntry, Purse, journal_entry
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.usecases.ledger.adoption import adopt
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.ledger.ledger import extend_journal
from cambist.core.usecases.operators.review import resolve_mismatch
from cambist.core.usecases.settlement.settlement import settle_now
from cambist.frontends.compose import open_house
from cambist.frontends.settings import Settings, VaultKeys
from tests.invariants import balances, check_books, everything

SHOP = "00000000-0000-7000-8000-00000000aaaa"
PAID_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAYMENT: dict[str, Any] = {
    "account_id": "acc_1",
    "shop_id": SHOP,
    "mode": "live",
    "amount": 100_00,
    "payment_method": "sbp",
    "expires_at": microseconds(PAID_AT),
    "auto_return": True,
    "refund_pending": False,
    "opening": "open",
    "bank": "simulator-live",
    "bank_reference": "r",
    "sequence": 1,
    "version": 1,
}


def payment(number: int, status: str, actual: int | None, transfer: str | None) -> dict[str, Any]:
    """A row as 0002 had it."""
    return {
        **PAYMENT,
        "id": f"pay_00000000-0000-7000-8000-{number:012}",
        "status": status,
        "actual_amount": actual,
        "transfer_id": transfer,
        "created_at": microseconds(PAID_AT) + number,
        "paid_at": microseconds(PAID_AT) if status == "paid" else None,
    }


ROWS = [
    *(payment(number, "paid", 100_00, f"t{number}") for number in range(1500)),
    payment(2000, "pending", None, None),
    payment(2001, "paid", 0, "t2001"),
    payment(2002, "amount_mismatch", 60_00, "t2002"),
    payment(2003, "amount_mismatch", None, None),
    payment(2004, "failed", 60_00, "t2004"),
]


ACCOUNT = {"id": "acc_1", "name": "Old", "default_shop_id": SHOP, "created_at": 1, "settings": "{}", "version": 0}
SHOP_ROW = {"id": SHOP, "account_id": "acc_1", "name": "Main", "name_folded": "main", "created_at": 1, "version": 0}
MONEY = {
    "account_id": "acc_1",
    "mode": "live",
    "payment_id": "pay_00000000-0000-7000-8000-000000002004",
    "amount": 60_00,
    "received_at": 4,
    "version": 0,
}


def fill(connection: sa.Connection) -> None:
    """A database as a service with 0002 left it."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent / "migrations"))
    config.attributes["metadata"] = metadata()
    config.attributes["connection"] = connection
    command.upgrade(config, "0002")
    rows: dict[str, list[dict[str, Any]]] = {
        "accounts": [ACCOUNT],
        "shops": [{**SHOP_ROW, "enabled": True, "markup": "0.03"}],
        "payments": ROWS,
        "suspense": [
            {**MONEY, "id": "sus_bank:t2004", "reason": "mismatch_rejected", "resolved_at": None},
            {**MONEY, "id": "sus_bank:gone", "reason": "too_late", "resolved_at": 5},
        ],
    }
    known = sa.MetaData()
    for name, these in rows.items():
        connection.execute(sa.Table(name, known, autoload_with=connection).insert(), these)


async def fill_old(url: str) -> None:
    if url.startswith("sqlite"):
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            fill(connection)
        engine.dispose()
        return
    asynchronous = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with asynchronous.begin() as opened:
        await opened.run_sync(fill)
    await asynchronous.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'old.db'}"
    found: str = request.getfixturevalue("empty_postgres")
    return found


async def test_what_came_before_the_ledger_is_in_the_books(url: str) -> None:
    """Booked once, so that its settlement and its review leave nothing below zero."""
    await fill_old(url)
    await migrate(url)
    settings = Settings(database_url=url, vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)), workers=1)
    async with open_house(settings, clock=VirtualClock(PAID_AT + timedelta(days=1))) as house:
        ports = house.ports
        await adopt(ports)
        assert (await verify_ledger(ports)).holds
        found = await balances(ports)
        assert found["acc_1", Mode.LIVE, Purse.PENDING] == 1500 * 100_00
        assert found["acc_1", Mode.LIVE, Purse.REVIEW] == 60_00
        assert found["acc_1", Mode.LIVE, Purse.SUSPENSE] == 60_00
        assert found[SERVICE, Mode.LIVE, Purse.BANK] == -(1500 * 100_00 + 2 * 60_00)

        reviewed = await resolve_mismatch(ports, "pay_00000000-0000-7000-8000-000000002002", "paid")
        assert reviewed.status is PaymentStatus.PAID
        batch = await settle_now(ports, Mode.LIVE, cutoff=PAID_AT + timedelta(days=2))
        assert batch.payments == 1502
        await check_books(ports)
        found = await balances(ports)
        assert found["acc_1", Mode.LIVE, Purse.PENDING] == found["acc_1", Mode.LIVE, Purse.REVIEW] == 0


async def test_entries_are_what_the_service_would_have_written(url: str) -> None:
    """The running balances lie in the same stripes, and each entry says when its money came."""
    await fill_old(url)
    await migrate(url)
    settings = Settings(database_url=url, vault=VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(32)), workers=1)
    async with open_house(settings, clock=VirtualClock(PAID_AT)) as house:
        entries = {entry.id: entry for entry in await everything(house.ports, JournalEntry)}
        assert len(entries) == 1502
        first = "pay_00000000-0000-7000-8000-000000000000"
        assert entries[f"receipt:{first}:1"] == journal_entry(
            EntryKind.RECEIPT,
            first,
            account_id="acc_1",
            mode=Mode.LIVE,
            at=PAID_AT,
            postings={Purse.BANK: -100_00, Purse.PENDING: 100_00},
        )
        assert await extend_journal(house.ports) == 0, "an operator takes the books over first"
        await adopt(house.ports)
        sealed = [entry for entry in await everything(house.ports, JournalEntry) if entry.number is not None]
        assert len(sealed) == 1502
        assert (await verify_ledger(house.ports)).holds
